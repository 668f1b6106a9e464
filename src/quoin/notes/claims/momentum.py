"""Momentum in both forms, and Adam: which velocity moves, when it is stable, and from where steps are counted."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.random_tensors import normal, uniform
from quoin.notes.claims.rounding import gap, max, randint, roundings
from quoin.optim import (
    Adam,
    EMAMomentum,
    Momentum,
    bias_corrected,
    momentum_convergence_rate,
    momentum_convergence_rate_definition,
)

CASES = 20


# ---- momentum ---------------------------------------------------------------------------------------------------


@claim(
    "D1.5-9",
    "velocity and averaged momentum take the same path if m = β, γ = η(1 - β) and the velocity starts at -η v₀",
)
def momentum_forms_agree(generator: torch.Generator) -> Evidence:
    def case() -> float:
        dim = randint(1, 4, generator)
        root, x = normal(dim, dim, generator=generator), normal(dim, generator=generator)
        averaged = EMAMomentum(uniform(0.001, 0.05, generator), uniform(0, 0.99, generator))
        velocity, mean, other = averaged.as_momentum(), normal(dim, generator=generator), x
        state, worst = -averaged.lr * mean, 0.0
        for _ in range(100):
            x, mean = averaged.step(x, root.mT @ (root @ x), mean)
            other, state = velocity.step(other, root.mT @ (root @ other), state)
            worst = max(worst, gap(x, other), gap(state, -averaged.lr * mean))
        return worst

    worst = max(case() for _ in range(CASES))
    return Evidence("largest distance along 100 steps", worst, roundings(3000), "rounding, 30 a step", CASES * 100)


@claim(
    "D1.5-9",
    "momentum's error on a quadratic shrinks as ρᵗ, ρ the spectral radius of its step, below 1 exactly if γL < 2(1 "
    "+ m)",
    not_shown="functions that are not quadratic",
)
def momentum_rates(generator: torch.Generator) -> Evidence:
    def case() -> float:
        momentum, product = uniform(0, 0.98, generator), uniform(0, 4.2, generator)
        curvature, steps = uniform(0.1, 10, generator), 4000
        arguments = [torch.tensor(value, dtype=torch.float64) for value in (product / curvature, momentum, curvature)]
        rate = float(momentum_convergence_rate(*arguments))
        assert abs(rate - float(momentum_convergence_rate_definition(*arguments))) <= 1e-6
        if abs(product - 2 * (1 + momentum)) > 1e-9:
            assert (rate < 1) == (product < 2 * (1 + momentum))
        # Rescaled at every step, lest it over- or underflow; the logarithms add up to that of the whole.
        rule = Momentum(product / curvature, momentum)
        x, velocity, log = torch.ones((), dtype=torch.float64), torch.zeros((), dtype=torch.float64), 0.0
        for _ in range(steps):
            x, velocity = rule.step(x, curvature * x, velocity)
            size = float(torch.hypot(x, velocity))
            x, velocity, log = x / size, velocity / size, log + math.log(size)
        return abs(log / steps - math.log(rate))

    worst = max(case() for _ in range(6))
    # |xₜ| lies within a constant times t of ρᵗ, and the constant is 100 at the most for these.
    return Evidence(
        "largest |ln|xₜ|/t - ln ρ|", worst, math.log(100 * 4000) / 4000, "a polynomial factor over 4000 steps", 6
    )


def new_velocity(
    rule: Momentum, x: Float[Tensor, "*shape"], gradient: Float[Tensor, "*shape"], velocity: Float[Tensor, "*shape"]
) -> tuple[Float[Tensor, "*shape"], Float[Tensor, "*shape"]]:
    return rule.step(x, gradient, velocity)


def old_velocity(
    rule: Momentum, x: Float[Tensor, "*shape"], gradient: Float[Tensor, "*shape"], velocity: Float[Tensor, "*shape"]
) -> tuple[Float[Tensor, "*shape"], Float[Tensor, "*shape"]]:
    return x + velocity, rule.step(x, gradient, velocity)[1]


@claim(
    "DE19",
    "moved by the new velocity, momentum on ½Lθ² is stable for all γL < 2(1 + m)",
    right=new_velocity,
    printed=old_velocity,
)
def momentum_is_stable(
    form: Callable[[Momentum, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]], generator: torch.Generator
) -> Evidence:
    products = (0.02, 0.2, 0.5, 0.9, 1.0, 1.4, 1.8, 1.95, 1.99)  # times 1 + m: up to the threshold at 2(1 + m)
    start = normal(generator=generator)
    grid = [(m, product * (1 + m)) for m in (0.1, 0.5, 0.9) for product in products]

    def left(m: float, product: float) -> float:
        rule, x, velocity = Momentum(product, m), start, torch.zeros_like(start)
        for _ in range(1000):
            x, velocity = form(rule, x, x, velocity)  # L = 1
            if x.abs() > 1e6:
                return math.inf
        return float((x / start).abs())

    ends = {(m, product): left(m, product) for m, product in grid}
    m, product = max(ends, key=ends.__getitem__)
    message = f"m = {m}, γL = {product:.3g}: |θ| ends at {ends[m, product]:.3g} of its start"
    bound, source = 1e-4, "ρ <= 0.988 on the grid, to the 1000th, times 10"
    return Evidence(
        "largest |θ₁₀₀₀/θ₀| over a grid of m and γL", ends[m, product], bound, source, len(grid), counterexample=message
    )


def below_one(m: float) -> bool:
    return 0 <= m < 1


def up_to_one(m: float) -> bool:
    return 0 < m <= 1


@claim(
    "DE19",
    "momentum damps for m in [0, 1) only: at m = 1 no learning rate makes it converge",
    right=below_one,
    printed=up_to_one,
)
def undamped_momentum(form: Callable[[float], bool], generator: torch.Generator) -> Evidence:
    lrs = torch.tensor([uniform(0.01, 1.9, generator) for _ in range(CASES)], dtype=torch.float64)
    allowed = [m for m in (0.0, 0.5, 0.9, 0.999, 1.0) if form(m)]
    worst = max(
        float(momentum_convergence_rate(lrs, torch.tensor(m, dtype=torch.float64), torch.ones_like(lrs)).max())
        for m in allowed
    )
    bound = 1 - 2.5e-4  # √0.999 = 0.9995; and |1 - 1.9|, |1 - 0.01| for m = 0 are lower
    return Evidence(
        "largest ρ over the m allowed", worst, bound, "√m, or |1 - γL| without momentum", CASES * len(allowed)
    )


# ---- Adam -------------------------------------------------------------------------------------------------------


@claim(
    "D1.5-11", "under a constant gradient Adam's corrected means are exact, v̂ = g and ŝ = g², from the first step on"
)
def bias_correction(generator: torch.Generator) -> Evidence:
    steps = 200

    def case() -> float:
        gradient = normal(3, generator=generator)
        rule = Adam(0.1, uniform(0, 0.99, generator), uniform(0.5, 0.9999, generator))
        x = normal(3, generator=generator)
        state, worst = rule.init(x), 0.0
        for _ in range(steps):
            before = x
            x, state = rule.step(x, gradient, state)
            mean = bias_corrected(state.mean, rule.beta1, state.step)
            square = bias_corrected(state.square, rule.beta2, state.step)
            moved = 0.1 * gradient / (gradient.abs() + rule.eps)
            worst = max(
                worst,
                gap(mean / gradient, torch.ones(3)),
                gap(square / gradient**2, torch.ones(3)),
                gap(before - x, moved),
            )
        return worst

    worst = max(case() for _ in range(5))
    # 1 - βᵗ at β = 0.9999 keeps four digits fewer than float64 has.
    return Evidence(
        "largest relative error of v̂, ŝ and the step", worst, 1e-11, "rounding, over 1 - β >= 1e-4", 5 * steps
    )


def counted_from_one(mean: Float[Tensor, "*shape"], decay: float, count: int) -> Float[Tensor, "*shape"]:
    return bias_corrected(mean, decay, count)


def counted_from_zero(mean: Float[Tensor, "*shape"], decay: float, count: int) -> Float[Tensor, "*shape"]:
    return mean / (1 - decay ** (count - 1))


@claim(
    "DE20",
    "Adam's first gradient has t = 1; then, entrywise, it is torch's Adam",
    right=counted_from_one,
    printed=counted_from_zero,
)
def adam_counts_from_one(form: Callable[[Tensor, float, int], Tensor], generator: torch.Generator) -> Evidence:
    rule, x = Adam(0.05), normal(4, generator=generator)
    state, theirs = rule.init(x), x.clone().requires_grad_()
    peer = torch.optim.Adam([theirs], lr=0.05)
    worst = 0.0
    for _ in range(40):
        gradient = normal(4, generator=generator)
        ours, state = rule.step(x, gradient, state)
        scale = form(state.square, rule.beta2, state.step).sqrt() + rule.eps
        x = x - rule.lr * form(state.mean, rule.beta1, state.step) / scale
        theirs.grad = gradient.clone()
        peer.step()
        worst = max(worst, gap(x, theirs), gap(x, ours))
    message = f"after 40 steps θ = ({', '.join(f'{value:.3g}' for value in x.tolist())})"
    return Evidence(
        "largest distance from torch.optim.Adam",
        worst,
        roundings(400),
        "rounding, 10 a step",
        40,
        counterexample=message,
    )
