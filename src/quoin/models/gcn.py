"""Graph convolutional networks: graph convolutions one after another, ReLU between them.

After k layers a node has heard from the nodes at most k edges away, and from no other.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import cast

import torch
from jaxtyping import Float, Real
from torch import Tensor, nn

from quoin.errors import UserError, format_value
from quoin.layers import EdgeList, GCNConv

__all__ = ["GCN", "NodeClassifier"]


class GCN(nn.Module):
    """H_{l+1} = ReLU(Â H_l W_l + b_l), the last layer without ReLU; `sizes` lists the features a node has, input to
    output.

    The graph comes with each call, as `quoin.layers.normalized_edges` gives it, and no order of its nodes is special:
    renumber them, and the rows of the output are renumbered alike.

    >>> from quoin.layers import normalized_edges
    >>> model = GCN([4, 16, 2], generator=torch.Generator().manual_seed(0))
    >>> model(torch.eye(4), normalized_edges(torch.tensor([[0, 1, 2], [1, 2, 3]]), 4)).shape
    torch.Size([4, 2])

    Notes: D1.1-25.
    """

    def __init__(self, sizes: Sequence[int], *, generator: torch.Generator | None = None):
        super().__init__()
        self.sizes = tuple(sizes)
        if len(self.sizes) < 2 or not all(isinstance(size, int) and size > 0 for size in self.sizes):
            raise UserError(
                f"expected at least two positive layer sizes, input to output, got {format_value(self.sizes)}; "
                "give e.g. [34, 16, 2]"
            )
        self.layers = nn.ModuleList(
            GCNConv(in_features, out_features, generator=generator)
            for in_features, out_features in pairwise(self.sizes)
        )

    def forward(
        self, features: Float[Tensor, "*batch nodes in_features"], edges: EdgeList
    ) -> Float[Tensor, "*batch nodes out_features"]:
        return self.steps(features, edges)[-1]

    def steps(
        self, features: Float[Tensor, "*batch nodes in_features"], edges: EdgeList
    ) -> list[Float[Tensor, "*batch nodes _features"]]:
        """What stands at the nodes after each layer: hidden ones under ReLU, then the output."""
        found = []
        for number, layer in enumerate(self.layers, start=1):
            features = layer(features, edges)
            if number < len(self.layers):
                features = torch.relu(features)
            found.append(features)
        return found


class NodeClassifier(nn.Module):
    """A GCN that lives on one graph and classifies nodes by number: the logits of node i are row i of GCN(I).

    The features are the identity, one of its own for each node: all that the model knows is who is joined to whom, and
    all nodes take part in every prediction, labelled or not. The graph is no parameter; it moves along to a device but
    is not saved.

    Args:
        edges: The graph, as `quoin.layers.normalized_edges` gives it.
        hidden_dims: Features of a node in each hidden layer.
    """

    def __init__(
        self, edges: EdgeList, hidden_dims: Sequence[int], num_classes: int, *, generator: torch.Generator | None = None
    ):
        super().__init__()
        self.gcn = GCN([edges.num_nodes, *hidden_dims, num_classes], generator=generator)
        self.num_nodes = edges.num_nodes
        self.register_buffer("edge_index", edges.edge_index, persistent=False)
        self.register_buffer("edge_weight", edges.edge_weight, persistent=False)

    @property
    def edges(self) -> EdgeList:
        return EdgeList(cast(Tensor, self.edge_index), cast(Tensor, self.edge_weight), self.num_nodes)

    def forward(self, numbers: Real[Tensor, "batch 1"]) -> Float[Tensor, "batch classes"]:
        """The logits of these nodes; their whole numbers may come in any dtype."""
        if numbers.ndim != 2 or numbers.shape[1] != 1:
            raise UserError(
                f"expected the numbers of nodes in one column, got shape {tuple(numbers.shape)}; give one number a row"
            )
        return self.scores()[self._nodes(numbers[:, 0])]

    def scores(self) -> Float[Tensor, "nodes classes"]:
        """The output at every node."""
        return self.gcn(self.identity(), self.edges)

    def identity(self) -> Float[Tensor, "nodes nodes"]:
        """The features of the nodes."""
        return torch.eye(self.num_nodes, dtype=self.edges.edge_weight.dtype, device=self.edges.edge_weight.device)

    def _nodes(self, numbers: Tensor) -> Tensor:
        nodes = numbers.long()
        wrong = (nodes != numbers) | (nodes < 0) | (nodes >= self.num_nodes)
        if not torch.compiler.is_exporting() and wrong.any():  # a program has no values yet
            got = f"{numbers[wrong][0].item():g}"
            raise UserError(
                f"expected a node's number, from 0 to {self.num_nodes - 1}, got {got}; ask for nodes of the graph"
            )
        return nodes
