"""Batch normalisation at work: one small convolutional network with it and without, learning from small batches and from large ones."""

from dataclasses import dataclass

from quoin.errors import Mistake
from quoin.options import option
from quoin.recipes.running.options import DataOptions, DescentOptions, RunOptions, ScheduleName
from quoin.recipes.running.target import Target

NOTES = ("Z8.1", "Z8.2", "Z8.5", "Z8.5c", "Z8.7", "D1.6-12")
# The training loss, averaged over the run: with batch norm over without, at the batch size at which batch norm helps least.
TARGET = Target("test_loss_ratio", at_most=0.85)
GOAL = None  # all are compared as they end


@dataclass(frozen=True)
class Options(DataOptions, RunOptions):
    """Options of the recipe `batchnorm-study`."""

    batch_sizes: tuple[int, ...] = option((2, 8, 32, 128), "examples per update: a pair of networks for each", at_least=1, at_most=10**9)
    epochs: int = option(4, "passes over the training data", at_least=1, at_most=10**9)
    lr: float = option(0.05, "the learning rate of the first step, the same for all", above=0.0, at_most=1e38)
    schedule: ScheduleName = option("cosine", "how the learning rate changes over the run")


def model(options, facts):
    """The network with batch norm; the one that learned from batches of a middle size is what the run keeps to predict with."""
    from quoin.layers import with_batch_norm

    return with_batch_norm(without(options, facts))


