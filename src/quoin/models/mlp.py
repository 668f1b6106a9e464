"""The multilayer perceptron: dense layers one after another, the last without activation; norms and dropout if wanted.

`sizes` lists the layer sizes from input to output: [2, 5, 1] is two inputs, one hidden layer of five units, one output.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Real
from torch import Tensor, nn

from quoin.display import shown
from quoin.errors import UserError, format_value
from quoin.layers import Linear, affine_definition, dense_definition, keeps_global_rng, relu
from quoin.layers.dropout import check_probability
from quoin.tensor import as_floating, check_shapes

__all__ = ["MLP", "MLPForward", "mlp_definition", "one_hidden_layer_definition"]


@shown
class MLPForward(NamedTuple):
    """A forward pass with its intermediates."""

    output: Float[Tensor, "*batch out_features"]
    hidden: tuple[Float[Tensor, "*batch _features"], ...]  # of each hidden layer


def mlp_definition(
    x: Real[Tensor, "*batch in_features"],
    weights: Sequence[Real[Tensor, "_out_features _in_features"]],
    biases: Sequence[Real[Tensor, "_out_features"]],
    activation: Callable[[Tensor], Tensor] = relu,
    output_activation: Callable[[Tensor], Tensor] | None = None,
) -> MLPForward:
    """h_l = sigma(A_l h_{l-1} + b_l) from h_0 = x, and A_L h_{L-1} + b_L at the end, under the output's own activation
    if any.

    Every intermediate comes back with the output: a small model is there to be taken apart.

    Notes: D1-15, D1-20, D1-22, D0-3.
    """
    if not weights or len(weights) != len(biases):
        raise UserError(
            f"expected one bias for each of at least one weight, got {len(weights)} and {len(biases)}; pair them"
        )
    hidden = []
    for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
        x = dense_definition(x, weight, bias, activation)
        hidden.append(x)
    output = affine_definition(x, weights[-1], biases[-1])
    return MLPForward(output if output_activation is None else output_activation(output), tuple(hidden))


def one_hidden_layer_definition(
    X: Real[Tensor, "batch in_features"],
    W1: Real[Tensor, "in_features hidden"],
    b1: Real[Tensor, "hidden"],
    W2: Real[Tensor, "hidden out_features"],
    b2: Real[Tensor, "out_features"],
    activation: Callable[[Tensor], Tensor] = relu,
) -> MLPForward:
    """H = sigma(X W1 + b1) and O = H W2 + b2 for a batch X of one example a row: the matrices stand on the right,
    transposed.

    Notes: Z5.4.
    """
    check_shapes("n d, d h, h, h q, q", X=X, W1=W1, b1=b1, W2=W2, b2=b2)
    X, W1, W2 = (as_floating(each, X, W1, W2) for each in (X, W1, W2))
    H = activation(X @ W1 + b1)
    return MLPForward(H @ W2 + b2, (H,))


class MLP(nn.Module):
    """`mlp_definition` at full speed: `head(features(x))`, a linear model on learned features.

    The model flattens each example, so images go in as they are; `features` takes them flat. Weights start as N(0, 2 /
    inputs) (He, made for ReLU), biases as zero; `generator` samples them (torch's default generator if none is given).

    Args:
        sizes: Layer sizes from the input through the hidden layers to the output.
        activation: Makes the activation of a hidden layer, such as `nn.Tanh`.
        output_activation: Makes that of the output, such as `nn.Sigmoid`; the losses of quoin.losses take the bare
            output, so give one only to a model that is read, not fitted.
        norm: Makes the norm between a hidden layer's A x + b and its activation from its number of units, such as
            `nn.BatchNorm1d`; none unless given.
        dropout: Probability of dropout after the activation of each hidden layer.

    >>> model = MLP([2, 5, 1], generator=torch.Generator().manual_seed(0))
    >>> sum(parameter.numel() for parameter in model.parameters())
    21

    The classifier of the notes, dense 128 ReLU, dropout 0.2, dense 10 softmax on 28 x 28 images:

    >>> model = MLP([784, 128, 10], dropout=0.2, output_activation=lambda: nn.Softmax(dim=-1))
    >>> sum(parameter.numel() for parameter in model.parameters())
    101770

    Notes: D1-15, D1-20, D1-21, D1-22, Z5.3, Z8.6, D1.6-3.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        *,
        activation: Callable[[], nn.Module] = nn.ReLU,
        output_activation: Callable[[], nn.Module] = nn.Identity,
        norm: Callable[[int], nn.Module] | None = None,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        check_probability(dropout)
        self.sizes = tuple(sizes)
        if len(self.sizes) < 2 or not all(isinstance(size, int) and size > 0 for size in self.sizes):
            raise UserError(
                f"expected at least two positive layer sizes, input to output, got {format_value(self.sizes)}; "
                "give e.g. [64, 128, 10]"
            )
        layers: list[nn.Module] = []
        for in_features, out_features in zip(self.sizes[:-2], self.sizes[1:-1], strict=True):
            layers.append(_he_linear(in_features, out_features, generator))
            layers += [] if norm is None else [norm(out_features)]
            layers.append(activation())
            layers += [nn.Dropout(dropout)] if dropout else []
        self.features = nn.Sequential(*layers)
        self.head = _he_linear(self.sizes[-2], self.sizes[-1], generator)
        self.output_activation = output_activation()

    def forward(self, x: Float[Tensor, "batch ..."]) -> Float[Tensor, "batch out_features"]:
        if x.ndim < 2 or x.shape[1:].numel() != self.sizes[0]:
            raise UserError(
                f"expected a batch of examples of {self.sizes[0]} numbers each, got shape {tuple(x.shape)}; "
                "put the batch on the first axis or change sizes[0]"
            )
        flat = x if x.ndim == 2 else x.flatten(1)
        return self.output_activation(self.head(self.features(flat)))

    @property
    def num_layers(self) -> int:
        """The number n of dense layers: the hidden ones and the output layer."""
        return len(self.sizes) - 1

    @property
    def depth(self) -> int:
        """The number n - 1 of hidden layers."""
        return self.num_layers - 1

    @property
    def width(self) -> int:
        """The number of units of the widest layer, the input not being a layer."""
        return max(self.sizes[1:])


@keeps_global_rng
def _he_linear(in_features: int, out_features: int, generator: torch.Generator | None) -> nn.Linear:
    linear = Linear(in_features, out_features)
    nn.init.kaiming_normal_(linear.weight, nonlinearity="relu", generator=generator)
    nn.init.zeros_(linear.bias)
    return linear
