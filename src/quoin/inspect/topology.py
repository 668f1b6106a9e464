"""The shape of a cloud of points, as a layer sees it."""

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.errors import UserError
from quoin.tensor import check_shapes

__all__ = ["num_connected_components"]


def num_connected_components(points: Float[Tensor, "points dim"], radius: float) -> int:
    """The number of connected components when points at a distance of at most `radius` are joined.

    A continuous layer can merge components and never makes new ones; an injective one (an invertible affine map and
    tanh) keeps their number, once the sample is dense enough for `radius` to lie between its spacing and the gaps.

    Notes: D1-10.
    """
    check_shapes("n d", points=points)
    if radius < 0 or not points.isfinite().all():
        raise UserError(
            f"expected finite points and a radius of at least 0, got radius {radius}; clean the points or raise it"
        )
    # Not cdist's fast form, which takes differences of large squares and would separate equal points.
    near = torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist") <= radius
    unseen = torch.ones(len(points), dtype=torch.bool, device=points.device)
    count = 0
    while unseen.any():
        front = torch.zeros_like(unseen)
        front[unseen.nonzero()[0]] = True
        while front.any():
            unseen &= ~front
            front = near[front].any(dim=0) & unseen
        count += 1
    return count
