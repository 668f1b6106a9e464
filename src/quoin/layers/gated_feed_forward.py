"""The gated feed-forward network: SwiGLU and its like."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Real
from torch import Tensor, nn

from quoin.errors import UserError
from quoin.layers.activation import sigmoid
from quoin.layers.init import keeps_global_rng
from quoin.layers.onednn import Linear
from quoin.tensor import check_shapes

__all__ = ["GatedFeedForward", "gated_feed_forward_definition", "silu"]


def silu(x: Real[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """x sigmoid(x), entry by entry; `torch.nn.functional.silu` is the fast form.

    >>> silu(torch.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.2689,  0.0000,  0.7311])
    """
    return x * sigmoid(x)


def gated_feed_forward_definition(
    x: Float[Tensor, "*batch embed"],
    gate_weight: Float[Tensor, "hidden embed"],
    up_weight: Float[Tensor, "hidden embed"],
    down_weight: Float[Tensor, "embed hidden"],
    activation: Callable[[Tensor], Tensor] = silu,
) -> Float[Tensor, "*batch embed"]:
    """W₃ (φ(W₁ x) ⊙ W₂ x) for the vector x at each position, the same weights at all of them.

    With φ = silu it is SwiGLU.

    Args:
        gate_weight: W₁, which gives the gates.
        up_weight: W₂, which gives the hidden units.
        down_weight: W₃.
        activation: φ.
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
        embed_dim: int,
        hidden_dim: int,
        *,
        activation: Callable[[Tensor], Tensor] = nn.functional.silu,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        if min(embed_dim, hidden_dim) < 1:
            raise UserError(
                f"expected embed_dim and hidden_dim of 1 or more, got {embed_dim} and {hidden_dim}; give e.g. 64 "
                "and 172"
            )
        self.gate_up_proj, self.down_proj = (
            Linear(embed_dim, 2 * hidden_dim, bias=False),
            Linear(hidden_dim, embed_dim, bias=False),
        )
        self.activation = activation
        # each map is initialised by its own sizes
        for matrix in (
            *self.gate_up_proj.weight.detach().chunk(2),
            self.down_proj.weight,
        ):
            nn.init.xavier_uniform_(matrix, generator=generator)

    def forward(self, x: Float[Tensor, "*batch embed"]) -> Float[Tensor, "*batch embed"]:
        gate, up = self.gate_up_proj(x).chunk(2, dim=-1)
        return self.down_proj(self.activation(gate) * up)
