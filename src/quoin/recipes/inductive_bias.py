"""What it is worth to know that pixels have neighbours: a convolutional network against a perceptron, by the number of training rows."""

from dataclasses import dataclass

from quoin.errors import Mistake
from quoin.options import option
from quoin.recipes.running.options import DataOptions, DescentOptions, ScheduleName
from quoin.recipes.running.target import Target

NOTES = ("D1.1-16", "D1.1-20", "D1.1-21", "D1.1-24", "Z7.1", "Z7.1c")
# The perceptron's test error less the convolutional network's, on average over the numbers of rows.
TARGET = Target("test_advantage", at_least=0.1)
GOAL = None  # all are compared as they end

PARTS = ("train", "validation", "test")
LEARNERS = {
    "cnn": "CNN",
    "mlp": "MLP",
    "scrambled_cnn": "CNN, pixels scrambled",
    "scrambled_mlp": "MLP, pixels scrambled",
}


@dataclass(frozen=True)
class Options(DataOptions, DescentOptions):
    """Options of the recipe `inductive-bias`."""

    rows: tuple[int, ...] = option((50, 100, 200, 400, 800, 1200), "numbers of training rows to learn from, side by side", at_least=1)
    move: int = option(1, "move every image, of all parts, by up to so many pixels; 0 leaves them", at_least=0, at_most=10**9)
    epochs: int = option(10, "passes over the most rows; with fewer rows as many updates are made", at_least=1, at_most=10**9)
    momentum: float = option(0.9, "share of the last step that is kept", at_least=0.0, below=1.0)
    lr: float = option(0.02, "the learning rate of the first step", above=0.0, at_most=1e38)
    schedule: ScheduleName = option("cosine", "how the learning rate changes over the run")


def model(options, facts):
    """The convolutional network; the run keeps for prediction the one that learned from the most rows, as they are."""
    from quoin.data import keyed_generator
    from quoin.models import small_lenet

    return small_lenet(facts.feature_shape, facts.num_classes, generator=keyed_generator("weights", options.seed))


def perceptron(options, facts):
    """One hidden layer, so wide that there are as many parameters as in the convolutional network, to within half a unit's."""
    from quoin.data import keyed_generator
    from quoin.models import MLP, num_parameters

    size, inputs, outputs = num_parameters(model(options, facts)), facts.num_features, facts.num_classes
    width = max(1, round((size - outputs) / (inputs + 1 + outputs)))
    return MLP([inputs, width, outputs], generator=keyed_generator("weights", options.seed))


