"""How far apart two distributions are, estimated from samples by a kernel: the maximum mean discrepancy.

    MMD²(P, Q) = E k(X, X') + E k(Y, Y') - 2 E k(X, Y) = ‖E ψ(X) - E ψ(Y)‖²   for k(x, y) = ⟨ψ(x), ψ(y)⟩

For the Gaussian kernel, which is characteristic, it is zero for equal distributions only. Its estimate here is
unbiased, so that for equal distributions it is negative about as often as not.   n and m examples, d numbers each
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.errors import UserError
from quoin.tensor import (
    PairKernel,
    check_finite,
    check_floating,
    check_same_dtype,
    check_shapes,
    kernel_matrix,
    rbf_kernel,
)
from quoin.tensor.array_like import ArrayLike, float_tensor
from quoin.tensor.blocks import rows_per_block

__all__ = ["median_heuristic", "rbf_mixture_kernel", "squared_mmd", "squared_mmd_definition"]


def squared_mmd_definition(
    first: Float[Tensor, "n d"] | ArrayLike, second: Float[Tensor, "m d"] | ArrayLike, kernel: PairKernel
) -> Float[Tensor, ""]:
    """1/(n(n-1)) Σ_{i≠j} k(x_i, x_j) + 1/(m(m-1)) Σ_{i≠j} k(y_i, y_j) - 2/(nm) Σ_ij k(x_i, y_j): no point is
    paired with itself.

    Notes: D5.2-9.
    """
    first = float_tensor(first, "first", second)
    second = float_tensor(second, "second", first)
    _check(first, second)
    return (
        _mean_of_others(kernel_matrix(kernel, first))
        + _mean_of_others(kernel_matrix(kernel, second))
        - 2 * kernel_matrix(kernel, first, second).mean()
    )


def squared_mmd(
    first: Float[Tensor, "n d"] | ArrayLike, second: Float[Tensor, "m d"] | ArrayLike, bandwidths: Sequence[float]
) -> Float[Tensor, ""]:
    """`squared_mmd_definition` for `rbf_mixture_kernel(bandwidths)`, a block of rows at a time and by one product
    of matrices each.

    Distances are ‖x‖² - 2xᵀy + ‖y‖² from the mean of both sets, and all is summed in float64: the three
    means nearly cancel.

    >>> same = torch.tensor([[0.0], [2.0]])
    >>> float(squared_mmd(same, same, [1.0]))  # e^-2 twice, less 2 · (½ + ½ e^-2)
    -0.86466...

    Notes: D5.2-9.
    """
    first = float_tensor(first, "first", second)
    second = float_tensor(second, "second", first)
    _check(first, second)
    check_same_dtype(first, second)
    _check_bandwidths(bandwidths)
    middle = torch.cat([first.detach(), second.detach()]).double().mean(dim=0)
    x, y = first.double() - middle, second.double() - middle
    n, m = len(x), len(y)
    within = (_total(x, x, bandwidths) - n) / (n * (n - 1)) + (_total(y, y, bandwidths) - m) / (
        m * (m - 1)
    )  # k(x, x) = 1 is left out
    return (within - 2 * _total(x, y, bandwidths) / (n * m)).to(first.dtype)


def rbf_mixture_kernel(bandwidths: Sequence[float]) -> PairKernel:
    """k(x, y) = the mean over bandwidths w of exp(-‖x - y‖²/(2w²)): a wide one sees where the mass is, a narrow
    one the detail.
    """
    _check_bandwidths(bandwidths)

    def kernel(x: Tensor, y: Tensor) -> Tensor:  # (..., d), (..., d) -> (...)
        return torch.stack([rbf_kernel(x, y, 1 / (2 * bandwidth**2)) for bandwidth in bandwidths]).mean(dim=0)

    return kernel


def median_heuristic(points: Float[Tensor, "n d"] | ArrayLike) -> float:
    """The median of ‖x_i - x_j‖ over pairs i ≠ j: a bandwidth at which a kernel sees differences between such
    points at all.
    """
    points = float_tensor(points, "points")
    check_shapes("n d", points=points)
    check_floating(points, "points")
    check_finite(points, "points")
    if len(points) < 2:
        raise UserError(f"expected at least two points to measure between, got {len(points)}; give more")
    found = float(torch.pdist(points.detach().double()).median())
    if not found > 0:
        raise UserError("expected points that differ, got a median distance of 0; most of them are one and the same")
    return found


def _check_bandwidths(bandwidths: Sequence[float]) -> None:
    if not bandwidths or not all(0 < bandwidth < float("inf") for bandwidth in bandwidths):
        raise UserError(
            f"expected one bandwidth or more, each above 0, got {list(bandwidths)}; `median_heuristic` finds one "
            "that suits the points"
        )


def _mean_of_others(kernels: Tensor) -> Tensor:  # (n, n) -> ()
    n = len(kernels)
    return (kernels.sum() - kernels.diagonal().sum()) / (n * (n - 1))


def _total(x: Tensor, y: Tensor, bandwidths: Sequence[float]) -> Tensor:
    """The sum of the kernel over all pairs."""
    lengths = y.square().sum(dim=-1)
    total = x.new_zeros(())
    for rows in x.split(rows_per_block(len(y))):
        squares = (rows.square().sum(dim=-1, keepdim=True) - 2 * rows @ y.mT + lengths).clamp(min=0)
        for bandwidth in bandwidths:
            total = total + torch.exp(squares / (-2 * bandwidth**2)).sum()
    return total / len(bandwidths)


def _check(first: Tensor, second: Tensor) -> None:
    check_shapes("n d, m d", first=first, second=second)
    for name, sample in (("first", first), ("second", second)):
        check_floating(sample, name)
        check_finite(sample, name)
        if len(sample) < 2:
            raise UserError(
                f"expected at least two examples in each sample, got {len(sample)} in {name}; pairs are compared"
            )
