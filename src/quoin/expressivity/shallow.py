"""Networks of one hidden layer, from their definition; the fast form is `relu_network` of the two maps, a
`torch.nn.Sequential`.

n inputs, h hidden units, m outputs
"""

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor

from quoin.layers import Affine, affine_definition, dense_definition, relu
from quoin.tensor import check_same_dtype

__all__ = ["shallow_definition"]


def shallow_definition(
    x: Float[Tensor, "*batch n"], hidden: Affine, last: Affine, activation: Callable[[Tensor], Tensor] = relu
) -> Float[Tensor, "*batch m"]:
    """A_2 sigma(A_1 x + b_1) + b_2; for one input and one output sum_i a²_i ReLU(a¹_i x + b¹_i) + b².

    Args:
        hidden: A_1 and b_1.
        last: A_2 and b_2.
        activation: sigma.

    Notes: D1.1-1.
    """
    check_same_dtype(x, *hidden, *last)
    return affine_definition(dense_definition(x, *hidden, activation), *last)
