"""Update rules as pure functions of point, gradient and state; their fast form, in place and fused, is `torch.optim`.

A rule's `init(x)` gives its state before the first gradient, `step` the next point and state; nothing is changed in
place, so a path may be replayed from any of its points and differentiated through. Rules that use curvature are in
newton.py, schedules of the learning rate in schedule.py.   θ is written x, one tensor of any shape; every operation is
entrywise

Memory is swept as seldom as torch allows: `a.sub(b, alpha=c)` is a - c b, and `a.addcdiv(b, c, value=-d)` is a - d b /
c.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError

__all__ = [
    "AdaGrad",
    "Adadelta",
    "AdadeltaState",
    "Adam",
    "AdamState",
    "AdamW",
    "EMAMomentum",
    "GradientDescent",
    "Lion",
    "Momentum",
    "Nesterov",
    "RMSProp",
    "UpdateRule",
    "bias_corrected",
]

State = TypeVar("State")


@runtime_checkable
class UpdateRule(Protocol[State]):
    """How to move: a memory to begin with, and a step from a point, its gradient and the memory so far."""

    def init(self, x: Float[Tensor, "..."]) -> State: ...

    def step(
        self, x: Float[Tensor, "*shape"], gradient: Float[Tensor, "*shape"], state: State
    ) -> tuple[Float[Tensor, "*shape"], State]: ...


@shown
@dataclass(frozen=True)
class GradientDescent:
    """θ_{t+1} = θ_t - η ∇C(θ_t); it has no state. `torch.optim.SGD(lr=η)`.

    >>> GradientDescent(0.1).step(torch.tensor(1.0), torch.tensor(2.0), None)
    (tensor(0.8000), None)

    Notes: D1.5-4, Z12.11.
    """

    lr: float

    def __post_init__(self):
        check_lr(self.lr)

    def init(self, x: Float[Tensor, "..."]) -> None:
        return None

    def step(
        self, x: Float[Tensor, "*shape"], gradient: Float[Tensor, "*shape"], state: None
    ) -> tuple[Float[Tensor, "*shape"], None]:
        return x.sub(gradient, alpha=self.lr), None


@shown
@dataclass(frozen=True)
class Momentum:
    """v_{t+1} = m v_t - γ ∇C(θ_t), then θ_{t+1} = θ_t + v_{t+1}, moved by the new velocity. `torch.optim.SGD(lr=γ,
    momentum=m)`.

    torch keeps -v/γ instead of v, which is the same as long as γ stays the same. The notes have m up to 1, where
    nothing is damped: on a quadratic the iterates go round for ever.

    Notes: D1.5-7, DE19.
    """

    lr: float  # γ
    momentum: float  # m, from 0 to 1

    def __post_init__(self):
        check_lr(self.lr)
        if not 0 <= self.momentum <= 1:
            raise UserError(f"expected a momentum in [0, 1], got {self.momentum}; give e.g. 0.9")

    def init(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return torch.zeros_like(x)

    def step(
        self, x: Float[Tensor, "*shape"], gradient: Float[Tensor, "*shape"], state: Float[Tensor, "*shape"]
    ) -> tuple[Float[Tensor, "*shape"], Float[Tensor, "*shape"]]:
        velocity = (self.momentum * state).sub_(gradient, alpha=self.lr)
        return x + velocity, velocity


@shown
@dataclass(frozen=True)
class EMAMomentum:
    """v_{t+1} = β v_t + (1 - β) ∇C(θ_t), a running mean of gradients, then θ_{t+1} = θ_t - η v_{t+1}.

    `torch.optim.SGD(lr=η(1-β), momentum=β)`.

    Notes: D1.5-8.
    """

    lr: float  # η
    beta: float  # β

    def __post_init__(self):
        check_lr(self.lr)
        _check_unit_interval("beta", self.beta)

    def init(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return torch.zeros_like(x)

    def step(
        self, x: Float[Tensor, "*shape"], gradient: Float[Tensor, "*shape"], state: Float[Tensor, "*shape"]
    ) -> tuple[Float[Tensor, "*shape"], Float[Tensor, "*shape"]]:
        mean = _running_mean(state, gradient, self.beta)
        return x.sub(mean, alpha=self.lr), mean

    def as_momentum(self) -> Momentum:
        """The velocity form that takes the same path: m = β, γ = η(1 - β), and a velocity of -η v.

        Notes: D1.5-9.
        """
        return Momentum(self.lr * (1 - self.beta), self.beta)


@shown
@dataclass(frozen=True)
class Nesterov:
    """v_{t+1} = m v_t - γ ∇C(x_t), then x_{t+1} = x_t + m v_{t+1} - γ ∇C(x_t): momentum with the gradient taken where
    it will lead.

    x_t stands for the point looked ahead to, θ_t + m v_t, whose θ_{t+1} = θ_t + v_{t+1} is Nesterov's own sequence.
    `torch.optim.SGD(lr=γ, momentum=m, nesterov=True)`.
    """

    lr: float  # γ
    momentum: float  # m

    def __post_init__(self):
        check_lr(self.lr)
        _check_unit_interval("momentum", self.momentum)

    def init(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return torch.zeros_like(x)

    def step(
        self, x: Float[Tensor, "*shape"], gradient: Float[Tensor, "*shape"], state: Float[Tensor, "*shape"]
    ) -> tuple[Float[Tensor, "*shape"], Float[Tensor, "*shape"]]:
        velocity = (self.momentum * state).sub_(gradient, alpha=self.lr)
        return x.add(velocity, alpha=self.momentum).sub_(gradient, alpha=self.lr), velocity


@shown
@dataclass(frozen=True)
class AdaGrad:
    """s_{t+1} = s_t + g², then θ_{t+1} = θ_t - η g / (√s_{t+1} + ε), for g = ∇C(θ_t). `torch.optim.Adagrad`.

    >>> AdaGrad(0.1).step(torch.tensor(1.0), torch.tensor(3.0), torch.tensor(16.0))  # 1 - 0.1 · 3/5
    (tensor(0.9400), tensor(25.))
    """

    lr: float  # η
    eps: float = 1e-10

    def __post_init__(self):
        check_lr(self.lr)
        _check_not_negative("eps", self.eps)

    def init(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return torch.zeros_like(x)

    def step(
        self, x: Float[Tensor, "*shape"], gradient: Float[Tensor, "*shape"], state: Float[Tensor, "*shape"]
    ) -> tuple[Float[Tensor, "*shape"], Float[Tensor, "*shape"]]:
        square = torch.addcmul(1.0 * state, gradient, gradient)  # whole numbers would wrap around
        return x.addcdiv(gradient, square.sqrt() + self.eps, value=-self.lr), square


@shown
@dataclass(frozen=True)
class RMSProp:
    """s_{t+1} = α s_t + (1 - α) g², then θ_{t+1} = θ_t - η g / (√s_{t+1} + ε), for g = ∇C(θ_t).
    `torch.optim.RMSprop`."""

    lr: float  # η
    alpha: float = 0.99  # α
    eps: float = 1e-8

    def __post_init__(self):
        check_lr(self.lr)
        _check_unit_interval("alpha", self.alpha)
        _check_not_negative("eps", self.eps)

    def init(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return torch.zeros_like(x)

    def step(
        self, x: Float[Tensor, "*shape"], gradient: Float[Tensor, "*shape"], state: Float[Tensor, "*shape"]
    ) -> tuple[Float[Tensor, "*shape"], Float[Tensor, "*shape"]]:
        square = _running_mean(state, gradient**2, self.alpha)
        return x.addcdiv(gradient, square.sqrt() + self.eps, value=-self.lr), square


@shown
class AdadeltaState(NamedTuple):
    """Running means of squares: of gradients, and of the steps taken."""

    square: Float[Tensor, "*shape"]  # s
    step_square: Float[Tensor, "*shape"]  # u


@shown
@dataclass(frozen=True)
class Adadelta:
    """s_{t+1} = ρ s_t + (1 - ρ) g² and d = g √(u_t + ε) / √(s_{t+1} + ε), then θ_{t+1} = θ_t - η d and
    u_{t+1} = ρ u_t + (1 - ρ) d², for g = ∇C(θ_t).

    A step is as long as the last ones were: Zeiler's own rule has η = 1. `torch.optim.Adadelta`.
    """

    lr: float = 1.0  # η
    rho: float = 0.9  # ρ
    eps: float = 1e-6

    def __post_init__(self):
        check_lr(self.lr)
        _check_unit_interval("rho", self.rho)
        _check_not_negative("eps", self.eps)

    def init(self, x: Float[Tensor, "..."]) -> AdadeltaState:
        return AdadeltaState(torch.zeros_like(x), torch.zeros_like(x))

    def step(
        self, x: Float[Tensor, "*shape"], gradient: Float[Tensor, "*shape"], state: AdadeltaState
    ) -> tuple[Float[Tensor, "*shape"], AdadeltaState]:
        square = _running_mean(state.square, gradient**2, self.rho)
        delta = gradient * (state.step_square + self.eps).sqrt() / (square + self.eps).sqrt()
        return x.sub(delta, alpha=self.lr), AdadeltaState(square, _running_mean(state.step_square, delta**2, self.rho))


@shown
class AdamState(NamedTuple):
    """Running means of gradients and of their squares, and of how many gradients."""

    mean: Float[Tensor, "*shape"]  # v
    square: Float[Tensor, "*shape"]  # s
    step: int  # t


def bias_corrected(mean: Float[Tensor, "*shape"], beta: float, count: int) -> Float[Tensor, "*shape"]:
    """v̂_t = v_t / (1 - βᵗ): a running mean that began at zero, over the weight that the t values seen so far have in
    it.

    >>> bias_corrected(torch.tensor(0.19), 0.9, 2)  # of 1 and 1: 0.9 · 0.1 + 0.1
    tensor(1.)

    Notes: D1.5-11.
    """
    if count < 1:
        raise UserError(
            f"expected a mean of one value or more, got a count of {count}; count the values seen, the first as 1"
        )
    return mean / (1 - beta**count)


@shown
@dataclass(frozen=True)
class Adam:
    """v_t = β₁ v_{t-1} + (1 - β₁) g_t and s_t = β₂ s_{t-1} + (1 - β₂) g_t², then θ ← θ - η v̂_t / (√ŝ_t + ε).

    v_0 = s_0 = 0; t = 1, 2, ... counts the gradients seen; v̂, ŝ are the means with their bias corrected.
    `torch.optim.Adam`.

    Notes: D1.5-10.
    """

    lr: float  # η
    beta1: float = 0.9  # β₁
    beta2: float = 0.999  # β₂
    eps: float = 1e-8

    def __post_init__(self):
        check_lr(self.lr)
        _check_unit_interval("beta1", self.beta1)
        _check_unit_interval("beta2", self.beta2)
        _check_not_negative("eps", self.eps)

    def init(self, x: Float[Tensor, "..."]) -> AdamState:
        return AdamState(torch.zeros_like(x), torch.zeros_like(x), 0)

    def step(
        self, x: Float[Tensor, "*shape"], gradient: Float[Tensor, "*shape"], state: AdamState
    ) -> tuple[Float[Tensor, "*shape"], AdamState]:
        mean = _running_mean(state.mean, gradient, self.beta1)
        square = _running_mean(state.square, gradient**2, self.beta2)
        count = state.step + 1
        direction = bias_corrected(mean, self.beta1, count)
        scale = bias_corrected(square, self.beta2, count).sqrt() + self.eps
        return x.addcdiv(direction, scale, value=-self.lr), AdamState(mean, square, count)


@shown
@dataclass(frozen=True)
class AdamW(Adam):
    """Adam from (1 - ηλ) θ: weights decay by themselves and not through the gradient's means. `torch.optim.AdamW`."""

    weight_decay: float = 0.01  # λ

    def __post_init__(self):
        super().__post_init__()
        _check_not_negative("weight_decay", self.weight_decay)

    def step(
        self, x: Float[Tensor, "*shape"], gradient: Float[Tensor, "*shape"], state: AdamState
    ) -> tuple[Float[Tensor, "*shape"], AdamState]:
        return super().step((1 - self.lr * self.weight_decay) * x, gradient, state)


