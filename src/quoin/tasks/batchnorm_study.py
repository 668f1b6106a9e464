"""One network with batch normalization and without, trained with small batches and large ones: the same rows in the
same order."""

from collections.abc import Callable
from statistics import fmean
from typing import Any, Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from quoin import plot
from quoin.data import BatchSampler, TabularInfo
from quoin.errors import UserError
from quoin.losses import cross_entropy
from quoin.plot import Panel
from quoin.tasks.optimizer import OptimizerChoice, make_optimizer
from quoin.tasks.options import ScheduleName, SupervisedOptions
from quoin.tasks.supervised import Classification
from quoin.tasks.supervised_data import DataChoice, load_image_data, supervised_task
from quoin.train import DeviceContext, Metrics

__all__ = ["BatchNormOptions", "BatchNormStudy", "checked_sizes"]


class BatchNormOptions(DataChoice, OptimizerChoice, Protocol):
    """What the study reads of its recipe's options."""

    @property
    def epochs(self) -> int: ...

    @property
    def schedule(self) -> ScheduleName: ...

    @property
    def batch_sizes(self) -> tuple[int, ...]: ...


class BatchNormStudy:
    """At each step every network sees the rows of one batch of the largest size, cut into batches of its own size.

    `models` makes the network with batch norm ("norm") and the one without ("baseline"); the run keeps the one with
    batch norm that was trained with the middle batch size.
    """

    kind = "classification"

    def __init__(
        self,
        models: dict[str, Callable[[Any, TabularInfo], nn.Module]],
        options: BatchNormOptions,
        device_context: DeviceContext,
    ) -> None:
        data = load_image_data(options, device_context)
        self.data_info, self.lr, self.sizes = data.data_info, options.lr, checked_sizes(options.batch_sizes)
        self.primary = self.sizes[len(self.sizes) // 2]
        self.batches = BatchSampler(
            data.train.num_rows, self.sizes[-1], seed=options.seed, device=device_context.device
        )
        self.networks: dict[str, Classification] = {}
        for size in self.sizes:
            own = SupervisedOptions(
                seed=options.seed, epochs=options.epochs, lr=options.lr, schedule=options.schedule, batch_size=size
            )  # fmt: skip
            for name, model in models.items():
                net = model(options, data.data_info).to(device_context.device)
                optimizer = make_optimizer(net.parameters(), options)
                self.networks[f"{name}_{size}"] = supervised_task(
                    Classification, net, cross_entropy, optimizer, data, own, device_context
                )
        self.losses: dict[str, list[float]] = {name: [] for name in self.networks}  # the mean loss in each step
        self.accuracies: dict[str, list[float]] = {name: [] for name in self.networks}  # validation, after each epoch

    def step(self, rows: Int[Tensor, "batch"]) -> dict[str, Float[Tensor, ""]]:
        sums = {}
        for name, each in self.networks.items():
            sums[name] = torch.stack([each.step(piece)["loss"] for piece in rows.split(each.batches.batch_size)]).sum()
            self.losses[name].append(float(sums[name]) / len(rows))
        if self.batches.position == self.batches.num_batches:
            for name, each in self.networks.items():
                self.accuracies[name] += [found["accuracy"]] if (found := each.evaluate("validation")) else []
        return {"loss": sums[f"norm_{self.primary}"], "baseline_loss": sums[f"baseline_{self.primary}"]}

    def evaluate(self, split: str) -> Metrics:
        found = self.networks[f"norm_{self.primary}"].evaluate(split)
        found = found | {
            f"baseline_{name}": value
            for name, value in self.networks[f"baseline_{self.primary}"].evaluate(split).items()
        }
        if split == "test":
            ratios = self.loss_ratios()
            found |= {f"accuracy_{name}": each.evaluate(split)["accuracy"] for name, each in self.networks.items()}
            found |= {f"loss_ratio_{size}": ratio for size, ratio in ratios.items()} | {
                "loss_ratio": max(ratios.values())
            }
        return found

    def loss_ratios(self) -> dict[int, float]:
        """For each batch size the mean training loss of all steps, with batch norm over without."""
        return {
            size: fmean(self.losses[f"norm_{size}"]) / fmean(self.losses[f"baseline_{size}"]) for size in self.sizes
        }

    def state_dict(self) -> dict[str, Any]:
        states = {name: each.state_dict() for name, each in self.networks.items()}
        curves = {"losses": self.losses, "accuracies": self.accuracies}
        return {
            "model": states[f"norm_{self.primary}"]["model"],
            "networks": states,
            "curves": curves,
            "batches": self.batches.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name, each in self.networks.items():
            each.load_state_dict(state["networks"][name])
        self.losses, self.accuracies = state["curves"]["losses"], state["curves"]["accuracies"]
        self.batches.load_state_dict(state["batches"])

    def panels(self) -> list[Panel]:
        steps = len(self.losses[f"norm_{self.primary}"])
        if not steps:
            return []
        found = {name: f"{each.evaluate('test')['accuracy']:.3f}" for name, each in self.networks.items()}
        by_size = "; ".join(
            f"batches of {size}: {found[f'norm_{size}']} with, {found[f'baseline_{size}']} without"
            for size in self.sizes
        )
        blocks = [(step + 1) / self.batches.num_batches for step in range(steps)]
        epochs = list(range(1, len(self.accuracies[f"norm_{self.primary}"]) + 1))
        losses = (
            f"All saw the same examples in the same order, at a learning rate of {self.lr:g}. A point is the mean "
            f"over {self.sizes[-1]} rows."
        )
        panels = [
            Panel(
                "Training loss with and without batch norm", lambda: self._by_size(self.losses, blocks, "loss"), losses
            )
        ]
        if epochs:
            panels.append(
                Panel(
                    "Validation accuracy with and without batch norm",
                    lambda: self._by_size(self.accuracies, epochs, "validation accuracy"),
                    f"Test accuracy at the end: {by_size}.",
                )
            )
        return [*panels, *self.networks[f"norm_{self.primary}"].panels()]

    def _by_size(self, values: dict[str, list[float]], x: list[Any], y_label: str) -> plot.Plot:
        """A plot of its own for each batch size, all on one scale."""
        from quoin.plot.plots import COLORS, house_style, new_figure

        rows = -(-len(self.sizes) // 2)
        with house_style():
            figure = new_figure(height=0.6 + 2.1 * rows)
            for index, size in enumerate(self.sizes):
                axes = figure.add_subplot(
                    rows, 2, index + 1, title=f"batches of {size}", ylabel="" if index % 2 else y_label
                )
                axes.grid(True)
                axes.set_ylim(0, 1.05 * max(map(max, values.values())))
                if index >= len(self.sizes) - 2:
                    axes.set_xlabel("epoch")
                for color, dash, kind, name in (
                    (COLORS[0], "-", "norm", "with batch norm"),
                    (COLORS[1], "--", "baseline", "without"),
                ):
                    axes.plot(x, values[f"{kind}_{size}"], dash, color=color, label=name)
            figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
            return plot.Plot(figure, f"{y_label} by batch size")


def checked_sizes(sizes: tuple[int, ...]) -> list[int]:
    """The batch sizes in order, each once; all must divide the largest, whose rows the others cut into pieces."""
    found = sorted(set(sizes))
    if not found:
        raise UserError("--batch-sizes expects at least one number, got none: give e.g. 2 8 32 128")
    if odd := [size for size in found if found[-1] % size]:
        raise UserError(
            f"--batch-sizes expects numbers that divide the largest, {found[-1]}, got {odd[0]}: give e.g. 2 8 32 128"
        )
    return found
