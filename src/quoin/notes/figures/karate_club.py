"""The karate club: whom a graph network takes for whose friend, and how far word gets in each layer."""

import torch
from torch import Tensor

from quoin.data import keyed_generator, load_karate_club
from quoin.layers import normalized_edges, propagate
from quoin.losses import cross_entropy, l2_penalty
from quoin.models import NodeClassifier
from quoin.notes.figures.figure import figure
from quoin.optim import minimize_lbfgs
from quoin.plot import Plot, node_values

CAPTION = (
    "Zachary's karate club. Above: its two factions (blue, red), and what a graph network with random weights and "
    "one trained on the two "
    "leaders' labels alone (thick rims) say of everyone. Below: a feature of member 0 alone, propagated by the layers."
)


@figure("D1.1-25", CAPTION, {"hidden_dim": (1, 256), "l2": (0, 1)})
def factions_and_propagation(hidden_dim: int = 16, l2: float = 0.01) -> Plot:
    club = load_karate_club()
    edges, seed_nodes = normalized_edges(club.edges, club.num_nodes), torch.tensor(club.seed_nodes)
    model = NodeClassifier(edges, [hidden_dim], 2, generator=keyed_generator("figure D1.1-25", 0))

    def risk() -> Tensor:
        return cross_entropy(model.scores()[seed_nodes], club.labels[seed_nodes]).mean() + l2_penalty(
            model.parameters(), l2
        )

    def sides() -> Tensor:  # 1 is surely the first faction, -1 surely the second
        with torch.no_grad():
            return model.scores().softmax(-1) @ torch.tensor([1.0, -1.0])

    untrained = sides()
    minimize_lbfgs(model.parameters(), risk, max_iter=30)
    heard = [model.identity()[:, club.seed_nodes[0]].unsqueeze(-1)]
    for _ in range(2):
        heard.append(propagate(heard[-1], edges))
    relative = [(signal / signal.max()).flatten() for signal in heard]
    shown = {"the club's factions": 1 - 2.0 * club.labels, "untrained network": untrained, "trained network": sides()}
    shown |= dict(zip(("member 0's feature", "after one layer", "after two layers"), relative))
    return node_values(club.edges, shown, ringed=club.seed_nodes)
