"""A perceptron at each position by itself: what a Transformer does between its attentions.   w width, h hidden width"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from quoin.errors import Mistake
from quoin.layers.activation import relu
from quoin.layers.dense import affine_definition
from quoin.layers.direct import direct, part
from quoin.layers.init import keeps_global_rng

__all__ = ["FeedForward", "feed_forward_definition"]


def feed_forward_definition(
    x: Tensor,
    first_weight: Tensor,
    first_bias: Tensor,
    second_weight: Tensor,
    second_bias: Tensor,
    activation: Callable[[Tensor], Tensor] = relu,
) -> Tensor:  # (..., w), (h, w), (h,), (w, h), (w,) -> (..., w)
    """W₂ φ(W₁ x + b₁) + b₂ for the vector x at each position, the same weights at all of them.

    Notes: Z11.T.
    """
    return affine_definition(activation(affine_definition(x, first_weight, first_bias)), second_weight, second_bias)


class FeedForward(nn.Module):
    """`feed_forward_definition` with its weights; the hidden width is four times the width unless given.

    >>> FeedForward(8)(torch.zeros(3, 5, 8)).shape
    torch.Size([3, 5, 8])

    Notes: Z11.T.
    """

    first: nn.Linear = part()
    second: nn.Linear = part()

    @keeps_global_rng
    def __init__(
        self,
        width: int,
        hidden: int | None = None,
        *,
        activation: Callable[[Tensor], Tensor] = nn.functional.relu,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        hidden = 4 * width if hidden is None else hidden
        if min(width, hidden) < 1:
            raise Mistake(f"expected a width and a hidden width from 1 on, came {width} and {hidden}; give e.g. 64 and 256")
        self.first, self.second = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.activation = activation
        for linear in (self.first, self.second):
            nn.init.xavier_uniform_(linear.weight, generator=generator)
            nn.init.zeros_(linear.bias)

    def forward(self, x: Tensor) -> Tensor:  # (..., w) -> (..., w)
        return direct(self.second, self.activation(direct(self.first, x)))
