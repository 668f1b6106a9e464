"""The karate club: whom a graph network takes for whose friend, and how far word gets in each layer."""

import torch
from torch import Tensor

from quoin.data import karate_club, keyed_generator
from quoin.layers import normalised_links, pass_messages
from quoin.losses import cross_entropy, l2_penalty
from quoin.models import NodeClassifier
from quoin.notes.figures.figure import figure
from quoin.optim import fit
from quoin.plot import Drawing, nodes

CAPTION = (
    "Zachary's karate club. Above: its two factions (blue, red), and what a graph network with random weights and one trained on the two "
    "leaders' labels alone (thick rims) say of everyone. Below: a feature of member 0 alone, spread by the layers' mixing."
)


@figure("D1.1-25", CAPTION)
def factions_and_spread() -> Drawing:
    club = karate_club()
    links, leaders = normalised_links(club.edges, club.num_nodes), torch.tensor(club.leaders)
    model = NodeClassifier(links, [16], 2, generator=keyed_generator("figure D1.1-25", 0))

    def risk() -> Tensor:
        return cross_entropy(model.scores()[leaders], club.labels[leaders]).mean() + l2_penalty(model.parameters(), 0.01)

    def sides() -> Tensor:  # 1 is surely the first faction, -1 surely the second
        with torch.no_grad():
            return model.scores().softmax(-1) @ torch.tensor([1.0, -1.0])

    untrained = sides()
    fit(model.parameters(), risk, max_steps=30)
    heard = [model.identity()[:, club.leaders[0]].unsqueeze(-1)]
    for _ in range(2):
        heard.append(pass_messages(heard[-1], links))
    shares = [(share / share.max()).flatten() for share in heard]
    shown = {"the club's factions": 1 - 2.0 * club.labels, "untrained network": untrained, "trained network": sides()}
    shown |= dict(zip(("member 0's feature", "after one layer", "after two layers"), shares))
    return nodes(club.edges, shown, ringed=club.leaders)
