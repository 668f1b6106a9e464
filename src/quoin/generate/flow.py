"""Noise carried to data along a velocity field, and the density that it arrives with.

dx/dt = v(x, t) from t = 0, noise, to t = 1, data
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Real
from torch import Tensor, nn

from quoin.display import shown
from quoin.errors import UserError, format_value
from quoin.generate.diffusion import sample_initial_noise
from quoin.generate.paths import SamplePath
from quoin.tensor import as_floating

__all__ = ["FlowDensity", "FlowSampler", "VelocityField", "flow_log_prob", "integrate_euler", "integrate_midpoint"]

VelocityField = Callable[[Tensor, Tensor], Tensor]  # x (batch, ...), t (batch,) -> (batch, ...)
FlowStepCallback = Callable[[float, Tensor], None]

DENSITY_STEPS = 100  # of a path whose density is wanted


def integrate_euler(
    velocity: VelocityField,
    start: Float[Tensor, "batch *shape"],
    *,
    num_steps: int,
    callback: FlowStepCallback | None = None,
) -> Float[Tensor, "batch *shape"]:
    """x <- x + h v(x, t) with h = 1/num_steps: exact where the paths are straight.

    Args:
        velocity: v(x, t) in the shape of x, for x (batch, ...) and times t (batch,).
        start: The noise, x at t = 0.
        callback: Called with each time and the examples there, from t = 0 to t = 1.

    Notes: D0-T.
    """
    return _integrate(lambda x, t, h: x + h * velocity(x, _times(x, t)), start, num_steps, callback)


def integrate_midpoint(
    velocity: VelocityField,
    start: Float[Tensor, "batch *shape"],
    *,
    num_steps: int,
    callback: FlowStepCallback | None = None,
) -> Float[Tensor, "batch *shape"]:
    """x <- x + h v(x + ½h v(x, t), t + ½h): two questions a step, an error that falls with the square of h.

    Args:
        velocity: v(x, t) in the shape of x, for x (batch, ...) and times t (batch,).
        start: The noise, x at t = 0.
        num_steps: Steps from t = 0 to t = 1, so that h is 1/num_steps.
        callback: Called with each time and the examples there, from t = 0 to t = 1.

    Notes: D0-T.
    """

    def step(x: Tensor, t: float, h: float) -> Tensor:
        halfway = x + h / 2 * velocity(x, _times(x, t))
        return x + h * velocity(halfway, _times(x, t + h / 2))

    return _integrate(step, start, num_steps, callback)


@shown
class FlowDensity(NamedTuple):
    """The log-density of data under a flow, and the noise they come from."""

    output: Float[Tensor, "batch"]  # nats
    noise: Float[Tensor, "batch d"]


def flow_log_prob(velocity: VelocityField, data: Float[Tensor, "batch d"], *, num_steps: int) -> FlowDensity:
    """ln p(x) = ln N(ε; 0, I) - ∫_0^1 tr(∂v/∂x) dt along the path that leads from ε to x, followed backwards by
    midpoints.

    The trace is exact, one backward pass for each of d coordinates: for data of a few.

    Args:
        velocity: v(x, t) in the shape of x, for x (batch, ...) and times t (batch,).
        num_steps: Steps from t = 1 back to t = 0.

    Notes: D0-T.
    """
    _check(data, num_steps)
    h, state, change = 1 / num_steps, data.detach(), data.new_zeros(len(data))
    for i in range(num_steps, 0, -1):
        with torch.no_grad():
            halfway = state - h / 2 * velocity(state, _times(state, i * h))
        slope, trace = _with_trace(velocity, halfway, (i - 0.5) * h)
        state, change = state - h * slope, change + h * trace
    log_normal = -state.square().sum(dim=-1) / 2 - state.shape[-1] * math.log(2 * math.pi) / 2
    return FlowDensity(log_normal - change, state)


class FlowSampler(nn.Module):
    """A distribution by a flow: network(y, t) is the velocity on its own scale, y = (x - loc)/scale, at times from 0 to
    1.

    Args:
        shape: That of one example, without the batch.
        num_steps: Midpoint steps that `sample` takes unless it is given others.

    Notes: D0-T.
    """

    loc: Float[Tensor, "*#shape"]
    scale: Float[Tensor, "*#shape"]

    def __init__(
        self,
        network: nn.Module,
        shape: Sequence[int],
        *,
        loc: Real[Tensor, "*#shape"],
        scale: Real[Tensor, "*#shape"],
        num_steps: int = 20,
    ) -> None:
        super().__init__()
        self.network, self.shape, self.num_steps = network, tuple(shape), num_steps
        self.register_buffer("loc", as_floating(loc, scale))
        self.register_buffer("scale", as_floating(scale, loc))

    def normalize(self, x: Real[Tensor, "batch *shape"]) -> Float[Tensor, "batch *shape"]:
        """Examples on the network's scale."""
        return (x - self.loc) / self.scale

    def sample(
        self, num_samples: int, *, generator: torch.Generator, num_steps: int | None = None
    ) -> Float[Tensor, "{num_samples} *shape"]:
        """New examples, by midpoint steps."""
        return self._sample(num_samples, generator, num_steps, None)

    def sample_path(self, num_samples: int, *, generator: torch.Generator, num_steps: int | None = None) -> SamplePath:
        """The samples of `sample` with the intermediate ones on their way from noise."""
        seen: list[tuple[float, Tensor]] = []
        self._sample(num_samples, generator, num_steps, lambda t, state: seen.append((t, state)))
        return SamplePath(tuple(t for t, _ in seen), self.loc + self.scale * torch.stack([state for _, state in seen]))

    def log_prob(self, x: Real[Tensor, "batch d"]) -> Float[Tensor, "batch"]:
        """ln p(x) of the flow, followed backwards in small steps: exact but for their length."""
        found = flow_log_prob(self.network, self.normalize(x), num_steps=DENSITY_STEPS).output
        return found - self.scale.log().expand(self.shape).sum()

    def _sample(
        self, num_samples: int, generator: torch.Generator, num_steps: int | None, callback: FlowStepCallback | None
    ) -> Tensor:
        start = sample_initial_noise(
            (num_samples, *self.shape), generator=generator, dtype=self.scale.dtype, device=self.scale.device
        )
        num_steps = self.num_steps if num_steps is None else num_steps
        return self.loc + self.scale * integrate_midpoint(self.network, start, num_steps=num_steps, callback=callback)


