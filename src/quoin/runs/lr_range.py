"""The learning-rate range test of a recipe on its data: what `quoin lr` shows and `--lr auto` takes.

The task is built as for a run, trained for some steps while the learning rate rises, and thrown away: nothing of it
reaches the run that follows, and nothing is written.
"""

from collections.abc import Iterator
from typing import Any

from torch import Tensor

from quoin import plot
from quoin.errors import UserError
from quoin.optim import LRRangeTest, lr_range_test
from quoin.runs.catalog import Recipe
from quoin.runs.environment import device_context_for
from quoin.runs.fit import begin_task
from quoin.runs.out_of_memory import explain_out_of_memory
from quoin.runs.run_config import RunConfig
from quoin.tasks.gan import GANTask
from quoin.tasks.memory_format import choose_memory_format
from quoin.tasks.options import GradientOptions
from quoin.train import GradientTask, GradientUpdater, MeanMetrics, NonFiniteLossError, Progress, Task, torch_as_it_was

__all__ = ["find_lr", "plot_lr_range"]


@torch_as_it_was()
def find_lr(
    recipe: Recipe,
    options: Any,  # those of the recipe
    run_config: RunConfig,
    *,
    min_lr: float = 1e-6,
    max_lr: float = 10.0,
    num_steps: int = 100,
    show_progress: bool = True,
) -> LRRangeTest:
    """Train `recipe` for `num_steps` while the learning rate rises from `min_lr` to `max_lr`, in place of its schedule.

    A function of the options and the data: the same seed finds the same learning rate.
    """
    options = options.resolved()
    if not isinstance(options, GradientOptions):
        raise UserError(f"recipe {recipe.name} follows no gradient of its own --lr: there is none to find")
    device_context, _ = device_context_for(run_config)
    task: Any = begin_task(recipe, options, device_context)[0]
    updaters = list(_updaters(task))
    if isinstance(task, GANTask):
        raise UserError(
            f"expected one loss that falls, but {recipe.name} plays two against each other: give --lr a number"
        )
    choose_memory_format(task, "contiguous" if run_config.memory_format == "auto" else run_config.memory_format)
    rows, progress = _rows(task), Progress(f"{recipe.name} lr", show_progress=show_progress)

    def step(lr: float) -> float:
        for updater in updaters:  # groups of different learning rates keep their ratios
            updater.schedule = lambda progress: lr / options.lr
        batch = next(rows)
        try:
            loss = float(task.step(batch)["loss"]) / len(batch)
        except NonFiniteLossError:
            loss = float("nan")
        progress.advance(0, updaters[0].step_count, MeanMetrics())
        return loss

    with explain_out_of_memory(), progress.open(1, num_steps):
        return lr_range_test(step, min_lr=min_lr, max_lr=max_lr, num_steps=num_steps)


def plot_lr_range(found: LRRangeTest, title: str = "") -> plot.Plot:
    """The loss by learning rate, as it came and smoothed, and where the proposal lies."""
    top = max(found.smoothed)  # a single loss may be far above all others
    raw = [loss if loss <= top else float("nan") for loss in found.losses]
    return plot.curves(
        {"loss": (found.lrs, raw), "smoothed": (found.lrs, found.smoothed)},
        title=title,
        x_label="learning rate",
        y_label="training loss",
        log_x=True,
        vertical_lines={"suggestion": found.suggestion, "least loss": found.max_stable_lr},
    )


def _rows(task: Task) -> Iterator[Tensor]:
    """Batches in the order of training, epoch after epoch."""
    while True:
        yield from task.batches


def _updaters(thing: Any) -> Iterator[GradientUpdater]:
    """Every optimizer of a task, and of the tasks that are trained beside it."""
    if isinstance(thing, GradientUpdater):
        yield thing
    elif isinstance(thing, dict):
        for each in thing.values():
            yield from _updaters(each)
    elif isinstance(thing, (GradientTask, Task)):
        yield from _updaters(vars(thing))
