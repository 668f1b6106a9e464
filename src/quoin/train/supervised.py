"""Learning from examples: the step that most recipes take, and its two kinds, classification and regression.

One step is forward, loss, backward, update, on rows drawn from tensors that already lie on the device.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from quoin.data import Batches, Facts, Prepared, keyed_generator
from quoin.draw import Panel
from quoin.optim import Schedule, constant
from quoin.tensor import as_floating
from quoin.train import pictures
from quoin.train.descent import Descent
from quoin.train.place import Place
from quoin.train.task import LOOK_EVERY, Diverged, Metrics, Totals, first_bad_tensor
from quoin.train.weights import load_strictly

__all__ = ["Classification", "Regression", "SupervisedTask", "in_squared_unit", "rows_at_once"]

# Per forward pass without gradients, the lesser of the two: large enough to be fast, small enough for a laptop. Of large images a
# convolutional network keeps many times their numbers, so that rows alone would be no measure.
EVALUATION_ROWS = 4096
EVALUATION_NUMBERS = 2**20


def rows_at_once(features: Tensor) -> int:  # (n, ...)
    """How many rows of `features` to send through a model together when no gradient is wanted."""
    return max(1, min(EVALUATION_ROWS, EVALUATION_NUMBERS // max(1, features.shape[1:].numel())))


class SupervisedTask(ABC):
    """A model, an objective (one loss per example), an optimiser and prepared data.

    `batch_size` is the global batch: the gradients of all ranks add up (are not averaged) to that of its mean loss. With `micro_batch` a
    rank works its share off in pieces, whose gradients add up likewise. `clip` bounds the norm of the gradient; 0 leaves it.

    `augment` changes the features of every training batch, and of no other, before the batch is cut into pieces. Its generator is a
    function of the seed, the step and the rank: no state to save, and a resumed run draws what it would have drawn.
    """

    def __init__(
        self,
        model: nn.Module,
        objective: Callable[[Tensor, Tensor], Tensor],
        optimiser: torch.optim.Optimizer,
        data: Prepared,
        *,
        batch_size: int,
        epochs: int,
        seed: int,
        place: Place,
        schedule: Schedule = constant,
        clip: float = 0.0,
        micro_batch: int = 0,
        augment: Callable[[Tensor, torch.Generator], Tensor] | None = None,
    ) -> None:
        self.model, self.objective, self.optimiser, self.data = model, objective, optimiser, data
        self.facts: Facts | None = data.facts
        self.place, self.augment = place, augment
        self.batches = Batches(
            data.train.num_rows, batch_size, seed=seed, rank=place.rank, world=place.world, device=place.device
        )
        total_steps = epochs * self.batches.num_batches
        self.descent = Descent(optimiser, total_steps=total_steps, place=place, schedule=schedule, clip=clip)
        self.micro_batch = micro_batch or batch_size
        self.memory_format = torch.contiguous_format  # of batches of images; `lay_out` changes it together with the kernels
        # Compiled for one shape: others, such as an epoch's short last batch, go uncompiled, or slower kernels for all sizes would be made.
        self._full_rows = min(self.micro_batch, batch_size, data.train.num_rows)
        self._compiled_losses = place.compiled(self.losses)

    @property
    def step_count(self) -> int:
        """Updates made so far."""
        return self.descent.step_count

    @abstractmethod
    def measure(self, outputs: Tensor, targets: Tensor) -> dict[str, Tensor]:
        """What to watch beside the loss, one value per example."""

    def step(self, rows: Tensor) -> dict[str, Tensor]:
        """One update on the training rows `rows`; gives the sum of their losses before it."""
        if not self.model.training:  # after an evaluation; telling every module again in every step costs 1% of a small one
            self.model.train()
        self.descent.begin()
        batch_rows = len(rows) if self.place.world == 1 else self.batches.rows_handed_out
        features, targets = self._examples(rows)
        if len(rows) <= self.micro_batch:
            total = self._loss(features, targets, batch_rows)
        else:
            pieces = zip(features.split(self.micro_batch), targets.split(self.micro_batch))
            total = torch.stack([self._loss(*piece, batch_rows) for piece in pieces]).sum()
        self.descent.finish()
        return {"loss": total}

    def _examples(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Features, augmented where that was asked for, and targets of training rows."""
        features, targets = self.data.train.features.index_select(0, rows), self.data.train.targets.index_select(0, rows)
        if self.augment is not None:
            features = self.augment(features, keyed_generator("augment", self.batches.seed, self.step_count, self.place.rank))
        # By the batch, which costs less than a thousandth of a step; laid out once, the data would be held twice meanwhile.
        return features.contiguous(memory_format=self.memory_format), targets

    def losses(self, features: Tensor, targets: Tensor) -> Tensor:
        """One loss for each example."""
        with self.place.autocast():
            return self.objective(self.model(features), targets)

    def _loss(self, features: Tensor, targets: Tensor, batch_rows: int) -> Tensor:
        """Add the gradient of the mean loss over the batch, as far as these examples go; the sum of their losses."""
        losses = (self._compiled_losses if len(features) == self._full_rows else self.losses)(features, targets)
        total = losses.detach().sum()
        # Reading one number is free on the CPU; on a GPU it stalls the queue, so there only now and then.
        if (total.device.type == "cpu" or self.step_count % LOOK_EVERY == 0) and not math.isfinite(total.item()):
            raise Diverged(self.diverged(features))
        self.descent.add(losses, 1 / batch_rows)  # each loss has the weight 1/n in the mean
        return total

    def diverged(self, features: Tensor | None = None) -> str:
        where = first_bad_tensor(self.model, self.data.train.features[:1] if features is None else features)
        # On a GPU the loss is looked at only now and then, so there the step is the one by which it was seen.
        when = "at" if self.place.device.type == "cpu" else "by"
        return f"the loss is not finite {when} step {self.step_count + 1}; first bad tensor: {where}; try a smaller --lr, or --clip 1"

    @torch.no_grad()
    def evaluate(self, part: str) -> Metrics:
        """Means over the whole of a part, each example counted once."""
        data = getattr(self.data, part)
        if data.num_rows == 0:
            return {}
        totals = Totals()
        self.model.eval()
        rows = rows_at_once(data.features)
        for features, targets in zip(data.features.split(rows), data.targets.split(rows)):
            outputs = self.model(features)
            values = {"loss": self.objective(outputs, targets), **self.measure(outputs, targets)}
            totals.add({name: value.sum() for name, value in values.items()}, len(targets))
        means = totals.means()
        if not all(map(math.isfinite, means.values())):
            raise Diverged(self.diverged())
        return self.finish(means)

    def finish(self, means: Metrics) -> Metrics:
        """Last touches on the means of a part, such as the root of a mean square."""
        return means

    @torch.no_grad()
    def outputs(self, part: str) -> Tensor:
        """The model's outputs on a part, in its order."""
        self.model.eval()
        features = getattr(self.data, part).features
        return torch.cat([self.model(piece) for piece in features.split(rows_at_once(features))])

    def state(self) -> dict[str, Any]:
        # A run falls back on this state, and a finite loss can be followed by a step that overflows.
        for name, parameter in self.model.named_parameters():
            if not parameter.isfinite().all():
                raise Diverged(f"parameter {name} is not finite after step {self.step_count}; try a smaller --lr, or --clip 1")
        return {
            "model": {"weights": self.model.state_dict(), "scales": self.data.scale_state()},
            "batches": self.batches.state(),
            **self.descent.state(),
        }

    def load(self, state: dict[str, Any]) -> None:
        load_strictly(self.model, state["model"]["weights"])
        self.batches.load(state["batches"])
        self.descent.load(state)

    @abstractmethod
    def panels(self) -> list[Panel]:
        """Pictures of what the model does on the test part."""