def build(options, place):
    import itertools

    import torch

    from quoin import draw
    from quoin.draw import Panel
    from quoin.objectives import cross_entropy
    from quoin.recipes.running.parts import images, learner
    from quoin.train import Classification

    data = moved(images(options, place), options)
    mixed = scrambled(data, options.seed)
    counts = sorted(set(options.rows))
    if not counts or counts[-1] > data.train.num_rows:
        came = f"{counts[-1]}" if counts else "none"
        raise Mistake(f"--rows expects numbers of rows up to the {data.train.num_rows} there are to train on, got {came}: ask for fewer")

    class Learners(Classification):
        """The convolutional network of the most rows, and all others beside it, each with rows of its own at every step."""

        others: dict[tuple[str, int], Classification]

        def begin(self, others):
            """Take `others` along from where their batches stand."""
            self.others = others
            self.turns = {cell: itertools.chain.from_iterable(itertools.repeat(each.batches)) for cell, each in others.items()}
            for each in others.values():
                each.descent.total_steps = self.descent.total_steps  # whatever an epoch is to them

        def step(self, rows):
            for cell, each in self.others.items():
                each.step(next(self.turns[cell]))
            return super().step(rows)

        def evaluate(self, part):
            return super().evaluate(part) | (summary(self.errors()) if part == "test" else {})

        def errors(self):
            """For each kind of learner its test errors, by the number of rows."""
            found = {cell: 1 - each.evaluate("test")["accuracy"] for cell, each in self.others.items()}
            found["cnn", counts[-1]] = 1 - super().evaluate("test")["accuracy"]
            return {name: [found[name, count] for count in counts] for name in LEARNERS}

        def state(self):
            return {**super().state(), "others": [each.state() for each in self.others.values()]}

        def load(self, state):
            super().load(state)
            for each, saved in zip(self.others.values(), state["others"], strict=True):
                each.load(saved)
            self.begin(self.others)

        def panels(self):
            series = {LEARNERS[name]: (counts, [1 - error for error in errors]) for name, errors in self.errors().items()}
            caption = (
                "All have about as many parameters and made as many updates. Scrambled pixels, in one order for all images, are nothing to "
                "a perceptron; from a convolutional network they take what it was built on, that neighbours belong together."
            )
            assert data.test_images is not None  # they are images
            assert mixed.test_images is not None
            images, rescaled = draw.viewable(torch.cat([data.test_images[:6], mixed.test_images[:6]]))
            same = f"Above, some of the images; below, the same ones scrambled. {rescaled}".rstrip()
            return [
                Panel(
                    "Test accuracy by training rows",
                    lambda: draw.curves(series, x_label="training rows", y_label="test accuracy", log_x=True),
                    caption,
                ),
                Panel("Images", lambda: draw.image_grid(images, columns=6), same),
                *super().panels(),
            ]

    def task(kind, name, count):
        make, seen = (model if name.endswith("cnn") else perceptron), (mixed if name.startswith("scrambled") else data)
        net = make(options, data.facts).to(place.device)
        sgd = torch.optim.SGD(net.parameters(), options.lr, momentum=options.momentum, weight_decay=options.weight_decay)
        return learner(kind, net, cross_entropy, sgd, fewer(seen, count, options.seed), options, place)

    cells = [cell for cell in itertools.product(LEARNERS, counts) if cell != ("cnn", counts[-1])]
    learners = task(Learners, "cnn", counts[-1])
    learners.begin({cell: task(Classification, *cell) for cell in cells})
    return learners


def summary(errors):
    """Mean errors over the numbers of rows, and how much smaller the convolutional network's is, with neighbours and without."""
    from statistics import fmean

    means = {f"{name}_error": fmean(values) for name, values in errors.items()}
    return means | {f"{look}advantage": means[f"{look}mlp_error"] - means[f"{look}cnn_error"] for look in ("", "scrambled_")}


def moved(data, options):
    """The data with every image moved at random, once and for all: where a thing is then says nothing of what it is."""
    from quoin.data import background, keyed_generator, shift

    def change(images, name, fill):
        return shift(images, keyed_generator("move", name, options.seed), options.move, fill=fill)

    return redrawn(data, change, background(data.feature_scale))


def scrambled(data, seed):
    """The data with the pixels of every image, in every channel alike, in one other order."""
    import torch

    from quoin.data import keyed_generator

    order = torch.randperm(data.train.features[0, 0].numel(), generator=keyed_generator("scramble", seed))
    return redrawn(data, lambda images, name, fill: images.flatten(2)[:, :, order.to(images.device)].reshape(images.shape), 0.0)


def redrawn(data, change, fill):
    """The data with `change(images, part, fill)` for the images of every part, and for those that a report shows, where black is 0."""
    import dataclasses

    parts = {name: getattr(data, name) for name in PARTS}
    parts = {name: dataclasses.replace(part, features=change(part.features, name, fill)) for name, part in parts.items()}
    return dataclasses.replace(data, **parts, test_images=change(data.test_images, "test", 0.0))


def fewer(data, count, seed):
    """The data with `count` of its training rows, which are among those of any larger count."""
    import dataclasses

    import torch

    from quoin.data import keyed_generator

    chosen = torch.randperm(data.train.num_rows, generator=keyed_generator("fewer", seed))[:count]
    return dataclasses.replace(data, train=data.train.take(chosen.to(data.train.features.device)))
