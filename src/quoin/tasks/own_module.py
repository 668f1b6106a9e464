"""Training a module of somebody's own on examples of any structure: the task behind `quoin.fit`."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from quoin.data import BatchSampler
from quoin.data.example_info import ExampleInfo
from quoin.data.examples import ExampleBatch, ModuleExamples
from quoin.data.loader_batches import FetchedBatches
from quoin.optim import Schedule, constant
from quoin.plot import Panel
from quoin.tasks.host_generators import host_generator_states, load_host_generator_states
from quoin.tasks.module_objective import ModuleObjective, call_model
from quoin.train import DeviceContext, GradientTask, MeanMetrics, Metrics
from quoin.train.processes import fraction_of

__all__ = ["ModuleTask", "evaluate_module"]


class ModuleTask(GradientTask):
    """A module, an objective, an optimizer and examples by split.

    A step follows the gradient of the mean loss of its batch; a loss that is one number is that mean, and weighs by its
    rows where a batch is cut into micro-batches.

    Args:
        splits: The examples of "train", and of "validation" and "test" where there are any.
        remarks: What to tell when the run begins.
        data_remarks: What to tell of the data, whenever it goes on too.
    """

    kind = "module"
    data_info: ExampleInfo

    def __init__(
        self,
        model: nn.Module,
        objective: ModuleObjective,
        optimizer: torch.optim.Optimizer,
        splits: Mapping[str, ModuleExamples],
        batches: BatchSampler,
        data_info: ExampleInfo,
        device_context: DeviceContext,
        *,
        epochs: int,
        schedule: Schedule = constant,
        max_grad_norm: float = 0.0,
        micro_batch_size: int = 0,
        remarks: Sequence[str] = (),
        data_remarks: Sequence[str] = (),
    ) -> None:
        super().__init__(
            model,
            optimizer,
            batches,
            device_context,
            epochs=epochs,
            schedule=schedule,
            max_grad_norm=max_grad_norm,
            micro_batch_size=micro_batch_size,
        )
        self.objective, self.data_info = objective, data_info
        self.remarks, self.data_remarks = list(remarks), list(data_remarks)
        self.splits = {name: examples.to(device_context.device) for name, examples in splits.items()}
        self._step_losses = device_context.compiled(self.losses, self.full_rows, _num_rows)

    def pieces(self, rows: Int[Tensor, "batch"]) -> Iterable[tuple]:
        """The batch in pieces, each with its fraction of the batch."""
        cut, examples = self.cut(rows), self.splits["train"]
        if isinstance(self.batches, FetchedBatches):
            parts = self.batches.current.split(self.micro_batch_size)
        else:
            parts = (examples.batch(piece.rows) for piece in cut)  # type: ignore[attr-defined]
        for piece, part in zip(cut, parts, strict=True):
            yield part.to(self.device_context.device), len(piece.rows) / piece.num_rows

    def losses(self, batch: ExampleBatch) -> Float[Tensor, "*examples"]:
        """The loss of a batch, one number or one per example."""
        return self.objective.losses(call_model(self.model, batch.inputs), batch)

    def losses_of(self, batch: ExampleBatch, fraction: float) -> Float[Tensor, ""]:
        """The mean loss of a piece times its fraction of the batch: summed, the mean loss of the batch."""
        losses = self._step_losses(batch)
        mean = losses.mean() if losses.ndim else losses
        return mean if fraction == 1 else mean * fraction

    def step(self, rows: Int[Tensor, "batch"]) -> dict[str, Float[Tensor, ""]]:
        if not self.model.training:
            self.model.train()
        pieces = zip(self.cut(rows), self.pieces(rows), strict=True)
        mean = self.global_batch.update(self.updater, pieces, self.losses_of, weight=1.0)
        return {"loss": mean * len(rows)}

    def evaluate(self, split: str) -> Metrics:
        """Means over the whole of a split, each example counted once."""
        if split not in self.splits:
            return {}
        means = evaluate_module(
            self.model, self.objective, self.splits[split], self.batches.batch_size, self.device_context.device
        )
        if not math.isfinite(means["loss"]):
            first = self.splits[split].first(self.batches.batch_size).to(self.device_context.device)
            raise self.updater.diverged(lambda: self.losses(first))
        return means

    def panels(self) -> list[Panel]:
        """None: what the outputs mean is the user's to plot."""
        return []

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {"host_generators": host_generator_states()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        load_host_generator_states(state["host_generators"])


def _num_rows(batch: ExampleBatch) -> int:
    return batch.num_rows


@torch.no_grad()
def evaluate_module(
    model: nn.Module, objective: ModuleObjective, examples: ModuleExamples, batch_size: int, device: torch.device
) -> Metrics:
    """The mean loss and metrics of a model over examples. Processes share out whole batches, for a metric may be one
    number of a batch."""
    totals = MeanMetrics()
    model.eval()
    for each in examples.in_order(batch_size, fraction_of):
        batch = each.to(device)
        outputs = call_model(model, batch.inputs)
        losses = objective.losses(outputs, batch)
        total = losses.sum() if losses.ndim else losses * batch.num_rows
        totals.add({"loss": total, **objective.compute_metrics(outputs, batch)}, batch.num_rows)
    return totals.over_processes().compute()
