"""One network with batch normalisation and without, learning from small batches and from large ones: the same rows in the same order."""

from collections.abc import Callable
from statistics import fmean
from typing import Any

import torch
from torch import Tensor, nn

from quoin import plot
from quoin.data import Batches, Facts
from quoin.errors import Mistake
from quoin.losses import cross_entropy
from quoin.plot import Panel
from quoin.tasks.options import SupervisedOptions
from quoin.tasks.supervised import Classification
from quoin.tasks.supervised_data import images, learner
from quoin.train import Metrics, Place

__all__ = ["BatchNormStudy", "checked_sizes"]


class BatchNormStudy:
    """At each step every network sees the rows of one batch of the largest size, cut into batches of its own size.

    `models` makes the network with batch norm ("norm") and the one without ("plain"); what the run keeps to predict with is that with
    batch norm which learned from batches of a middle size.
    """

    kind = "classification"

    def __init__(self, models: dict[str, Callable[[Any, Facts], nn.Module]], options, place: Place) -> None:
        data = images(options, place)
        self.facts, self.lr, self.sizes = data.facts, options.lr, checked_sizes(options.batch_sizes)
        self.kept = self.sizes[len(self.sizes) // 2]
        self.batches = Batches(data.train.num_rows, self.sizes[-1], seed=options.seed, device=place.device)
        self.networks: dict[str, Classification] = {}
        for size in self.sizes:
            own = SupervisedOptions(
                seed=options.seed, epochs=options.epochs, lr=options.lr, schedule=options.schedule, batch_size=size
            )  # fmt: skip
            for name, model in models.items():
                net = model(options, data.facts).to(place.device)
                sgd = torch.optim.SGD(net.parameters(), options.lr)
                self.networks[f"{name}_{size}"] = learner(Classification, net, cross_entropy, sgd, data, own, place)
        self.losses: dict[str, list[float]] = {name: [] for name in self.networks}  # the mean loss in each step
        self.accuracies: dict[str, list[float]] = {name: [] for name in self.networks}  # on the validation part, after each epoch

    def step(self, rows: Tensor) -> dict[str, Tensor]:
        sums = {}
        for name, each in self.networks.items():
            sums[name] = torch.stack([each.step(piece)["loss"] for piece in rows.split(each.batches.batch_size)]).sum()
            self.losses[name].append(float(sums[name]) / len(rows))
        if self.batches.position == self.batches.num_batches:
            for name, each in self.networks.items():
                self.accuracies[name] += [found["accuracy"]] if (found := each.evaluate("validation")) else []
        return {"loss": sums[f"norm_{self.kept}"], "plain_loss": sums[f"plain_{self.kept}"]}

    def evaluate(self, part: str) -> Metrics:
        found = self.networks[f"norm_{self.kept}"].evaluate(part)
        found = found | {f"plain_{name}": value for name, value in self.networks[f"plain_{self.kept}"].evaluate(part).items()}
        if part == "test":
            ratios = self.loss_ratios()
            found |= {f"accuracy_{name}": each.evaluate(part)["accuracy"] for name, each in self.networks.items()}
            found |= {f"loss_ratio_{size}": ratio for size, ratio in ratios.items()} | {"loss_ratio": max(ratios.values())}
        return found

    def loss_ratios(self) -> dict[int, float]:
        """For each batch size the mean training loss of all steps, with batch norm over without."""
        return {size: fmean(self.losses[f"norm_{size}"]) / fmean(self.losses[f"plain_{size}"]) for size in self.sizes}

    def state(self) -> dict[str, Any]:
        states = {name: each.state() for name, each in self.networks.items()}
        curves = {"losses": self.losses, "accuracies": self.accuracies}
        return {"model": states[f"norm_{self.kept}"]["model"], "networks": states, "curves": curves, "batches": self.batches.state()}

    def load(self, state: dict[str, Any]) -> None:
        for name, each in self.networks.items():
            each.load(state["networks"][name])
        self.losses, self.accuracies = state["curves"]["losses"], state["curves"]["accuracies"]
        self.batches.load(state["batches"])

    def panels(self) -> list[Panel]:
        steps = len(self.losses[f"norm_{self.kept}"])
        if not steps:
            return []
        found = {name: f"{each.evaluate('test')['accuracy']:.3f}" for name, each in self.networks.items()}
        told = "; ".join(f"batches of {size}: {found[f'norm_{size}']} with, {found[f'plain_{size}']} without" for size in self.sizes)
        blocks = [(step + 1) / self.batches.num_batches for step in range(steps)]
        epochs = list(range(1, len(self.accuracies[f"norm_{self.kept}"]) + 1))
        losses = f"All saw the same rows in the same order, at a learning rate of {self.lr:g}. A point tells of {self.sizes[-1]} rows."
        panels = [Panel("Training loss with and without batch norm", lambda: self._by_size(self.losses, blocks, "loss"), losses)]
        if epochs:
            panels.append(
                Panel(
                    "Validation accuracy with and without batch norm",
                    lambda: self._by_size(self.accuracies, epochs, "validation accuracy"),
                    f"Test accuracy at the end: {told}.",
                )
            )
        return [*panels, *self.networks[f"norm_{self.kept}"].panels()]

    def _by_size(self, values: dict[str, list[float]], x: list[Any], y_label: str) -> plot.Drawing:
        """A plot of its own for each batch size, all on one scale."""
        from quoin.plot.drawing import COLOURS, house_style, new_figure

        rows = -(-len(self.sizes) // 2)
        with house_style():
            figure = new_figure(height=0.6 + 2.1 * rows)
            for place, size in enumerate(self.sizes):
                axes = figure.add_subplot(rows, 2, place + 1, title=f"batches of {size}", ylabel="" if place % 2 else y_label)
                axes.grid(True)
                axes.set_ylim(0, 1.05 * max(map(max, values.values())))
                if place >= len(self.sizes) - 2:
                    axes.set_xlabel("epoch")
                for colour, dash, kind, name in ((COLOURS[0], "-", "norm", "with batch norm"), (COLOURS[1], "--", "plain", "without")):
                    axes.plot(x, values[f"{kind}_{size}"], dash, color=colour, label=name)
            figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
            return plot.Drawing(figure, f"{y_label} by batch size")


def checked_sizes(sizes: tuple[int, ...]) -> list[int]:
    """The batch sizes in order, each once; all must divide the largest, whose rows the others cut into pieces."""
    found = sorted(set(sizes))
    if not found:
        raise Mistake("--batch-sizes expects at least one number, got none: give e.g. 2 8 32 128")
    if odd := [size for size in found if found[-1] % size]:
        raise Mistake(f"--batch-sizes expects numbers that divide the largest, {found[-1]}, got {odd[0]}: give e.g. 2 8 32 128")
    return found
