"""The learning-rate range test: train with a rate that grows from tiny to absurd, and read off where the loss falls and where it bursts.

It spends a few dozen steps and spoils the weights it trains: give it a copy.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from quoin.errors import Mistake

__all__ = ["RangeTest", "range_test"]


@dataclass(frozen=True)
class RangeTest:
    """The loss at each rate tried, as it came and smoothed; `burst` says whether the test ended by a loss out of hand."""

    rates: tuple[float, ...]
    losses: tuple[float, ...]
    smoothed: tuple[float, ...]
    burst: bool

    @property
    def edge(self) -> float:
        """The rate of the step that led to the least smoothed loss: about the largest that can be borne."""
        return self.rates[max(self._end - 1, 0)]

    @property
    def steepest(self) -> float:
        """The rate of the step under which the smoothed loss fell most, up to the edge: a rate to train with."""
        falls = [after - before for before, after in pairwise(self.smoothed[: self._end + 1])]
        return self.rates[falls.index(min(falls))] if falls else self.rates[0]

    @property
    def _end(self) -> int:
        return self.smoothed.index(min(self.smoothed))


def range_test(
    step: Callable[[float], float],
    *,
    smallest: float = 1e-6,
    largest: float = 10.0,
    steps: int = 100,
    smoothing: float = 0.9,
    burst_at: float = 4.0,
) -> RangeTest:
    """η_k = η_min (η_max / η_min)^{k/(n-1)}: `step(η)` trains one step at rate η and gives the loss it found before moving.

    The losses are smoothed by a running mean of decay `smoothing`, its bias corrected. The test ends early at a loss that is not
    finite, or once the smoothed loss is above the first by `burst_at` times its best fall, or a tenth of itself if that is more.

    >>> x = [1.0]
    >>> def step(rate):  # gradient descent on 2x², which bursts for rates above 1/2
    ...     loss = 2 * x[0] ** 2
    ...     x[0] -= rate * 4 * x[0]
    ...     return loss
    >>> found = range_test(step, smallest=1e-3, steps=50, smoothing=0.0)
    >>> 0.4 < found.edge <= 0.5, found.burst
    (True, True)
    """
    if not (0 < smallest < largest and math.isfinite(largest)):
        raise Mistake(f"expected rates 0 < smallest < largest, came {smallest} and {largest}; give e.g. 1e-6 and 10")
    if steps < 2 or not 0 <= smoothing < 1 or not burst_at > 0:
        raise Mistake(
            f"expected 2 steps or more, a smoothing in [0, 1) and a positive burst_at, came {steps}, {smoothing} and {burst_at}; "
            "leave them out for the defaults"
        )
    rates: list[float] = []
    losses: list[float] = []
    smoothed: list[float] = []
    mean, burst = 0.0, False
    for k in range(steps):
        rate = smallest * (largest / smallest) ** (k / (steps - 1))
        loss = float(step(rate))
        if not math.isfinite(loss):
            if k == 0:
                raise Mistake(f"expected a finite loss at the smallest rate {smallest:g}, came {loss}; look at the model or its data first")
            burst = True
            break
        mean = smoothing * mean + (1 - smoothing) * loss
        rates.append(rate)
        losses.append(loss)
        smoothed.append(mean / (1 - smoothing ** (k + 1)))
        if smoothed[-1] - smoothed[0] > burst_at * max(smoothed[0] - min(smoothed), abs(smoothed[0]) / 10):
            burst = True
            break
    return RangeTest(tuple(rates), tuple(losses), tuple(smoothed), burst)
