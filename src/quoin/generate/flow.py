"""Noise carried to data along a velocity field, and the density that it arrives with.

dx/dt = v(x, t) from t = 0, noise, to t = 1, data;   b examples (b, ...) of any shape
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from quoin.errors import Mistake, shown
from quoin.generate.diffusion import start_noise
from quoin.generate.paths import SamplePath
from quoin.tensor import as_floating

__all__ = ["FlowDensity", "FlowSampler", "VelocityField", "flow_log_prob", "follow_euler", "follow_midpoint"]

VelocityField = Callable[[Tensor, Tensor], Tensor]  # x (b, ...), t (b,) -> (b, ...)
WatchFlow = Callable[[float, Tensor], None]

DENSITY_STEPS = 100  # of a path whose density is wanted


def follow_euler(velocity: VelocityField, start: Tensor, *, steps: int, watch: WatchFlow | None = None) -> Tensor:
    """x <- x + h v(x, t) with h = 1/steps: exact where the paths are straight.

    Notes: D0-T.
    """
    return _follow(lambda x, t, h: x + h * velocity(x, _times(x, t)), start, steps, watch)


def follow_midpoint(velocity: VelocityField, start: Tensor, *, steps: int, watch: WatchFlow | None = None) -> Tensor:
    """x <- x + h v(x + ½h v(x, t), t + ½h): two questions a step, an error that falls with the square of h.

    Notes: D0-T.
    """

    def step(x: Tensor, t: float, h: float) -> Tensor:
        halfway = x + h / 2 * velocity(x, _times(x, t))
        return x + h * velocity(halfway, _times(x, t + h / 2))

    return _follow(step, start, steps, watch)


class FlowDensity(NamedTuple):
    """The log-density of data under a flow, and the noise they come from."""

    output: Tensor  # (b,), nats
    noise: Tensor  # (b, d)


def flow_log_prob(velocity: VelocityField, data: Tensor, *, steps: int) -> FlowDensity:  # (b, d)
    """ln p(x) = ln N(ε; 0, I) - ∫_0^1 tr(∂v/∂x) dt along the path that leads from ε to x, followed backwards by midpoints.

    The trace is exact, one backward pass for each of d coordinates: for data of a few.

    Notes: D0-T.
    """
    _check(data, steps)
    h, state, change = 1 / steps, data.detach(), data.new_zeros(len(data))
    for i in range(steps, 0, -1):
        with torch.no_grad():
            halfway = state - h / 2 * velocity(state, _times(state, i * h))
        slope, trace = _with_trace(velocity, halfway, (i - 0.5) * h)
        state, change = state - h * slope, change + h * trace
    log_normal = -state.square().sum(dim=-1) / 2 - state.shape[-1] * math.log(2 * math.pi) / 2
    return FlowDensity(log_normal - change, state)


class FlowSampler(nn.Module):
    """A law by a flow: network(y, t) is the velocity on its own scale, y = (x - offset)/unit, at times from 0 to 1.

    Notes: D0-T.
    """

    offset: Tensor
    unit: Tensor

    def __init__(self, network: nn.Module, shape: Sequence[int], *, offset: Tensor, unit: Tensor, steps: int = 20) -> None:
        super().__init__()
        self.network, self.shape, self.steps = network, tuple(shape), steps
        self.register_buffer("offset", as_floating(offset, unit))
        self.register_buffer("unit", as_floating(unit, offset))

    def inward(self, x: Tensor) -> Tensor:  # (b, *shape) -> (b, *shape)
        """Examples on the network's scale."""
        return (x - self.offset) / self.unit

    def sample(self, count: int, *, generator: torch.Generator, steps: int | None = None) -> Tensor:  # -> (count, *shape)
        """New examples, by midpoint steps."""
        return self._draw(count, generator, steps, None)

    def sample_path(self, count: int, *, generator: torch.Generator, steps: int | None = None) -> SamplePath:
        """The draws of `sample` with the states that they came through."""
        seen: list[tuple[float, Tensor]] = []
        self._draw(count, generator, steps, lambda t, state: seen.append((t, state)))
        return SamplePath(tuple(t for t, _ in seen), self.offset + self.unit * torch.stack([state for _, state in seen]))

    def log_prob(self, x: Tensor) -> Tensor:  # (b, d) -> (b,)
        """ln p(x) of the flow, followed backwards in small steps: exact but for their length."""
        found = flow_log_prob(self.network, self.inward(x), steps=DENSITY_STEPS).output
        return found - self.unit.log().expand(self.shape).sum()

    def _draw(self, count: int, generator: torch.Generator, steps: int | None, watch: WatchFlow | None) -> Tensor:
        start = start_noise((count, *self.shape), generator=generator, dtype=self.unit.dtype, device=self.unit.device)
        steps = self.steps if steps is None else steps
        return self.offset + self.unit * follow_midpoint(self.network, start, steps=steps, watch=watch)


@torch.enable_grad()
def _with_trace(velocity: VelocityField, x: Tensor, t: float) -> tuple[Tensor, Tensor]:
    x = x.detach().requires_grad_()
    slope = velocity(x, _times(x, t))
    parts = [torch.autograd.grad(slope[:, j].sum(), x, retain_graph=True)[0][:, j] for j in range(x.shape[-1])]
    return slope.detach(), torch.stack(parts).sum(dim=0)


def _times(x: Tensor, t: float) -> Tensor:
    return torch.full(x.shape[:1], t, dtype=x.dtype, device=x.device)


@torch.no_grad()
def _follow(step: Callable[[Tensor, float, float], Tensor], start: Tensor, steps: int, watch: WatchFlow | None) -> Tensor:
    _check(start, steps)
    state = start
    for i in range(steps):
        if watch is not None:
            watch(i / steps, state)
        state = step(state, i / steps, 1 / steps)
    if watch is not None:
        watch(1.0, state)
    return state


def _check(examples: Tensor, steps: int) -> None:
    if len(examples) == 0:
        raise Mistake("expected at least one example to carry along, came none; ask for 1 or more")
    if not isinstance(steps, int) or steps < 1:
        raise Mistake(f"expected at least one step along the flow, got {shown(steps)}; 20 to 100 are usual")
