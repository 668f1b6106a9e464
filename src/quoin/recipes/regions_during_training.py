"""The linear regions of a small network of the plane, counted exactly after every epoch while it learns to tell two classes apart."""

from dataclasses import dataclass

from quoin.errors import Mistake
from quoin.options import option
from quoin.recipes.running.options import DataOptions, DescentOptions, ScheduleName
from quoin.recipes.running.target import Target

NOTES = ("D1.1-14",)
# Biases start at zero, so that the first layer's lines all pass through one point; what learns moves them apart.
TARGET = Target("test_region_growth", at_least=3.0)
GOAL = None  # the counts tell of the network as it ends
WINDOW = (-2.5, -2.5), (2.5, 2.5)  # of features that have been standardised
PICTURES = 6


@dataclass(frozen=True)
class Options(DataOptions, DescentOptions):
    """Options of the recipe `regions-during-training`."""

    data: str = option("moons", "where the data come from: moons, circles, blobs, or csv:PATH, npz:PATH with two features")
    hidden: tuple[int, ...] = option((16, 16), "units of each hidden layer, input side first", at_least=1, at_most=256)
    epochs: int = option(40, "passes over the training data", at_least=1, at_most=10**4)
    lr: float = option(0.01, "the learning rate of the first step", above=0.0, at_most=1e38)
    schedule: ScheduleName = option("cosine", "how the learning rate changes over the run")


def model(options, facts):
    from quoin.data import keyed_generator
    from quoin.models import MLP

    if facts.num_features != 2:
        raise Mistake(f"expected data with two features to draw regions over, came {facts.num_features}; leave two columns")
    return MLP([2, *options.hidden, facts.num_classes], generator=keyed_generator("weights", options.seed))


def build(options, place):
    import torch

    from quoin import draw
    from quoin.draw import Panel, PolygonMap
    from quoin.express import most_regions, regions_in_window
    from quoin.objectives import cross_entropy
    from quoin.recipes.running.parts import classes, learner
    from quoin.train import Classification

    data = classes(options, place)
    net = model(options, data.facts).to(place.device)
    adam = torch.optim.Adam(net.parameters(), options.lr, weight_decay=options.weight_decay)
    inner = learner(Classification, net, cross_entropy, adam, data, options, place)
    shown = {round(options.epochs * (share / (PICTURES - 1)) ** 2) for share in range(PICTURES)}  # most happens early

    class Counted:
        """The classifier's own task, and after each of its epochs a count of the regions in the window."""

        def __init__(self):
            self.facts, self.batches = data.facts, inner.batches
            self.counts, self.kept = [], {}
            self.look(0)

        def look(self, epoch):
            regions = regions_in_window(net, *WINDOW)
            self.counts.append(len(regions))
            if epoch in shown:
                self.kept[str(epoch)] = {name: value.detach().clone() for name, value in net.state_dict().items()}

        def step(self, rows):
            found = inner.step(rows)
            if self.batches.position == self.batches.num_batches:
                self.look(len(self.counts))
            return found

        def evaluate(self, part):
            found = inner.evaluate(part)
            if part == "train":
                found["regions"] = float(self.counts[-1])
            if part == "test":
                found |= {"regions": float(self.counts[-1]), "region_growth": self.counts[-1] / self.counts[0]}
            return found

        def state(self):
            return {**inner.state(), "regions": {"counts": self.counts, "kept": self.kept}}

        def load(self, state):
            inner.load({name: value for name, value in state.items() if name != "regions"})
            self.counts, self.kept = list(state["regions"]["counts"]), dict(state["regions"]["kept"])

        def panels(self):
            epochs = list(range(len(self.counts)))
            most = most_regions(options.hidden, 2)
            told = f"In the window of 2.5 standard deviations; no network of these widths has more than {most:,} regions anywhere."
            maps = "White is undecided, blue the first class, red any other, stronger where the network is surer. Dots are training rows."
            return [
                Panel(
                    "Linear regions by epoch",
                    lambda: draw.curves({"linear regions": (epochs, self.counts)}, x_label="epoch", y_label="regions"),
                    told,
                ),
                Panel("Regions as they move", lambda: pictures(self), maps),
                *inner.panels(),
            ]

    def pictures(task):
        now = {name: value.detach().clone() for name, value in net.state_dict().items()}
        rows = torch.linspace(0, data.train.num_rows - 1, min(300, data.train.num_rows), device=data.train.features.device).long()
        sample, maps = data.train.take(rows), {}
        for epoch, weights in sorted(task.kept.items(), key=lambda item: int(item[0])):
            net.load_state_dict(weights)
            regions = regions_in_window(net, *WINDOW)
            middle = torch.stack([torch.from_numpy(each.mean(axis=0)) for each in regions.polygons])
            logits = (regions.maps.weight @ middle[..., None])[..., 0] + regions.maps.bias
            sure = logits.softmax(dim=1)[:, 0] - 0.5
            maps[f"epoch {epoch}: {len(regions)}"] = PolygonMap(regions.polygons, sure, sample.features.flatten(1), sample.targets.tolist())
        net.load_state_dict(now)
        return draw.polygon_maps(maps)

    return Counted()
