"""Forward and backward propagation through an MLP, written out by hand; the fast form is torch's autograd.

Layer l of L maps h^(l-1) to z^(l) = h^(l-1) W^(l)ᵀ + b^(l) and then, but for the last, to h^(l) = σ(z^(l)); h^(0) = x
and the
output is o = z^(L).   n examples, d inputs, q outputs
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.tensor import check_same_dtype, check_shapes

__all__ = ["RELU", "SIGMOID", "TANH", "Activation", "BackwardPass", "ForwardPass", "backward_pass", "forward_pass"]


@shown
class Activation(NamedTuple):
    """σ, and σ' as a function of z and σ(z)."""

    function: Callable[[Tensor], Tensor]
    derivative: Callable[[Tensor, Tensor], Tensor]


RELU = Activation(torch.relu, lambda z, h: (z > 0).to(z.dtype))
TANH = Activation(torch.tanh, lambda z, h: 1 - h * h)
SIGMOID = Activation(torch.sigmoid, lambda z, h: h * (1 - h))


@shown
class ForwardPass(NamedTuple):
    """The output and everything that was computed on the way to it."""

    output: Float[Tensor, "n q"]
    preactivations: tuple[Float[Tensor, "n _h"], ...]  # z^(1), ..., z^(L), the last of which is the output
    activations: tuple[Float[Tensor, "n _d"], ...]  # h^(0) = x, ..., h^(L-1)


@shown
class BackwardPass(NamedTuple):
    """The derivatives of the loss J, in the order of the layers, and at the input."""

    weights: tuple[Float[Tensor, "_h _d"], ...]
    biases: tuple[Float[Tensor, "_h"], ...]
    deltas: tuple[Float[Tensor, "n _h"], ...]  # δ^(l) = ∂J/∂z^(l)
    x: Float[Tensor, "n d"]


def forward_pass(
    x: Float[Tensor, "n d"],
    weights: Sequence[Float[Tensor, "_h _d"]],
    biases: Sequence[Float[Tensor, "_h"]],
    activation: Activation = RELU,
) -> ForwardPass:
    """z^(l) = W^(l) h^(l-1) + b^(l) and h^(l) = σ(z^(l)), from the input to the output, every one of them kept.

    Args:
        activation: σ of the hidden layers; the output has none.

    Notes: Z5.14.
    """
    if not weights or len(weights) != len(biases):
        raise UserError(
            f"expected one or more weights and a bias for each, got {len(weights)} and {len(biases)}; pair them up"
        )
    preactivations, activations = [], [x]
    for weight, bias in zip(weights, biases):
        check_shapes("n d, h d, h", activations=activations[-1], weight=weight, bias=bias)
        check_same_dtype(activations[-1], weight, bias)
        preactivations.append(activations[-1] @ weight.T + bias)
        activations.append(activation.function(preactivations[-1]))
    return ForwardPass(preactivations[-1], tuple(preactivations), tuple(activations[:-1]))


def backward_pass(
    forward: ForwardPass,
    weights: Sequence[Float[Tensor, "_h _d"]],
    output_adjoint: Float[Tensor, "n q"],
    activation: Activation = RELU,
    *,
    weight_decay: float = 0.0,
) -> BackwardPass:
    """The gradient of J = L(o) + λ/2 Σ_l ‖W^(l)‖² from what the forward pass kept and from ∂L/∂o, in reverse order.

    δ^(L) = ∂L/∂o and δ^(l) = (δ^(l+1) W^(l+1)) σ'(z^(l)); then ∂J/∂W^(l) = δ^(l)ᵀ h^(l-1) + λ W^(l) and
    ∂J/∂b^(l) = Σ_n δ^(l): each example is a row.

    Args:
        weights: Those of the forward pass.
        output_adjoint: ∂L/∂o.
        activation: That of the forward pass.
        weight_decay: λ.

    Notes: Z5.15.
    """
    if len(weights) != len(forward.preactivations):
        raise UserError(
            f"expected the {len(forward.preactivations)} weights of the forward pass, got {len(weights)}; give the "
            "same ones"
        )
    check_shapes("n q, n q", output=forward.output, output_adjoint=output_adjoint)
    if not weight_decay >= 0:
        raise UserError(f"expected a weight decay λ of 0 or more, got {weight_decay}; 0 leaves the term out")
    delta = output_adjoint
    weight_gradients, bias_gradients, deltas = [], [], []
    for layer in reversed(range(len(weights))):
        deltas.append(delta)
        weight_gradients.append(delta.T @ forward.activations[layer] + weight_decay * weights[layer])
        bias_gradients.append(delta.sum(dim=0))
        delta = delta @ weights[layer]
        if layer > 0:
            delta = delta * activation.derivative(forward.preactivations[layer - 1], forward.activations[layer])
    return BackwardPass(
        tuple(reversed(weight_gradients)), tuple(reversed(bias_gradients)), tuple(reversed(deltas)), delta
    )
