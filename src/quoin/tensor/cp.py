"""A tensor as a sum of pure tensors (canonical polyadic form), found by alternating least squares.

The smallest number of summands is in rank.py.   r summands, one factor matrix (d_k, r) for each axis
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Num
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.tensor.entries import check_finite, check_floating, check_same_dtype
from quoin.tensor.norms import norm
from quoin.tensor.order import unfolding
from quoin.tensor.products import pure_tensor

__all__ = ["CP", "cp_decompose", "cp_tensor", "cp_tensor_definition"]


def cp_tensor_definition(*factors: Num[Tensor, "_d r"]) -> Num[Tensor, "..."]:
    """sum_i u_i^(1) ⊗ ... ⊗ u_i^(n), of shape (d_1, ..., d_n), where u_i^(k) is column i of factor k.

    Notes: D1.2-13.
    """
    rank = _same_rank(factors)
    total = factors[0].new_zeros([len(factor) for factor in factors])
    for i in range(rank):
        total = total + pure_tensor(*(factor[:, i] for factor in factors))
    return total


def cp_tensor(*factors: Num[Tensor, "_d r"]) -> Num[Tensor, "..."]:
    """`cp_tensor_definition` as one matrix product.

    Notes: D1.2-13.
    """
    _same_rank(factors)
    shape = [len(factor) for factor in factors]
    return (_columnwise(factors[:-1], like=factors[0]) @ factors[-1].mT).reshape(shape)


@shown
@dataclass(frozen=True)
class CP:
    """Factors whose pure tensors add up to T but for `residual`, relative to ‖T‖; the largest summand is
    `component_norm` times ‖T‖."""

    factors: tuple[Float[Tensor, "_d r"], ...]
    residual: float
    component_norm: float
    tol: float = 1e-10

    @property
    def rank(self) -> int:
        """The number of summands."""
        return self.factors[0].shape[-1]

    @property
    def is_exact(self) -> bool:
        """Whether this is a decomposition and not an approach to one: a residual of rounding, and no great
        cancellation.

        Where T is only a limit of such sums, those within δ of it have summands of size about 1/δ or 1/sqrt(δ). So
        summands below tol^(-1/4) that reach the tolerance are not on such a way.
        """
        return self.residual <= self.tol and self.component_norm <= self.tol**-0.25

    def tensor(self) -> Float[Tensor, "..."]:
        """The sum of the pure tensors."""
        return cp_tensor(*self.factors)


def cp_decompose(
    T: Float[Tensor, "..."], rank: int, *, num_init: int = 10, max_iter: int = 100, generator: torch.Generator
) -> CP:
    """`rank` pure tensors whose sum is near T: each factor in turn by least squares, the best of several random starts.

    minimise ‖T_(k) - U_k (⊙_(j ≠ k) U_j)ᵀ‖ over U_k, for k = 1, ..., n, again and again; T_(k) unfolds axis k, ⊙ is
    columnwise ⊗

    Sweeps bring every start near a minimum and then crawl, so as many damped Gauss-Newton steps on all factors together
    end the search. It stops once a start adds up (`CP.is_exact`); a residual above the tolerance shows nothing about
    the rank.

    Args:
        num_init: Random starts.
        max_iter: Sweeps of each start, and at most as many Gauss-Newton steps after them.

    Notes: D1.2-13.
    """
    check_floating(T, "T")
    check_finite(T, "T")
    if T.ndim == 0 or T.numel() == 0:
        raise UserError(
            f"expected a tensor of order at least 1 with entries, got shape {tuple(T.shape)}; there is nothing to "
            "decompose"
        )
    if rank < 1 or num_init < 1 or max_iter < 1:
        raise UserError(
            f"expected rank, num_init and max_iter of at least 1, got {rank}, {num_init} and {max_iter}; "
            "give whole numbers above 0"
        )
    tol = residual_of_rounding(T.dtype)
    target = (
        T.detach().double().cpu()
    )  # small work of many steps: in double, where rounding cannot be taken for a residual
    total = float(norm(target.flatten()))
    target = target / total if total else target
    factors = [torch.randn(num_init, size, rank, generator=generator, dtype=torch.float64) for size in T.shape]
    damping = torch.full((num_init, 1, 1), 1e-3, dtype=torch.float64)

    best = _best(target, factors, tol)
    for step in range(2 * max_iter):
        if step < max_iter:
            factors = _least_squares_sweep(target, factors)
        else:
            factors, damping = _gauss_newton_step(target, factors, damping)
        if step % 10 == 9 or step == 2 * max_iter - 1:
            best = _best(target, factors, tol)
            if best.is_exact:
                break
    factor_scale = total ** (1 / T.ndim)  # the scale of T, split equally among its factors
    return CP(tuple((factor * factor_scale).to(T) for factor in best.factors), best.residual, best.component_norm, tol)


def residual_of_rounding(dtype: torch.dtype) -> float:
    """The relative residual below which a sum counts as the tensor itself, its entries being rounded to `dtype`."""
    return 1e-10 if dtype == torch.float64 else 1e-5


def _least_squares_sweep(T: Tensor, factors: Sequence[Tensor]) -> list[Tensor]:
    """One pass over the axes, for all starts at once."""
    found = list(factors)
    for dim in range(T.ndim):
        design = _columnwise(found[:dim] + found[dim + 1 :], like=found[dim])  # (starts, the other axes, r)
        aim = unfolding(T, dim).mT.expand(len(design), -1, -1)
        found[dim] = torch.linalg.lstsq(design, aim, driver="gelsy").solution.mT  # of several, the shortest
        if dim < T.ndim - 1:
            found[dim] = _unit_columns(found[dim])
    # The last solution found the scale of each summand; it goes to all factors alike.
    factor_scale = norm(found[-1], dim=-2).unsqueeze(-2) ** (1 / T.ndim)
    return [_unit_columns(factor) * factor_scale for factor in found]


def _unit_columns(factor: Tensor) -> Tensor:
    lengths = norm(factor, dim=-2).unsqueeze(-2)
    return factor / torch.where(lengths > 0, lengths, 1)


def _gauss_newton_step(T: Tensor, factors: Sequence[Tensor], damping: Tensor) -> tuple[list[Tensor], Tensor]:
    """One step of Levenberg and Marquardt for each start: taken where it lowers the residual, and damped more where
    not."""
    num_init, rank = len(factors[0]), factors[0].shape[-1]
    blocks = []
    for dim, factor in enumerate(factors):
        others = [other for index, other in enumerate(factors) if index != dim]
        partials = _columnwise(others, like=factor).reshape(num_init, 1, *(other.shape[1] for other in others), 1, rank)
        units = torch.eye(T.shape[dim], dtype=T.dtype).reshape(1, T.shape[dim], *[1] * len(others), T.shape[dim], 1)
        blocks.append((partials * units).movedim(1, 1 + dim).reshape(num_init, T.numel(), -1))
    jacobian = torch.cat(blocks, dim=-1)
    error = _error(T, factors)
    gram = jacobian.mT @ jacobian + damping * torch.eye(jacobian.shape[-1], dtype=T.dtype)
    step = torch.linalg.solve(gram, jacobian.mT @ error.unsqueeze(-1)).squeeze(-1)
    moves = step.split([factor[0].numel() for factor in factors], dim=-1)
    moved = [factor + move.reshape(factor.shape) for factor, move in zip(factors, moves, strict=True)]
    better = (norm(_error(T, moved)) < norm(error)).reshape(-1, 1, 1)
    damping = torch.where(better, damping / 4, damping * 3).clamp(1e-14, 1e6)
    return [torch.where(better, new, old) for new, old in zip(moved, factors, strict=True)], damping


def _error(T: Tensor, factors: Sequence[Tensor]) -> Tensor:  # -> (starts, entries of T)
    sums = _columnwise(factors[:-1], like=factors[0]) @ factors[-1].mT
    return T.flatten() - sums.flatten(start_dim=1)


def _best(T: Tensor, factors: Sequence[Tensor], tol: float) -> CP:
    """The start of the smallest residual; of those that reach the tolerance, the one of the smallest summands."""
    residuals = norm(_error(T, factors))
    sizes = torch.stack([norm(factor, dim=-2) for factor in factors]).prod(dim=0).amax(dim=-1)
    reached = residuals <= tol
    start = int(torch.where(reached, sizes, math.inf).argmin() if bool(reached.any()) else residuals.argmin())
    return CP(tuple(factor[start] for factor in factors), float(residuals[start]), float(sizes[start]), tol)


def _columnwise(
    factors: Sequence[Tensor], like: Tensor
) -> Tensor:  # (..., d1, r), (..., d2, r), ... -> (..., d1 d2 ..., r)
    """The tensor product column by column, unfolded; of no factors, a row of ones."""
    product = torch.ones_like(like[..., :1, :])
    for factor in factors:
        product = (product.unsqueeze(-2) * factor.unsqueeze(-3)).flatten(-3, -2)
    return product


def _same_rank(factors: Sequence[Tensor]) -> int:
    shapes = [tuple(factor.shape) for factor in factors]
    if not shapes or any(len(shape) != 2 for shape in shapes) or len({shape[1] for shape in shapes}) != 1:
        raise UserError(
            f"expected matrices (d_k, r) of one r, got shapes {shapes}; give each axis as many columns as the others"
        )
    check_same_dtype(*factors)
    return shapes[0][1]
