"""The contract of graph convolution: the layer on an edge list equals the matrix's definition, in value and in every
gradient."""

import networkx
import numpy
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from quoin.errors import UserError
from quoin.layers import (
    EdgeList,
    GCNConv,
    adjacency_matrix,
    graph_as_dense,
    graph_convolution_definition,
    normalized_adjacency,
    normalized_edges,
    propagate,
)
from quoin.models import GCN, NodeClassifier

DTYPES = st.sampled_from([torch.float32, torch.float64])


@st.composite
def graphs(draw) -> tuple[Tensor, int, list[float]]:
    """Directed edges: none, doubled ones and self loops among them."""
    nodes = draw(st.integers(1, 7))
    pairs = draw(st.lists(st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1)), max_size=15))
    weights = draw(st.lists(st.floats(0.125, 3.0, width=32), min_size=len(pairs), max_size=len(pairs)))
    return torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T, nodes, weights


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    graphs(),
    DTYPES,
    st.lists(st.integers(1, 3), max_size=2),
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(0, 1000),
)
def test_the_layer_agrees_with_its_definition(graph, dtype, batch, inputs, outputs, seed):
    edges, nodes, weights = graph
    generator = torch.Generator().manual_seed(seed)
    layer = GCNConv(inputs, outputs, generator=generator).to(dtype)
    torch.nn.init.normal_(layer.bias, generator=generator)
    edge_weights = torch.tensor(weights, dtype=dtype, requires_grad=True)
    H = torch.randn(*batch, nodes, inputs, generator=generator, dtype=dtype, requires_grad=True)
    ours = layer(H, normalized_edges(edges, nodes, edge_weights))
    defined = graph_convolution_definition(H, adjacency_matrix(edges, nodes, edge_weights), layer.weight, layer.bias)
    assert ours.dtype == defined.dtype == dtype
    torch.testing.assert_close(ours, defined)
    upstream = torch.randn(ours.shape, generator=generator, dtype=dtype)
    arguments = [H, layer.weight, layer.bias, *([edge_weights] if weights else [])]
    torch.testing.assert_close(
        torch.autograd.grad(ours, arguments, upstream), torch.autograd.grad(defined, arguments, upstream)
    )


@settings(max_examples=50, deadline=None, derandomize=True)
@given(graphs(), st.integers(0, 1000))
def test_messages_are_a_matrix_product(graph, seed):
    edges, nodes, weights = graph
    generator = torch.Generator().manual_seed(seed)
    edge_weights = torch.tensor(weights, dtype=torch.float64)
    H = torch.randn(nodes, 3, generator=generator, dtype=torch.float64)
    dense = numpy.zeros((nodes, nodes))
    for (source, target), weight in zip(edges.T.tolist(), weights):
        dense[target, source] += weight
    torch.testing.assert_close(adjacency_matrix(edges, nodes, edge_weights), torch.from_numpy(dense))
    torch.testing.assert_close(propagate(H, EdgeList(edges, edge_weights, nodes)), torch.from_numpy(dense) @ H)


def test_the_normalised_adjacency_is_networkx_laplacian():
    """I - D^-1/2 A D^-1/2 is networkx's normalised Laplacian, of the graph with self loops added."""
    graph = networkx.karate_club_graph()
    edges = torch.tensor([*graph.edges, *((v, u) for u, v in graph.edges)]).T
    weights = torch.tensor([graph.edges[edge]["weight"] for edge in edges.T.tolist()], dtype=torch.float64)
    graph.add_edges_from((node, node, {"weight": 1}) for node in graph)
    expected = torch.eye(34, dtype=torch.float64) - torch.from_numpy(
        networkx.normalized_laplacian_matrix(graph).toarray()
    )
    torch.testing.assert_close(normalized_adjacency(adjacency_matrix(edges, 34, weights)), expected)
    links = normalized_edges(edges, 34, weights)
    torch.testing.assert_close(adjacency_matrix(links.edge_index, 34, links.edge_weight), expected)


