"""A convolutional network against an MLP of its size, by the number of training rows, on images as they are and with
pixels permuted."""

import dataclasses
import itertools
from collections.abc import Callable, Iterator
from statistics import fmean
from typing import Any, Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from quoin import plot
from quoin.data import PreparedData, TabularInfo, background, keyed_generator, random_shift
from quoin.errors import UserError
from quoin.losses import cross_entropy
from quoin.models import MLP, num_parameters
from quoin.plot import Panel
from quoin.tasks.comparison import ComparisonTask
from quoin.tasks.optimizer import OptimizerChoice, make_optimizer
from quoin.tasks.supervised import Classification, SupervisedTask
from quoin.tasks.supervised_data import DataChoice, load_image_data, supervised_task
from quoin.train import DeviceContext, Metrics

__all__ = [
    "MODELS",
    "InductiveBias",
    "InductiveBiasOptions",
    "inductive_bias",
    "mlp_of_size",
    "permute_pixels",
    "shift_images",
    "take_train_rows",
]

MODELS = {
    "cnn": "CNN",
    "mlp": "MLP",
    "scrambled_cnn": "CNN, pixels scrambled",
    "scrambled_mlp": "MLP, pixels scrambled",
}


class InductiveBias(ComparisonTask, Classification):
    """The convolutional network of the most rows, and beside it every other (model, rows), each with batches of its
    own."""

    def begin(self, others: dict[tuple[str, int], SupervisedTask]) -> None:
        """Take `others` along, for as many steps as this one makes, whatever an epoch is to them."""
        self.others, self.row_counts = others, sorted({count for _, count in others})
        for each in others.values():
            each.updater.total_steps = self.updater.total_steps
        self._iterate()

    def _iterate(self) -> None:
        """Without end, from where the batches of the others stand."""
        self.iterators: dict[tuple[str, int], Iterator[Tensor]] = {
            cell: itertools.chain.from_iterable(itertools.repeat(each.batches)) for cell, each in self.others.items()
        }

    def step(self, rows: Int[Tensor, "batch"]) -> dict[str, Float[Tensor, ""]]:
        for cell, each in self.others.items():
            each.step(next(self.iterators[cell]))
        return super().step(rows)

    def evaluate(self, split: str) -> Metrics:
        found = super().evaluate(split)
        if split == "test":
            found |= {f"{name}_error": fmean(errors) for name, errors in self.errors().items()}
            found |= {
                f"{pixels}cnn_error_reduction": found[f"{pixels}mlp_error"] - found[f"{pixels}cnn_error"]
                for pixels in ("", "scrambled_")
            }
        return found

    def errors(self) -> dict[str, list[float]]:
        """For each model its test errors, by the number of rows."""
        found = {cell: 1 - each.evaluate("test")["accuracy"] for cell, each in self.others.items()}
        found["cnn", self.row_counts[-1]] = 1 - super().evaluate("test")["accuracy"]
        return {name: [found[name, count] for count in self.row_counts] for name in MODELS}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self._iterate()

    def panels(self) -> list[Panel]:
        series = {
            MODELS[name]: (self.row_counts, [1 - error for error in errors]) for name, errors in self.errors().items()
        }
        caption = (
            "All have about as many parameters and took as many optimizer steps. Scrambled pixels, in one order "
            "for all images, do not "
            "matter to an MLP; they take the inductive bias of a CNN away, that neighbouring pixels belong together."
        )
        shown = [each.data.test_images for each in (self, self.others["scrambled_cnn", self.row_counts[-1]])]
        images, rescaled = plot.viewable(torch.cat([each[:6] for each in shown if each is not None]))
        same = f"Above, some of the images; below, the same ones scrambled. {rescaled}".rstrip()
        return [
            Panel(
                "Test accuracy by training set size",
                lambda: plot.curves(series, x_label="training rows", y_label="test accuracy", log_x=True),
                caption,
            ),
            Panel("Images", lambda: plot.image_grid(images, columns=6), same),
            *super().panels(),
        ]


