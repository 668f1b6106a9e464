"""What a module of one's own minimises and what is watched: a loss and metrics as plain functions of (outputs,
targets).

A function gives one value per example, of which means are exact over batches of any size, or a single number, which
counts as the mean of its batch.
"""

import functools
import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int, Real
from torch import Tensor, nn

from quoin.data.examples import ExampleBatch
from quoin.data.nested import describe_nested, tensors_of
from quoin.errors import UserError, did_you_mean, format_value

__all__ = ["LOSSES", "ModuleObjective", "call_model", "describe_function", "make_objective", "try_batch"]

ModuleFunction = Callable[[Any, Any], Any]  # (outputs, targets): a number, or one per example
OWN_LOSS = "the model's own"  # what is recorded of a loss that the model computes


def cross_entropy(
    outputs: Float[Tensor, "batch classes ..."], targets: Int[Tensor, "batch ..."]
) -> Float[Tensor, "batch"]:
    """One per example; over positions, such as pixels, the mean."""
    try:
        losses = nn.functional.cross_entropy(outputs, targets, reduction="none")
    except IndexError:  # what the first batch had not
        check_classes(outputs, targets)
        raise
    return losses.reshape(len(targets), -1).mean(1)


def check_classes(outputs: Float[Tensor, "batch classes ..."], targets: Int[Tensor, "..."]) -> None:
    """Raise an error where a class has no output; -100 marks what the loss leaves out."""
    counted = targets[targets != -100]
    if not counted.numel():
        return
    least, greatest = int(counted.min()), int(counted.max())
    if least < 0 or greatest >= outputs.shape[1]:
        raise UserError(
            f"expected classes from 0 to {outputs.shape[1] - 1}, as the model has {outputs.shape[1]} outputs, got "
            f"{least if least < 0 else greatest} among the targets: number classes from 0, and give each an output"
        )


def mse(outputs: Float[Tensor, "batch ..."], targets: Real[Tensor, "batch ..."]) -> Float[Tensor, "batch"]:
    """The mean squared error of each example; an output of one number fits a target without that dimension."""
    if outputs.shape != targets.shape and outputs.squeeze(-1).shape != targets.squeeze(-1).shape:
        raise ValueError(f"outputs of shape {tuple(outputs.shape)} for targets of shape {tuple(targets.shape)}")
    return (outputs.reshape(targets.shape) - targets).square().reshape(len(targets), -1).mean(1)


def accuracy(outputs: Float[Tensor, "batch classes ..."], targets: Int[Tensor, "batch ..."]) -> Float[Tensor, "batch"]:
    """Whether the greatest output is that of the class, as a fraction of the positions where there are several."""
    return (outputs.argmax(1) == targets).double().reshape(len(targets), -1).mean(1)


LOSSES: dict[str, ModuleFunction] = {"cross_entropy": cross_entropy, "mse": mse}
METRICS: dict[str, dict[str, ModuleFunction]] = {"cross_entropy": {"accuracy": accuracy}}  # of a loss by name


@dataclass(frozen=True)
class ModuleObjective:
    """A loss and metrics, each with what the run records of it; without a loss the model computes its own."""

    loss: ModuleFunction | None
    loss_name: str
    metrics: Mapping[str, ModuleFunction]
    metric_names: tuple[str, ...]
    is_chosen: bool = False  # the loss, by the dtype of the targets

    def losses(self, outputs: Any, batch: ExampleBatch) -> Float[Tensor, "*batch"]:
        """The loss of a batch: a number, or one per example."""
        found = _own_loss(outputs) if self.loss is None else self.loss(outputs, batch.targets)
        if not isinstance(found, Tensor) or found.ndim > 1 or (found.ndim and len(found) != batch.num_rows):
            got = f"a tensor of shape {tuple(found.shape)}" if isinstance(found, Tensor) else type(found).__name__
            raise UserError(
                f"expected of {self.loss_name} a tensor of one number or of {batch.num_rows}, one per example, got "
                f"{got}: return such, for instance with .mean()"
            )
        return found

    def compute_metrics(self, outputs: Any, batch: ExampleBatch) -> dict[str, Float[Tensor, ""]]:
        """The sum of each metric over the examples of a batch, in float64 where there is one."""
        return {name: self.metric_sum(name, outputs, batch) for name in self.metrics}

    def metric_sum(self, name: str, outputs: Any, batch: ExampleBatch) -> Float[Tensor, ""]:
        """The same for one metric; of a model with a loss of its own it is a function of (outputs, inputs)."""
        against = batch.inputs if self.loss is None else batch.targets
        return _sum(name, self.metrics[name](outputs, against), batch.num_rows)


def _sum(name: str, value: Any, num_rows: int) -> Tensor:
    if isinstance(value, numbers.Real):
        value = torch.tensor(float(value), dtype=torch.float64)
    fits = isinstance(value, Tensor) and not value.is_complex()
    if not fits or value.ndim > 1 or (value.ndim and len(value) != num_rows):
        got = f"a tensor of shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
        raise UserError(
            f"expected of metric {format_value(name)} a number or {num_rows}, one per example, got {got}: return such"
        )
    exact = value.detach().to(torch.float32 if value.device.type == "mps" else torch.float64)
    return exact.sum() if exact.ndim else exact * num_rows


