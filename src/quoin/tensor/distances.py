"""How far queries are from keys, in bandwidths: offsets u = (q - k)/h, and their squared lengths.

A bandwidth h is a positive number, or one for each coordinate; it may be a tensor that learns.   n queries, m keys, d
dimensions
"""

import torch
from jaxtyping import Float, Real
from torch import Tensor

from quoin.errors import UserError, format_value
from quoin.tensor.entries import check_floating, check_same_dtype
from quoin.tensor.norms import power_of_two
from quoin.tensor.shapes import check_shapes

__all__ = ["Bandwidth", "as_bandwidth", "scaled_offsets", "squared_distances", "squared_distances_definition"]

Bandwidth = float | Real[Tensor, ""] | Real[Tensor, "_d"]  # positive: a number, or one for each of d coordinates


def scaled_offsets(
    query: Float[Tensor, "*batch n d"], key: Float[Tensor, "*batch m d"], bandwidth: Bandwidth
) -> Float[Tensor, "*batch n m d"]:
    """u = (q - k)/h for every pair, with one bandwidth h for all coordinates or one for each.

    >>> scaled_offsets(torch.tensor([[2.0, 2.0]]), torch.tensor([[0.0, 1.0]]), torch.tensor([1.0, 4.0]))
    tensor([[[2.0000, 0.2500]]])

    Notes: Z11.9.
    """
    _check(query, key)
    return (query.unsqueeze(-2) - key.unsqueeze(-3)) / as_bandwidth(bandwidth, query)


def squared_distances_definition(
    query: Real[Tensor, "*batch n d"], key: Real[Tensor, "*batch m d"]
) -> Real[Tensor, "*batch n m"]:
    """‖q - k‖² = sum_l (q_l - k_l)² for every pair: d differences, d squares and d - 1 additions each."""
    check_shapes("... n d, ... m d", query=query, key=key)
    check_same_dtype(query, key)
    return (query.unsqueeze(-2) - key.unsqueeze(-3)).square().sum(dim=-1)


def squared_distances(
    query: Float[Tensor, "*batch n d"], key: Float[Tensor, "*batch m d"], bandwidth: Bandwidth = 1.0
) -> Float[Tensor, "*batch n m"]:
    """‖(q - k)/h‖² for every pair from differences, on torch's kernel, which holds n m numbers where the definition
    holds n m d.

    Nothing cancels, however far from the origin the points lie; ‖q‖² - 2 q^T k + ‖k‖² would be quicker, with an error
    of ‖q‖² roundings. Bandwidths of any size do: only the distance in bandwidths is squared.

    Args:
        bandwidth: h, one number for all coordinates or one for each.
    """
    _check(query, key)
    bandwidth = as_bandwidth(bandwidth, query)
    if bandwidth.numel() > 1:
        # From the first key, not from the origin: a rounding of q/h would else be one of the whole coordinate.
        query, key, rest = *((each - key[..., :1, :].detach()) / bandwidth for each in (query, key)), None
    else:
        # One bandwidth divides last, so that points at distance 3 are at exactly one bandwidth of 3: a window has an
        # edge there. Its power of two divides first, which rounds nothing: the kernel squares what it is given.
        scale = power_of_two(bandwidth)
        query, key, rest = query / scale, key / scale, bandwidth / scale
    distances = torch.cdist(query, key, compute_mode="donot_use_mm_for_euclid_dist")
    return (distances if rest is None else distances / rest).square()


def as_bandwidth(bandwidth: Bandwidth, points: Float[Tensor, "... d"]) -> Float[Tensor, ""] | Float[Tensor, "d"]:
    """The bandwidth as a tensor like `points`, once it is found to be positive, and to have one number or one for each
    coordinate.
    """
    check_floating(points, "points")  # a bandwidth of 2.5 would be 2 among whole numbers
    found = torch.as_tensor(bandwidth, dtype=points.dtype, device=points.device)
    dim = points.shape[-1]
    if found.ndim > 1 or (found.ndim == 1 and len(found) != dim):
        raise UserError(
            f"expected one bandwidth, or one for each of {dim} coordinates, got shape {tuple(found.shape)}; "
            f"give ({dim},) of them"
        )
    if not torch.compiler.is_exporting() and not bool(((found > 0) & found.isfinite()).all()):
        given = found.tolist() if isinstance(bandwidth, Tensor) else bandwidth
        raise UserError(
            f"expected a bandwidth above 0, got {format_value(given)}; give the distance at which a key still counts"
        )
    return found


def _check(query: Tensor, key: Tensor) -> None:
    check_shapes("... n d, ... m d", query=query, key=key)
    check_floating(query, "query")
    check_same_dtype(query, key)
