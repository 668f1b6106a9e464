"""How images and kernels lie in memory, channels first or last: the same numbers, walked through in another order.

Which order is quicker depends on the network, the machine and its kernels, so for a long run it is measured: a few training steps
in either. They change nothing of the run; the layout itself changes the last bits, and where dropout falls, so a run remembers the
one it began with.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import torch
from torch import Tensor, nn

from quoin.errors import Mistake
from quoin.tasks.supervised import SupervisedTask
from quoin.train import Task

__all__ = ["Layout", "lay_out", "quicker_layout", "settle_layout"]

Layout = Literal["channels-first", "channels-last"]

GAIN = 1.03  # channels last must be so many times as quick: below that the choice would be the noise's
WORTH = 60.0  # seconds: a shorter run saves little, and keeps its promise that one seed gives the same bits twice
FIRST_ROWS = 8  # of the first, short steps, by which the others are planned
STEP_SECONDS = 0.05  # a measured step takes fewer rows than the run's if those would take longer
BUDGET = 0.5  # seconds of measuring, warm-up aside
ROUNDS = 5


def settle_layout(task: Task, asked: str, *, max_steps: int = 0) -> tuple[str, str]:
    """Lay `task` out as `asked`, "auto" by measuring; the layout that a run must remember, and what to tell the user, if anything.

    Where nothing is to be chosen "auto" stays, and means channels first: without images and kernels, and where the clock must not decide
    (deterministic) or would time the wrong thing (a compiled step chooses layouts of its own between the convolutions).
    """
    if not isinstance(task, SupervisedTask) or not _has_images(task):
        if asked == "channels-last":
            raise Mistake("expected images and 2-D convolutions for --layout channels-last, came a model or data without; leave it out")
        return asked, ""
    if asked != "auto":
        lay_out(task, "channels-last" if asked == "channels-last" else "channels-first")
        return asked, ""
    if task.place.compile or torch.are_deterministic_algorithms_enabled():
        return asked, ""
    chosen = quicker_layout(task, max_steps=max_steps)
    if chosen is None:
        return "channels-first", ""
    lay_out(task, chosen)
    return chosen, f"layout: {chosen} was the quicker, so measured; --layout {chosen} pins it"


def lay_out(task: SupervisedTask, layout: Layout) -> None:
    """Put the kernels of `task` into `layout`, and from now on every batch; values stay as they are, gradients are dropped."""
    task.memory_format = torch.channels_last if layout == "channels-last" else torch.contiguous_format
    for parameter in task.model.parameters():
        if parameter.ndim == 4:
            # Not `.to`, which leaves a 1 x 1 kernel as it lies: its strides, and with them torch's kernel, would tell of the past.
            anew = torch.empty(parameter.shape, dtype=parameter.dtype, device=parameter.device, memory_format=task.memory_format)
            parameter.data = anew.copy_(parameter.data)
            parameter.grad = None


def quicker_layout(task: SupervisedTask, *, max_steps: int = 0) -> Layout | None:
    """The layout in which a training step of `task` takes less time, or None if the run is too short for it to matter.

    The steps go forward and backward but do not update; the least of a few times counts, taken in turn, so that load on the machine
    strikes both. The task is left with channels first.
    """
    layouts: tuple[Layout, Layout] = "channels-first", "channels-last"
    batch_rows = min(task.micro_batch, task.batches.batch_size, task.data.train.num_rows)
    num_steps = min(task.updater.total_steps, max_steps or task.updater.total_steps)
    try:
        with _unchanged(task):
            rows = min(FIRST_ROWS, batch_rows)
            _seconds(task, rows)  # the first call sets kernels up
            estimate = _seconds(task, rows) / rows
            if estimate * batch_rows * num_steps < WORTH:
                return None
            rows = max(rows, min(batch_rows, int(STEP_SECONDS / estimate)))
            least: dict[Layout, float] = {}
            for layout in layouts:
                lay_out(task, layout)
                _seconds(task, rows)
            began = time.perf_counter()
            for _ in range(ROUNDS):
                for layout in layouts:
                    lay_out(task, layout)
                    least[layout] = min(_seconds(task, rows), least.get(layout, float("inf")))
                if time.perf_counter() - began > BUDGET:
                    break
            return "channels-last" if least["channels-first"] >= GAIN * least["channels-last"] else "channels-first"
    finally:
        lay_out(task, "channels-first")


def _has_images(task: SupervisedTask) -> bool:
    return task.data.train.image_shape is not None and any(isinstance(module, nn.Conv2d) for module in task.model.modules())


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
    if task.place.device.type == "cuda":
        torch.cuda.synchronize(task.place.device)
    elif task.place.device.type == "mps":
        torch.mps.synchronize()
    return time.perf_counter()


@contextmanager
def _unchanged(task: SupervisedTask) -> Iterator[None]:
    """Put back what a step without an update changes: running averages, torch's generators, and whether the model trains."""
    buffers: list[Tensor] = [buffer.clone() for buffer in task.model.buffers()]
    training = task.model.training
    device = task.place.device
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        try:
            task.model.train()
            yield
        finally:
            task.model.train(training)
            for buffer, before in zip(task.model.buffers(), buffers):
                buffer.copy_(before)
