"""Graph convolutional networks: graph convolutions one after another, ReLU between them.

After k layers a node has heard from the nodes at most k edges away, and from no other.   v nodes
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import cast

import torch
from torch import Tensor, nn

from quoin.errors import Mistake, shown
from quoin.layers import GraphConv, Links

__all__ = ["GCN", "NodeClassifier"]


class GCN(nn.Module):
    """H_{l+1} = ReLU(Â H_l W_l + b_l), the last layer without ReLU; `sizes` lists the features a node has, input to output.

    The graph comes with each call, as `quoin.layers.normalised_links` gives it, and no order of its nodes is special: renumber
    them, and the rows of the output are renumbered alike.

    >>> from quoin.layers import normalised_links
    >>> model = GCN([4, 16, 2], generator=torch.Generator().manual_seed(0))
    >>> model(torch.eye(4), normalised_links(torch.tensor([[0, 1, 2], [1, 2, 3]]), 4)).shape
    torch.Size([4, 2])

    Notes: D1.1-25.
    """

    def __init__(self, sizes: Sequence[int], *, generator: torch.Generator | None = None):
        super().__init__()
        self.sizes = tuple(sizes)
        if len(self.sizes) < 2 or not all(isinstance(size, int) and size > 0 for size in self.sizes):
            raise Mistake(f"expected at least two positive widths, input to output, came {shown(self.sizes)}; give e.g. [34, 16, 2]")
        self.layers = nn.ModuleList(GraphConv(inputs, outputs, generator=generator) for inputs, outputs in pairwise(self.sizes))

    def forward(self, features: Tensor, links: Links) -> Tensor:  # (..., v, sizes[0]) -> (..., v, sizes[-1])
        return self.steps(features, links)[-1]

    def steps(self, features: Tensor, links: Links) -> list[Tensor]:
        """What stands at the nodes after each layer: hidden ones under ReLU, then the output."""
        found = []
        for number, layer in enumerate(self.layers, start=1):
            features = layer(features, links)
            if number < len(self.layers):
                features = torch.relu(features)
            found.append(features)
        return found


class NodeClassifier(nn.Module):
    """A GCN that lives on one graph and is asked for nodes by number: the scores of node i are row i of GCN(I).

    The features are the identity, one of its own for each node: all that the model knows is who is joined to whom, and all nodes
    take part in every answer, labelled or not. The graph is no parameter; it moves along to a device but is not saved.
    """

    def __init__(self, links: Links, hidden: Sequence[int], num_classes: int, *, generator: torch.Generator | None = None):
        super().__init__()
        self.gcn = GCN([links.num_nodes, *hidden, num_classes], generator=generator)
        self.num_nodes = links.num_nodes
        self.register_buffer("edges", links.edges, persistent=False)
        self.register_buffer("weights", links.weights, persistent=False)

    @property
    def links(self) -> Links:
        return Links(cast(Tensor, self.edges), cast(Tensor, self.weights), self.num_nodes)

    def forward(self, numbers: Tensor) -> Tensor:  # (n, 1), whole numbers in any dtype -> (n, num_classes)
        if numbers.ndim != 2 or numbers.shape[1] != 1:
            raise Mistake(f"expected the numbers of nodes in one column, came shape {tuple(numbers.shape)}; give one number a row")
        return self.scores()[self._nodes(numbers[:, 0])]

    def scores(self) -> Tensor:  # (v, num_classes)
        """The output at every node."""
        return self.gcn(self.identity(), self.links)

    def identity(self) -> Tensor:  # (v, v)
        """The features of the nodes."""
        return torch.eye(self.num_nodes, dtype=self.links.weights.dtype, device=self.links.weights.device)

    def _nodes(self, numbers: Tensor) -> Tensor:
        nodes = numbers.long()
        wrong = (nodes != numbers) | (nodes < 0) | (nodes >= self.num_nodes)
        if wrong.any():
            came = f"{numbers[wrong][0].item():g}"
            raise Mistake(f"expected a node's number, from 0 to {self.num_nodes - 1}, came {came}; ask for nodes of the graph")
        return nodes
