"""Several networks of equal depth beside each other, as one network with several outputs."""

from collections.abc import Sequence

import torch
from torch import nn

from quoin.errors import UserError
from quoin.expressivity.layers_of import affine_layers, relu_network
from quoin.layers import Affine

__all__ = ["stack_networks"]


def stack_networks(networks: Sequence[nn.Module]) -> nn.Sequential:
    """The network whose outputs are those of all `networks`, one after the other: x -> (f_1(x), ..., f_k(x)).

    Their hidden units stand beside each other: the first matrix holds all first matrices, every later one is block
    diagonal, and so an approximation of each coordinate becomes one of the whole, whose error in the max norm is the
    largest of theirs.

    Notes: D1.1-17.
    """
    if not networks:
        raise UserError("expected at least one network to stack, got none; give a list of ReLU networks")
    chains = [affine_layers(network) for network in networks]
    num_layers, in_features = {len(chain) for chain in chains}, {chain[0].weight.shape[1] for chain in chains}
    if len(num_layers) > 1:
        raise UserError(
            f"expected networks of one depth, got {sorted(num_layers)} affine maps; stack those that have equally many"
        )
    if len(in_features) > 1:
        raise UserError(
            f"expected networks of one number of inputs, got {sorted(in_features)}; give all the same input"
        )
    first, *later = zip(*chains)
    side_by_side = Affine(torch.cat([each.weight for each in first]), torch.cat([each.bias for each in first]))
    blocks = [Affine(torch.block_diag(*(a.weight for a in maps)), torch.cat([a.bias for a in maps])) for maps in later]
    return relu_network([side_by_side, *blocks])
