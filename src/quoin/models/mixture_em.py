"""Expectation maximisation for mixtures of normal distributions: responsibilities, then weighted moments, and again.

First one step by its equations; then the step for many points and every family of covariances, and steps until nothing
is gained. A step is `e_step` (mixture_e_step.py), then `m_step`; where EM begins is in mixture_init.py.   n points
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.models.mixture_e_step import Points, e_step
from quoin.models.mixture_init import init_from_kmeans
from quoin.prob import (
    ComponentNormals,
    FullNormals,
    GaussianMixtureDistribution,
    WeightedMoments,
    responsibilities_definition,
)
from quoin.tensor import check_shapes

__all__ = ["EM", "EMStep", "em", "em_step", "em_step_definition", "em_with_restarts", "m_step"]


@shown
class EMStep(NamedTuple):
    """A distribution that explains the points at least as well, and how well the old one did."""

    output: GaussianMixtureDistribution
    log_likelihood: Float[Tensor, ""]  # Σ_n ln p(x_n) under the old distribution


@shown
class EM(NamedTuple):
    """The distribution after the last step, and Σ_n ln p(x_n) before each step and after the last."""

    output: GaussianMixtureDistribution
    log_likelihoods: list[float]
    converged: bool


def em_step_definition(
    x: Float[Tensor, "points dim"],
    weights: Float[Tensor, "components"],
    means: Float[Tensor, "components dim"],
    covariances: Float[Tensor, "components dim dim"],
) -> tuple[Float[Tensor, "components"], Float[Tensor, "components dim"], Float[Tensor, "components dim dim"]]:
    """r_ni = P[Z = i | x_n] and N_i = Σ_n r_ni; then φ_i = N_i/n, μ_i = Σ_n r_ni x_n / N_i, Σ_i = Σ_n r_ni (x_n -
    μ_i)(x_n - μ_i)^T / N_i.

    The new φ, μ and Σ come back, Σ about the new means.

    Notes: D6-10.
    """
    check_shapes("n d, k, k d, k d d", x=x, weights=weights, means=means, covariances=covariances)
    responsibilities = responsibilities_definition(x, weights, means, covariances)
    totals = responsibilities.sum(dim=0)
    centers = responsibilities.mT @ x / totals.unsqueeze(-1)
    away = x.unsqueeze(-2) - centers
    scatter_matrices = torch.einsum("nk,nki,nkj->kij", responsibilities, away, away) / totals[:, None, None]
    return totals / len(x), centers, scatter_matrices


def em_step(
    mixture: GaussianMixtureDistribution, x: Float[Tensor, "points dim"], *, min_variance: float = 1e-6
) -> EMStep:
    """`em_step_definition` for many points and every family of covariances, none below `min_variance` times that of the
    points.

    It maximises E[ln p'(Z, x) | x] over the distributions p' of the family that keep this bound, and ln p'(x) rises by
    no less than that does: from a distribution that keeps it, the likelihood never falls.

    Notes: D6-10.
    """
    _check(min_variance)
    points = Points(x, type(mixture.components), mixture.components.num_components)
    found = _step(points, points.inner(mixture), min_variance)
    return EMStep(points.outer(found.output), points.outer_likelihood(found.log_likelihood))


def em(
    mixture: GaussianMixtureDistribution,
    x: Float[Tensor, "points dim"],
    *,
    max_iter: int = 500,
    tol: float = 1e-6,
    min_variance: float = 1e-6,
) -> EM:
    """Steps of EM from a distribution, fewer than `max_iter` where one raises the log-likelihood by at most `tol` for
    each point.

    Args:
        min_variance: Least variance of a component, as a fraction of that of the points.

    Notes: D6-10.
    """
    _check(min_variance, max_iter, tol)
    points = Points(x, type(mixture.components), mixture.components.num_components)
    return _iterate(points, points.inner(mixture), max_iter=max_iter, tol=tol, min_variance=min_variance)


def em_with_restarts(
    x: Float[Tensor, "points dim"],
    num_components: int,
    covariance_type: type[ComponentNormals] = FullNormals,
    *,
    generator: torch.Generator,
    num_init: int = 5,
    max_iter: int = 500,
    tol: float = 1e-6,
    min_variance: float = 1e-6,
) -> EM:
    """`em` from several random starts, and of these the most probable in the end.

    Args:
        covariance_type: `FullNormals`, `TiedNormals`, `DiagonalNormals` or `SphericalNormals` of quoin.prob.
        num_init: How many starts, each from k-means.
        min_variance: Least variance of a component, as a fraction of that of the points.

    Notes: D6-10.
    """
    _check(min_variance, max_iter, tol)
    if num_init < 1:
        raise UserError(f"expected at least one start, got {num_init}; give 1 or more")
    points = Points(x, covariance_type, num_components)
    runs = []
    for _ in range(num_init):
        mixture = init_from_kmeans(points, num_components, generator, min_variance)
        runs.append(_iterate(points, mixture, max_iter=max_iter, tol=tol, min_variance=min_variance))
    return max(runs, key=lambda run: run.log_likelihoods[-1])


def _iterate(
    points: Points, mixture: GaussianMixtureDistribution, *, max_iter: int, tol: float, min_variance: float
) -> EM:
    """From a distribution in inner coordinates."""
    found: list[float] = []
    converged = False
    for _ in range(max_iter):
        mixture, log_likelihood = _step(points, mixture, min_variance)
        found.append(float(points.outer_likelihood(log_likelihood)))
        # The first step may fall, from a distribution outside the bound to one within: that says nothing of what the
        # next will gain.
        gain = found[-1] - found[-2] if len(found) > 1 else math.inf
        converged = gain <= tol * points.num_points and (gain >= 0 or len(found) > 2)
        if converged:
            break
    last = float(points.outer_likelihood(points.log_likelihood(mixture)))
    return EM(points.outer(mixture), [*found, last], converged)


@torch.no_grad()
def _step(points: Points, mixture: GaussianMixtureDistribution, min_variance: float) -> EMStep:
    """In inner coordinates, packed where that loses no digits that count: neither of the old distribution's distances
    nor of the new moments.
    """
    packed = points.packs(mixture)
    found = e_step(points, mixture, packed=packed)
    better = m_step(mixture, found.moments, min_variance)
    if packed and not points.packs(better):
        found = e_step(points, mixture, packed=False)
        better = m_step(mixture, found.moments, min_variance)
    return EMStep(better, found.log_likelihood)


def m_step(
    mixture: GaussianMixtureDistribution, moments: WeightedMoments, min_variance: float
) -> GaussianMixtureDistribution:
    """The most probable distribution of the family for the moments of the E-step: φ_i = N_i/n, and means and
    covariances as the family has them.

    Notes: D6-10.
    """
    return GaussianMixtureDistribution(
        moments.totals / moments.totals.sum(), mixture.components.m_step(moments, min_variance)
    )


def _check(min_variance: float, max_iter: int = 0, tol: float = 0.0) -> None:
    if max_iter < 0 or not tol >= 0:
        raise UserError(
            f"expected steps and a tolerance from 0 up, got {max_iter} and {tol}; the likelihood never falls"
        )
    if not (math.isfinite(min_variance) and min_variance >= 0):
        raise UserError(
            f"expected a least variance of 0 or more, got {min_variance}; 1e-6 of that of the points keeps them off 0"
        )
