"""Networks of one hidden layer, from their definition; the fast form is `relu_network` of the two maps, a
`torch.nn.Sequential`.

n inputs, h hidden units, m outputs
"""

from collections.abc import Callable

from torch import Tensor

from quoin.layers import Affine, affine_definition, dense_definition, relu
from quoin.tensor import check_same_dtype

__all__ = ["shallow_definition"]


def shallow_definition(
    x: Tensor, hidden: Affine, last: Affine, activation: Callable[[Tensor], Tensor] = relu
) -> Tensor:  # (..., n), (h n, h), (m h, m) -> (..., m)
    """A_2 sigma(A_1 x + b_1) + b_2; for one input and one output sum_i a²_i ReLU(a¹_i x + b¹_i) + b².

    Notes: D1.1-1.
    """
    check_same_dtype(x, *hidden, *last)
    return affine_definition(dense_definition(x, *hidden, activation), *last)
