"""Covariance matrices: what one must be, and the directions in which it has any variance.

A covariance may be singular: its distribution then lives on the span of the directions that have variance, its support,
and every computation happens in coordinates there.   d coordinates
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from quoin.errors import UserError
from quoin.tensor import check_finite, check_floating, check_shapes
from quoin.tensor.array_like import ArrayLike, float_tensor

__all__ = [
    "Support",
    "block",
    "check_covariance",
    "check_indices",
    "check_regular",
    "check_semi_definite",
    "check_vectors",
    "entries",
    "is_regular",
    "slack_of",
    "support",
]


class Support(NamedTuple):
    """Coordinates c = V^T (x - mean) of the directions that have variance, and there the Cholesky factor L L^T
    of the covariance.

    Where V is None, the covariance is regular and the coordinates are x's own. In the directions without variance L has
    a one, so that matrices of different rank can stand in one batch. V is held constant under differentiation: all
    results below depend on it only through its span, and are right to first order for every change of the covariance
    that keeps its rank.
    """

    factor: Float[Tensor, "*batch d d"]  # lower triangular
    # the least fraction of a variance that is left once others are known: by it rounding is magnified
    conditional_fraction: Float[Tensor, "*batch"]
    basis: Float[Tensor, "*batch d d"] | None = (
        None  # orthonormal columns: V, and 0 for the directions without variance
    )
    null: Float[Tensor, "*batch d d"] | None = None  # orthonormal columns: those directions, and 0 for the others
    radius: Float[Tensor, "*batch"] | None = None  # how far a point of the support may lie off it by rounding

    def whiten(self, centered: Float[Tensor, "*#batch d"]) -> Float[Tensor, "*#batch d"]:
        """z = L^-1 V^T centered, so that z^T z = centered^T Σ^+ centered; leading axes of `centered` beyond those of
        the covariance are points.
        """
        lead = centered.ndim - self.factor.ndim + 1
        points = centered.unsqueeze(0) if lead <= 0 else centered.flatten(0, lead - 1)
        columns = points.movedim(0, -1)  # one factor solves for all its points at once: (..., d, points)
        columns = columns if self.basis is None else self.basis.mT @ columns
        solved = torch.linalg.solve_triangular(self.factor, columns, upper=False).movedim(-1, 0)
        return solved.squeeze(0) if lead <= 0 else solved.unflatten(0, centered.shape[:lead])

    def whiten_columns(self, columns: Float[Tensor, "*#batch d n"]) -> Float[Tensor, "*#batch d n"]:
        """L^-1 V^T times a matrix."""
        return torch.linalg.solve_triangular(
            self.factor, columns if self.basis is None else self.basis.mT @ columns, upper=False
        )

    def root(self, covariance: Float[Tensor, "*batch d d"]) -> Float[Tensor, "*batch d d"]:
        """F with F F^T = Σ: the factor itself, or Σ V L^-T, which follows when the support tilts."""
        return self.factor if self.basis is None else self.whiten_columns(covariance).mT

    def half_log_det(self) -> Float[Tensor, "*batch"]:
        """Half the log of the product of the eigenvalues that are not 0."""
        return self.factor.diagonal(dim1=-2, dim2=-1).log().sum(dim=-1)

    def rank(self) -> Float[Tensor, "*batch"] | int:
        return self.factor.shape[-1] if self.basis is None else self.basis.square().sum(dim=(-2, -1)).round()

    def holds(self, x: Float[Tensor, "*#batch d"], mean: Float[Tensor, "*#batch d"]) -> Bool[Tensor, "*#batch"] | None:
        """Whether x lies on mean + span V, up to rounding; None where every point does."""
        if self.null is None or self.radius is None:
            return None
        off = (self.null.mT @ (x - mean).unsqueeze(-1)).squeeze(-1)
        rounding = slack_of(self.null) * (x.abs().amax(dim=-1) + mean.abs().amax(dim=-1))
        return off.abs().amax(dim=-1) <= self.radius + rounding


def support(covariance: Float[Tensor, "*batch d d"], floor: Float[Tensor, "*#batch d"] | None = None) -> Support:
    """The support of a covariance, the whole space where its Cholesky factor shows each variance given those before to
    be above rounding.

    Otherwise an eigenvalue of at most 8 d roundings of the largest one counts as 0, and one below minus that is a
    UserError. A covariance that was computed from larger ones brings its `floor`, the variance of each coordinate that
    is only rounding of theirs.
    """
    factor, failed = torch.linalg.cholesky_ex(covariance)
    if torch.compiler.is_compiling() or covariance.numel() == 0:
        return Support(
            factor, factor.new_ones(factor.shape[:-2])
        )  # reading values would break the graph: a compiled step trusts its data
    slack = slack_of(covariance)
    with torch.no_grad():
        floor = _rounding(covariance) if floor is None else _rounding(covariance).maximum(floor)
        regular, least = _regular(factor, failed, covariance, floor)
        if bool(regular.all()):
            return Support(factor, least[..., -1])
        values, vectors = torch.linalg.eigh(covariance)
        rounding = (slack * values.abs().amax(dim=-1)).maximum(floor.amax(dim=-1))
        _check_not_below(torch.where(regular, 0, values[..., 0] + rounding), values[..., 0])
        # A regular matrix keeps its own coordinates, so that its numbers do not depend on the rest of its batch.
        kept = regular.unsqueeze(-1) | (values > rounding.unsqueeze(-1))
        regular = regular | (kept.all(dim=-1) & (failed == 0))
        if bool(regular.all()):
            return Support(factor, least[..., -1])
        own = torch.eye(covariance.shape[-1], dtype=covariance.dtype, device=covariance.device)
        vectors = torch.where(regular[..., None, None], own, vectors)
        basis, null = vectors * kept.unsqueeze(-2), vectors * ~kept.unsqueeze(-2)
        # The largest standard deviation that would still have counted as none.
        radius = torch.where(regular, math.inf, rounding.sqrt())
        fraction = torch.where(kept, values, math.inf).amin(dim=-1) / values[..., -1]
        conditional_fraction = torch.where(regular, least[..., -1], fraction.clamp(max=1).nan_to_num(1.0))
    inside = basis.mT @ covariance @ basis + torch.diag_embed((~kept).to(covariance.dtype))
    return Support(torch.linalg.cholesky(inside), conditional_fraction, basis, null, radius)


def check_covariance(covariance: Float[Tensor, "*batch d d"], name: str = "covariance") -> None:
    """Raise an error for a matrix with NaN, infinity or |Σ - Σ^T| above rounding; whether it is positive semi-definite
    is seen by `support`.

    Symmetry is tried as Σ v = Σ^T v with a fixed v of no pattern, which costs less than one pass over |Σ - Σ^T|.
    """
    check_shapes("... d d", **{name: covariance})
    check_floating(covariance, name)
    if torch.compiler.is_compiling() or covariance.numel() == 0:
        return
    matrix, d = covariance.detach(), covariance.shape[-1]
    probe = torch.arange(1, d + 1, dtype=matrix.dtype, device=matrix.device).sqrt().mul(2.7).cos()
    difference = (matrix @ probe - probe @ matrix).abs().amax(dim=-1)
    scale = matrix.diagonal(dim1=-2, dim2=-1).abs().amax(dim=-1)
    if bool((difference <= d * slack_of(matrix) * scale).all()):  # NaN fails too
        return
    check_finite(matrix, name)
    worst = float((matrix - matrix.mT).abs().max())
    raise UserError(
        f"expected a symmetric {name}, got one with |Σ - Σᵀ| up to {worst:.2g}; symmetrise it with (S + S.mT) / 2"
    )


def check_vectors(
    vectors: Float[Tensor, "... d"], like: Float[Tensor, "... d"], batch: Sequence[int], name: str
) -> None:
    """Raise an error for vectors unless they have the last axis and the dtype of `like`, and leading axes that
    broadcast with `batch`.
    """
    check_floating(vectors, name)
    if vectors.ndim == 0 or vectors.shape[-1] != like.shape[-1]:
        raise UserError(
            f"expected {name} with {like.shape[-1]} coordinates on the last axis, got shape "
            f"{tuple(vectors.shape)}; reshape it"
        )
    if vectors.dtype != like.dtype:
        raise UserError(
            f"expected {name} of dtype {like.dtype}, got {vectors.dtype}; convert it with {name}.to({like.dtype})"
        )
    for ours, theirs in zip(reversed(vectors.shape[:-1]), reversed(tuple(batch))):
        if ours != theirs and 1 not in (ours, theirs):
            got = f"{tuple(vectors.shape[:-1])} and {tuple(batch)}"
            raise UserError(
                f"expected leading axes of {name} that broadcast with those of the distribution, got {got}; make "
                "them equal"
            )


def check_indices(indices: Sequence[int], dim: int, name: str) -> list[int]:
    """Coordinates as a list of distinct numbers from 0 to dim - 1."""
    listed = [int(index) for index in indices]
    if len(set(listed)) < len(listed) or any(not 0 <= index < dim for index in listed):
        raise UserError(
            f"expected {name} as distinct coordinates from 0 to {dim - 1}, got {listed}; count from 0, each once"
        )
    return listed


def entries(vector: Shaped[Tensor, "..."], indices: Sequence[int], dim: int = -1) -> Shaped[Tensor, "..."]:
    """The entries at these indices of the axis `dim`; a view where they are a run of neighbours, which saves a copy."""
    start = indices[0] if indices else 0
    if list(indices) == list(range(start, start + len(indices))):
        return vector.narrow(dim, start, len(indices))
    return vector.index_select(dim, torch.tensor(indices, dtype=torch.long, device=vector.device))


def block(
    matrix: Shaped[Tensor, "*batch d d"], rows: Sequence[int], columns: Sequence[int]
) -> Shaped[Tensor, "*batch {len(rows)} {len(columns)}"]:
    """The entries of these rows and columns."""
    return entries(entries(matrix, rows, -2), columns, -1)


def is_regular(covariance: Float[Tensor, "*batch d d"]) -> Bool[Tensor, "*batch"]:
    """Whether each variance given those before is above rounding; however different the units of the coordinates
    are."""
    factor, failed = torch.linalg.cholesky_ex(covariance)
    return _regular(factor, failed, covariance, _rounding(covariance))[0]


def _regular(
    factor: Tensor, failed: Tensor, covariance: Tensor, floor: Tensor
) -> tuple[Tensor, Tensor]:  # -> (...), (..., d)
    left, whole = factor.diagonal(dim1=-2, dim2=-1).square(), covariance.diagonal(dim1=-2, dim2=-1)
    # What is left of a variance given those before has an error of rounding over the least fraction that was left to
    # one of these.
    least = (left / whole).cummin(dim=-1).values
    before = torch.nn.functional.pad(least[..., :-1], (1, 0), value=1.0)
    return (failed == 0) & (left * before > floor).all(dim=-1), least


def _rounding(covariance: Tensor) -> Tensor:  # (..., d, d) -> (..., d)
    return slack_of(covariance) * covariance.diagonal(dim1=-2, dim2=-1)


def slack_of(matrix: Float[Tensor, "... d"]) -> float:
    """8 d roundings, as for `quoin.tensor.matrix_rank`."""
    return 8 * matrix.shape[-1] * torch.finfo(matrix.dtype).eps


def check_semi_definite(covariance: Float[Tensor, "*batch d d"]) -> None:
    """Raise an error for a matrix with an eigenvalue below 0 by more than 8 d roundings of the largest one."""
    if torch.compiler.is_compiling() or covariance.numel() == 0:
        return
    values = torch.linalg.eigvalsh(covariance.detach())
    _check_not_below(values[..., 0] + slack_of(covariance) * values.abs().amax(dim=-1), values[..., 0])


def check_regular(covariance: Float[Tensor, "*batch d d"] | ArrayLike) -> None:
    """Raise an error for a covariance that leaves some direction without variance: it has no inverse, and its
    distribution no density.
    """
    covariance = float_tensor(covariance, "covariance")
    if not torch.compiler.is_compiling() and not bool(is_regular(covariance.detach()).all()):
        raise UserError(
            "expected a covariance with variance in every direction, got a singular one; use MultivariateNormal, "
            "or add to it"
        )


def _check_not_below(above: Tensor, lowest: Tensor) -> None:  # (...), (...)
    wrong = ~(above >= 0)
    if bool(wrong.any()):
        index = tuple(wrong.nonzero()[0].tolist())
        where = f" at {index}" if index else ""
        raise UserError(
            "expected a positive semi-definite covariance, got one with an eigenvalue of "
            f"{float(lowest[index]):.3g}{where}; "
            "estimate it from more data, or cut its negative eigenvalues off"
        )
