"""The recipe of a run that has no recipe file: its model, data and functions are in the user's Python code.

Without them such a run can be listed, compared and read, and says how to give them for the rest.
"""

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from quoin.data import BatchSampler
from quoin.data.example_info import ExampleInfo
from quoin.data.example_reading import ReadExamples
from quoin.data.examples import CollatedExamples, ExampleBatch, ModuleExamples, StreamExamples, TensorExamples
from quoin.data.loader_batches import StreamBatches, WorkerBatches
from quoin.data.nested import describe_nested
from quoin.errors import UserError, format_value
from quoin.optim import Schedule
from quoin.options import ValidatedOptions
from quoin.runs.catalog import Recipe
from quoin.runs.module_options import ModuleOptions
from quoin.tasks.module_objective import ModuleObjective, try_batch
from quoin.tasks.own_module import ModuleTask
from quoin.train import DeviceContext
from quoin.train.monitor import Monitor, monitor_named
from quoin.train.state import generator_states, load_generator_states

__all__ = ["ModuleData", "ModuleParts", "ModuleRecipe", "module_recipe", "recipe_name"]


@dataclass(frozen=True)
class ModuleData:
    """The splits of a run, and how the training data were read."""

    splits: Mapping[str, ModuleExamples]
    read: ReadExamples
    fingerprint: str


@dataclass(frozen=True)
class ModuleParts:
    """What is in the user's code: the model, and as far as they were given the rest."""

    model: nn.Module
    data: ModuleData | None = None
    objective: ModuleObjective | None = None
    make_optimizer: Callable[[nn.Module], torch.optim.Optimizer] | None = None
    schedule: Schedule | None = None


@dataclass(frozen=True)
class ModuleRecipe(Recipe):
    """A recipe of the user's own parts, which it has only where they were given."""

    path: Path | None = None  # of the run, once there is one
    parts: ModuleParts | None = None

    @property
    def options(self) -> type[ValidatedOptions]:
        return ModuleOptions

    @property
    def monitor(self) -> Monitor | None:
        return Monitor("validation_loss")

    def monitor_for(self, options: ModuleOptions) -> Monitor | None:
        if not options.monitor:
            return self.monitor
        if options.mode == "auto":
            try:
                return monitor_named(options.monitor)
            except UserError:
                raise UserError(
                    f"monitor={format_value(options.monitor)}: it is not known whether it should be high or low; say "
                    "mode='max' or mode='min'"
                ) from None
        return Monitor(options.monitor, options.mode == "max", is_required=True)

    def target_for(self, options: Any) -> None:
        """Only recipes have targets."""

    def model(self, options: Any, data_info: Any) -> nn.Module:
        """The model that was given."""
        return self._parts("open_run", "model=...").model

    def build(self, options: ModuleOptions, device_context: DeviceContext) -> ModuleTask:
        parts = self._parts("open_run", "model=..., data=...")
        if parts.data is None or parts.objective is None or parts.make_optimizer is None or parts.schedule is None:
            raise self.lacking("open_run", "model=..., data=..., and what fit was given beside")
        model, data = parts.model.to(device_context.device), parts.data
        batches = _batches(data, options, device_context.device)
        first = data.splits["train"].first(options.micro_batch_size or batches.batch_size)
        _try(model, parts.objective, first.to(device_context.device), data.splits["train"])
        return ModuleTask(
            model,
            parts.objective,
            parts.make_optimizer(model),
            data.splits,
            batches,
            _info(data, first),
            device_context,
            epochs=options.epochs,
            schedule=parts.schedule,
            max_grad_norm=options.max_grad_norm,
            micro_batch_size=options.micro_batch_size,
            remarks=_chosen(parts.objective, data.read),
            data_remarks=data.read.remarks,
        )

    def _parts(self, function: str, arguments: str) -> ModuleParts:
        if self.parts is None:
            raise self.lacking(function, arguments)
        return self.parts

    def lacking(self, function: str, arguments: str) -> UserError:
        """The error of what needs the user's code, with the call that gives it."""
        return UserError(
            f"{self.path} is a run of a module of your own, which is in your Python code: there, call "
            f"quoin.{function}({str(self.path)!r}, {arguments})"
        )


def module_recipe(name: str, path: Path | None = None, parts: ModuleParts | None = None) -> ModuleRecipe:
    """The recipe of a run of a module, of the class that `name` says."""
    return ModuleRecipe(name, sys.modules[__name__], path=path, parts=parts)


def recipe_name(model: nn.Module) -> str:
    """What runs of a model are called unless they are named: TwoTowers is two-towers."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", type(model).__name__)
    return re.sub(r"[^a-z0-9]+", "-", spaced.lower()).strip("-")[:60] or "module"


def _batches(data: ModuleData, options: ModuleOptions, device: torch.device) -> BatchSampler:
    examples, loader = data.splits["train"], data.read.loader
    if isinstance(examples, StreamExamples):
        return StreamBatches(examples, seed=options.seed)
    shuffle, drop_last = data.read.shuffle, bool(loader and loader.drop_last)
    if isinstance(examples, CollatedExamples) and examples.has_workers:
        return WorkerBatches(examples, options.batch_size, seed=options.seed, shuffle=shuffle, drop_last=drop_last)
    return BatchSampler(
        len(examples),
        options.batch_size,
        seed=options.seed,
        shuffle=shuffle,
        drop_last=drop_last,
        device=None if isinstance(examples, CollatedExamples) else device,
    )


def _try(model: nn.Module, objective: ModuleObjective, batch: ExampleBatch, examples: ModuleExamples) -> None:
    """One batch, of which nothing stays: the model is not in training mode, and random numbers are given back."""
    generators, buffers = generator_states(), {name: each.clone() for name, each in model.named_buffers()}
    was_training = model.training
    model.eval()
    try:
        try_batch(model, objective, batch, examples.content.targets if isinstance(examples, TensorExamples) else None)
    finally:
        model.train(was_training)
        load_generator_states(generators)
        for name, buffer in model.named_buffers():
            if name in buffers:
                buffer.copy_(buffers[name])


def _info(data: ModuleData, first: ExampleBatch) -> ExampleInfo:
    counts = {split: len(examples) for split, examples in data.splits.items()}
    return ExampleInfo(
        source=data.read.examples.source,
        fingerprint=data.fingerprint,
        num_train=counts["train"],
        num_validation=counts.get("validation", 0),
        num_test=counts.get("test", 0),
        inputs=describe_nested(first.inputs),
        targets="" if first.targets is None else describe_nested(first.targets),
        feature_names=data.read.feature_names,
        class_names=data.read.class_names,
    )


def _chosen(objective: ModuleObjective, read: ReadExamples) -> list[str]:
    remarks = []
    if objective.is_chosen:
        of = "floating-point" if objective.loss_name == "mse" else "integer"
        remarks.append(f"loss={objective.loss_name!r}, as the targets are {of}; say loss= for another")
    if read.class_names is not None:
        names = ", ".join(f"{number} = {name}" for number, name in enumerate(read.class_names[:6]))
        remarks.append(f"classes: {names}{', ...' if len(read.class_names) > 6 else ''}")
    return remarks
