"""What theory guarantees for gradient descent θ_{t+1} = θ_t - η∇C(θ_t), to be held against a run: bounds, and the steps
of their proof.

Every bound has one entry for each point of a run, t = 0, 1, ..., and needs constants that constants.py computes. They
are promises about
all costs with these constants: a run is often far below.   C convex with a minimiser θ*, |∇C(a) - ∇C(b)| <= L |a - b|
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Float64, Real
from torch import Tensor

from quoin.autodiff import vjp
from quoin.display import shown
from quoin.errors import UserError
from quoin.optim.constants import Constants
from quoin.optim.descend import Objective
from quoin.tensor import check_floating

__all__ = ["RateProof", "convex_bound", "distance_bound", "rate_proof", "strongly_convex_bound"]


def convex_bound(
    start: Float[Tensor, "*shape"], minimizer: Real[Tensor, "*shape"], num_steps: int, *, lr: float, smoothness: float
) -> Float64[Tensor, "{num_steps}+1"]:
    """C(θ_t) - min C <= |θ_0 - θ*|² / (2ηt) for 0 < η <= 1/L and any minimiser θ*; at t = 0 there is no bound:
    infinity.

    Without a minimiser there is no such bound: ln(1 + e^{-x}) has L = ¼, and its descent runs away.

    Args:
        num_steps: The last t; the first is 0.
        lr: η.
        smoothness: L, the Lipschitz constant of the gradient.

    >>> convex_bound(torch.tensor([2.0]), torch.tensor([0.0]), 4, lr=0.5, smoothness=2.0)
    tensor([   inf, 4.0000, 2.0000, 1.3333, 1.0000], dtype=torch.float64)

    Notes: D1.5-5.
    """
    _check(start, minimizer, num_steps)
    _check_lr(lr, 1 / _positive(smoothness), "1/L")
    t = torch.arange(1, num_steps + 1, dtype=torch.float64)
    return torch.cat(
        [torch.tensor([math.inf], dtype=torch.float64), _squared_distance(start, minimizer) / (2 * lr * t)]
    )


def distance_bound(
    start: Float[Tensor, "*shape"],
    minimizer: Real[Tensor, "*shape"],
    num_steps: int,
    *,
    lr: float,
    constants: Constants,
) -> Float64[Tensor, "{num_steps}+1"]:
    """|θ_t - θ*| <= (1 - ημ)^t |θ_0 - θ*| for 0 < η <= 2 / (L + μ); with μ = 0 it only shows that no step leads away
    from θ*.

    Best possible: ½ μ x² attains it.

    Args:
        num_steps: The last t; the first is 0.
        lr: η.
        constants: L and μ of the cost.

    >>> distance_bound(torch.tensor([2.0]), torch.tensor([0.0]), 3, lr=0.5, constants=Constants(1.0, 1.0))
    tensor([2.0000, 1.0000, 0.5000, 0.2500], dtype=torch.float64)

    Notes: D1.5-5c.
    """
    _check(start, minimizer, num_steps)
    smoothness, strong = constants
    if not 0 <= strong <= smoothness:
        raise UserError(
            f"expected constants 0 <= μ <= L, got {strong} and {smoothness}; a cost with μ < 0 is not convex"
        )
    _check_lr(lr, 2 / (_positive(smoothness) + strong), "2/(L + μ)")
    factor = torch.tensor(1 - lr * strong, dtype=torch.float64)
    return factor ** torch.arange(num_steps + 1) * _squared_distance(start, minimizer).sqrt()


def strongly_convex_bound(
    start: Float[Tensor, "*shape"],
    minimizer: Real[Tensor, "*shape"],
    num_steps: int,
    *,
    lr: float,
    constants: Constants,
) -> Float64[Tensor, "{num_steps}+1"]:
    """C(θ_t) - min C <= (L/2) (1 - ημ)^{2t} |θ_0 - θ*|² for 0 < η <= 2 / (L + μ): `distance_bound` under a parabola of
    curvature L."""
    within = distance_bound(start, minimizer, num_steps, lr=lr, constants=constants)
    return constants.smoothness / 2 * within.square()


@shown
class RateProof(NamedTuple):
    """Each step of the proof of `convex_bound` as what its right side has over its left; none is negative where the
    theorem applies.

    A field has one entry for each step from θ_t to θ_{t+1}; `bound` for each of θ_1, ..., θ_T.
    """

    descent_lemma: Float[Tensor, "T"]  # C(θ_{t+1}) <= C(θ_t) + ⟨∇C(θ_t), θ_{t+1} - θ_t⟩ + (L/2) |θ_{t+1} - θ_t|²
    decrease: Float[
        Tensor, "T"
    ]  # C(θ_{t+1}) <= C(θ_t) - (η/2) |∇C(θ_t)|², the lemma for a step of gradient descent with η <= 1/L
    tangent: Float[Tensor, "T"]  # C(θ_t) <= C(θ*) + ⟨∇C(θ_t), θ_t - θ*⟩, by convexity
    one_step: Float[Tensor, "T"]  # C(θ_{t+1}) - C(θ*) <= (|θ_t - θ*|² - |θ_{t+1} - θ*|²) / 2η, the last two together
    telescoped: Float[
        Tensor, "T"
    ]  # Σ_{s <= t+1} (C(θ_s) - C(θ*)) <= (|θ_0 - θ*|² - |θ_{t+1} - θ*|²) / 2η, all up to here together
    last_is_least: Float[Tensor, "T"]  # (t+1) (C(θ_{t+1}) - C(θ*)) <= Σ_{s <= t+1} (C(θ_s) - C(θ*)), as no step goes up
    bound: Float[Tensor, "T"]  # C(θ_{t+1}) - C(θ*) <= |θ_0 - θ*|² / (2η(t+1)), dropping |θ_{t+1} - θ*|²


def rate_proof(
    f: Objective,
    points: Float[Tensor, "points *shape"],
    minimizer: Float[Tensor, "*shape"],
    *,
    lr: float,
    smoothness: float,
) -> RateProof:
    """The proof of C(θ_T) - C(θ*) <= |θ_0 - θ*|² / (2ηT), evaluated along the points of a run of gradient descent.

    Nothing is assumed: a step with η > 1/L, a cost that is not convex or not L-smooth shows as a negative entry in the
    step of the proof that needs it.

    Args:
        f: The cost C.
        points: θ_0, ..., θ_T, the start first.
        minimizer: θ*.
        lr: η of the run.
        smoothness: L that is claimed of the cost.

    Notes: D1.5-5.
    """
    if points.dim() < 1 or len(points) < 2:
        raise UserError(
            f"expected a run of at least two points, got shape {tuple(points.shape)}; give the start and what followed"
        )
    _check(points[0], minimizer, len(points) - 1)
    _check_lr(lr, math.inf, "")
    at = [vjp(f, point) for point in points]
    least = f(minimizer).detach().reshape(())
    values = torch.stack([found.output.reshape(()) for found in at]) - least  # C(θ_t) - C(θ*)
    gradients = torch.stack([found.product for found in at]).flatten(1)
    points, minimizer = points.detach().flatten(1), minimizer.detach().flatten()
    moves, before, after, gradient = points.diff(dim=0), values[:-1], values[1:], gradients[:-1]
    away = (points - minimizer).square().sum(dim=1)
    sums, t = after.cumsum(dim=0), torch.arange(1, len(points), dtype=points.dtype)
    return RateProof(
        descent_lemma=before + (gradient * moves).sum(dim=1) + smoothness / 2 * moves.square().sum(dim=1) - after,
        decrease=before - lr / 2 * gradient.square().sum(dim=1) - after,
        tangent=(gradient * (points[:-1] - minimizer)).sum(dim=1) - before,
        one_step=-away.diff() / (2 * lr) - after,
        telescoped=(away[0] - away[1:]) / (2 * lr) - sums,
        last_is_least=sums - t * after,
        bound=away[0] / (2 * lr * t) - after,
    )


def _squared_distance(start: Tensor, minimizer: Tensor) -> Tensor:  # -> (), in float64
    return (start.detach().double() - minimizer.detach().double()).square().sum()


def _check(start: Tensor, minimizer: Tensor, num_steps: int) -> None:
    check_floating(start, "the start")
    if start.shape != minimizer.shape:
        raise UserError(
            f"expected a minimiser of the start's shape {tuple(start.shape)}, got {tuple(minimizer.shape)}; reshape it"
        )
    if not bool((start.isfinite() & minimizer.isfinite()).all()):
        raise UserError(
            "expected a finite start and minimiser, got NaN or infinity; a cost without a minimiser has no such bound"
        )
    if num_steps < 0:
        raise UserError(
            f"expected a number of steps of at least 0, got {num_steps}; give how often the rule was applied"
        )


def _positive(smoothness: float) -> float:
    if not (smoothness > 0 and math.isfinite(smoothness)):
        raise UserError(
            f"expected a positive, finite smoothness L, got {smoothness}; compute it, e.g. with least_squares_constants"
        )
    return smoothness


def _check_lr(lr: float, most: float, name: str) -> None:
    """A learning rate may be 1/L as computed: one rounding more is still that."""
    if not 0 < lr <= most * (1 + 1e-12) or math.isinf(lr):
        limit = f"0 < η <= {name} = {most:.6g}" if name else "a positive, finite η"
        raise UserError(f"expected a learning rate with {limit}, got {lr}; the theorem holds for no other")
