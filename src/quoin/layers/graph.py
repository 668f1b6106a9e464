"""Graph convolution: every node mixes its own features with its neighbours', with the same weights at all nodes.

A graph is a list of directed edges (2, e), sources above targets: what source s knows goes to target t. A road that goes both
ways is listed twice. The definition writes out the matrix of the graph; the fast form walks along the edges and never does.

    v nodes, e edges, n features a node before the layer, m after
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from quoin.errors import Mistake
from quoin.tensor import as_floating, check_shapes

__all__ = [
    "GraphConv",
    "Links",
    "adjacency_matrix",
    "graph_convolution_definition",
    "normalised_adjacency",
    "normalised_links",
    "pass_messages",
]


class Links(NamedTuple):
    """Edges with a weight each, checked to lie among `num_nodes` nodes; one that goes from a node to itself is a self loop."""

    edges: Tensor  # (2, e), int64: sources above targets
    weights: Tensor  # (e,)
    num_nodes: int


def adjacency_matrix(edges: Tensor, num_nodes: int, edge_weights: Tensor | None = None) -> Tensor:  # (2, e), (e,) -> (v, v)
    """A_ts, the summed weight of the edges from node s to node t, each of weight 1 if none is given; 0 where there is no edge.

    >>> adjacency_matrix(torch.tensor([[0, 1], [1, 2]]), 3)
    tensor([[0., 0., 0.],
            [1., 0., 0.],
            [0., 1., 0.]])

    Notes: D1.1-25.
    """
    (sources, targets), weights, _ = _checked(edges, num_nodes, edge_weights)
    return weights.new_zeros(num_nodes, num_nodes).index_put((targets, sources), weights, accumulate=True)


def normalised_adjacency(adjacency: Tensor) -> Tensor:  # (v, v) -> (v, v)
    """Â = D^-1/2 (A + I) D^-1/2 with the diagonal D_tt = Σ_s (A + I)_ts: each node hears itself, and mixing does not swell.

    Where A is symmetric and has no negative entry, 1 is the largest eigenvalue of Â in size, however many neighbours a node has.

    Notes: D1.1-25.
    """
    check_shapes("v v", adjacency=adjacency)
    with_loops = adjacency + torch.eye(len(adjacency), dtype=adjacency.dtype, device=adjacency.device)
    scale = _check_degrees(with_loops.sum(dim=1)).rsqrt()
    return scale[:, None] * with_loops * scale


def graph_convolution_definition(
    features: Tensor, adjacency: Tensor, weight: Tensor, bias: Tensor | None = None
) -> Tensor:  # (..., v, n), (v, v), (n, m), (m,) -> (..., v, m)
    """Â H W + b with the normalised adjacency Â: row t is Σ_s Â_ts h_s W + b, a sum over t and its neighbours s.

    An activation behind it makes the layer σ(Â H W + b).

    Notes: D1.1-25.
    """
    check_shapes("... v n, v v, n m, m", features=features, adjacency=adjacency, weight=weight, bias=bias)
    mixed = normalised_adjacency(adjacency) @ features @ weight
    return mixed if bias is None else mixed + bias


def normalised_links(edges: Tensor, num_nodes: int, edge_weights: Tensor | None = None) -> Links:  # (2, e), (e,) -> e + v links
    """The entries of Â as a list of links: w_ts / √(d_t d_s) for each edge from s to t, and a self loop 1 / d_t at each node t.

    d_t = 1 + Σ w_ts over the edges that come in. A graph is normalised once; what its weights are learned by, gradients reach.

    Notes: D1.1-25.
    """
    edges, weights, _ = _checked(edges, num_nodes, edge_weights)
    edges = torch.cat([edges, torch.arange(num_nodes, device=edges.device).expand(2, -1)], dim=1)
    weights = torch.cat([weights, weights.new_ones(num_nodes)])
    sources, targets = edges
    scale = _check_degrees(weights.new_zeros(num_nodes).index_add(0, targets, weights)).rsqrt()
    return Links(edges, scale[targets] * weights * scale[sources], num_nodes)


def pass_messages(features: Tensor, links: Links) -> Tensor:  # (..., v, n) -> (..., v, n)
    """Each link carries its source's features, times its weight, to its target, where all that arrives adds up.

    h'_t = Σ w_ts h_s over the links from s to t, in e n multiplications where a matrix takes v² n.

    Notes: D1.1-25.
    """
    _check_nodes(features, links)
    sources, targets = links.edges
    features = as_floating(features, links.weights)
    messages = features.index_select(-2, sources) * links.weights[:, None]
    # As wide as the messages: under autocast the features come in half precision, and the weights, so the sums too, do not.
    return messages.new_zeros(features.shape).index_add(-2, targets, messages)


class GraphConv(nn.Module):
    """`graph_convolution_definition` along the links of a graph, which comes with each call: one layer serves many graphs.

    Weights start uniform on ±√(6 / (inputs + outputs)) (Glorot) and biases at zero; `generator` draws them.

    >>> layer = GraphConv(4, 2, generator=torch.Generator().manual_seed(0))
    >>> layer(torch.ones(3, 4), normalised_links(torch.tensor([[0, 1], [1, 2]]), 3)).shape
    torch.Size([3, 2])

    Notes: D1.1-25.
    """

    def __init__(self, in_dim: int, out_dim: int, *, generator: torch.Generator | None = None):
        super().__init__()
        if in_dim < 1 or out_dim < 1:
            raise Mistake(f"expected a positive number of features in and out, came {in_dim} and {out_dim}; give the layer's widths")
        self.weight = nn.Parameter(nn.init.xavier_uniform_(torch.empty(in_dim, out_dim), generator=generator))
        self.bias = nn.Parameter(torch.zeros(out_dim))

    def forward(self, features: Tensor, links: Links) -> Tensor:  # (..., v, n) -> (..., v, m)
        in_dim, out_dim = self.weight.shape
        _check_nodes(features, links)
        if features.shape[-1] != in_dim:
            raise Mistake(f"expected {in_dim} features a node, came {features.shape[-1]}; give the layer the width of its input")
        if out_dim <= in_dim:  # Â (H W) or (Â H) W: the narrower of the two travels
            return pass_messages(features @ self.weight, links) + self.bias
        return pass_messages(features, links) @ self.weight + self.bias


def _check_nodes(features: Tensor, links: Links) -> None:
    if features.ndim < 2 or features.shape[-2] != links.num_nodes:
        raise Mistake(
            f"expected features of {links.num_nodes} nodes on the last axis but one, came shape {tuple(features.shape)}; "
            "give one row for each node of the graph"
        )


def _checked(edges: Tensor, num_nodes: int, edge_weights: Tensor | None) -> Links:
    """Edges that name nodes, with a weight each; here and not in every forward pass, as a look at them would stall a GPU."""
    check_shapes("2 e, e", edges=edges, edge_weights=edge_weights)
    if edges.dtype != torch.int64:
        raise Mistake(f"expected edges as numbers of nodes in torch.int64, came {edges.dtype}; convert them with edges.long()")
    if num_nodes < 1:
        raise Mistake(f"expected at least one node, came {num_nodes}; give the number of rows of the features")
    outside = (edges < 0) | (edges >= num_nodes)
    if outside.any():
        _, place = outside.nonzero()[0].tolist()
        raise Mistake(
            f"expected edges between nodes 0 to {num_nodes - 1}, came {edges[:, place].tolist()} as edge {place}; "
            "number the nodes from 0, or raise num_nodes"
        )
    weights = torch.ones(edges.shape[1], device=edges.device) if edge_weights is None else edge_weights
    if not weights.is_floating_point():
        raise Mistake(f"expected edge weights as floats, came {weights.dtype}; convert them, e.g. with .float()")
    return Links(edges, weights, num_nodes)


def _check_degrees(degrees: Tensor) -> Tensor:
    """The degrees, if each has a root to divide by: negative weights may leave none, and NaN has none either."""
    bad = (~(degrees > 0)).nonzero()
    if len(bad):
        node = int(bad[0])
        raise Mistake(
            f"expected weights that add up to more than -1 at every node, came {float(degrees[node]) - 1:g} at node {node}; "
            "make the weights of edges positive"
        )
    return degrees
