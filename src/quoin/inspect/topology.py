"""The shape of a cloud of points, as a layer sees it."""

import torch
from torch import Tensor

from quoin.errors import Mistake
from quoin.tensor import check_shapes

__all__ = ["num_components"]


def num_components(points: Tensor, reach: float) -> int:  # (n, d)
    """The number of connected components when points at a distance of at most `reach` are joined.

    A continuous layer can merge components and never makes new ones; an injective one (an invertible affine map and tanh)
    keeps their number, once the sample is dense enough for `reach` to lie between its spacing and the gaps.

    Notes: D1-10.
    """
    check_shapes("n d", points=points)
    if reach < 0 or not points.isfinite().all():
        raise Mistake(f"expected finite points and a reach of at least 0, came reach {reach}; clean the points or raise it")
    # Not cdist's fast form, which takes differences of large squares and would part equal points.
    near = torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist") <= reach
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
