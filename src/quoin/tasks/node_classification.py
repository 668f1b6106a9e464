"""Nodes of one graph, a few of them labeled: a classifier that knows them by their number and by their neighbours."""

import torch
from jaxtyping import Float
from torch import Tensor

from quoin import plot
from quoin.data.graphs import LabeledGraph
from quoin.layers import propagate
from quoin.plot import Panel
from quoin.tasks.supervised import Classification

__all__ = ["NodeClassification"]


class NodeClassification(Classification):
    """A classifier of the members of a club of two factions."""

    graph: LabeledGraph

    @torch.no_grad()
    def panels(self) -> list[Panel]:
        club, labeled = self.graph, self.data.train.features[:, 0].long().tolist()
        probability = self.model.scores().softmax(-1)[:, 1].cpu()
        feature_propagation = self.feature_propagation()
        wrong = ((probability > 0.5) != club.labels.bool()).nonzero()[:, 0].tolist()
        first, second = club.class_names
        caption = (
            f"Blue is {first}, vermilion is {second}, pale is uncertain. The {len(labeled)} members with a thick rim "
            "are labelled; " + (f"wrong: {', '.join(map(str, wrong))}." if wrong else "no errors.")
        )
        sides = {"true": 1 - 2.0 * club.labels, "predicted": 1 - 2 * probability}
        about = (
            "A feature that only one leader has, after each layer of propagation: each reaches one edge further. "
            "Paper is 0, blue the largest value after that layer."
        )
        return [
            Panel("True and predicted factions", lambda: plot.node_values(club.edges, sides, ringed=labeled), caption),
            Panel(
                "Feature propagation by layer",
                lambda: plot.node_values(club.edges, feature_propagation, ringed=club.seed_nodes[:1]),
                about,
            ),
        ]

    def feature_propagation(self) -> dict[str, Float[Tensor, "nodes"]]:
        """Â^k times the first leader's own feature, for each number k of layers, over the largest value of any node."""
        there = self.model.identity()[:, self.graph.seed_nodes[0]].unsqueeze(-1)
        found = {"at first": there}
        for layer in range(1, len(self.model.gcn.layers) + 1):
            there = found[f"after layer {layer}"] = propagate(there, self.model.edges)
        return {name: (scores / scores.max()).flatten() for name, scores in found.items()}
