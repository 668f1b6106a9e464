"""Expectation maximisation for mixtures of normal laws: responsibilities, then weighted moments, and again.

First one step by its equations; then the step for many points and every family of covariances, and steps until nothing is gained.
A step is `e_step` (mixture_e_step.py), then `m_step`; where EM begins is in mixture_start.py.   n points, k components, d coordinates
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from quoin.errors import Mistake
from quoin.models.mixture_e_step import Points, e_step
from quoin.models.mixture_start import begun
from quoin.prob import ComponentNormals, FullNormals, NormalMixture, WeightedMoments, responsibilities_definition
from quoin.tensor import check_shapes

__all__ = ["EM", "EMStep", "em", "em_from_starts", "em_step", "em_step_definition", "m_step"]


class EMStep(NamedTuple):
    """A law that explains the points at least as well, and how well the old one did."""

    output: NormalMixture
    log_likelihood: Tensor  # (): Σ_n ln p(x_n) under the old law


class EM(NamedTuple):
    """The law after the last step, and Σ_n ln p(x_n) before each step and after the last."""

    output: NormalMixture
    log_likelihoods: list[float]
    converged: bool


def em_step_definition(x: Tensor, weights: Tensor, means: Tensor, covariances: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """r_ni = P[Z = i | x_n] and N_i = Σ_n r_ni; then φ_i = N_i/n, μ_i = Σ_n r_ni x_n / N_i, Σ_i = Σ_n r_ni (x_n - μ_i)(x_n - μ_i)^T / N_i.

    x is (n, d); the new φ (k,), μ (k, d) and Σ (k, d, d) come back, about the new means.

    Notes: D6-10.
    """
    check_shapes("n d, k, k d, k d d", x=x, weights=weights, means=means, covariances=covariances)
    shares = responsibilities_definition(x, weights, means, covariances)
    totals = shares.sum(dim=0)
    centres = shares.mT @ x / totals.unsqueeze(-1)
    away = x.unsqueeze(-2) - centres
    spreads = torch.einsum("nk,nki,nkj->kij", shares, away, away) / totals[:, None, None]
    return totals / len(x), centres, spreads


def em_step(law: NormalMixture, x: Tensor, *, min_variance: float = 1e-6) -> EMStep:  # (n, d)
    """`em_step_definition` for many points and every family of covariances, none below `min_variance` times that of the points.

    It maximises E[ln p'(Z, x) | x] over the laws p' of the family that keep this bound, and ln p'(x) rises by no less than that does:
    from a law that keeps it, the likelihood never falls.

    Notes: D6-10.
    """
    _check(min_variance)
    points = Points(x, type(law.components), law.components.num_components)
    found = _step(points, points.inner(law), min_variance)
    return EMStep(points.outer(found.output), points.outer_likelihood(found.log_likelihood))


def em(law: NormalMixture, x: Tensor, *, num_steps: int = 500, tolerance: float = 1e-6, min_variance: float = 1e-6) -> EM:  # (n, d)
    """Steps of EM from a law, fewer than `num_steps` where one raises the log-likelihood by at most `tolerance` for each point.

    Notes: D6-10.
    """
    _check(min_variance, num_steps, tolerance)
    points = Points(x, type(law.components), law.components.num_components)
    return _iterate(points, points.inner(law), num_steps=num_steps, tolerance=tolerance, min_variance=min_variance)


def em_from_starts(
    x: Tensor,
    num_components: int,
    family: type[ComponentNormals] = FullNormals,
    *,
    generator: torch.Generator,
    starts: int = 5,
    num_steps: int = 500,
    tolerance: float = 1e-6,
    min_variance: float = 1e-6,
) -> EM:  # (n, d)
    """`em` from several random starts, and of these the likeliest in the end.

    Notes: D6-10.
    """
    _check(min_variance, num_steps, tolerance)
    if starts < 1:
        raise Mistake(f"expected at least one start, came {starts}; give 1 or more")
    points = Points(x, family, num_components)
    runs = []
    for _ in range(starts):
        law = begun(points, num_components, generator, min_variance)
        runs.append(_iterate(points, law, num_steps=num_steps, tolerance=tolerance, min_variance=min_variance))
    return max(runs, key=lambda run: run.log_likelihoods[-1])


def _iterate(points: Points, law: NormalMixture, *, num_steps: int, tolerance: float, min_variance: float) -> EM:
    """From a law in inner coordinates."""
    found: list[float] = []
    converged = False
    for _ in range(num_steps):
        law, log_likelihood = _step(points, law, min_variance)
        found.append(float(points.outer_likelihood(log_likelihood)))
        # The first step may fall, from a law outside the bound to one within: that says nothing of what the next will gain.
        gain = found[-1] - found[-2] if len(found) > 1 else math.inf
        converged = gain <= tolerance * points.count and (gain >= 0 or len(found) > 2)
        if converged:
            break
    last = float(points.outer_likelihood(points.log_likelihood(law)))
    return EM(points.outer(law), [*found, last], converged)


@torch.no_grad()
def _step(points: Points, law: NormalMixture, min_variance: float) -> EMStep:
    """In inner coordinates, packed where that loses no digits that count: neither of the old law's distances nor of the new moments."""
    packed = points.packs(law)
    found = e_step(points, law, packed=packed)
    better = m_step(law, found.moments, min_variance)
    if packed and not points.packs(better):
        found = e_step(points, law, packed=False)
        better = m_step(law, found.moments, min_variance)
    return EMStep(better, found.log_likelihood)


def m_step(law: NormalMixture, moments: WeightedMoments, min_variance: float) -> NormalMixture:
    """The likeliest law of the family for the moments of the E-step: φ_i = N_i/n, and means and covariances as the family has them.

    Notes: D6-10.
    """
    return NormalMixture(moments.totals / moments.totals.sum(), law.components.maximised(moments, min_variance))


def _check(min_variance: float, num_steps: int = 0, tolerance: float = 0.0) -> None:
    if num_steps < 0 or not tolerance >= 0:
        raise Mistake(f"expected steps and a tolerance from 0 up, came {num_steps} and {tolerance}; the likelihood never falls")
    if not (math.isfinite(min_variance) and min_variance >= 0):
        raise Mistake(f"expected a least variance of 0 or more, came {min_variance}; 1e-6 of that of the points keeps them off 0")
