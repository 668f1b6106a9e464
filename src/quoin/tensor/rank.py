"""The rank of a tensor: the least number of pure tensors that add up to it, bounded from both sides.

No algorithm finds it in general. Unfoldings bound it from below; a tensor of shape 2 x 2 x 2 is decided (cayley.py).
From above, a decomposition found bounds it, and here lies a trap: e1⊗e1⊗e2 + e1⊗e2⊗e1 + e2⊗e1⊗e1 has rank 3, yet sums
of two pure tensors come as near as you like, by growing without bound and cancelling. So a small residual alone is no
proof; we accept it only from summands that do not cancel (`CP.component_norm`).
"""

import itertools
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.tensor.cayley import decompose_pencil, hyperdeterminant_sign
from quoin.tensor.cp import CP, cp_decompose, cp_tensor, residual_of_rounding
from quoin.tensor.entries import check_finite, check_floating
from quoin.tensor.matrices import matrix_rank
from quoin.tensor.norms import norm
from quoin.tensor.order import unfolding

__all__ = ["RankBounds", "cp_rank", "is_pure", "unfolding_ranks"]


def unfolding_ranks(T: Float[Tensor, "..."], *, tol: float | None = None) -> tuple[int, ...]:
    """For each axis the rank of the matrix whose rows it indexes; none exceeds the rank of T, for a pure tensor unfolds
    to rank 1.

    Args:
        tol: As in `matrix_rank`.

    Notes: D1.2-13.
    """
    _check(T)
    return tuple(int(matrix_rank(unfolding(T, dim), tol=tol)) for dim in range(T.ndim))


def is_pure(T: Float[Tensor, "..."], *, tol: float | None = None) -> bool:
    """Whether T = v1 ⊗ ... ⊗ vn for some vectors, which holds exactly when no unfolding has a rank above 1; zero is
    pure.

    Args:
        tol: As in `matrix_rank`.

    Notes: D1.2-12.
    """
    return max(unfolding_ranks(T, tol=tol)) <= 1


@shown
@dataclass(frozen=True)
class RankBounds:
    """lower <= rank <= upper, where each bound comes from, and `upper` pure tensors that add up to T.

    Both are numerical: the lower bound trusts singular values, the upper one a residual and summands that do not
    cancel.
    """

    lower: int
    upper: int
    lower_from: str
    upper_from: str
    decomposition: CP

    @property
    def is_tight(self) -> bool:
        """Whether the bounds meet."""
        return self.lower == self.upper

    def __str__(self) -> str:
        rank = f"rank {self.lower}" if self.is_tight else f"rank from {self.lower} to {self.upper}"
        return f"{rank} (at least {self.lower} by {self.lower_from}; at most {self.upper} by {self.upper_from})"


def cp_rank(
    T: Float[Tensor, "..."], *, num_init: int = 10, max_iter: int = 100, generator: torch.Generator
) -> RankBounds:
    """Bounds on the least r with T = sum_(i <= r) u_i^(1) ⊗ ... ⊗ u_i^(n), for real u.

    From below by every way to unfold T into a matrix. From above by alternating least squares at r = lower, lower + 1,
    ... and, where that finds nothing, by the singular vectors of T's slices. For a matrix they meet at its rank.

    They also meet where all three unfoldings of T have rank 2, as for most 2 x 2 x 2 tensors: Cayley's Δ > 0 gives rank
    2, Δ <= 0 rank 3. Δ counts as 0 where T is within 64 roundings of its dtype, relative to its length, of a tensor
    with Δ = 0.

    Args:
        num_init: Random starts of `cp_decompose` at each r.
        max_iter: Its sweeps, and at most as many Gauss-Newton steps after them.

    >>> e1, e2 = torch.eye(2, dtype=torch.float64)
    >>> from quoin.tensor import pure_tensor
    >>> T = pure_tensor(e1, e1, e2) + pure_tensor(e1, e2, e1) + pure_tensor(e2, e1, e1)
    >>> print(cp_rank(T, generator=torch.Generator().manual_seed(0)))
    rank 3 (at least 3 by its hyperdeterminant; at most 3 by the pencil of its slices)

    Notes: D1.2-13.
    """
    _check(T)
    if bool((T == 0).all()):
        none = CP(tuple(T.new_zeros(size, 0) for size in T.shape), 0.0, 0.0, residual_of_rounding(T.dtype))
        return RankBounds(0, 0, "its unfoldings", "the empty sum", none)
    core, bases = _core(T)
    if core.shape == (2, 2, 2):
        sign = hyperdeterminant_sign(core, 64 * torch.finfo(T.dtype).eps)
        found = _as_cp(T, tuple(basis @ factor for basis, factor in zip(bases, decompose_pencil(core, sign))))
        return RankBounds(found.rank, found.rank, "its hyperdeterminant", "the pencil of its slices", found)
    lower = max(int(matrix_rank(unfolding(T, *dims))) for dims in _halves(T.ndim))
    by_slices = _as_cp(
        T, tuple(basis @ factor for basis, factor in zip(bases, _sliced(core, torch.finfo(T.dtype).eps)))
    )
    for rank in range(lower, by_slices.rank):
        found = cp_decompose(T, rank, num_init=num_init, max_iter=max_iter, generator=generator)
        if found.is_exact:
            return RankBounds(lower, rank, "its unfoldings", "alternating least squares", found)
    return RankBounds(lower, by_slices.rank, "its unfoldings", "the singular vectors of its slices", by_slices)


