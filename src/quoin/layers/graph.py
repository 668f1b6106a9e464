"""Graph convolution: every node mixes its own features with its neighbours', with the same weights at all nodes.

A graph is a list of directed edges (2, e), sources above targets: what source s knows goes to target t. A road that
goes both ways is listed twice. The definition writes out the matrix of the graph; the fast form sums over the edges and
never does.

    v nodes, e edges, n features a node
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int64, Real
from torch import Tensor, nn

from quoin.display import shown
from quoin.errors import UserError
from quoin.tensor import as_floating, check_shapes

__all__ = [
    "EdgeList",
    "GCNConv",
    "adjacency_matrix",
    "graph_convolution_definition",
    "normalized_adjacency",
    "normalized_edges",
    "propagate",
]


@shown
class EdgeList(NamedTuple):
    """Edges with a weight each, checked to lie among `num_nodes` nodes; one that goes from a node to itself is a self
    loop."""

    edge_index: Int64[Tensor, "2 edges"]  # int64: sources above targets
    edge_weight: Float[Tensor, "edges"]
    num_nodes: int


def adjacency_matrix(
    edge_index: Int64[Tensor, "2 edges"], num_nodes: int, edge_weight: Float[Tensor, "edges"] | None = None
) -> Float[Tensor, "{num_nodes} {num_nodes}"]:
    """A_ts, the summed weight of the edges from node s to node t, each of weight 1 if none is given; 0 where there is
    no edge.

    Args:
        edge_index: Sources in the first row, targets in the second.

    >>> adjacency_matrix(torch.tensor([[0, 1], [1, 2]]), 3)
    tensor([[0., 0., 0.],
            [1., 0., 0.],
            [0., 1., 0.]])

    Notes: D1.1-25.
    """
    (sources, targets), edge_weight, _ = _checked(edge_index, num_nodes, edge_weight)
    return edge_weight.new_zeros(num_nodes, num_nodes).index_put((targets, sources), edge_weight, accumulate=True)


def normalized_adjacency(adjacency: Real[Tensor, "nodes nodes"]) -> Float[Tensor, "nodes nodes"]:
    """Â = D^-1/2 (A + I) D^-1/2 with the diagonal D_tt = Σ_s (A + I)_ts: each node hears itself, and mixing does not
    swell.

    Where A is symmetric and has no negative entry, 1 is the largest eigenvalue of Â in size, however many neighbours a
    node has.

    Notes: D1.1-25.
    """
    check_shapes("v v", adjacency=adjacency)
    with_loops = adjacency + torch.eye(len(adjacency), dtype=adjacency.dtype, device=adjacency.device)
    scale = _check_degrees(with_loops.sum(dim=1)).rsqrt()
    return scale[:, None] * with_loops * scale


def graph_convolution_definition(
    features: Float[Tensor, "*batch nodes in_features"],
    adjacency: Real[Tensor, "nodes nodes"],
    weight: Float[Tensor, "in_features out_features"],
    bias: Float[Tensor, "out_features"] | None = None,
) -> Float[Tensor, "*batch nodes out_features"]:
    """Â H W + b with the normalized adjacency Â: row t is Σ_s Â_ts h_s W + b, a sum over t and its neighbours s.

    An activation behind it makes the layer σ(Â H W + b).

    Notes: D1.1-25.
    """
    check_shapes("... v n, v v, n m, m", features=features, adjacency=adjacency, weight=weight, bias=bias)
    mixed = normalized_adjacency(adjacency) @ features @ weight
    return mixed if bias is None else mixed + bias


def normalized_edges(
    edge_index: Int64[Tensor, "2 edges"], num_nodes: int, edge_weight: Float[Tensor, "edges"] | None = None
) -> EdgeList:
    """The entries of Â as a list of links: w_ts / √(d_t d_s) for each edge from s to t, and a self loop 1 / d_t at each
    node t.

    d_t = 1 + Σ w_ts over the edges that come in. A graph is normalized once; what its weights are learned by, gradients
    reach.

    Args:
        edge_index: Sources in the first row, targets in the second.
        edge_weight: w_ts; 1 for every edge unless given.

    Notes: D1.1-25.
    """
    edge_index, edge_weight, _ = _checked(edge_index, num_nodes, edge_weight)
    edge_index = torch.cat([edge_index, torch.arange(num_nodes, device=edge_index.device).expand(2, -1)], dim=1)
    edge_weight = torch.cat([edge_weight, edge_weight.new_ones(num_nodes)])
    sources, targets = edge_index
    scale = _check_degrees(edge_weight.new_zeros(num_nodes).index_add(0, targets, edge_weight)).rsqrt()
    return EdgeList(edge_index, scale[targets] * edge_weight * scale[sources], num_nodes)


def propagate(
    features: Real[Tensor, "*batch nodes features"], edges: EdgeList
) -> Float[Tensor, "*batch nodes features"]:
    """Each link carries its source's features, times its weight, to its target, where all that arrives adds up.

    h'_t = Σ w_ts h_s over the links from s to t, in e n multiplications where a matrix takes v² n.

    Notes: D1.1-25.
    """
    _check_nodes(features, edges)
    sources, targets = edges.edge_index
    features = as_floating(features, edges.edge_weight)
    messages = features.index_select(-2, sources) * edges.edge_weight[:, None]
    # As wide as the messages: under autocast the features come in half precision, and the weights, so the sums too, do
    # not.
    return messages.new_zeros(features.shape).index_add(-2, targets, messages)


class GCNConv(nn.Module):
    """`graph_convolution_definition` along the links of a graph, which comes with each call: one layer serves many
    graphs.

    Weights start uniform on ±√(6 / (inputs + outputs)) (Glorot) and biases at zero; `generator` samples them.

    >>> layer = GCNConv(4, 2, generator=torch.Generator().manual_seed(0))
    >>> layer(torch.ones(3, 4), normalized_edges(torch.tensor([[0, 1], [1, 2]]), 3)).shape
    torch.Size([3, 2])

    Notes: D1.1-25.
    """

    def __init__(self, in_features: int, out_features: int, *, generator: torch.Generator | None = None):
        super().__init__()
        if in_features < 1 or out_features < 1:
            raise UserError(
                f"expected a positive number of features in and out, got {in_features} and {out_features}; give "
                "e.g. 34 and 16"
            )
        self.weight = nn.Parameter(nn.init.xavier_uniform_(torch.empty(in_features, out_features), generator=generator))
        self.bias = nn.Parameter(torch.zeros(out_features))

    def forward(
        self, features: Float[Tensor, "*batch nodes in_features"], edges: EdgeList
    ) -> Float[Tensor, "*batch nodes out_features"]:
        in_features, out_features = self.weight.shape
        _check_nodes(features, edges)
        if features.shape[-1] != in_features:
            raise UserError(
                f"expected {in_features} features a node, got {features.shape[-1]}; give the layer the in_features "
                "of its input"
            )
        if out_features <= in_features:  # Â (H W) or (Â H) W: the narrower of the two travels
            return propagate(features @ self.weight, edges) + self.bias
        return propagate(features, edges) @ self.weight + self.bias


def _check_nodes(features: Tensor, edges: EdgeList) -> None:
    if features.ndim < 2 or features.shape[-2] != edges.num_nodes:
        raise UserError(
            f"expected features of {edges.num_nodes} nodes on the last axis but one, got shape "
            f"{tuple(features.shape)}; "
            "give one row for each node of the graph"
        )


def _checked(edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None) -> EdgeList:
    """Edges that name nodes, with a weight each; here and not in every forward pass, as reading them would stall a
    GPU.
    """
    check_shapes("2 e, e", edge_index=edge_index, edge_weight=edge_weight)
    if edge_index.dtype != torch.int64:
        raise UserError(
            f"expected edges as numbers of nodes in torch.int64, got {edge_index.dtype}; convert them with "
            "edge_index.long()"
        )
    if num_nodes < 1:
        raise UserError(f"expected at least one node, got {num_nodes}; give the number of rows of the features")
    outside = (edge_index < 0) | (edge_index >= num_nodes)
    if outside.any():
        _, index = outside.nonzero()[0].tolist()
        raise UserError(
            f"expected edges between nodes 0 to {num_nodes - 1}, got {edge_index[:, index].tolist()} as edge {index}; "
            "number the nodes from 0, or raise num_nodes"
        )
    edge_weight = torch.ones(edge_index.shape[1], device=edge_index.device) if edge_weight is None else edge_weight
    if not edge_weight.is_floating_point():
        raise UserError(f"expected edge weights as floats, got {edge_weight.dtype}; convert them, e.g. with .float()")
    return EdgeList(edge_index, edge_weight, num_nodes)


def _check_degrees(degrees: Tensor) -> Tensor:
    """The degrees, if each has a root to divide by: negative weights may leave none, and NaN has none either."""
    bad = (~(degrees > 0)).nonzero()
    if len(bad):
        node = int(bad[0])
        raise UserError(
            f"expected weights that add up to more than -1 at every node, got {float(degrees[node]) - 1:g} at node "
            f"{node}; "
            "make the weights of edges positive"
        )
    return degrees
