"""Update rules as pure functions of point, gradient and memory; their fast form, in place and fused, is `torch.optim`.

A rule's `start(x)` gives its memory before the first gradient, `step` the next point and memory; nothing is changed in place, so a
path may be replayed from any of its points and differentiated through. Rules that look at curvature are in newton.py, schedules of
the rate in schedule.py.   θ is written x, one tensor of any shape; every operation is entrywise

Memory is swept as seldom as torch allows: `a.sub(b, alpha=c)` is a - c b, and `a.addcdiv(b, c, value=-d)` is a - d b / c.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor

from quoin.errors import Mistake

__all__ = [
    "Adam",
    "AdamState",
    "AdamW",
    "AveragedMomentum",
    "GradientDescent",
    "Momentum",
    "Nesterov",
    "RMSProp",
    "UpdateRule",
    "bias_corrected",
]

State = TypeVar("State")


class UpdateRule(Protocol[State]):
    """How to move: a memory to begin with, and a step from a point, its gradient and the memory so far."""

    def start(self, x: Tensor) -> State: ...

    def step(self, x: Tensor, gradient: Tensor, state: State) -> tuple[Tensor, State]: ...


@dataclass(frozen=True)
class GradientDescent:
    """θ_{t+1} = θ_t - η ∇C(θ_t); it remembers nothing. `torch.optim.SGD(lr=η)`.

    >>> GradientDescent(0.1).step(torch.tensor(1.0), torch.tensor(2.0), None)
    (tensor(0.8000), None)

    Notes: D1.5-4, Z12.11.
    """

    learning_rate: float

    def __post_init__(self):
        check_rate(self.learning_rate)

    def start(self, x: Tensor) -> None:
        return None

    def step(self, x: Tensor, gradient: Tensor, state: None) -> tuple[Tensor, None]:
        return x.sub(gradient, alpha=self.learning_rate), None


@dataclass(frozen=True)
class Momentum:
    """v_{t+1} = m v_t - γ ∇C(θ_t), then θ_{t+1} = θ_t + v_{t+1}, moved by the new velocity. `torch.optim.SGD(lr=γ, momentum=m)`.

    torch keeps -v/γ instead of v, which is the same as long as γ stays the same. The notes have m up to 1, where nothing is damped: on a
    quadratic the iterates go round for ever.

    Notes: D1.5-7, DE19.
    """

    learning_rate: float  # γ
    momentum: float  # m, from 0 to 1

    def __post_init__(self):
        check_rate(self.learning_rate)
        if not 0 <= self.momentum <= 1:
            raise Mistake(f"expected a momentum in [0, 1], came {self.momentum}; give e.g. 0.9")

    def start(self, x: Tensor) -> Tensor:
        return torch.zeros_like(x)

    def step(self, x: Tensor, gradient: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        velocity = (self.momentum * state).sub_(gradient, alpha=self.learning_rate)
        return x + velocity, velocity


@dataclass(frozen=True)
class AveragedMomentum:
    """v_{t+1} = β v_t + (1 - β) ∇C(θ_t), a running mean of gradients, then θ_{t+1} = θ_t - η v_{t+1}.

    `torch.optim.SGD(lr=η(1-β), momentum=β)`.

    Notes: D1.5-8.
    """

    learning_rate: float  # η
    decay: float  # β

    def __post_init__(self):
        check_rate(self.learning_rate)
        _check_decay("decay", self.decay)

    def start(self, x: Tensor) -> Tensor:
        return torch.zeros_like(x)

    def step(self, x: Tensor, gradient: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        mean = _running_mean(state, gradient, self.decay)
        return x.sub(mean, alpha=self.learning_rate), mean

    def as_momentum(self) -> Momentum:
        """The velocity form that takes the same path: m = β, γ = η(1 - β), and a velocity of -η v.

        Notes: D1.5-9.
        """
        return Momentum(self.learning_rate * (1 - self.decay), self.decay)


@dataclass(frozen=True)
class Nesterov:
    """v_{t+1} = m v_t - γ ∇C(x_t), then x_{t+1} = x_t + m v_{t+1} - γ ∇C(x_t): momentum with the gradient taken where it will lead.

    x_t stands for the point looked ahead to, θ_t + m v_t, whose θ_{t+1} = θ_t + v_{t+1} is Nesterov's own sequence.
    `torch.optim.SGD(lr=γ, momentum=m, nesterov=True)`.
    """

    learning_rate: float  # γ
    momentum: float  # m

    def __post_init__(self):
        check_rate(self.learning_rate)
        _check_decay("momentum", self.momentum)

    def start(self, x: Tensor) -> Tensor:
        return torch.zeros_like(x)

    def step(self, x: Tensor, gradient: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        velocity = (self.momentum * state).sub_(gradient, alpha=self.learning_rate)
        return x.add(velocity, alpha=self.momentum).sub_(gradient, alpha=self.learning_rate), velocity


@dataclass(frozen=True)
class RMSProp:
    """s_{t+1} = α s_t + (1 - α) g², then θ_{t+1} = θ_t - η g / (√s_{t+1} + ε), for g = ∇C(θ_t). `torch.optim.RMSprop`."""

    learning_rate: float  # η
    decay: float = 0.99  # α
    eps: float = 1e-8

    def __post_init__(self):
        check_rate(self.learning_rate)
        _check_decay("decay", self.decay)
        _check_not_negative("eps", self.eps)

    def start(self, x: Tensor) -> Tensor:
        return torch.zeros_like(x)

    def step(self, x: Tensor, gradient: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        square = _running_mean(state, gradient**2, self.decay)
        return x.addcdiv(gradient, square.sqrt() + self.eps, value=-self.learning_rate), square


class AdamState(NamedTuple):
    """Running means of gradients and of their squares, and of how many gradients."""

    mean: Tensor  # v
    square: Tensor  # s
    count: int  # t


def bias_corrected(mean: Tensor, decay: float, count: int) -> Tensor:
    """v̂_t = v_t / (1 - βᵗ): a running mean that began at zero, over the weight that the t values seen so far have in it.

    >>> bias_corrected(torch.tensor(0.19), 0.9, 2)  # of 1 and 1: 0.9 · 0.1 + 0.1
    tensor(1.)

    Notes: D1.5-11.
    """
    if count < 1:
        raise Mistake(f"expected a mean of one value or more, came a count of {count}; count the values seen, the first as 1")
    return mean / (1 - decay**count)


@dataclass(frozen=True)
class Adam:
    """v_t = β₁ v_{t-1} + (1 - β₁) g_t and s_t = β₂ s_{t-1} + (1 - β₂) g_t², then θ ← θ - η v̂_t / (√ŝ_t + ε).

    v_0 = s_0 = 0; t = 1, 2, ... counts the gradients seen; v̂, ŝ are the means with their bias corrected. `torch.optim.Adam`.

    Notes: D1.5-10.
    """

    learning_rate: float  # η
    mean_decay: float = 0.9  # β₁
    square_decay: float = 0.999  # β₂
    eps: float = 1e-8

    def __post_init__(self):
        check_rate(self.learning_rate)
        _check_decay("mean_decay", self.mean_decay)
        _check_decay("square_decay", self.square_decay)
        _check_not_negative("eps", self.eps)

    def start(self, x: Tensor) -> AdamState:
        return AdamState(torch.zeros_like(x), torch.zeros_like(x), 0)

    def step(self, x: Tensor, gradient: Tensor, state: AdamState) -> tuple[Tensor, AdamState]:
        mean = _running_mean(state.mean, gradient, self.mean_decay)
        square = _running_mean(state.square, gradient**2, self.square_decay)
        count = state.count + 1
        direction = bias_corrected(mean, self.mean_decay, count)
        scale = bias_corrected(square, self.square_decay, count).sqrt() + self.eps
        return x.addcdiv(direction, scale, value=-self.learning_rate), AdamState(mean, square, count)


@dataclass(frozen=True)
class AdamW(Adam):
    """Adam from (1 - ηλ) θ: weights decay by themselves and not through the gradient's means. `torch.optim.AdamW`."""

    weight_decay: float = 0.01  # λ

    def __post_init__(self):
        super().__post_init__()
        _check_not_negative("weight_decay", self.weight_decay)

    def step(self, x: Tensor, gradient: Tensor, state: AdamState) -> tuple[Tensor, AdamState]:
        return super().step((1 - self.learning_rate * self.weight_decay) * x, gradient, state)


def _running_mean(before: Tensor, value: Tensor, decay: float) -> Tensor:
    """β v + (1 - β) g."""
    return torch.lerp(before, value, 1 - decay)


def check_rate(learning_rate: float) -> None:
    """A step needs a length."""
    if not (learning_rate > 0 and math.isfinite(learning_rate)):
        raise Mistake(f"expected a positive, finite learning rate, came {learning_rate}; give e.g. 0.1")


def _check_decay(name: str, value: float) -> None:
    if not 0 <= value < 1:  # at 1 a velocity is never damped and a mean never moves
        raise Mistake(f"expected a {name} in [0, 1), came {value}; give e.g. 0.9")


def _check_not_negative(name: str, value: float) -> None:
    if not (value >= 0 and math.isfinite(value)):
        raise Mistake(f"expected a finite {name} of 0 or more, came {value}; give e.g. 1e-8")
