"""A tensor as a table of numbers: its order, its entries, its unfoldings.

T in R^(d1 x ... x dn) has order n, shape (d1, ..., dn) and one entry for each (i1, ..., in). The *order* counts axes;
the *rank* counts pure summands (rank.py) and is another number. The shape is `T.shape`.
"""

from jaxtyping import Shaped
from torch import Tensor

from quoin.errors import UserError

__all__ = ["entry", "order", "unfolding"]


def order(T: Shaped[Tensor, "..."]) -> int:
    """The number n of axes of T in R^(d1 x ... x dn): 0 for a scalar, 1 for a vector, 2 for a matrix.

    Notes: D1.2-1.
    """
    return T.ndim


def entry(T: Shaped[Tensor, "..."], *indices: int) -> Shaped[Tensor, ""]:
    """T_(i1, ..., in), one index for each axis, counted from 0 and never from the back.

    Notes: D1.2-1.
    """
    if len(indices) != T.ndim:
        raise UserError(
            f"expected {T.ndim} indices for a tensor of order {T.ndim}, got {len(indices)}; give one for each axis"
        )
    for dim, (index, size) in enumerate(zip(indices, T.shape, strict=True)):
        if not 0 <= index < size:
            raise UserError(
                f"expected index {dim} from 0 to {size - 1}, got {index} (shape {tuple(T.shape)}); stay inside the axis"
            )
    return T[indices]


def unfolding(T: Shaped[Tensor, "..."], *dims: int) -> Shaped[Tensor, "rows columns"]:
    """T as a matrix: the named axes, in their order, index the rows, and the others, in theirs, the columns.

    >>> import torch
    >>> unfolding(torch.arange(8).reshape(2, 2, 2), 1)
    tensor([[0, 1, 4, 5],
            [2, 3, 6, 7]])
    """
    if not all(0 <= dim < T.ndim for dim in dims) or len(set(dims)) != len(dims):
        raise UserError(
            f"expected different axes from 0 to {T.ndim - 1}, got {dims}; name axes of shape {tuple(T.shape)}"
        )
    others = [dim for dim in range(T.ndim) if dim not in dims]
    rows, columns = 1, 1
    for dim, size in enumerate(T.shape):
        rows, columns = (rows * size, columns) if dim in dims else (rows, columns * size)
    return T.permute([*dims, *others]).reshape(rows, columns)
