"""Where EM begins: centres far from each other by k-means++, a few rounds of k-means, and the moments of its clusters.

n points, k components, d coordinates
"""

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.errors import UserError
from quoin.models.mixture_e_step import Points, weighted_moments
from quoin.prob import ComponentNormals, FullNormals, GaussianMixtureDistribution
from quoin.tensor import squared_distances

__all__ = ["init_from_kmeans", "init_mixture", "kmeans_plus_plus"]

_MOST_POINTS = 20_000  # to begin from: a start need not be exact
_ROUNDS = 10  # of k-means; EM does the rest
_LEAST = 0.01  # of the points' variance that a component begins with at least: one on a single point would stay there


def init_mixture(
    x: Float[Tensor, "points dim"],
    num_components: int,
    covariance_type: type[ComponentNormals] = FullNormals,
    *,
    generator: torch.Generator,
    min_variance: float = 0.0,
) -> GaussianMixtureDistribution:
    """The distribution whose components have the weights, means and covariances of the clusters that k-means finds from
    `kmeans_plus_plus`.

    No variance is below a hundredth of the points' own, or below `min_variance` of it: give the one that EM is to keep,
    or its first step may have to widen components and lower the likelihood.

    Args:
        covariance_type: `FullNormals`, `TiedNormals`, `DiagonalNormals` or `SphericalNormals` of quoin.prob.
    """
    points = Points(x, covariance_type, num_components)
    return points.outer(init_from_kmeans(points, num_components, generator, min_variance))


@torch.no_grad()
def kmeans_plus_plus(
    x: Float[Tensor, "points dim"], num_clusters: int, *, generator: torch.Generator
) -> Float[Tensor, "{num_clusters} dim"]:
    """Points as centres, each next one sampled with probability in proportion to the squared distance from the
    others.
    """
    chosen = torch.randint(len(x), (1,), generator=generator, device=x.device)
    nearest = squared_distances(x, x[chosen]).squeeze(-1)  # (n,)
    for found in range(1, num_clusters):
        if not bool(nearest.any()):
            raise UserError(
                f"expected at least {num_clusters} points that differ, got {found}; take fewer components or other "
                "points"
            )
        another = torch.multinomial(nearest, 1, generator=generator)
        nearest = nearest.minimum(squared_distances(x, x[another]).squeeze(-1))
        chosen = torch.cat([chosen, another])
    return x[chosen]


@torch.no_grad()
def init_from_kmeans(
    points: Points, num_components: int, generator: torch.Generator, min_variance: float
) -> GaussianMixtureDistribution:
    """`init_mixture`, in the coordinates of the pieces."""
    rows = points.rows.to(points.dtype)
    if len(rows) > _MOST_POINTS:
        rows = rows[torch.randint(len(rows), (_MOST_POINTS,), generator=generator, device=rows.device)]
    centers = kmeans_plus_plus(rows, num_components, generator=generator)
    for _ in range(_ROUNDS):
        responsibilities = _nearest(rows, centers)
        totals = responsibilities.sum(dim=0).unsqueeze(-1)
        centers = torch.where(totals > 0, responsibilities.mT @ rows / totals.clamp(min=1), centers)
    moments = weighted_moments(points, [_nearest(piece.to(points.dtype).mT, centers) for piece in points.pieces])
    some = moments.totals.clamp(min=1)  # a centre that lost all its points keeps its place
    return GaussianMixtureDistribution(
        some / some.sum(), points.covariance_type.isotropic_at(centers).m_step(moments, max(_LEAST, min_variance))
    )


def _nearest(rows: Tensor, centers: Tensor) -> Tensor:  # (n, d), (k, d) -> (n, k)
    return torch.nn.functional.one_hot(squared_distances(rows, centers).argmin(dim=-1), len(centers)).to(rows.dtype)