def without(options, facts):
    """Two blocks of two convolutions and a dense layer: deep enough to be hard to start, and nothing in it that normalises."""
    from torch import nn

    from quoin.data import keyed_generator
    from quoin.models import ImageClassifier, start_image_weights, vgg_block

    channels, height, width = facts.feature_shape
    if min(height, width) < 8:
        raise Mistake(f"expected images of at least 8 x 8 pixels, came {height} x {width}; enlarge them, or give others with --data")
    features = nn.Sequential(vgg_block(2, channels, 16), vgg_block(2, 16, 32))
    head = nn.Sequential(nn.Flatten(), nn.Linear(32 * (height // 4) * (width // 4), facts.num_classes))
    return start_image_weights(ImageClassifier(features, head, facts.feature_shape), keyed_generator("weights", options.seed))


def build(options, place):
    from statistics import fmean

    import torch

    from quoin import draw
    from quoin.data import Batches
    from quoin.draw import Panel
    from quoin.objectives import cross_entropy
    from quoin.recipes.running.parts import images, learner
    from quoin.train import Classification

    data = images(options, place)
    sizes = checked_sizes(options.batch_sizes)
    kept = sizes[len(sizes) // 2]

    def network(make, size):
        net = make(options, data.facts).to(place.device)
        own = DescentOptions(seed=options.seed, epochs=options.epochs, lr=options.lr, schedule=options.schedule, batch_size=size)
        return learner(Classification, net, cross_entropy, torch.optim.SGD(net.parameters(), options.lr), data, own, place)

    class Study:
        """At each step every network sees the rows of one batch of the largest size, cut into batches of its own size."""

        def __init__(self):
            self.facts = data.facts
            self.batches = Batches(data.train.num_rows, sizes[-1], seed=options.seed, device=place.device)
            kinds = {"norm": model, "plain": without}
            self.networks = {f"{kind}_{size}": network(make, size) for size in sizes for kind, make in kinds.items()}
            self.losses = {name: [] for name in self.networks}  # the mean loss in each step
            self.accuracies = {name: [] for name in self.networks}  # on the validation part, after each epoch

        def step(self, rows):
            sums = {}
            for name, each in self.networks.items():
                sums[name] = torch.stack([each.step(piece)["loss"] for piece in rows.split(each.batches.batch_size)]).sum()
                self.losses[name].append(float(sums[name]) / len(rows))
            if self.batches.position == self.batches.num_batches and data.validation.num_rows:
                for name, each in self.networks.items():
                    self.accuracies[name].append(each.evaluate("validation")["accuracy"])
            return {"loss": sums[f"norm_{kept}"], "plain_loss": sums[f"plain_{kept}"]}

        def evaluate(self, part):
            found = self.networks[f"norm_{kept}"].evaluate(part)
            found = found | {f"plain_{name}": value for name, value in self.networks[f"plain_{kept}"].evaluate(part).items()}
            if part == "test":
                found |= {f"accuracy_{name}": each.evaluate(part)["accuracy"] for name, each in self.networks.items()}
                found |= {f"loss_ratio_{size}": ratio for size, ratio in self.ratios().items()}
                found["loss_ratio"] = max(self.ratios().values())
            return found

        def ratios(self):
            """For each batch size the mean training loss of all steps, with batch norm over without."""
            return {size: fmean(self.losses[f"norm_{size}"]) / fmean(self.losses[f"plain_{size}"]) for size in sizes}

        def state(self):
            states = {name: each.state() for name, each in self.networks.items()}
            curves = {"losses": self.losses, "accuracies": self.accuracies}
            return {"model": states[f"norm_{kept}"]["model"], "networks": states, "curves": curves, "batches": self.batches.state()}

        def load(self, state):
            for name, each in self.networks.items():
                each.load(state["networks"][name])
            self.losses, self.accuracies = state["curves"]["losses"], state["curves"]["accuracies"]
            self.batches.load(state["batches"])

        def panels(self):
            steps = len(self.losses[f"norm_{kept}"])
            if not steps:
                return []
            found = {name: f"{each.evaluate('test')['accuracy']:.3f}" for name, each in self.networks.items()}
            told = "; ".join(f"batches of {size}: {found[f'norm_{size}']} with, {found[f'plain_{size}']} without" for size in sizes)
            blocks = [(step + 1) / self.batches.num_batches for step in range(steps)]
            epochs = list(range(1, len(self.accuracies[f"norm_{kept}"]) + 1))
            losses = f"All saw the same rows in the same order, at a learning rate of {options.lr:g}. A point tells of {sizes[-1]} rows."
            panels = [Panel("Training loss with and without batch norm", lambda: by_size(self.losses, blocks, "loss"), losses)]
            if epochs:
                panels.append(
                    Panel(
                        "Validation accuracy with and without batch norm",
                        lambda: by_size(self.accuracies, epochs, "validation accuracy"),
                        f"Test accuracy at the end: {told}.",
                    )
                )
            return [*panels, *self.networks[f"norm_{kept}"].panels()]

    def by_size(values, xs, y_label):
        from quoin.draw.drawing import COLOURS, house_style, new_figure

        rows = -(-len(sizes) // 2)
        with house_style():
            figure = new_figure(height=0.6 + 2.1 * rows)
            for place, size in enumerate(sizes):
                axes = figure.add_subplot(rows, 2, place + 1, title=f"batches of {size}", ylabel="" if place % 2 else y_label)
                axes.grid(True)
                axes.set_ylim(0, 1.05 * max(map(max, values.values())))
                if place >= len(sizes) - 2:
                    axes.set_xlabel("epoch")
                for colour, dash, kind, name in ((COLOURS[0], "-", "norm", "with batch norm"), (COLOURS[1], "--", "plain", "without")):
                    axes.plot(xs, values[f"{kind}_{size}"], dash, color=colour, label=name)
            figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
            return draw.Drawing(figure, f"{y_label} by batch size")

    return Study()


def checked_sizes(sizes):
    """The batch sizes in order, each once; all must divide the largest, whose rows the others cut into pieces."""
    found = sorted(set(sizes))
    if not found:
        raise Mistake("--batch-sizes expects at least one number, got none: give e.g. 2 8 32 128")
    if odd := [size for size in found if found[-1] % size]:
        raise Mistake(f"--batch-sizes expects numbers that divide the largest, {found[-1]}, got {odd[0]}: give e.g. 2 8 32 128")
    return found
