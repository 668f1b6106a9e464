"""Tensors of shape 2 x 2 x 2, where Cayley's hyperdeterminant decides the rank over the reals, and pure tensors that
add up to one.

Read such a tensor as the pencil x A + y B of its two slices. Its determinant is a quadratic form in (x, y), and Δ is
the discriminant: two real roots give two summands, two complex ones or a double one need a third.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.tensor.entries import check_floating
from quoin.tensor.norms import norm, power_of_two
from quoin.tensor.shapes import check_shapes

__all__ = ["decompose_pencil", "hyperdeterminant", "hyperdeterminant_sign"]


def hyperdeterminant(T: Float[Tensor, "*batch 2 2 2"]) -> Float[Tensor, "*batch"]:
    """Cayley's Δ(T) = (d/dt det(A + tB) at 0)² - 4 det A det B, with A and B the slices of the first axis; the same for
    every axis.

    Δ(T ×₁ L ×₂ M ×₃ N) = (det L det M det N)² Δ(T), so that its sign is left alone by every change of basis.

    >>> hyperdeterminant(torch.tensor([[[1.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 1.0]]]))  # e1⊗e1⊗e1 + e2⊗e2⊗e2
    tensor(1.)

    Notes: D1.2-13.
    """
    check_shapes("... 2 2 2", T=T)
    check_floating(T, "T")
    A, B = T[..., 0, :, :], T[..., 1, :, :]
    mixed = (
        A[..., 0, 0] * B[..., 1, 1]
        + A[..., 1, 1] * B[..., 0, 0]
        - A[..., 0, 1] * B[..., 1, 0]
        - A[..., 1, 0] * B[..., 0, 1]
    )
    return mixed.square() - 4 * _det(A) * _det(B)


def hyperdeterminant_sign(T: Float[Tensor, "2 2 2"], tol: float) -> int:
    """1, 0 or -1; 0 where some tensor within `tol` ‖T‖ of T has Δ = 0, to first order: |Δ| <= tol ‖T‖ ‖∇Δ(T)‖."""
    T = T.detach().double()
    T = (T / power_of_two(T)).requires_grad_()
    with torch.enable_grad():
        value = hyperdeterminant(T)
    (gradient,) = torch.autograd.grad(value, T)
    value, T = value.detach(), T.detach()
    if abs(value) <= tol * norm(T.flatten()) * norm(gradient.flatten()):
        return 0
    return int(value.sign())


def decompose_pencil(
    T: Float[Tensor, "2 2 2"], sign: int
) -> tuple[Float[Tensor, "2 r"], Float[Tensor, "2 r"], Float[Tensor, "2 r"]]:
    """Factors of r = 2 pure tensors that add up to T where Δ > 0, of r = 3 where not; no unfolding of T may have rank
    1.

    With the slices rotated so that A is far from singular, let C = A^(-1) B = P diag(λ) P^(-1): then the slices A and B
    are sums over k of 1 and λ_k times (AP)_k (P^(-1))_k. Where Δ <= 0, C has no such form; a change of its lower row,
    one pure tensor, gives it one.
    """
    angles = torch.linspace(0, math.pi, 9, dtype=T.dtype)[:-1]
    rotations = torch.stack(
        [torch.stack([angles.cos(), angles.sin()], -1), torch.stack([-angles.sin(), angles.cos()], -1)], -2
    )
    slices = torch.einsum("kij,jab->kiab", rotations, T)
    best = int(_det(slices[:, 0]).abs().argmax())
    (A, B), back = slices[best], rotations[best].mT
    C = torch.linalg.solve(A, B)
    extra: list[tuple[Tensor, Tensor, Tensor]] = []
    if sign <= 0:
        row = torch.stack(
            [C[1, 0], C[1, 1] - C[0, 0] - C.abs().max()]
        )  # C less this row has the eigenvalues C_00 and C_00 + max |C|
        extra.append((back[:, 1], A[:, 1], row))
        C = torch.stack([C[0], C[1] - row])
    values, P = torch.linalg.eig(C)
    values, P = values.real, P.real
    left, right = A @ P, torch.linalg.inv(P)
    summands = [
        (back @ torch.stack([torch.ones_like(values[k]), values[k]]), left[:, k], right[k]) for k in range(2)
    ] + extra
    first, second, third = (torch.stack(vectors, dim=-1) for vectors in zip(*summands))
    return first, second, third


def _det(A: Tensor) -> Tensor:  # (..., 2, 2) -> (...)
    return A[..., 0, 0] * A[..., 1, 1] - A[..., 0, 1] * A[..., 1, 0]