def test_a_path_of_three_nodes_by_hand():
    """0 - 1 - 2 has degrees 2, 3, 2 with self loops: the middle hears 1/3 of itself and 1/sqrt 6 of either end."""
    links = normalized_edges(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), 3)
    root = 6**-0.5
    expected = torch.tensor([[0.5, root, 0.0], [root, 1 / 3, root], [0.0, root, 0.5]])
    torch.testing.assert_close(propagate(torch.eye(3), links), expected)


def test_a_node_without_edges_hears_itself():
    H = torch.tensor([[2.0], [3.0], [5.0]])
    torch.testing.assert_close(propagate(H, normalized_edges(torch.zeros(2, 0, dtype=torch.int64), 3)), H)


def test_mixing_does_not_swell():
    """Of a star the middle hears more than one node's worth, 1/5 + 4/sqrt 10; but no eigenvalue of Â is beyond 1."""
    star = torch.tensor([[0, 0, 0, 0, 1, 2, 3, 4], [1, 2, 3, 4, 0, 0, 0, 0]])
    mixing = normalized_adjacency(adjacency_matrix(star, 5).double())
    assert float(mixing.sum(dim=1).max()) == pytest.approx(0.2 + 4 / 10**0.5)
    torch.testing.assert_close(torch.linalg.eigvalsh(mixing).abs().max(), torch.tensor(1.0, dtype=torch.float64))


@pytest.mark.parametrize("sizes", [[4, 2], [2, 4]])  # features travel before the product with W, or after it
def test_a_layer_runs_in_half_precision_beside_links_in_float32(sizes):
    inputs, outputs = sizes
    links = normalized_edges(torch.tensor([[0, 1, 2], [1, 2, 3]]), 4)
    layer = GCNConv(inputs, outputs, generator=torch.Generator().manual_seed(0))
    H = torch.randn(4, inputs, generator=torch.Generator().manual_seed(1))
    with torch.autocast("cpu", torch.bfloat16):
        coarse = layer(H, links)
        twice = layer(H.bfloat16(), links)
    for found in (coarse, twice):
        torch.testing.assert_close(found.float(), layer(H, links), rtol=0.03, atol=0.03)  # bfloat16 keeps 8 bits
    widened = propagate(H, links._replace(edge_weight=links.edge_weight.double()))
    torch.testing.assert_close(widened, propagate(H.double(), links._replace(edge_weight=links.edge_weight.double())))


def test_a_network_is_its_layers_one_after_another():
    generator = torch.Generator().manual_seed(0)
    model, links = GCN([3, 5, 4, 2], generator=generator), normalized_edges(torch.tensor([[0, 1, 2], [1, 2, 3]]), 4)
    H = torch.randn(4, 3, generator=generator)
    A = adjacency_matrix(torch.tensor([[0, 1, 2], [1, 2, 3]]), 4)
    expected = H
    for number, layer in enumerate(model.layers):
        assert isinstance(layer, GCNConv)
        expected = graph_convolution_definition(expected.relu() if number else expected, A, layer.weight, layer.bias)
    torch.testing.assert_close(model(H, links), expected)
    first, second, last = model.steps(H, links)
    assert (first.shape, second.shape) == ((4, 5), (4, 4))
    assert first.min() >= 0
    assert second.min() >= 0
    torch.testing.assert_close(last, expected)


def test_a_layer_is_the_structured_dense_layer_of_its_graph():
    edges = torch.tensor([[0, 1, 2, 2], [1, 2, 0, 1]])
    layer, H = (
        GCNConv(3, 2, generator=torch.Generator().manual_seed(0)),
        torch.randn(3, 3, generator=torch.Generator().manual_seed(1)),
    )
    matrix = graph_as_dense(normalized_adjacency(adjacency_matrix(edges, 3)), layer.weight)
    torch.testing.assert_close(layer(H, normalized_edges(edges, 3)).flatten(), matrix @ H.flatten())


