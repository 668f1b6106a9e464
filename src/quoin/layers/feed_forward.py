"""The position-wise feed-forward network of a Transformer: one MLP at each position."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from quoin.errors import UserError
from quoin.layers.activation import relu
from quoin.layers.dense import affine_definition
from quoin.layers.init import keeps_global_rng
from quoin.layers.onednn import Linear

__all__ = ["FeedForward", "feed_forward_definition"]


def feed_forward_definition(
    x: Float[Tensor, "*batch embed"],
    up_weight: Float[Tensor, "hidden embed"],
    up_bias: Float[Tensor, "hidden"],
    down_weight: Float[Tensor, "embed hidden"],
    down_bias: Float[Tensor, "embed"],
    activation: Callable[[Tensor], Tensor] = relu,
) -> Float[Tensor, "*batch embed"]:
    """W₂ φ(W₁ x + b₁) + b₂ for the vector x at each position, the same weights at all of them.

    Args:
        up_weight: W₁.
        up_bias: b₁.
        down_weight: W₂.
        down_bias: b₂.
        activation: φ.

    Notes: Z11.T.
    """
    return affine_definition(activation(affine_definition(x, up_weight, up_bias)), down_weight, down_bias)


class FeedForward(nn.Module):
    """`feed_forward_definition` with its weights.

    Args:
        hidden_dim: Hidden units at each position; 4 `embed_dim` unless given.

    >>> FeedForward(8)(torch.zeros(3, 5, 8)).shape
    torch.Size([3, 5, 8])

    Notes: Z11.T.
    """

    @keeps_global_rng
    def __init__(
        self,
        embed_dim: int,
        hidden_dim: int | None = None,
        *,
        activation: Callable[[Tensor], Tensor] = nn.functional.relu,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        hidden_dim = 4 * embed_dim if hidden_dim is None else hidden_dim
        if min(embed_dim, hidden_dim) < 1:
            raise UserError(
                f"expected embed_dim and hidden_dim of 1 or more, got {embed_dim} and {hidden_dim}; give e.g. 64 "
                "and 256"
            )
        self.up_proj, self.down_proj = Linear(embed_dim, hidden_dim), Linear(hidden_dim, embed_dim)
        self.activation = activation
        for linear in (self.up_proj, self.down_proj):
            nn.init.xavier_uniform_(linear.weight, generator=generator)
            nn.init.zeros_(linear.bias)

    def forward(self, x: Float[Tensor, "*batch embed"]) -> Float[Tensor, "*batch embed"]:
        return self.down_proj(self.activation(self.up_proj(x)))
