"""The memory format of images and kernels, contiguous or channels-last: the same numbers in another order.

Which order is quicker depends on the network, the machine and its kernels, so for a long run it is measured: a few
training steps in either. They change nothing of the run; the layout itself changes the last bits, and where dropout
falls, so a run remembers the one it began with.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import torch
from torch import Tensor, nn

from quoin.errors import UserError
from quoin.tasks.supervised import SupervisedTask
from quoin.train import Task

__all__ = ["MemoryFormat", "choose_memory_format", "faster_memory_format", "set_memory_format"]

MemoryFormat = Literal["contiguous", "channels-last"]

GAIN = 1.03  # channels last must be so many times as quick: below that the choice would be the noise's
WORTH = 60.0  # seconds: a shorter run saves little, and stays reproducible to the bit
FIRST_ROWS = 8  # of the first, short steps, by which the others are planned
# Measuring may take so much of the run, and no more than so many seconds, warm-up aside. On few rows of a batch the
# other layout may be the quicker one: of a ResNet-18 on 8 rows of 32 it was.
SHARE, MOST = 0.02, 3.0
NUM_REPEATS = 5


def choose_memory_format(task: Task, asked: str, *, max_steps: int = 0) -> tuple[str, str]:
    """Lay `task` out as `asked`, "auto" by measuring; the layout that a run must remember, and what to tell the user,
    if anything.

    Where nothing is to be chosen "auto" stays, and means channels first: without images and kernels, and where the
    clock must not decide (deterministic) or would time the wrong thing (a compiled step chooses layouts of its own
    between the convolutions).
    """
    if not isinstance(task, SupervisedTask) or not _has_images(task):
        if asked == "channels-last":
            raise UserError(
                "expected images and 2-D convolutions for --memory-format channels-last, got a model or data "
                "without; leave it out"
            )
        return asked, ""
    if asked != "auto":
        set_memory_format(task, "channels-last" if asked == "channels-last" else "contiguous")
        return asked, ""
    if task.device_context.compile or torch.are_deterministic_algorithms_enabled():
        return asked, ""
    chosen = faster_memory_format(task, max_steps=max_steps)
    if chosen is None:
        return "contiguous", ""
    set_memory_format(task, chosen)
    return chosen, f"layout: {chosen} was the quicker, so measured; --memory-format {chosen} pins it"


def set_memory_format(task: SupervisedTask, memory_format: MemoryFormat) -> None:
    """Put the kernels of `task` into `memory_format`, and from now on every batch; values stay as they are, gradients
    are dropped."""
    task.memory_format = torch.channels_last if memory_format == "channels-last" else torch.contiguous_format
    for parameter in task.model.parameters():
        if parameter.ndim == 4:
            # Not `.to`, which leaves a 1 x 1 kernel as it lies: its strides, and with them torch's kernel, would tell
            # of the past.
            anew = torch.empty(
                parameter.shape, dtype=parameter.dtype, device=parameter.device, memory_format=task.memory_format
            )
            parameter.data = anew.copy_(parameter.data)
            parameter.grad = None


def faster_memory_format(task: SupervisedTask, *, max_steps: int = 0) -> MemoryFormat | None:
    """The layout in which a training step of `task` takes less time, or None if the run is too short for it to matter.

    The steps go forward and backward but leave the weights; the least of a few times counts, taken in turn, so that
    load on the machine strikes both. The task is left with channels first.
    """
    memory_formats: tuple[MemoryFormat, MemoryFormat] = "contiguous", "channels-last"
    batch_rows = min(task.micro_batch_size, task.batches.batch_size, task.data.train.num_rows)
    num_steps = min(task.updater.total_steps, max_steps or task.updater.total_steps)
    try:
        with _unchanged(task):
            rows = min(FIRST_ROWS, batch_rows)
            _seconds(task, rows)  # the first call sets kernels up
            estimate = _seconds(task, rows) / rows
            run_seconds = estimate * batch_rows * num_steps
            if run_seconds < WORTH:
                return None
            budget = min(MOST, SHARE * run_seconds)
            rows = max(rows, min(batch_rows, int(budget / (4 * estimate))))  # both are warmed up and measured in it
            least: dict[MemoryFormat, float] = {}
            for memory_format in memory_formats:
                set_memory_format(task, memory_format)
                _seconds(task, rows)
            began = time.perf_counter()
            for _ in range(NUM_REPEATS):
                for memory_format in memory_formats:
                    set_memory_format(task, memory_format)
                    least[memory_format] = min(_seconds(task, rows), least.get(memory_format, float("inf")))
                if time.perf_counter() - began > budget:
                    break
            return "channels-last" if least["contiguous"] >= GAIN * least["channels-last"] else "contiguous"
    finally:
        set_memory_format(task, "contiguous")


def _has_images(task: SupervisedTask) -> bool:
    return task.data.train.image_shape is not None and any(
        isinstance(module, nn.Conv2d) for module in task.model.modules()
    )


def _seconds(task: SupervisedTask, rows: int) -> float:
    """One step forward and backward on the first `rows` training rows."""
    began = _now(task)
    features = task.data.train.features[:rows].contiguous(memory_format=task.memory_format)
    losses = task.losses(features, task.data.train.targets[:rows])
    task.updater.backward(losses, 1 / rows)
    ended = _now(task)
    for parameter in task.model.parameters():
        parameter.grad = None
    return ended - began


def _now(task: SupervisedTask) -> float:
    if task.device_context.device.type == "cuda":
        torch.cuda.synchronize(task.device_context.device)
    elif task.device_context.device.type == "mps":
        torch.mps.synchronize()
    return time.perf_counter()


@contextmanager
def _unchanged(task: SupervisedTask) -> Iterator[None]:
    """Put back what a step that leaves the weights changes: running averages, torch's generators, and whether the model
    trains."""
    buffers: list[Tensor] = [buffer.clone() for buffer in task.model.buffers()]
    training = task.model.training
    device = task.device_context.device
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        try:
            task.model.train()
            yield
        finally:
            task.model.train(training)
            for buffer, before in zip(task.model.buffers(), buffers):
                buffer.copy_(before)
