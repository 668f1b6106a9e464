"""Learning from examples: the step that most recipes take, and its two kinds, classification and regression.

One step is forward, loss, backward, update, on rows drawn from tensors that already lie on the device.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from quoin.data import Batches, Dataset, Facts, Prepared
from quoin.draw import Panel
from quoin.optim import Schedule, constant
from quoin.train import pictures
from quoin.train.place import Place
from quoin.train.task import LOOK_EVERY, Diverged, Metrics, Totals, first_bad_tensor
from quoin.train.weights import load_strictly

__all__ = ["Classification", "Regression", "SupervisedTask"]

EVALUATION_ROWS = 4096  # per forward pass without gradients: large enough to be fast, small enough for a laptop


class SupervisedTask(ABC):
    """A model, an objective (one loss per example), an optimiser and prepared data.

    `batch_size` is the global batch: the gradients of all ranks add up (are not averaged) to that of its mean loss. With `micro_batch` a
    rank works its share off in pieces, whose gradients add up likewise. `clip` bounds the norm of the gradient; 0 leaves it.
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
    ) -> None:
        self.model, self.objective, self.optimiser, self.data = model, objective, optimiser, data
        self.facts: Facts | None = data.facts
        self.place, self.schedule, self.clip = place, schedule, clip
        self.batches = Batches(
            data.train.num_rows, batch_size, seed=seed, rank=place.rank, world=place.world, device=place.device
        )
        self.total_steps = max(1, epochs * self.batches.num_batches)
        self.micro_batch = micro_batch or batch_size
        self.step_count = 0
        self._forward = place.compiled(model)
        self._rates = [group["lr"] for group in optimiser.param_groups]
        self._parameters = [each for group in optimiser.param_groups for each in group["params"]]
        # Half precision loses small gradients to underflow; scaling the loss keeps them, and is off (a no-op) elsewhere.
        self._scaler = torch.amp.GradScaler(place.device.type, enabled=place.autocast_dtype is torch.float16)  # pyright: ignore

    @abstractmethod
    def measure(self, outputs: Tensor, targets: Tensor) -> dict[str, Tensor]:
        """What to watch beside the loss, one value per example."""

    def step(self, rows: Tensor) -> dict[str, Tensor]:
        """One update on the training rows `rows`; gives the sum of their losses before it."""
        if not self.model.training:  # after an evaluation; telling every module again in every step costs 1% of a small one
            self.model.train()
        rate = self.schedule(self.step_count / self.total_steps)
        for group, first in zip(self.optimiser.param_groups, self._rates):
            group["lr"] = first * rate
        for parameter in self._parameters:
            parameter.grad = None  # what zero_grad does, without its bookkeeping
        batch_rows = len(rows) if self.place.world == 1 else self.batches.rows_handed_out
        if len(rows) <= self.micro_batch:
            total = self._loss(self.data.train, rows, batch_rows)
        else:
            pieces = rows.split(self.micro_batch)
            total = torch.stack([self._loss(self.data.train, piece, batch_rows) for piece in pieces]).sum()
        self._scaler.unscale_(self.optimiser)
        if self.clip:
            nn.utils.clip_grad_norm_(self._parameters, self.clip)
        self._scaler.step(self.optimiser)
        self._scaler.update()
        self.step_count += 1
        return {"loss": total}

    def _loss(self, part: Dataset, rows: Tensor, batch_rows: int) -> Tensor:
        """Add the gradient of the mean loss over the batch, as far as these rows go; the sum of their losses."""
        features, targets = part.features.index_select(0, rows), part.targets.index_select(0, rows)
        with self.place.autocast():
            losses = self.objective(self._forward(features), targets)
        total = losses.detach().sum()
        # Reading one number is free on the CPU; on a GPU it stalls the queue, so there only now and then.
        if (total.device.type == "cpu" or self.step_count % LOOK_EVERY == 0) and not math.isfinite(total.item()):
            raise Diverged(self.diverged(features))
        # Each loss has the weight 1/n in the mean: so said, the graph needs no nodes for sum and quotient.
        self._scaler.scale(losses).backward(torch.full_like(losses, 1 / batch_rows))
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
        for features, targets in zip(data.features.split(EVALUATION_ROWS), data.targets.split(EVALUATION_ROWS)):
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
        return torch.cat([self.model(piece) for piece in getattr(self.data, part).features.split(EVALUATION_ROWS)])

    def state(self) -> dict[str, Any]:
        # A run falls back on this state, and a finite loss can be followed by a step that overflows.
        for name, parameter in self.model.named_parameters():
            if not parameter.isfinite().all():
                raise Diverged(f"parameter {name} is not finite after step {self.step_count}; try a smaller --lr, or --clip 1")
        return {
            "model": {"weights": self.model.state_dict(), "scales": self.data.scale_state()},
            "optimiser": self.optimiser.state_dict(),
            "scaler": self._scaler.state_dict(),
            "batches": self.batches.state(),
            "step_count": self.step_count,
        }

    def load(self, state: dict[str, Any]) -> None:
        load_strictly(self.model, state["model"]["weights"])
        self.optimiser.load_state_dict(state["optimiser"])
        self._scaler.load_state_dict(state["scaler"])
        self.batches.load(state["batches"])
        self.step_count = state["step_count"]

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
    """Outputs and targets are standardised numbers; watched by the root mean squared error in the target's own unit."""

    def measure(self, outputs: Tensor, targets: Tensor) -> dict[str, Tensor]:
        return {"squared_error": (outputs - targets).square()}

    def finish(self, means: Metrics) -> Metrics:
        unit = float(self.data.target_scale.std) if self.data.target_scale is not None else 1.0
        return {"loss": means["loss"], "rmse": math.sqrt(means["squared_error"]) * unit}

    def panels(self) -> list[Panel]:
        return pictures.of_regression(self.outputs("test").cpu(), self.data)
