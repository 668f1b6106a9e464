"""Eigenvalues and eigenvectors: decompositions, Gershgorin's discs, power iteration.

A = W Λ W^(-1) exists only if A is diagonalisable, and [[1, 1], [0, 1]] is not. A symmetric matrix always is, with W
orthogonal.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Inexact
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.tensor.entries import check_finite, check_floating
from quoin.tensor.norms import norm
from quoin.tensor.shapes import check_shapes

__all__ = [
    "Discs",
    "Dominant",
    "Eigen",
    "eigendecomposition",
    "gershgorin_discs",
    "growth_rates",
    "power_iteration",
    "symmetric_eigendecomposition",
]

# Rounding splits a double eigenvalue with a single direction into two with nearly the same one: in double precision
# their W has a condition of about 1/sqrt(eps) = 7e7 or more. The limit lies well below that.
MOST_CONDITION = 1e6


@shown
class Eigen(NamedTuple):
    """Eigenvalues, and eigenvectors as the columns of a matrix in the same order."""

    values: Inexact[Tensor, "*batch n"]
    vectors: Inexact[Tensor, "*batch n n"]


def eigendecomposition(A: Float[Tensor, "*batch n n"]) -> Eigen:
    """Λ and W with A = W Λ W^(-1), complex in general; a UserError where A is not diagonalisable to working precision.

    Eigenvectors of an eigenvalue that comes twice have no derivative: a gradient that asks for it is a UserError.

    Notes: Z13.2.
    """
    _check(A)
    values, vectors = torch.linalg.eig(A.double())
    condition = float(torch.linalg.cond(vectors.detach()).nan_to_num(torch.inf).max()) if A.numel() else 1.0
    if condition > MOST_CONDITION:
        raise UserError(
            f"expected a diagonalisable matrix, got one whose eigenvectors have condition {condition:.0e}: they do "
            "not span; "
            "use torch.linalg.svd, which every matrix has"
        )
    dtype = torch.complex128 if A.dtype == torch.float64 else torch.complex64
    return Eigen(values.to(dtype), _with_a_derivative(values, vectors).to(dtype))


def symmetric_eigendecomposition(A: Float[Tensor, "*batch n n"]) -> Eigen:
    """Λ and Q with A = Q Λ Qᵀ and QᵀQ = I for a symmetric A, the eigenvalues real and ascending.

    torch.linalg.eigh reads one triangle and believes it; here a matrix that is not symmetric raises an error.
    Eigenvectors of an eigenvalue that comes twice have no derivative: a gradient that asks for it is a UserError.

    Notes: Z13.2.
    """
    _check(A)
    asymmetry = float((A - A.mT).detach().abs().max()) if A.numel() else 0.0
    if asymmetry > 8 * torch.finfo(A.dtype).eps * float(A.detach().abs().max() if A.numel() else 0):
        raise UserError(
            f"expected a symmetric matrix, got one with |A - Aᵀ| up to {asymmetry:.1e}; "
            "symmetrise it with (A + A.mT) / 2"
        )
    values, vectors = torch.linalg.eigh(A)
    return Eigen(values, _with_a_derivative(values, vectors))


def _with_a_derivative(values: Tensor, vectors: Tensor) -> Tensor:  # (..., n), (..., n, n) -> (..., n, n)
    """The eigenvectors, whose gradient raises an error where two eigenvalues are equal to rounding: it would be no
    number.
    """
    if vectors.requires_grad and not torch.compiler.is_compiling() and values.shape[-1] > 1:
        at = values.detach()
        gaps = (at.unsqueeze(-1) - at.unsqueeze(-2)).abs() + torch.diag_embed(torch.full_like(at.abs(), torch.inf))
        least, largest = gaps.amin(dim=(-2, -1)), at.abs().amax(dim=-1)
        if bool((least <= 8 * at.shape[-1] * torch.finfo(least.dtype).eps * largest).any()):
            vectors.register_hook(_refuse_gradient)
    return vectors


def _refuse_gradient(gradient: Tensor | None) -> None:  # None where only the eigenvalues are used
    if gradient is not None and bool((gradient != 0).any()):
        raise UserError(
            "expected distinct eigenvalues for a gradient through eigenvectors, got two that are equal: those "
            "vectors have no "
            "derivative; differentiate the eigenvalues, or a function of the matrix itself"
        )


@shown
class Discs(NamedTuple):
    """Discs of the complex plane, one for each row: |z - centre| <= radius."""

    centers: Float[Tensor, "*batch n"]
    radii: Float[Tensor, "*batch n"]


def gershgorin_discs(A: Float[Tensor, "*batch n n"]) -> Discs:
    """Discs around a_ii of radius sum_(j ≠ i) |a_ij|: every eigenvalue lies in one of them.

    Notes: Z13.2.
    """
    _check(A)
    centers = A.diagonal(dim1=-2, dim2=-1)
    return Discs(centers, A.abs().sum(dim=-1) - centers.abs())


@shown
class Dominant(NamedTuple):
    """The eigenvalue of largest modulus with a unit eigenvector, and the steps it took."""

    value: Float[Tensor, ""]
    vector: Float[Tensor, "n"]
    num_steps: int


def power_iteration(
    A: Float[Tensor, "n n"], *, max_iter: int = 10_000, tol: float | None = None, generator: torch.Generator
) -> Dominant:
    """v <- Av / ‖Av‖ from a random start until ‖Av - λv‖ <= tol ‖A‖, with λ = v · Av.

    It needs one eigenvalue larger in modulus than all others; a rotation, or λ beside -λ, never settles and is a
    UserError. The tolerance is by default 100 roundings of A's dtype.

    Notes: Z13.2.
    """
    check_shapes("n n", A=A)
    _check(A)
    if len(A) == 0:
        raise UserError("expected a matrix with at least one row, got shape (0, 0); give one that has eigenvalues")
    tol = 100 * torch.finfo(A.dtype).eps if tol is None else tol
    start = torch.randn(len(A), generator=generator, dtype=torch.float64)
    vector = start.to(A) / norm(start).to(A)
    allowed = tol * float(norm(A.flatten()))
    distance = torch.inf
    for step in range(max_iter):
        moved = A @ vector
        value = vector @ moved
        distance = float(norm(moved - value * vector))
        if distance <= allowed:
            return Dominant(value, vector, step)
        vector = moved / norm(moved)
    raise UserError(
        f"expected one eigenvalue above all others in modulus, got none after {max_iter} steps (‖Av - λv‖ = "
        f"{distance:.1e}); "
        "use eigendecomposition, or more steps if the two largest are close"
    )


def growth_rates(A: Float[Tensor, "n n"], start: Float[Tensor, "n"], num_steps: int) -> Float[Tensor, "{num_steps}"]:
    """‖A^(k+1) v‖ / ‖A^k v‖ for k = 0, 1, ...: they tend to the modulus of the dominant eigenvalue; 0 once A^k v = 0.

    Notes: Z13.2.
    """
    check_shapes("n n, n", A=A, start=start)
    _check(A)
    vector, rates = start, []
    for _ in range(num_steps):
        length = norm(vector)
        vector = A @ (vector / torch.where(length > 0, length, 1))  # a unit vector at every step: powers would overflow
        rates.append(norm(vector))
    return torch.stack(rates) if rates else start.new_zeros(0)


def _check(A: Tensor) -> None:
    check_shapes("... n n", A=A)
    check_floating(A, "A")
    check_finite(A, "A")