def test_first_weights_are_the_generators():
    one, same, other = (
        GCN([4, 3, 2], generator=torch.Generator().manual_seed(seed)).state_dict() for seed in (0, 0, 1)
    )
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not torch.equal(one["layers.0.weight"], other["layers.0.weight"])
    assert not any(one[name].any() for name in one if name.endswith("bias"))
    bound = (6 / (4 + 3)) ** 0.5
    assert 0.5 * bound < one["layers.0.weight"].abs().max() <= bound


def test_a_node_classifier_answers_by_number():
    edges = torch.tensor([[0, 1, 2], [1, 2, 3]])
    model = NodeClassifier(normalized_edges(edges, 4), [5], 2, generator=torch.Generator().manual_seed(0))
    scores = model.gcn(torch.eye(4), model.edges)
    torch.testing.assert_close(model(torch.tensor([[3.0], [0.0], [3.0]])), scores[[3, 0, 3]])
    assert set(model.state_dict()) == {f"gcn.layers.{layer}.{kind}" for layer in (0, 1) for kind in ("weight", "bias")}
    assert model.double().edges.edge_weight.dtype == torch.float64  # the graph goes where the model goes


EDGES = torch.tensor([[0, 1], [1, 2]])
LINKS = normalized_edges(EDGES, 3)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (lambda: normalized_edges(torch.tensor([[0, 1], [1, 3]]), 3), r"between nodes 0 to 2, got \[1, 3\] as edge 1"),
        (lambda: normalized_edges(torch.tensor([[0, -1], [1, 2]]), 3), r"between nodes 0 to 2, got \[-1, 2\]"),
        (lambda: adjacency_matrix(EDGES, 2), "between nodes 0 to 1"),
        (lambda: normalized_edges(EDGES.T[:1], 3), "size 2 where it has 1"),
        (lambda: normalized_edges(EDGES.float(), 3), "torch.int64, got torch.float32"),
        (lambda: normalized_edges(EDGES, 0), "at least one node, got 0"),
        (lambda: normalized_edges(EDGES, 3, torch.ones(3)), "axis e of edge_weight to be 2 as in edge_index, got 3"),
        (lambda: normalized_edges(EDGES, 3, torch.tensor([1, 1])), "weights as floats, got torch.int64"),
        (lambda: normalized_edges(EDGES, 3, torch.tensor([1.0, -1.0])), "more than -1 at every node, got -1 at node 2"),
        (lambda: normalized_edges(EDGES, 3, torch.tensor([torch.nan, 1.0])), "got nan at node 1"),
        (lambda: normalized_adjacency(torch.tensor([[-3.0]])), "got -3 at node 0"),
        (lambda: normalized_adjacency(torch.zeros(2, 3)), "axis v of adjacency to be 2"),
        (
            lambda: graph_convolution_definition(torch.zeros(3, 2), torch.zeros(4, 4), torch.zeros(2, 1)),
            "axis v of adjacency to be 3",
        ),
        (lambda: propagate(torch.zeros(4, 2), LINKS), r"features of 3 nodes .* got shape \(4, 2\)"),
        (lambda: propagate(torch.zeros(3), LINKS), r"got shape \(3,\)"),
        (lambda: GCNConv(4, 2)(torch.zeros(3, 5), LINKS), "expected 4 features a node, got 5"),
        (lambda: GCNConv(0, 2), "positive number of features in and out, got 0 and 2"),
        (lambda: GCN([4]), r"at least two positive layer sizes, input to output, got \(4,\)"),
        (lambda: NodeClassifier(LINKS, [2], 2)(torch.tensor([[3.0]])), "from 0 to 2, got 3"),
        (lambda: NodeClassifier(LINKS, [2], 2)(torch.tensor([[0.5]])), "got 0.5"),
        (lambda: NodeClassifier(LINKS, [2], 2)(torch.tensor([[torch.nan]])), "got nan"),
        (lambda: NodeClassifier(LINKS, [2], 2)(torch.zeros(3)), r"in one column, got shape \(3,\)"),
    ],
)
def test_what_does_not_fit_is_told(bad, words):
    with pytest.raises(UserError, match=words) as caught:
        bad()
    assert "\n" not in str(caught.value)
