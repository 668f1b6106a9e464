"""Inductive bias as structure in a dense layer's matrix: which entries are zero, and which are one and the same number.

Each function writes out the matrix of a layer that would never store it; `torch.conv1d`, `torch.nn.RNNCell` and a
sparse product are the fast forms. Gradients reach the few free numbers through every entry they fill.
"""

import torch
from jaxtyping import Float, Real
from torch import Tensor

from quoin.errors import UserError
from quoin.tensor import as_floating, check_shapes

__all__ = ["convolution_as_dense", "graph_as_dense", "recurrence_as_dense"]


def convolution_as_dense(kernel: Float[Tensor, "size"], length: int) -> Float[Tensor, "{length}-size+1 {length}"]:
    """The matrix A with A_ij = a_{j-i} for 0 <= j - i < k and 0 elsewhere: A x slides the kernel a along x.

    >>> convolution_as_dense(torch.tensor([1.0, 2.0]), 3)
    tensor([[1., 2., 0.],
            [0., 1., 2.]])

    Notes: D1.1-20.
    """
    check_shapes("k", kernel=kernel)
    size = len(kernel)
    if not 1 <= size <= length:
        raise UserError(
            f"expected a kernel of 1 to {length} entries for inputs of length {length}, got {size}; shorten the kernel"
        )
    offset = torch.arange(length, device=kernel.device) - torch.arange(
        length - size + 1, device=kernel.device
    ).unsqueeze(-1)
    inside = (offset >= 0) & (offset < size)
    return torch.where(inside, kernel[offset.clamp(0, size - 1)], 0)


def recurrence_as_dense(
    weight_ih: Float[Tensor, "hidden in_features"], weight_hh: Float[Tensor, "hidden hidden"], num_steps: int
) -> list[Float[Tensor, "hidden {num_steps}*in_features+hidden"]]:
    """The matrices of a recurrent net unrolled, (m, n) and (m, m): layer t is [0 ... W_x ... 0 | W_h] on (x_1, ...,
    x_T, h_{t-1}).

    Layer t sees all inputs but x_t only, and all layers hold the same two blocks: masked over space, tied over time.

    Notes: D1.1-20.
    """
    check_shapes("m n, m m", weight_ih=weight_ih, weight_hh=weight_hh)
    if num_steps < 1:
        raise UserError(f"expected at least one step to unroll, got {num_steps}; give the length of the sequence")
    hidden_dim, in_features = weight_ih.shape
    layers = []
    for step in range(num_steps):
        before, after = step * in_features, (num_steps - 1 - step) * in_features
        blocks = [weight_ih.new_zeros(hidden_dim, before), weight_ih, weight_ih.new_zeros(hidden_dim, after), weight_hh]
        layers.append(torch.cat(blocks, dim=1))
    return layers


def graph_as_dense(
    adjacency: Real[Tensor, "nodes nodes"], weight: Real[Tensor, "in_features out_features"]
) -> Float[Tensor, "nodes*out_features nodes*in_features"]:
    """The Kronecker product of A and W^T, which takes the rows of H, laid end to end, to the rows of A H W.

    Node u hears node v only where A_uv is not zero, and every edge carries the same W.

    Notes: D1.1-20.
    """
    check_shapes("v v, n m", adjacency=adjacency, weight=weight)
    adjacency, weight = as_floating(adjacency, weight), as_floating(weight, adjacency)
    (nodes, _), (in_features, out_features) = adjacency.shape, weight.shape
    return torch.einsum("uv,nm->umvn", adjacency, weight).reshape(nodes * out_features, nodes * in_features)
