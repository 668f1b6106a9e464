"""A perceptron at each position whose hidden units are gated by others: SwiGLU and its kin.   w width, h hidden width"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from quoin.errors import Mistake
from quoin.layers.activation import sigmoid
from quoin.layers.init import keeps_global_rng
from quoin.tensor import check_shapes

__all__ = ["GatedFeedForward", "gated_feed_forward_definition", "silu"]


def silu(x: Tensor) -> Tensor:
    """x sigmoid(x), entry by entry; `torch.nn.functional.silu` is the fast form.

    >>> silu(torch.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.2689,  0.0000,  0.7311])
    """
    return x * sigmoid(x)


def gated_feed_forward_definition(
    x: Tensor, gate_weight: Tensor, up_weight: Tensor, down_weight: Tensor, activation: Callable[[Tensor], Tensor] = silu
) -> Tensor:  # (..., w), (h, w), (h, w), (w, h) -> (..., w)
    """W₃ (φ(W₁ x) ⊙ W₂ x) for the vector x at each position: one map says what the hidden units hold, another how far each is open.

    With φ = silu it is SwiGLU.
    """
    check_shapes("... w, h w, h w, w h", x=x, gate_weight=gate_weight, up_weight=up_weight, down_weight=down_weight)
    return (activation(x @ gate_weight.T) * (x @ up_weight.T)) @ down_weight.T


class GatedFeedForward(nn.Module):
    """`gated_feed_forward_definition` with its weights, both maps inward as one product: the gate's rows come first.

    >>> GatedFeedForward(8, 21)(torch.zeros(3, 5, 8)).shape
    torch.Size([3, 5, 8])
    """

    @keeps_global_rng
    def __init__(
        self,
        width: int,
        hidden: int,
        *,
        activation: Callable[[Tensor], Tensor] = nn.functional.silu,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        if min(width, hidden) < 1:
            raise Mistake(f"expected a width and a hidden width from 1 on, came {width} and {hidden}; give e.g. 64 and 172")
        self.first, self.second = nn.Linear(width, 2 * hidden, bias=False), nn.Linear(hidden, width, bias=False)
        self.activation = activation
        for matrix in (*self.first.weight.detach().chunk(2), self.second.weight):  # each map starts by its own sizes
            nn.init.xavier_uniform_(matrix, generator=generator)

    def forward(self, x: Tensor) -> Tensor:  # (..., w) -> (..., w)
        gate, up = self.first(x).chunk(2, dim=-1)
        return self.second(self.activation(gate) * up)
