"""Matrices of a kernel's values at all pairs of points. A kernel takes two batches of points, broadcast, to (...).

n and m points, d dimensions
"""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float, Real
from torch import Tensor

from quoin.errors import UserError
from quoin.tensor.blocks import in_blocks, rows_per_block
from quoin.tensor.entries import as_floating, check_floating, check_same_dtype
from quoin.tensor.shapes import check_shapes

__all__ = ["PairKernel", "check_gamma", "kernel_matrix", "rbf_kernel"]

PairKernel = Callable[[Tensor, Tensor], Tensor]  # (..., d), (..., d) -> (...)


def kernel_matrix(
    kernel: PairKernel, X: Float[Tensor, "n d"], Y: Float[Tensor, "m d"] | None = None
) -> Float[Tensor, "n m"]:
    """K_ij = k(x_i, y_j); without a second set of points that of X with itself, the kernel matrix.

    For a kernel k(x, y) = ⟨ψ(x), ψ(y)⟩ it is positive semidefinite, and its rank is at most the number of features in
    ψ. Rows are worked off in blocks, so that not all n m d differences stand in memory at once.

    Args:
        kernel: k, from two tensors of points (..., d) that broadcast to (...) numbers.

    >>> kernel_matrix(lambda x, y: (x * y).sum(-1), torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[ 5., 11.],
            [11., 25.]])

    Notes: D4.1-15.
    """
    Y = X if Y is None else Y
    check_shapes("n d, m d", X=X, Y=Y)
    check_floating(X)
    check_same_dtype(X, Y)
    return torch.cat([kernel(block.unsqueeze(1), Y) for block in in_blocks(X, rows_per_block(Y.numel()))])


def rbf_kernel(x: Real[Tensor, "*#batch d"], y: Real[Tensor, "*#batch d"], gamma: float) -> Float[Tensor, "*#batch"]:
    """exp(-γ ‖x - y‖²): the Gaussian kernel, of bandwidth 1/√(2γ) and without the constant that would make it a
    density.

    >>> round(float(rbf_kernel(torch.tensor([0.0, 0.0]), torch.tensor([1.0, 1.0]), 0.5)), 6)
    0.367879

    Notes: D4.1-13, D4.1-15.
    """
    check_gamma(gamma)
    return (-gamma * (as_floating(x) - as_floating(y)).square().sum(dim=-1)).exp()


def check_gamma(gamma: float) -> None:
    """Raise an error for a γ with which exp(-γ ‖x - y‖²) falls nowhere."""
    if not (math.isfinite(gamma) and gamma > 0):
        raise UserError(f"expected a gamma above 0, got {gamma}; give e.g. 0.5, for a kernel of bandwidth 1")
