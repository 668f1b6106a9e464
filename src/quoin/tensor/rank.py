"""The rank of a tensor: the least number of pure tensors that add up to it, bounded from both sides.

No algorithm finds it in general. Unfoldings bound it from below. From above, a decomposition found bounds it, and here lies
a trap: e1⊗e1⊗e2 + e1⊗e2⊗e1 + e2⊗e1⊗e1 has rank 3, yet sums of two pure tensors come as near as you like, by growing without
bound and cancelling. So a small residual alone is no proof; we accept it only from summands that do not cancel (`CP.size`).
"""

import itertools
from dataclasses import dataclass

import torch
from torch import Tensor

from quoin.errors import Mistake
from quoin.tensor.cp import CP, cp_decompose, cp_tensor, residual_of_rounding
from quoin.tensor.entries import check_finite, check_floating
from quoin.tensor.matrices import matrix_rank
from quoin.tensor.norms import norm
from quoin.tensor.order import unfolding

__all__ = ["RankBounds", "cp_rank", "is_pure", "unfolding_ranks"]


def unfolding_ranks(T: Tensor, *, tolerance: float | None = None) -> tuple[int, ...]:
    """For each axis the rank of the matrix whose rows it indexes; none exceeds the rank of T, for a pure tensor unfolds to rank 1.

    Notes: D1.2-13.
    """
    _check(T)
    return tuple(int(matrix_rank(unfolding(T, axis), tolerance=tolerance)) for axis in range(T.ndim))


def is_pure(T: Tensor, *, tolerance: float | None = None) -> bool:
    """Whether T = v1 ⊗ ... ⊗ vn for some vectors, which holds exactly when no unfolding has a rank above 1; zero is pure.

    Notes: D1.2-12.
    """
    return max(unfolding_ranks(T, tolerance=tolerance)) <= 1


@dataclass(frozen=True)
class RankBounds:
    """lower <= rank <= upper, where each bound comes from, and `upper` pure tensors that add up to T.

    Both are numerical: the lower bound trusts singular values, the upper one a residual and summands that do not cancel.
    """

    lower: int
    upper: int
    lower_from: str
    upper_from: str
    decomposition: CP

    @property
    def decided(self) -> bool:
        """Whether the bounds meet."""
        return self.lower == self.upper

    def __str__(self) -> str:
        rank = f"rank {self.lower}" if self.decided else f"rank from {self.lower} to {self.upper}"
        return f"{rank} (at least {self.lower} by {self.lower_from}; at most {self.upper} by {self.upper_from})"


def cp_rank(T: Tensor, *, starts: int = 10, sweeps: int = 100, seed: int = 0) -> RankBounds:
    """Bounds on the least r with T = sum_(i <= r) u_i^(1) ⊗ ... ⊗ u_i^(n), for real u.

    From below by every way to unfold T into a matrix. From above by alternating least squares at r = lower, lower + 1, ...
    and, where that finds nothing, by the singular vectors of T's slices. For a matrix they meet at its rank.

    >>> e1, e2 = torch.eye(2, dtype=torch.float64)
    >>> from quoin.tensor import pure
    >>> print(cp_rank(pure(e1, e1, e2) + pure(e1, e2, e1) + pure(e2, e1, e1)))
    rank from 2 to 3 (at least 2 by its unfoldings; at most 3 by the singular vectors of its slices)

    Notes: D1.2-13.
    """
    _check(T)
    if bool((T == 0).all()):
        none = CP(tuple(T.new_zeros(size, 0) for size in T.shape), 0.0, 0.0, residual_of_rounding(T.dtype))
        return RankBounds(0, 0, "its unfoldings", "the empty sum", none)
    lower = max(int(matrix_rank(unfolding(T, *axes))) for axes in _halves(T.ndim))
    by_slices = _sliced(T)
    for rank in range(lower, by_slices.rank):
        found = cp_decompose(T, rank, starts=starts, sweeps=sweeps, seed=seed)
        if found.adds_up:
            return RankBounds(lower, rank, "its unfoldings", "alternating least squares", found)
    return RankBounds(lower, by_slices.rank, "its unfoldings", "the singular vectors of its slices", by_slices)


def _halves(order: int) -> list[tuple[int, ...]]:
    """The axes that may index the rows, axis 0 among them: the other choices only transpose the matrix."""
    return [(0, *others) for count in range(max(1, order - 1)) for others in itertools.combinations(range(1, order), count)]


def _sliced(T: Tensor) -> CP:
    """T as a sum over the matrices that remain when all axes but two are held fixed, each by its singular vectors."""
    if T.ndim == 1:
        return CP((T.detach().unsqueeze(-1),), 0.0, 1.0, residual_of_rounding(T.dtype))
    best: list[tuple[Tensor, ...]] | None = None
    for pair in itertools.combinations(range(T.ndim), 2):
        summands = _summands(T.detach().double(), pair, torch.finfo(T.dtype).eps)
        best = summands if best is None or len(summands) < len(best) else best
    assert best is not None
    factors = tuple(torch.stack(vectors, dim=-1) for vectors in zip(*best, strict=True))
    total = norm(T.detach().double().flatten())
    residual = norm((cp_tensor(*factors) - T.detach().double()).flatten()) / total
    size = max(float(torch.stack([norm(vector) for vector in vectors]).prod()) for vectors in best) / float(total)
    return CP(tuple(factor.to(T) for factor in factors), float(residual), size, residual_of_rounding(T.dtype))


def _summands(T: Tensor, pair: tuple[int, int], eps: float) -> list[tuple[Tensor, ...]]:
    held = [axis for axis in range(T.ndim) if axis not in pair]
    threshold = 8 * max(T.shape) * eps * float(norm(T.flatten()))
    summands = []
    for place in itertools.product(*(range(T.shape[axis]) for axis in held)):
        U, values, Vt = torch.linalg.svd(T.permute(*held, *pair)[place], full_matrices=False)
        for k in range(int((values > threshold).sum())):
            vectors = {axis: torch.eye(T.shape[axis], dtype=T.dtype, device=T.device)[i] for axis, i in zip(held, place)}
            vectors |= {pair[0]: values[k] * U[:, k], pair[1]: Vt[k]}
            summands.append(tuple(vectors[axis] for axis in range(T.ndim)))
    return summands


def _check(T: Tensor) -> None:
    check_floating(T, "T")
    check_finite(T, "T")
    if T.ndim == 0 or T.numel() == 0:
        raise Mistake(f"expected a tensor of order at least 1 with entries, came shape {tuple(T.shape)}; a rank needs vectors to multiply")