@shown
@dataclass(frozen=True)
class Lion:
    """c = β₁ v_t + (1 - β₁) g, then θ_{t+1} = θ_t - η (sign(c) + λ θ_t) and v_{t+1} = β₂ v_t + (1 - β₂) g, for
    g = ∇C(θ_t).

    Every coordinate moves by η, and weights decay by themselves as AdamW's do. Chen et al., Symbolic Discovery of
    Optimization Algorithms, 2023. In place: `LionOptimizer`.

    >>> Lion(0.1).step(torch.tensor(1.0), torch.tensor(2.0), torch.tensor(-0.1))  # c = -0.09 + 0.2
    (tensor(0.9000), tensor(-0.0790))
    """

    lr: float  # η
    beta1: float = 0.9  # β₁
    beta2: float = 0.99  # β₂
    weight_decay: float = 0.0  # λ

    def __post_init__(self):
        check_lr(self.lr)
        _check_unit_interval("beta1", self.beta1)
        _check_unit_interval("beta2", self.beta2)
        _check_not_negative("weight_decay", self.weight_decay)

    def init(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return torch.zeros_like(x)

    def step(
        self, x: Float[Tensor, "*shape"], gradient: Float[Tensor, "*shape"], state: Float[Tensor, "*shape"]
    ) -> tuple[Float[Tensor, "*shape"], Float[Tensor, "*shape"]]:
        direction = _running_mean(state, gradient, self.beta1).sign()
        decayed = (1 - self.lr * self.weight_decay) * x
        return decayed.sub(direction, alpha=self.lr), _running_mean(state, gradient, self.beta2)


def _running_mean(before: Tensor, value: Tensor, beta: float) -> Tensor:
    """β v + (1 - β) g."""
    return torch.lerp(before, value, 1 - beta)


def check_lr(lr: float) -> None:
    """A step needs a length."""
    if not (lr > 0 and math.isfinite(lr)):
        raise UserError(f"expected a positive, finite learning rate, got {lr}; give e.g. 0.1")


def _check_unit_interval(name: str, value: float) -> None:
    if not 0 <= value < 1:  # at 1 a velocity is never damped and a mean never moves
        raise UserError(f"expected a {name} in [0, 1), got {value}; give e.g. 0.9")


def _check_not_negative(name: str, value: float) -> None:
    if not (value >= 0 and math.isfinite(value)):
        raise UserError(f"expected a finite {name} of 0 or more, got {value}; give e.g. 1e-8")
