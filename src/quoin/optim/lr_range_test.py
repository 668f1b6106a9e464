"""The learning-rate range test: train with a learning rate that grows from tiny to absurd, and see where the loss falls
and where it diverges.

It spends a few dozen steps and spoils the weights it trains: give it a copy.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from quoin.display import shown
from quoin.errors import UserError

__all__ = ["LRRangeTest", "lr_range_test"]


@shown
@dataclass(frozen=True)
class LRRangeTest:
    """The loss at each learning rate tried, raw and smoothed; `diverged` is whether the test ended at a loss that
    diverged. The first `burn_in` smoothed losses are means of so few that chance alone may make them low or high.
    """

    lrs: tuple[float, ...]
    losses: tuple[float, ...]
    smoothed: tuple[float, ...]
    diverged: bool
    burn_in: int = 0

    @property
    def max_stable_lr(self) -> float:
        """The learning rate of the step that led to the least smoothed loss: about the largest that can be borne."""
        return self.lrs[max(self._end - 1, 0)]

    @property
    def steepest(self) -> float:
        """The learning rate of the step under which the smoothed loss fell most, up to `max_stable_lr`: one to train
        with.
        """
        first = min(self.burn_in, self._end)
        falls = [after - before for before, after in pairwise(self.smoothed[first : self._end + 1])]
        return self.lrs[first + falls.index(min(falls))] if falls else self.lrs[0]

    @property
    def suggestion(self) -> float:
        """A tenth of `max_stable_lr`, the rule of thumb by which to choose the peak learning rate of a run.

        The largest learning rate that a few steps can bear diverges in many, and smoothing finds the least loss late.
        """
        return self.max_stable_lr / 10

    @property
    def _end(self) -> int:
        late = self.smoothed[self.burn_in :] or self.smoothed
        return len(self.smoothed) - len(late) + late.index(min(late))


def lr_range_test(
    step: Callable[[float], float],
    *,
    min_lr: float = 1e-6,
    max_lr: float = 10.0,
    num_steps: int = 100,
    smoothing: float = 0.9,
    divergence_factor: float = 4.0,
) -> LRRangeTest:
    """η_k = η_min (η_max / η_min)^{k/(n-1)}: `step(η)` trains one step at learning rate η and gives the loss it found
    before moving.

    The losses are smoothed by a running mean of decay `smoothing`, its bias corrected; it begins to tell after
    1/(1 - smoothing) steps. The test ends early at a loss that is not finite, or once the smoothed loss is above where
    it began by `divergence_factor` times its best fall, or a tenth of itself if that is more.

    >>> x = [1.0]
    >>> def step(lr):  # gradient descent on 2x², which diverges for learning rates above 1/2
    ...     loss = 2 * x[0] ** 2
    ...     x[0] -= lr * 4 * x[0]
    ...     return loss
    >>> found = lr_range_test(step, min_lr=1e-3, num_steps=50, smoothing=0.0)
    >>> 0.4 < found.max_stable_lr <= 0.5, found.diverged
    (True, True)
    """
    if not (0 < min_lr < max_lr and math.isfinite(max_lr)):
        raise UserError(
            f"expected learning rates 0 < min_lr < max_lr, got {min_lr} and {max_lr}; give e.g. 1e-6 and 10"
        )
    if num_steps < 2 or not 0 <= smoothing < 1 or not divergence_factor > 0:
        raise UserError(
            f"expected 2 steps or more, a smoothing in [0, 1) and a positive divergence_factor, got {num_steps}, "
            f"{smoothing} and {divergence_factor}; "
            "leave them out for the defaults"
        )
    lrs: list[float] = []
    losses: list[float] = []
    smoothed: list[float] = []
    mean, diverged, burn_in = 0.0, False, round(1 / (1 - smoothing)) - 1
    for k in range(num_steps):
        lr = min_lr * (max_lr / min_lr) ** (k / (num_steps - 1))
        loss = float(step(lr))
        if not math.isfinite(loss):
            if k == 0:
                raise UserError(
                    f"expected a finite loss at the smallest learning rate {min_lr:g}, got {loss}; "
                    "check the model and its data first"
                )
            diverged = True
            break
        mean = smoothing * mean + (1 - smoothing) * loss
        lrs.append(lr)
        losses.append(loss)
        smoothed.append(mean / (1 - smoothing ** (k + 1)))
        told = smoothed[burn_in:]
        if told and told[-1] - told[0] > divergence_factor * max(told[0] - min(told), abs(told[0]) / 10):
            diverged = True
            break
    return LRRangeTest(tuple(lrs), tuple(losses), tuple(smoothed), diverged, burn_in)