def _halves(order: int) -> list[tuple[int, ...]]:
    """The axes that may index the rows, axis 0 among them: the other choices only transpose the matrix."""
    return [
        (0, *others) for count in range(max(1, order - 1)) for others in itertools.combinations(range(1, order), count)
    ]


def _core(T: Tensor) -> tuple[Tensor, list[Tensor]]:
    """A smaller tensor of the same rank, as large along each axis as that unfolding's rank, and the basis that each
    axis is written in."""
    core, bases = T.detach().double(), []
    for dim in range(T.ndim):
        rank = int(matrix_rank(unfolding(T, dim)))
        bases.append(torch.linalg.svd(unfolding(T.detach().double(), dim), full_matrices=False).U[:, :rank])
        core = core.movedim(0, -1) @ bases[-1]  # the axis goes last: after all of them they stand as they did
    return core, bases


def _sliced(T: Tensor, eps: float) -> tuple[Tensor, ...]:
    """Factors of T as a sum over the matrices that remain when all axes but two are held fixed, each by its singular
    vectors."""
    if T.ndim == 1:
        return (T.unsqueeze(-1),)
    best: list[tuple[Tensor, ...]] | None = None
    for pair in itertools.combinations(range(T.ndim), 2):
        summands = _summands(T, pair, eps)
        best = summands if best is None or len(summands) < len(best) else best
    assert best is not None
    return tuple(torch.stack(vectors, dim=-1) for vectors in zip(*best, strict=True))


def _as_cp(T: Tensor, factors: tuple[Tensor, ...]) -> CP:
    """What these factors are as a decomposition of T."""
    total = norm(T.detach().double().flatten())
    residual = norm((cp_tensor(*factors) - T.detach().double()).flatten()) / total
    size = float((torch.stack([norm(factor, dim=-2) for factor in factors]).prod(dim=0) / total).max())
    return CP(tuple(factor.to(T) for factor in factors), float(residual), size, residual_of_rounding(T.dtype))


def _summands(T: Tensor, pair: tuple[int, int], eps: float) -> list[tuple[Tensor, ...]]:
    held = [dim for dim in range(T.ndim) if dim not in pair]
    threshold = 8 * max(T.shape) * eps * float(norm(T.flatten()))
    summands = []
    for indices in itertools.product(*(range(T.shape[dim]) for dim in held)):
        U, values, Vt = torch.linalg.svd(T.permute(*held, *pair)[indices], full_matrices=False)
        for k in range(int((values > threshold).sum())):
            vectors = {dim: torch.eye(T.shape[dim], dtype=T.dtype, device=T.device)[i] for dim, i in zip(held, indices)}
            vectors |= {pair[0]: values[k] * U[:, k], pair[1]: Vt[k]}
            summands.append(tuple(vectors[dim] for dim in range(T.ndim)))
    return summands


def _check(T: Tensor) -> None:
    check_floating(T, "T")
    check_finite(T, "T")
    if T.ndim == 0 or T.numel() == 0:
        raise UserError(
            f"expected a tensor of order at least 1 with entries, got shape {tuple(T.shape)}; a rank needs vectors "
            "to multiply"
        )
