"""Nodes of one graph, a few of them labelled: a classifier that knows them by their number and by their neighbours."""

import torch
from torch import Tensor

from quoin import plot
from quoin.data.graphs import LabelledGraph
from quoin.layers import pass_messages
from quoin.plot import Panel
from quoin.tasks.supervised import Classification

__all__ = ["NodeClassification"]


class NodeClassification(Classification):
    """A classifier of the members of a club of two factions."""

    graph: LabelledGraph

    @torch.no_grad()
    def panels(self) -> list[Panel]:
        club, labelled = self.graph, self.data.train.features[:, 0].long().tolist()
        chance = self.model.scores().softmax(-1)[:, 1].cpu()
        spread = self.spread()
        wrong = ((chance > 0.5) != club.labels.bool()).nonzero()[:, 0].tolist()
        first, second = club.class_names
        caption = (
            f"Blue is {first}, red is {second}, pale is unsure. The labels of the {len(labelled)} members with a thick rim were told; "
            + (f"wrong: {', '.join(map(str, wrong))}." if wrong else "nobody is wrong.")
        )
        sides = {"as the club split": 1 - 2.0 * club.labels, "as the network says": 1 - 2 * chance}
        about = (
            "What layers of mixing make of a feature that only one leader has: each carries it one friendship on and shares it out. "
            "White members have not heard of it; blue is as much as anyone has by then."
        )
        return [
            Panel("The club", lambda: plot.nodes(club.edges, sides, ringed=labelled), caption),
            Panel("Spread by layer", lambda: plot.nodes(club.edges, spread, ringed=club.leaders[:1]), about),
        ]

    def spread(self) -> dict[str, Tensor]:
        """Â^k times the first leader's own feature, for each number k of layers, over the largest share that anyone has."""
        there = self.model.identity()[:, self.graph.leaders[0]].unsqueeze(-1)
        found = {"at first": there}
        for layer in range(1, len(self.model.gcn.layers) + 1):
            there = found[f"after layer {layer}"] = pass_messages(there, self.model.links)
        return {name: (share / share.max()).flatten() for name, share in found.items()}