class InductiveBiasOptions(DataChoice, OptimizerChoice, Protocol):
    """What the study reads of its recipe's options, but for what `supervised_task` reads."""

    @property
    def num_rows(self) -> tuple[int, ...]: ...

    @property
    def shift(self) -> int: ...


def inductive_bias(
    model: Callable[[Any, TabularInfo], nn.Module], options: InductiveBiasOptions, device_context: DeviceContext
) -> InductiveBias:
    """The task: the recipe's `model` and an MLP of its size on the images that `options` name, all splits of them
    shifted."""
    data = shift_images(load_image_data(options, device_context), options.shift, options.seed)
    row_counts = sorted(set(options.num_rows))
    if not row_counts or row_counts[-1] > data.train.num_rows:
        got = f"{row_counts[-1]}" if row_counts else "none"
        raise UserError(
            f"--num-rows expects numbers of rows up to the {data.train.num_rows} there are to train on, got {got}: "
            "ask for fewer"
        )
    scrambled, tasks = permute_pixels(data, options.seed), {}
    for name, count in itertools.product(MODELS, row_counts):
        net = model(options, data.data_info)
        if name.endswith("mlp"):
            net = mlp_of_size(num_parameters(net), data.data_info, generator=keyed_generator("weights", options.seed))
        net = net.to(device_context.device)
        optimizer = make_optimizer(net.parameters(), options)
        rows = take_train_rows(scrambled if name.startswith("scrambled") else data, count, options.seed)
        kind = InductiveBias if (name, count) == ("cnn", row_counts[-1]) else Classification
        tasks[name, count] = supervised_task(kind, net, cross_entropy, optimizer, rows, options, device_context)
    task = tasks.pop(("cnn", row_counts[-1]))
    assert isinstance(task, InductiveBias)
    task.begin(tasks)
    return task


def mlp_of_size(size: int, data_info: TabularInfo, *, generator: torch.Generator) -> MLP:
    """One hidden layer, so wide that there are `size` parameters, to within half a unit's."""
    inputs, outputs = data_info.num_features, data_info.num_classes
    return MLP([inputs, max(1, round((size - outputs) / (inputs + 1 + outputs))), outputs], generator=generator)


def shift_images(data: PreparedData, size: int, seed: int) -> PreparedData:
    """The data with every image moved by up to `size` pixels, once and for all: position then carries no information
    about the class."""
    return _replace_images(
        data,
        lambda images, split, fill: random_shift(images, keyed_generator("move", split, seed), size, fill=fill),
        background(data.feature_scaler),
    )


def permute_pixels(data: PreparedData, seed: int) -> PreparedData:
    """The data with the pixels of every image, in every channel alike, in one other order."""
    order = torch.randperm(data.train.features[0, 0].numel(), generator=keyed_generator("scramble", seed))
    return _replace_images(
        data, lambda images, split, fill: images.flatten(2)[:, :, order.to(images.device)].reshape(images.shape)
    )


def _replace_images(
    data: PreparedData, change: Callable[[Tensor, str, Tensor | float], Tensor], fill: Tensor | float = 0.0
) -> PreparedData:
    """The data with `change(images, split, fill)` for the images of every split, and for those that a report shows,
    where black is 0."""
    splits = {name: getattr(data, name) for name in ("train", "validation", "test")}
    splits = {
        name: dataclasses.replace(split, features=change(split.features, name, fill)) for name, split in splits.items()
    }
    assert data.test_images is not None
    return dataclasses.replace(data, **splits, test_images=change(data.test_images, "test", 0.0))


def take_train_rows(data: PreparedData, count: int, seed: int) -> PreparedData:
    """The data with `count` of its training rows, which are among those of any larger count."""
    chosen = torch.randperm(data.train.num_rows, generator=keyed_generator("fewer", seed))[:count]
    return dataclasses.replace(data, train=data.train.take(chosen.to(data.train.features.device)))
