"""A graph convolutional network that tells the two factions of the karate club apart, with one labelled member of each."""

from dataclasses import dataclass

from quoin.options import option
from quoin.recipes.running.options import DescentOptions
from quoin.recipes.running.target import Target

NOTES = ("D1.1-25", "D1.1-20")
TARGET = Target("test_accuracy", at_least=0.9)  # of the members whose faction was not told
DATA = "karate club"
GOAL = None  # no member can be spared to choose by


@dataclass(frozen=True)
class Options(DescentOptions):
    """Options of the recipe `gcn`; the defaults are Kipf and Welling's, without dropout."""

    hidden: tuple[int, ...] = option((16,), "features of a member after each layer but the last", at_least=1, at_most=1_000_000)
    labels: int = option(1, "members of each faction whose label is told: its leader, then some that the seed draws", at_least=1)
    epochs: int = option(200, "passes over the labelled members", at_least=1, at_most=10**9)
    lr: float = option(0.01, "the learning rate of the first step", above=0.0, at_most=1e38)
    weight_decay: float = option(5e-4, "pull of the weights towards zero", at_least=0.0, at_most=1e38)


def model(options, facts):
    from quoin.data import karate_club, keyed_generator
    from quoin.layers import normalised_links
    from quoin.models import NodeClassifier

    club = karate_club()
    links = normalised_links(club.edges, club.num_nodes)  # friends or not: how often two met is left out
    return NodeClassifier(links, options.hidden, facts.num_classes, generator=keyed_generator("weights", options.seed))


def build(options, place):
    import torch

    from quoin import draw
    from quoin.data import karate_club
    from quoin.draw import Panel
    from quoin.layers import pass_messages
    from quoin.objectives import cross_entropy
    from quoin.recipes.running.parts import learner
    from quoin.train import Classification

    club = karate_club()
    told = club.labelled_nodes(options.labels, options.seed)
    data = club.prepared(told, place.device)
    net = model(options, data.facts).to(place.device)

    class Members(Classification):
        """A classifier of members, who are known by their number and by their friends."""

        def panels(self):
            with torch.no_grad():
                chance = net.scores().softmax(-1)[:, 1].cpu()
                spread = reach()
            wrong = ((chance > 0.5) != club.labels.bool()).nonzero()[:, 0].tolist()
            first, second = club.class_names
            caption = (
                f"Blue is {first}, red is {second}, pale is unsure. The labels of the {len(told)} members with a thick rim were told; "
                + (f"wrong: {', '.join(map(str, wrong))}." if wrong else "nobody is wrong.")
            )
            sides = {"as the club split": 1 - 2.0 * club.labels, "as the network says": 1 - 2 * chance}
            about = (
                "What layers of mixing make of a feature that only one leader has: each carries it one friendship on and shares it out. "
                "White members have not heard of it; blue is as much as anyone has by then."
            )
            return [
                Panel("The club", lambda: draw.nodes(club.edges, sides, ringed=told.tolist()), caption),
                Panel("Spread by layer", lambda: draw.nodes(club.edges, spread, ringed=club.leaders[:1]), about),
            ]

    def reach():
        """Â^k times the first leader's own feature, for each number k of layers, over the largest share that anyone has."""
        there = net.identity()[:, club.leaders[0]].unsqueeze(-1)
        found = {"at first": there}
        for layer in range(1, len(options.hidden) + 2):
            there = found[f"after layer {layer}"] = pass_messages(there, net.links)
        return {name: (share / share.max()).flatten() for name, share in found.items()}

    adam = torch.optim.Adam(net.parameters(), options.lr, weight_decay=options.weight_decay)
    return learner(Members, net, cross_entropy, adam, data, options, place)
