"""The position-wise feed-forward network of a Transformer: one MLP at each position.   w embed_dim, h hidden_dim"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from quoin.errors import UserError
from quoin.layers.activation import relu
from quoin.layers.dense import affine_definition
from quoin.layers.init import keeps_global_rng

__all__ = ["FeedForward", "feed_forward_definition"]


def feed_forward_definition(
    x: Tensor,
    up_weight: Tensor,
    up_bias: Tensor,
    down_weight: Tensor,
    down_bias: Tensor,
    activation: Callable[[Tensor], Tensor] = relu,
) -> Tensor:  # (..., w), (h, w), (h,), (w, h), (w,) -> (..., w)
    """W₂ φ(W₁ x + b₁) + b₂ for the vector x at each position, the same weights at all of them.

    Notes: Z11.T.
    """
    return affine_definition(activation(affine_definition(x, up_weight, up_bias)), down_weight, down_bias)


class FeedForward(nn.Module):
    """`feed_forward_definition` with its weights; hidden_dim is four times embed_dim unless given.

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
        self.up_proj, self.down_proj = nn.Linear(embed_dim, hidden_dim), nn.Linear(hidden_dim, embed_dim)
        self.activation = activation
        for linear in (self.up_proj, self.down_proj):
            nn.init.xavier_uniform_(linear.weight, generator=generator)
            nn.init.zeros_(linear.bias)

    def forward(self, x: Tensor) -> Tensor:  # (..., w) -> (..., w)
        return self.down_proj(self.activation(self.up_proj(x)))
