"""Dropout against overfitting: digits, some of them labelled at random to learn from, and a perceptron with its twin without dropout."""

from dataclasses import dataclass

from quoin.options import option
from quoin.recipes.running.options import DataOptions, DescentOptions, ScheduleName
from quoin.recipes.running.target import Target

NOTES = ("D1.6-1", "D1.6-2", "D1.6-3", "D1.6-16", "Z5.22", "Z3.20", "Z5.21")
# How much of the gap between training and test accuracy dropout takes away: the twin learns the random labels by heart.
TARGET = Target("test_gap_closed", at_least=0.15)
LABEL_NOISE = 0.3  # of the built-in digits, whose labels are all right
GOAL = None  # both are compared as they end; to stop either at its best would be a second regularisation


@dataclass(frozen=True)
class Options(DataOptions, DescentOptions):
    """Options of the recipe `mlp-dropout`."""

    hidden: tuple[int, ...] = option((256,), "units of each hidden layer, input side first", at_least=1, at_most=1_000_000)
    dropout: float = option(0.5, "probability with which a hidden unit is silent in training", at_least=0.0, below=1.0)
    label_noise: float | None = option(
        None, "share of the training labels that are drawn at random; 0.3 for the digits, none for other data", at_least=0.0, at_most=1.0
    )
    momentum: float = option(0.9, "share of the last step that is kept", at_least=0.0, below=1.0)
    lr: float = option(0.05, "the learning rate of the first step", above=0.0, at_most=1e38)
    schedule: ScheduleName = option("cosine", "how the learning rate changes over the run")


def model(options, facts):
    return _perceptron(options, facts, options.dropout)


def _perceptron(options, facts, dropout):
    from quoin.data import keyed_generator
    from quoin.models import DropoutMLP

    sizes = [facts.num_features, *options.hidden, facts.num_classes]
    return DropoutMLP(sizes, dropout=dropout, generator=keyed_generator("weights", options.seed))


def build(options, place):
    import torch

    from quoin import draw
    from quoin.draw import Panel
    from quoin.objectives import cross_entropy
    from quoin.recipes.running.parts import classes, learner
    from quoin.train import Classification

    class BesideTwin(Classification):
        """A classifier and a twin that takes the same steps from the same weights without dropout; its numbers are called plain."""

        twin: Classification

        def step(self, rows):
            return {**super().step(rows), "plain_loss": self.twin.step(rows)["loss"]}

        def evaluate(self, part):
            found = super().evaluate(part) | {f"plain_{name}": value for name, value in self.twin.evaluate(part).items()}
            if part == "test" and found:
                seen = self.evaluate("train")
                gap = {name: seen[name] - found[name] for name in ("accuracy", "plain_accuracy")}
                found |= {"gap": gap["accuracy"], "plain_gap": gap["plain_accuracy"]}
                found["gap_closed"] = gap["plain_accuracy"] - gap["accuracy"]
            return found

        def state(self):
            return {**super().state(), "twin": self.twin.state()}

        def load(self, state):
            super().load(state)
            self.twin.load(state["twin"])

        def panels(self):
            seen, unseen = self.evaluate("train"), self.evaluate("test")
            bars = {
                "with dropout, training rows": seen["accuracy"],
                "with dropout, test rows": unseen["accuracy"],
                "without, training rows": seen["plain_accuracy"],
                "without, test rows": unseen["plain_accuracy"],
            }
            caption = (
                f"The gap between training and test accuracy is {unseen['gap']:.3f} with dropout and {unseen['plain_gap']:.3f} without. "
                f"{noise:.0%} of the training labels are random: who gets them right has learned them by heart."
            )
            return [
                Panel("Training and test accuracy, with and without dropout", lambda: draw.bars(bars, x_label="accuracy"), caption),
                *super().panels(),
            ]

    noise = options.label_noise
    if noise is None:  # labels of somebody's own are theirs to spoil
        noise = LABEL_NOISE if options.data == Options().data else 0.0
    data = _with_noise(classes(options, place), noise, options.seed)

    def task(kind, net):
        net = net.to(place.device)
        sgd = torch.optim.SGD(net.parameters(), options.lr, momentum=options.momentum, weight_decay=options.weight_decay)
        return learner(kind, net, cross_entropy, sgd, data, options, place)

    both = task(BesideTwin, model(options, data.facts))
    both.twin = task(Classification, _perceptron(options, data.facts, 0.0))
    return both


def _with_noise(data, share, seed):
    """The data with a share of the training labels replaced by random classes; what judges stays as it is."""
    import dataclasses

    import torch

    from quoin.data import keyed_generator

    part, generator = data.train, keyed_generator("label noise", seed)
    chosen = torch.rand(part.num_rows, generator=generator) < share
    drawn = torch.randint(data.facts.num_classes, (part.num_rows,), generator=generator)
    targets = torch.where(chosen.to(part.targets.device), drawn.to(part.targets.device), part.targets)
    return dataclasses.replace(data, train=dataclasses.replace(part, targets=targets))
