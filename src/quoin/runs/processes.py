"""A run in several processes: what they can train, how the folder is opened for all, and what is told when one dies."""

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from quoin.errors import UserError
from quoin.runs.catalog import Recipe
from quoin.runs.run import Run
from quoin.runs.run_code import CodeAccess, check_access
from quoin.runs.run_config import RunConfig
from quoin.tasks.memory_format import choose_memory_format
from quoin.train import DeviceContext, RunFolder, Task
from quoin.train.gradient_task import runs_in_processes
from quoin.train.interrupt import Interrupt
from quoin.train.processes import from_main, is_main, join_processes, lost_process, num_processes
from quoin.train.shared_folder import shared_folder

__all__ = ["LostProcessError", "check_processes", "explain_lost_process", "memory_format_for_all", "open_run_for_all"]


class LostProcessError(UserError):
    """Another process of the run is gone: a failed run, not a misuse."""

    exit_code = 1


def check_processes(recipe: Recipe, task: Task, device_context: DeviceContext) -> None:
    """Raise an error where several processes cannot train this task together."""
    world_size = device_context.world_size
    if world_size == 1:
        return
    if not runs_in_processes(task):
        raise UserError(f"{recipe.name} is made for one process, got {world_size}: leave --processes and torchrun out")
    rows = min(task.batches.batch_size, task.batches.num_rows)
    if rows < world_size:
        raise UserError(
            f"{world_size} processes need at least as many rows in a batch, got {rows}; start fewer, or give a larger "
            "--batch-size"
        )


def memory_format_for_all(task: Task, config: RunConfig) -> tuple[str, str]:
    """The memory format of images, which the main process measures where it is to be measured, and what there is to say
    of it."""
    if num_processes() == 1:
        return choose_memory_format(task, config.memory_format, max_steps=config.max_steps)
    if config.shard and config.memory_format == "auto":
        return choose_memory_format(task, "contiguous")
    found = from_main(choose_memory_format(task, config.memory_format, max_steps=config.max_steps) if is_main() else 0)
    if not is_main():
        choose_memory_format(task, found[0])
    return found[0], found[1]


def open_run_for_all(path: Path, *, step: int | None, data_now: str | None, code: CodeAccess) -> Run:
    """The run at `path`, which the main process opens, in every process."""
    join_processes()
    folder = shared_folder(lambda: RunFolder.open(path))
    check_access(folder, code)
    return Run(folder, step=step, data_now=data_now, code=code)


@contextmanager
def explain_lost_process(folder: RunFolder) -> Iterator[None]:
    """A process that is gone, in one line with what to do."""
    if num_processes() == 1:
        yield
        return
    # torchrun ends the others by a signal, which must not come before the line.
    with Interrupt() as interrupt:
        try:
            yield
        except RuntimeError as error:
            if not lost_process(error):
                raise
            interrupt.stay()
            words = f"quoin resume {shlex.quote(os.path.relpath(folder.path))}"
            raise LostProcessError(
                f"another of the {num_processes()} processes is gone, and the run with it; go on from its last "
                f"checkpoint with: {words}"
            ) from error