@torch.enable_grad()
def _with_trace(velocity: VelocityField, x: Tensor, t: float) -> tuple[Tensor, Tensor]:
    x = x.detach().requires_grad_()
    slope = velocity(x, _times(x, t))
    parts = [torch.autograd.grad(slope[:, j].sum(), x, retain_graph=True)[0][:, j] for j in range(x.shape[-1])]
    return slope.detach(), torch.stack(parts).sum(dim=0)


def _times(x: Tensor, t: float) -> Tensor:
    return torch.full(x.shape[:1], t, dtype=x.dtype, device=x.device)


@torch.no_grad()
def _integrate(
    step: Callable[[Tensor, float, float], Tensor], start: Tensor, num_steps: int, callback: FlowStepCallback | None
) -> Tensor:
    _check(start, num_steps)
    state = start
    for i in range(num_steps):
        if callback is not None:
            callback(i / num_steps, state)
        state = step(state, i / num_steps, 1 / num_steps)
    if callback is not None:
        callback(1.0, state)
    return state


def _check(examples: Tensor, num_steps: int) -> None:
    if len(examples) == 0:
        raise UserError("expected at least one example, got none; ask for 1 or more")
    if not isinstance(num_steps, int) or num_steps < 1:
        raise UserError(
            f"expected at least one step along the flow, got {format_value(num_steps)}; 20 to 100 are usual"
        )
