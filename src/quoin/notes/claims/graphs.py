"""Graph convolution: what it is, that no order of nodes is special to it, how far it hears, and what is left of endless
mixing."""

import math
from collections import deque

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from quoin.data import load_karate_club
from quoin.layers import GCNConv, adjacency_matrix, graph_convolution_definition, normalized_edges, propagate
from quoin.models import GCN
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.random_tensors import normal
from quoin.notes.claims.rounding import gap, max, randint, roundings

CASES = 25


def random_graph(generator: torch.Generator) -> tuple[Int[Tensor, "2 edges"], Float[Tensor, "edges"], int]:
    """Directed edges with positive weights, some twice, some from a node to itself, some nodes without any."""
    nodes = randint(1, 9, generator)
    edges = torch.randint(nodes, (2, randint(0, 3 * nodes, generator)), generator=generator)
    return edges, torch.rand(edges.shape[1], generator=generator, dtype=torch.float64) + 0.1, nodes


@claim(
    "D1.1-25",
    "a graph layer is Â H W + b: each node's sum over itself and its neighbours, over √ of the degrees of both",
)
def layer_is_the_sum_over_neighbours(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        edges, edge_weight, nodes = random_graph(generator)
        inputs, outputs = randint(1, 5, generator), randint(1, 5, generator)
        layer = GCNConv(inputs, outputs, generator=generator).double()
        nn.init.normal_(layer.bias, generator=generator)
        H = normal(nodes, inputs, generator=generator)
        by_hand = torch.zeros(nodes, outputs, dtype=torch.float64)
        arriving = [*zip(*edges.tolist(), edge_weight.tolist()), *((node, node, 1.0) for node in range(nodes))]
        degree = [math.fsum(weight for _, target, weight in arriving if target == node) for node in range(nodes)]
        for source, target, weight in arriving:
            by_hand[target] += weight / math.sqrt(degree[source] * degree[target]) * (H[source] @ layer.weight.detach())
        by_hand += layer.bias.detach()
        defined = graph_convolution_definition(H, adjacency_matrix(edges, nodes, edge_weight), layer.weight, layer.bias)
        worst = max(worst, gap(defined, by_hand), gap(layer(H, normalized_edges(edges, nodes, edge_weight)), by_hand))
    return Evidence(
        "largest |layer - sum over neighbours|, relative",
        worst,
        roundings(256),
        "256 roundings, up to 150 terms",
        2 * CASES,
    )


@claim(
    "D1.1-25", "a graph network is permutation equivariant: renumber the nodes, and its outputs are renumbered alike"
)
def order_of_nodes_does_not_matter(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        edges, edge_weight, nodes = random_graph(generator)
        model = GCN(
            [3, *(randint(1, 8, generator) for _ in range(randint(0, 3, generator))), 2], generator=generator
        ).double()
        H, new_number = normal(nodes, 3, generator=generator), torch.randperm(nodes, generator=generator)
        moved, shuffled = torch.empty_like(H), torch.randperm(edges.shape[1], generator=generator)
        moved[new_number] = H
        before = model(H, normalized_edges(edges, nodes, edge_weight))
        after = model(moved, normalized_edges(new_number[edges][:, shuffled], nodes, edge_weight[shuffled]))
        worst = max(worst, gap(after[new_number], before))
    return Evidence(
        "largest |f(P H, P A Pᵀ) - P f(H, A)|, relative", worst, roundings(512), "512 roundings through 4 layers", CASES
    )


@claim("D1.1-25", "after k layers a node depends on exactly the nodes at most k edges away")
def layers_reach_as_many_edges_far(generator: torch.Generator) -> Evidence:
    """A derivative by H_s is 0 beyond k edges, as nothing was added there, and within them it is, but for probability
    of measure 0, not."""
    club = load_karate_club()
    edges = normalized_edges(club.edges, club.num_nodes)
    edges = edges._replace(edge_weight=edges.edge_weight.double())
    wrong = pairs = 0
    for depth in (1, 2, 3, 4):
        layers = [GCNConv(4, 4, generator=generator).double() for _ in range(depth)]

        def forward(H: Tensor, layers: list[GCNConv] = layers) -> Tensor:
            for layer in layers:
                H = torch.tanh(layer(H, edges))  # tanh, for a ReLU at rest would hide who is heard
            return H.sum(dim=-1)

        jacobian = torch.autograd.functional.jacobian(forward, normal(club.num_nodes, 4, generator=generator))
        assert isinstance(jacobian, Tensor)
        heard = jacobian.abs().sum(dim=-1) > 0
        near = torch.tensor(
            [[0 <= steps <= depth for steps in distances(club.edges, node)] for node in range(club.num_nodes)]
        )
        wrong += int((heard != near).sum())
        pairs += near.numel()
    return Evidence("pairs of nodes that hear each other against their distance", wrong, 0, "exact", pairs, "==")


def distances(edges: Int[Tensor, "2 edges"], start: int) -> list[int]:
    """Edges from each node to `start`, found breadth first; -1 where no way leads."""
    found, queue = {start: 0}, deque([start])
    while queue:
        here = queue.popleft()
        for node in edges[0, edges[1] == here].tolist():
            if node not in found:
                found[node] = found[here] + 1
                queue.append(node)
    return [found.get(node, -1) for node in range(int(edges.max()) + 1)]


@claim(
    "D1.1-25",
    "mixing alone forgets its initial features: Âᵏ h tends to √d, whatever the start, on a connected graph",
    not_shown="the limit itself, and other graphs: 1000 layers on one",
)
def mixing_without_end_forgets(generator: torch.Generator) -> Evidence:
    """With D^1/2 1 as the eigenvector of eigenvalue 1, and all other eigenvalues less in size: the self loops leave no
    -1."""
    club = load_karate_club()
    edges = normalized_edges(club.edges, club.num_nodes, club.edge_weights.double())
    degrees = 1 + adjacency_matrix(club.edges, club.num_nodes, club.edge_weights.double()).sum(dim=1)
    limit = degrees.sqrt() / degrees.sum().sqrt()
    start = normal(club.num_nodes, 8, generator=generator)
    mixed = start
    for _ in range(1000):
        mixed = propagate(mixed, edges)
    expected = limit[:, None] * (limit @ start)
    return Evidence(
        "largest |Âᵏ h - √d (√d · h) / Σd| at k = 1000",
        gap(mixed, expected),
        roundings(4096),
        "roundings of 1000 steps",
        8,
    )
