"""An MLP with dropout between its dense layers, as `Sequential([Dense, Dropout, ..., Dense])` in Keras."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from quoin.errors import UserError
from quoin.models.mlp import MLP

__all__ = ["DropoutMLP"]


class DropoutMLP(nn.Module):
    """`MLP` with each hidden layer followed by dropout; in `eval()` mode it is that MLP.

    Args:
        sizes: Layer sizes from the input through the hidden layers to the output.
        activation: Makes the activation of a hidden layer.

    The classifier of the notes, dense 128 ReLU, dropout 0.2, dense 10 softmax on 28 x 28 images:

    >>> model = DropoutMLP([784, 128, 10], dropout=0.2, output_activation=lambda: nn.Softmax(dim=-1))
    >>> sum(parameter.numel() for parameter in model.parameters())
    101770

    The losses of quoin.losses take the bare output: leave the softmax out to fit the model.

    Notes: D1.6-3.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        *,
        dropout: float,
        activation: Callable[[], nn.Module] = nn.ReLU,
        output_activation: Callable[[], nn.Module] = nn.Identity,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        if not 0 <= dropout < 1:
            raise UserError(f"expected a dropout probability of at least 0 and below 1, got {dropout}; give e.g. 0.2")
        self.mlp = MLP(
            sizes,
            activation=lambda: nn.Sequential(activation(), nn.Dropout(dropout)),
            output_activation=output_activation,
            generator=generator,
        )

    def forward(self, x: Float[Tensor, "batch ..."]) -> Float[Tensor, "batch out_features"]:
        return self.mlp(x)