def _own_loss(outputs: Any) -> Any:
    if isinstance(outputs, Tensor):
        return outputs
    return outputs["loss"] if isinstance(outputs, Mapping) and "loss" in outputs else getattr(outputs, "loss", None)


def call_model(model: nn.Module, inputs: Any) -> Any:
    """`model(x)`, `model(*xs)` of a tuple, or `model(**xs)` of a dict."""
    if isinstance(inputs, Mapping):
        return model(**inputs)
    return model(*inputs) if isinstance(inputs, (tuple, list)) else model(inputs)


def make_objective(
    loss: str | ModuleFunction | None, metrics: Mapping[str, ModuleFunction] | None, targets: Any
) -> ModuleObjective:
    """The objective of these functions; `loss="auto"` is chosen by the dtype of the targets.

    Args:
        metrics: By name; None for those that belong to a loss by name, which are the accuracy under cross_entropy.
    """
    is_chosen = loss == "auto"
    if is_chosen:
        loss = _loss_for(targets)
    if isinstance(loss, str):
        if loss not in LOSSES:
            raise UserError(f"loss={format_value(loss)}: {did_you_mean(loss, LOSSES)}, or give a function")
        name, function = loss, LOSSES[loss]
    elif loss is None:
        name, function = OWN_LOSS, None
    elif callable(loss):
        name, function = describe_function(loss), loss
    else:
        raise UserError(f"expected loss= as a function (outputs, targets) or a name, got {type(loss).__name__}")
    if metrics is None:
        known = METRICS.get(name, {})
        return ModuleObjective(function, name, known, tuple(known), is_chosen)
    _check_metrics(metrics)
    told = tuple(f"{each}: {describe_function(metric)}" for each, metric in metrics.items())
    return ModuleObjective(function, name, dict(metrics), told, is_chosen)


def _loss_for(targets: Any) -> str:
    kinds = {each.dtype for each in tensors_of(targets)}
    if len(kinds) == 1:
        (kind,) = kinds
        if kind.is_floating_point:
            return "mse"
        if kind in (torch.int64, torch.int32, torch.int16, torch.uint8):
            return "cross_entropy"
    raise UserError(
        f"expected integer targets (cross_entropy) or floating-point ones (mse) to choose a loss by, got "
        f"{describe_nested(targets)}: give loss=, a function of (outputs, targets)"
    )


def _check_metrics(metrics: Any) -> None:
    if not isinstance(metrics, Mapping):
        raise UserError(f"expected metrics= as a dict of functions by name, got {type(metrics).__name__}: give such")
    for name, metric in metrics.items():
        if not isinstance(name, str) or not name.isidentifier() or name == "loss":
            raise UserError(f"expected a metric's name such as 'accuracy', other than 'loss', got {format_value(name)}")
        if not callable(metric):
            raise UserError(
                f"expected metric {format_value(name)} as a function (outputs, targets), got {type(metric).__name__}"
            )


def describe_function(function: Any) -> str:
    """What a run records of a function that it cannot store; the brackets tell it from a name of Quoin's."""
    if isinstance(function, functools.partial):
        return f"partial({describe_function(function.func)})"
    return f"{getattr(function, '__qualname__', type(function).__name__)}()"


def try_batch(model: nn.Module, objective: ModuleObjective, batch: ExampleBatch, all_targets: Any = None) -> None:
    """Send one batch through model, loss and metrics, so that what does not fit is told before a run begins.

    Args:
        all_targets: Those of all examples, where they lie in memory.
    """
    try:
        outputs = call_model(model, batch.inputs)
    except UserError:
        raise
    except torch.OutOfMemoryError:
        raise
    except Exception as error:
        raise UserError(f"the model does not take a batch of {batch}: {_first_line(error)}") from error
    try:
        if objective.loss is cross_entropy and isinstance(all_targets, Tensor) and isinstance(outputs, Tensor):
            check_classes(outputs, all_targets)
        losses = objective.losses(outputs, batch)
    except UserError:
        raise
    except Exception as error:
        shapes = f"outputs {describe_nested(outputs, of_rows=False)} and {batch}"
        raise UserError(f"{objective.loss_name} does not take {shapes}: {_first_line(error)}") from error
    if not losses.requires_grad:
        raise UserError(
            f"expected of {objective.loss_name} a loss with a gradient, got one without: compute it from the outputs, "
            "not detached, and leave parameters to train that are not frozen"
        )
    with torch.no_grad():
        for name in objective.metrics:
            try:
                objective.metric_sum(name, outputs, batch)
            except UserError:
                raise
            except Exception as error:
                raise UserError(f"metric {format_value(name)} cannot be computed: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:300]
