"""Where EM begins: centres far from each other by k-means++, a few rounds of k-means, and the moments of its clusters.

n points, k components, d coordinates
"""

import torch
from torch import Tensor

from quoin.errors import Mistake
from quoin.models.mixture_e_step import Points, weighted_moments
from quoin.prob import ComponentNormals, FullNormals, NormalMixture
from quoin.tensor import squared_distances

__all__ = ["begun", "kmeans_plus_plus", "start_mixture"]

_MOST_POINTS = 20_000  # to begin from: a start need not be exact
_ROUNDS = 10  # of k-means; EM does the rest
_LEAST = 0.01  # of the points' variance that a component begins with at least: one on a single point would stay there


def start_mixture(
    x: Tensor, num_components: int, family: type[ComponentNormals] = FullNormals, *, generator: torch.Generator, min_variance: float = 0.0
) -> NormalMixture:  # (n, d)
    """The law whose components have the shares, means and covariances of the clusters that k-means finds from `kmeans_plus_plus`.

    No variance is below a hundredth of the points' own, or below `min_variance` of it: give the one that EM is to keep, or its first
    step may have to widen components and lower the likelihood.
    """
    points = Points(x, family, num_components)
    return points.outer(begun(points, num_components, generator, min_variance))


@torch.no_grad()
def kmeans_plus_plus(x: Tensor, num_centres: int, *, generator: torch.Generator) -> Tensor:  # (n, d) -> (k, d)
    """Points as centres, each next one drawn with probability in proportion to the squared distance from those before."""
    chosen = torch.randint(len(x), (1,), generator=generator, device=x.device)
    nearest = squared_distances(x, x[chosen]).squeeze(-1)  # (n,)
    for found in range(1, num_centres):
        if not bool(nearest.any()):
            raise Mistake(f"expected at least {num_centres} points that differ, came {found}; take fewer components or other points")
        another = torch.multinomial(nearest, 1, generator=generator)
        nearest = nearest.minimum(squared_distances(x, x[another]).squeeze(-1))
        chosen = torch.cat([chosen, another])
    return x[chosen]


@torch.no_grad()
def begun(points: Points, num_components: int, generator: torch.Generator, min_variance: float) -> NormalMixture:
    """`start_mixture`, in the coordinates of the pieces."""
    rows = points.rows.to(points.dtype)
    if len(rows) > _MOST_POINTS:
        rows = rows[torch.randint(len(rows), (_MOST_POINTS,), generator=generator, device=rows.device)]
    centres = kmeans_plus_plus(rows, num_components, generator=generator)
    for _ in range(_ROUNDS):
        shares = _nearest(rows, centres)
        totals = shares.sum(dim=0).unsqueeze(-1)
        centres = torch.where(totals > 0, shares.mT @ rows / totals.clamp(min=1), centres)
    moments = weighted_moments(points, [_nearest(piece.to(points.dtype).mT, centres) for piece in points.pieces])
    some = moments.totals.clamp(min=1)  # a centre that lost all its points keeps its place
    return NormalMixture(some / some.sum(), points.family.around(centres).maximised(moments, max(_LEAST, min_variance)))


def _nearest(rows: Tensor, centres: Tensor) -> Tensor:  # (n, d), (k, d) -> (n, k)
    return torch.nn.functional.one_hot(squared_distances(rows, centres).argmin(dim=-1), len(centres)).to(rows.dtype)