class Classification(SupervisedTask):
    """Outputs are logits, targets are labels; watched by accuracy."""

    def measure(self, outputs: Tensor, targets: Tensor) -> dict[str, Tensor]:
        return {"accuracy": (outputs.argmax(-1) == targets).float()}

    def panels(self) -> list[Panel]:
        return pictures.of_classifier(self.outputs("test").softmax(-1).cpu(), self.data)


class Regression(SupervisedTask):
    """Outputs and targets are standardised numbers under a squared loss; all that is told of them is in the target's own unit.

    The loss is in its square: with (prediction - target)²/2 it is half the square of the root mean squared error beside it.
    """

    @property
    def unit(self) -> float:
        """One standard deviation of the training targets."""
        return float(self.data.target_scale.std) if self.data.target_scale is not None else 1.0

    def step(self, rows: Tensor) -> dict[str, Tensor]:
        return {name: in_squared_unit(total, self.unit) for name, total in super().step(rows).items()}

    def measure(self, outputs: Tensor, targets: Tensor) -> dict[str, Tensor]:
        return {"squared_error": (as_floating(outputs, targets) - as_floating(targets, outputs)).square()}

    def finish(self, means: Metrics) -> Metrics:
        return {"loss": means["loss"] * self.unit**2, "rmse": math.sqrt(means["squared_error"]) * self.unit}

    def panels(self) -> list[Panel]:
        return pictures.of_regression(self.outputs("test").cpu(), self.data)


def in_squared_unit(loss: Tensor, unit: float) -> Tensor:
    """A squared loss of standardised targets in the square of their own unit; in float64 where there is one, for it may be large."""
    return (loss if loss.device.type == "mps" else loss.double()) * unit**2
