"""Convolution as mathematics has it, with one of the two turned round: of functions, and of finite arrays.

What networks call a convolution is the cross-correlation of conv.py: this convolution with the kernel flipped.
"""

import math
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.errors import UserError, format_value
from quoin.layers.conv import cross_correlate1d, cross_correlate2d
from quoin.layers.windows import check_whole
from quoin.tensor import check_floating, check_same_dtype, check_shapes

__all__ = ["convolution_integral", "convolve1d", "convolve1d_definition", "convolve2d", "convolve2d_definition"]

_MOST_POINTS = 10_000_000  # of the grid: 80 MB in float64


def convolve1d_definition(f: Float[Tensor, "n"], g: Float[Tensor, "m"]) -> Float[Tensor, "n+m-1"]:
    """(f * g)(i) = sum_a f(a) g(i - a), both being zero outside their arrays, which begin at index 0.

    >>> convolve1d_definition(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 10.0, 100.0]))
    tensor([  1.,  12., 120., 200.])

    Notes: Z7.7.
    """
    _check("n, m", f, g)
    shifted = (
        torch.nn.functional.pad(g, (a, len(f) - 1 - a)) for a in range(len(f))
    )  # entry i of the a-th is g(i - a)
    return sum((f[a] * moved for a, moved in enumerate(shifted)), start=f.new_zeros(()))


def convolve2d_definition(f: Float[Tensor, "n m"], g: Float[Tensor, "p q"]) -> Float[Tensor, "n+p-1 m+q-1"]:
    """(f * g)(i, j) = sum_ab f(a, b) g(i - a, j - b), both being zero outside their arrays, which begin at (0, 0).

    Notes: Z7.7.
    """
    _check("n m, p q", f, g)
    rows, columns = f.shape
    output = f.new_zeros(())
    for a in range(rows):
        for b in range(columns):
            output = output + f[a, b] * torch.nn.functional.pad(g, (b, columns - 1 - b, a, rows - 1 - a))
    return output


def convolve1d(f: Float[Tensor, "n"], g: Float[Tensor, "m"]) -> Float[Tensor, "n+m-1"]:
    """`convolve1d_definition` on torch's kernel: g padded on both sides and correlated with f turned round.

    Notes: Z7.7.
    """
    _check("n, m", f, g)
    return cross_correlate1d(g[None, None], f.flip(0)[None, None], padding=len(f) - 1)[0, 0]


def convolve2d(f: Float[Tensor, "n m"], g: Float[Tensor, "p q"]) -> Float[Tensor, "n+p-1 m+q-1"]:
    """`convolve2d_definition` on torch's kernel: g padded on all sides and correlated with f turned round in both axes.

    Notes: Z7.7.
    """
    _check("n m, p q", f, g)
    sides = [(size - 1, size - 1) for size in f.shape]
    return cross_correlate2d(g[None, None], f.flip(0, 1)[None, None], padding=sides)[0, 0]


def convolution_integral(
    f: Callable[[Tensor], Tensor],
    g: Callable[[Tensor], Tensor],
    x: Float[Tensor, "*batch d"],
    support: Sequence[tuple[float, float]],
    *,
    num_points: int = 400,
) -> Float[Tensor, "*batch"]:
    """(f * g)(x), the integral of f(z) g(x - z) over z in R^d, by the midpoint rule with `num_points` cells along each
    axis.

    f and g take points (..., d) to numbers (...); `support` gives (low, high) for each axis, a box outside which f is
    zero.

    Notes: Z7.6.
    """
    check_shapes("... d", x=x)
    check_floating(x)
    check_whole("number of points", num_points, 1)
    num_dims = x.shape[-1]
    if len(support) != num_dims or not all(
        len(ends) == 2 and -math.inf < ends[0] < ends[1] < math.inf for ends in support
    ):
        raise UserError(
            f"expected (low, high), low below high, for each of {num_dims} axes, got {format_value(support)}; say "
            "where f is not zero"
        )
    if num_points**num_dims > _MOST_POINTS:
        raise UserError(f"expected at most {_MOST_POINTS} cells in all, got {num_points}^{num_dims}; lower num_points")
    middles = (torch.arange(num_points, dtype=x.dtype, device=x.device) + 0.5) / num_points  # of the cells of [0, 1]
    z = torch.stack(
        torch.meshgrid(*(low + (high - low) * middles for low, high in support), indexing="ij"), dim=-1
    ).reshape(-1, num_dims)
    cell = math.prod((high - low) / num_points for low, high in support)
    return cell * (f(z) * g(x.unsqueeze(-2) - z)).sum(dim=-1)


def _check(legend: str, f: Tensor, g: Tensor) -> None:
    check_shapes(legend, f=f, g=g)
    for name, given in (("f", f), ("g", g)):
        check_floating(given, name)
        if given.numel() == 0:
            raise UserError(
                f"expected at least one entry of {name}, got shape {tuple(given.shape)}; convolve arrays that are "
                "not empty"
            )
    check_same_dtype(f, g)
