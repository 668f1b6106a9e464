"""Dense layers from their definition; the fast form is `Linear` of onednn.py, followed by an activation module.

Stacks of them are in quoin.models, matrices with structure in structured.py.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Real
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.layers.activation import relu
from quoin.tensor import as_floating, check_shapes

__all__ = ["Affine", "affine_definition", "collapse", "dense_definition"]


def affine_definition(
    x: Real[Tensor, "*batch in_features"],
    weight: Real[Tensor, "out_features in_features"],
    bias: Real[Tensor, "out_features"],
) -> Float[Tensor, "*batch out_features"]:
    """A x + b: entry i is sum_j A_ij x_j + b_i.

    Notes: D1-1, D1-16.
    """
    check_shapes("... n, m n, m", x=x, weight=weight, bias=bias)
    x, weight = as_floating(x, weight), as_floating(weight, x)
    return torch.einsum("ij,...j->...i", weight, x) + bias


def dense_definition(
    x: Real[Tensor, "*batch in_features"],
    weight: Real[Tensor, "out_features in_features"],
    bias: Real[Tensor, "out_features"],
    activation: Callable[[Tensor], Tensor] = relu,
) -> Float[Tensor, "*batch out_features"]:
    """sigma(A x + b), the activation sigma working on each entry.

    Notes: D1-18.
    """
    return activation(affine_definition(x, weight, bias))


@shown
class Affine(NamedTuple):
    """The affine map x -> A x + b, or a batch of such maps."""

    weight: Float[Tensor, "*batch out_features in_features"]
    bias: Float[Tensor, "*batch out_features"]


def collapse(
    weights: Sequence[Real[Tensor, "_out_features _in_features"]], biases: Sequence[Real[Tensor, "_out_features"]]
) -> Affine:
    """The one affine map that affine maps in a row are, the first applied first: (A2 A1, A2 b1 + b2), and so on.

    Notes: D1-17.
    """
    if not weights or len(weights) != len(biases):
        raise UserError(
            f"expected one bias for each of at least one weight, got {len(weights)} and {len(biases)}; pair them"
        )
    check_shapes("m n, m", weight=weights[0], bias=biases[0])
    weights, biases = ([as_floating(each, *weights, *biases) for each in given] for given in (weights, biases))
    weight, bias = weights[0], biases[0]
    for next_weight, next_bias in zip(weights[1:], biases[1:], strict=True):
        check_shapes("m n, k m, k", weight=weight, next_weight=next_weight, next_bias=next_bias)
        weight, bias = next_weight @ weight, next_weight @ bias + next_bias
    return Affine(weight, bias)
