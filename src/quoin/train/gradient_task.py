"""Training by gradients: what every task shares that owns one `GradientUpdater`.

A kind (`quoin.tasks`) says how the rows of a batch are read in pieces, what the loss of each example is, its metrics
and its plots.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from quoin.data import BatchSampler, RowNoise
from quoin.display import shown
from quoin.optim import Schedule, constant
from quoin.plot import Panel
from quoin.train.device_context import DeviceContext
from quoin.train.global_batch import BatchPiece, GlobalBatch, cut_batch
from quoin.train.gradient_updater import GradientUpdater
from quoin.train.receiving import Place, places_in
from quoin.train.task import Metrics, Task
from quoin.train.weights import load_state_dict_strict

__all__ = ["GradientTask", "runs_in_processes", "whole_weights"]


def runs_in_processes(task: Task) -> bool:
    """Whether several processes can train this task: each takes its rows of a batch, and its fraction of an evaluation.
    Those cannot that fit in closed form, or are made for one process because they have few numbers."""
    return getattr(task, "is_data_parallel", False)


def whole_weights(task: Task) -> AbstractContextManager[None]:
    """Inside, every process has all of the weights that this task evaluates, of which it may keep but a fraction."""
    return task.whole_weights() if runs_in_processes(task) else nullcontext()  # type: ignore[attr-defined]


@shown
class GradientTask(ABC):
    """A model that follows the gradient of one loss per example.

    The batch size of `batches` is that of the global batch: the gradients of all ranks add up (are not averaged) to
    that of its mean loss. What is random, dropout too, is drawn for the rows of the global batch, so that the result
    depends neither on the number of ranks nor on `micro_batch_size`.

    Args:
        batches: Gives the row numbers of each batch.
        device_context: As `setup_device` gives it.
        epochs: The length of the run, by which the schedule goes; the `Trainer` is given its own.
        schedule: The factor of the learning rate by the fraction of the run that is done, from 0 to 1.
        max_grad_norm: Gradient clipping; 0 for none.
        micro_batch_size: Rows of one forward pass: a rank accumulates the gradients of its rows in such pieces; 0 takes
            them at once.
        ema_decay: Above 0, what is evaluated is an exponential moving average of the weights with this decay.
        loss_scale: What the losses of a batch are divided by beside its rows: the tokens of an example, where it has
            many.
    """

    kind: str  # of learning (`Task.kind`)
    is_data_parallel = True  # processes can train it together (`runs_in_processes`)
    data_info: Any = None  # what the data are (`DataInfo`), each kind its own
    model: Any  # whose weights move
    losses_of: Callable[..., Tensor]  # the losses of a piece's examples, one each or their sum: a method of each kind

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        batches: BatchSampler,
        device_context: DeviceContext,
        *,
        epochs: int,
        schedule: Schedule = constant,
        max_grad_norm: float = 0.0,
        micro_batch_size: int = 0,
        ema_decay: float = 0.0,
        loss_scale: float = 1.0,
    ) -> None:
        self.model = model
        self.batches, self.device_context, self.loss_scale = batches, device_context, loss_scale
        self.micro_batch_size = micro_batch_size or batches.batch_size
        self.global_batch = GlobalBatch(model, batches.seed, device_context)
        self.updater = GradientUpdater(
            model,
            optimizer,
            total_steps=epochs * batches.num_batches,
            device_context=device_context,
            schedule=schedule,
            max_grad_norm=max_grad_norm,
            ema_decay=ema_decay,
        )

    @property
    def eval_model(self) -> Any:
        """What is evaluated and saved as the run's model."""
        return self.updater.eval_model

    def whole_weights(self) -> AbstractContextManager[None]:
        """Inside, every process has all of the weights that are evaluated, of which it may keep but a fraction."""
        return self.updater.whole_weights()

    @property
    def full_rows(self) -> int:
        """Rows of a piece of this rank, but for those of an epoch's last batch."""
        batches = self.batches
        rows, before = min(batches.batch_size, batches.num_rows), batches.rank
        return min(
            self.micro_batch_size, rows * (before + 1) // batches.world_size - rows * before // batches.world_size
        )

    @property
    def step_count(self) -> int:
        """Optimizer steps made so far."""
        return self.updater.step_count

    @abstractmethod
    def pieces(self, rows: Int[Tensor, "batch"]) -> Iterable[tuple]:
        """The training examples of these numbers, in the pieces of `cut`: the arguments of `losses_of`."""

    @abstractmethod
    def evaluate(self, split: str) -> Metrics: ...

    @abstractmethod
    def panels(self) -> Iterable[Panel]: ...

    def cut(self, rows: Int[Tensor, "batch"]) -> list[BatchPiece]:
        """The rows that this rank was given, in pieces of at most `micro_batch_size`: as many in every rank."""
        return cut_batch(rows, self.micro_batch_size, self.batches, self.device_context.world_size)

    def batch_rows(self, rows: Int[Tensor, "batch"]) -> Int[Tensor, "total"]:
        """The rows of the global batch, of which this rank was given `rows`."""
        return rows if self.device_context.world_size == 1 else self.batches.batch_rows

    def row_noise(self, piece: BatchPiece, name: str) -> RowNoise:
        """The noise of this name for the rows of a piece in this step, on the run's device."""
        return piece.noise(name, self.batches.seed, self.step_count, device=self.device_context.device)

    def step(self, rows: Int[Tensor, "batch"]) -> dict[str, Float[Tensor, ""]]:
        """One optimizer step on the training rows of these numbers; the sum of their losses before it."""
        # after an evaluation; telling every module again in every step costs 1% of a small one
        if not self.model.training:
            self.model.train()
        batch_rows = len(rows) if self.device_context.world_size == 1 else self.batches.num_rows_seen
        pieces, weight = zip(self.cut(rows), self.pieces(rows), strict=True), 1 / (batch_rows * self.loss_scale)
        total = self.global_batch.update(self.updater, pieces, self.losses_of, weight=weight)
        return {"loss": total / self.loss_scale if self.loss_scale != 1 else total}

    def model_state(self) -> dict[str, Any]:
        """What prediction needs."""
        return {"weights": self.eval_model.state_dict()}

    def state_dict(self) -> dict[str, Any]:
        self.updater.check_parameters()
        return {"model": self.model_state(), "updater": self.updater.state_dict(), "batches": self.batches.state_dict()}

    def places(self) -> Place:
        """Where the tensors of a checkpoint belong that several processes load."""
        updater = self.updater
        _ = updater.parallel  # which shards the weights, if they are to be
        modules = {"task.model.weights": self.eval_model, "task.updater.weights": updater.model}
        return places_in(modules, {"task.updater.optimizer": updater.optimizer})

    def load_state_dict(self, state: dict[str, Any]) -> None:
        load_state_dict_strict(self.eval_model, state["model"]["weights"])
        self.updater.load_state_dict(state["updater"])
        self.batches.load_state_dict(state["batches"])
