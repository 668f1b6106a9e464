"""Dense layers from their definition; the fast form is `torch.nn.Linear` followed by an activation module.

Stacks of them are in quoin.models.   n inputs, m outputs
"""

from collections.abc import Callable

import torch
from torch import Tensor

from quoin.layers.activation import relu
from quoin.tensor import check_shapes

__all__ = ["affine_definition", "dense_definition"]


def affine_definition(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:  # (..., n), (m, n), (m,) -> (..., m)
    """A x + b: entry i is sum_j A_ij x_j + b_i.

    Notes: D1-16.
    """
    check_shapes("... n, m n, m", x=x, weight=weight, bias=bias)
    return torch.einsum("ij,...j->...i", weight, x) + bias


def dense_definition(
    x: Tensor, weight: Tensor, bias: Tensor, activation: Callable[[Tensor], Tensor] = relu
) -> Tensor:  # (..., n), (m, n), (m,) -> (..., m)
    """sigma(A x + b), the activation sigma working on each entry.

    Notes: D1-18.
    """
    return activation(affine_definition(x, weight, bias))
