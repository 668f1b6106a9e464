"""The symmetric root of a covariance, with its derivatives by Sylvester's equation and not through eigenvectors.

The root is smooth wherever Σ is positive definite, repeated eigenvalues included; eigenvectors are not, and a gradient
through them is no number there.   d coordinates
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.prob.covariance import is_regular, slack_of

__all__ = ["symmetric_root"]


def symmetric_root(matrix: Float[Tensor, "*batch d d"]) -> Float[Tensor, "*batch d d"]:
    """S = S^T >= 0 with S S = Σ, for a symmetric Σ >= 0; of a singular one, eigenvalues that are only rounding
    count as 0.

    A change dΣ changes S by the X that solves S X + X S = dΣ. Where S has no extent both to the left and to the right,
    as for two directions without variance, no X does: a root has an infinite derivative at 0, and its gradient there is
    given as 0. So it is right for every change of Σ that keeps its rank.
    """
    return _Root.apply((matrix + matrix.mT) / 2)


class _Root(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(matrix: Float[Tensor, "*batch d d"]) -> Float[Tensor, "*batch d d"]:
        values, vectors = torch.linalg.eigh(matrix)
        rounding = slack_of(matrix) * values.amax(dim=-1, keepdim=True)
        kept = torch.where(is_regular(matrix).unsqueeze(-1) | (values > rounding), values.clamp(min=0), 0)
        return (vectors * kept.sqrt().unsqueeze(-2)) @ vectors.mT

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        ctx.save_for_backward(output)
        ctx.save_for_forward(output)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        (root,) = ctx.saved_tensors
        return _Sylvester.apply(root, gradient)

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        (root,) = ctx.saved_tensors
        return _Sylvester.apply(root, tangent)


class _Sylvester(torch.autograd.Function):
    """X with S X + X S = G, for a symmetric S >= 0: in the basis of S's eigenvectors X_ij = G_ij / (s_i + s_j)."""

    generate_vmap_rule = True

    @staticmethod
    def forward(root: Float[Tensor, "*batch d d"], right: Float[Tensor, "*batch d d"]) -> Float[Tensor, "*batch d d"]:
        values, vectors = torch.linalg.eigh(root)
        sums = values.unsqueeze(-1) + values.unsqueeze(-2)
        nothing = (sums <= slack_of(root) * values.amax(dim=-1)[..., None, None]) & ~is_regular(root)[..., None, None]
        inside = vectors.mT @ right @ vectors / torch.where(nothing, 1, sums)
        return vectors @ torch.where(nothing, 0, inside) @ vectors.mT

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(inputs[0], output)
        ctx.save_for_forward(inputs[0], output)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:  # pyright: ignore[reportIncompatibleMethodOverride]
        root, solution = ctx.saved_tensors
        of_right = _Sylvester.apply(root, gradient)  # the equation is its own adjoint
        return -(of_right @ solution.mT + solution.mT @ of_right), of_right

    @staticmethod
    def jvp(ctx: Any, of_root: Tensor | None, of_right: Tensor | None) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        root, solution = ctx.saved_tensors
        change = torch.zeros_like(solution) if of_right is None else of_right
        if of_root is not None:
            change = change - of_root @ solution - solution @ of_root
        return _Sylvester.apply(root, change)
