"""Square matrices and their kin: determinant, rank, inverse. What has no inverse raises an error, and is never inverted
by rounding.
"""

import itertools
import math

import torch
from jaxtyping import Float, Int, Num
from torch import Tensor

from quoin.errors import UserError
from quoin.tensor.entries import check_finite, check_floating, check_same_dtype
from quoin.tensor.shapes import check_shapes

__all__ = ["det", "det_definition", "inverse", "matrix_rank"]


def det_definition(A: Num[Tensor, "n n"]) -> Num[Tensor, ""]:
    """det A = sum over permutations s of sign(s) A_(1,s1) ... A_(n,sn): the signed volume of the unit cube's image.

    Notes: Z13.1.
    """
    check_shapes("n n", A=A)
    check_same_dtype(A)
    total = A.new_zeros(())
    for permutation in itertools.permutations(range(len(A))):
        inversions = sum(before > after for before, after in itertools.combinations(permutation, 2))
        product = A.new_ones(())
        for row, column in enumerate(permutation):
            product = product * A[row, column]
        total = total + (-1) ** inversions * product
    return total


def det(A: Float[Tensor, "*batch n n"]) -> Float[Tensor, "*batch"]:
    """`det_definition` by elimination, n^3 steps in place of n!; where it leaves the floats, use torch.linalg.slogdet.

    Notes: Z13.1.
    """
    check_shapes("... n n", A=A)
    check_floating(A, "A")
    return torch.linalg.det(A)


def matrix_rank(A: Float[Tensor, "*batch m n"], *, tol: float | None = None) -> Int[Tensor, "*batch"]:
    """The dimension of the image of A: how many singular values exceed `tol` times the largest.

    By default 8 max(m, n) roundings of A's dtype, within which the computed singular values of a matrix of lower rank
    stay.

    Notes: Z13.1.
    """
    check_shapes("... m n", A=A)
    check_floating(A, "A")
    check_finite(A, "A")
    if tol is None:
        tol = 8 * max(A.shape[-2:]) * torch.finfo(A.dtype).eps
    if not 0 <= tol < 1:
        raise UserError(
            f"expected a relative tolerance from 0 to below 1, got {tol}; give a fraction of the largest singular value"
        )
    if 0 in A.shape[-2:]:
        return torch.zeros(A.shape[:-2], dtype=torch.long, device=A.device)
    values = torch.linalg.svdvals(A.detach().double())
    return (values > tol * values[..., :1]).sum(dim=-1)


def inverse(A: Float[Tensor, "*batch n n"]) -> Float[Tensor, "*batch n n"]:
    """A^(-1) with A A^(-1) = I; a UserError where A is singular to working precision.

    For a system without one solution, `torch.linalg.pinv(A) @ b` is the shortest of the nearest.

    Notes: Z13.1.
    """
    check_shapes("... n n", A=A)
    check_floating(A, "A")
    check_finite(A, "A")
    if A.numel() == 0:
        return A
    found, info = torch.linalg.inv_ex(A)
    with torch.no_grad():
        condition = torch.where(info == 0, _one_norm(A) * _one_norm(found), math.inf)
        worst = float(condition.nan_to_num(math.inf).max())
    if worst > 1 / (8 * A.shape[-1] * torch.finfo(A.dtype).eps):
        raise UserError(
            f"expected an invertible matrix, got shape {tuple(A.shape)} with rank {int(matrix_rank(A).min())} and "
            "condition "
            f"{worst:.1e}; solve by torch.linalg.pinv, which gives the shortest solution"
        )
    return found


def _one_norm(A: Tensor) -> Tensor:
    return A.abs().sum(dim=-2).amax(dim=-1)
