"""Plans beside what runs: memory and time of a step, predicted by `quoin.runs.plan` and measured here.

    python -m quoin.bench.plan_check [RECIPE ...]

The memory that runs is the peak of what torch's profiler sees allocated during a step, beside weights and optimizer
state; its time is the least of many steps, before and after the prediction is made, for other programs disturb both.
"""

import statistics
import sys
import time
from typing import Any, NamedTuple

import torch
from torch.profiler import ProfilerActivity, profile

from quoin.runs.catalog import find_recipe
from quoin.runs.fit import build_task
from quoin.runs.plan import make_plan
from quoin.runs.plan_kernels import clock
from quoin.runs.plan_task import find_updaters
from quoin.runs.run_config import RunConfig
from quoin.train import DeviceContext

__all__ = ["RECIPES", "Measured", "allocated_peak", "measured_step"]

RECIPES = ("mlp", "lenet", "transformer-lm", "vae", "lstm-lm")
SECONDS = 1.5  # for the steps of a recipe, before and after


class Measured(NamedTuple):
    """A task that is trained for some steps, and what it holds."""

    task: Any
    rows: torch.Tensor


def measured_step(name: str, options: Any) -> Measured:
    """The task of a recipe after its first step, which gives the optimizer its state."""
    task: Any = build_task(find_recipe(name), options.resolved(), DeviceContext())
    rows = next(iter(task.batches))
    task.step(rows)
    return Measured(task, rows)


def allocated_peak(measured: Measured) -> int:
    """Bytes: weights, buffers, moving average and optimizer state, and the most that a step allocates beside them."""
    updaters = list(find_updaters(measured.task))
    held: list[torch.Tensor] = []
    for each in updaters:
        each.zero_grad()
        models = [each.model] if each.ema is None else [each.model, each.ema.module]
        held += [tensor for model in models for tensor in (*model.parameters(), *model.buffers())]
        held += [value for state in each.optimizer.state.values() for value in state.values() if torch.is_tensor(value)]
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        measured.task.step(measured.rows)
    results: Any = profiler.profiler.kineto_results  # type: ignore[union-attr]
    events = sorted((event.start_ns(), event.nbytes()) for event in results.events() if event.name() == "[memory]")
    live = peak = 0
    for _, num_bytes in events:
        live += num_bytes
        peak = max(peak, live)
    return sum(each.nbytes for each in held) + peak


def step_seconds(measured: Measured, seconds: float) -> list[float]:
    """The times of steps, for so long."""
    found, end, now = [], time.perf_counter() + seconds, clock("cpu")
    while len(found) < 5 or time.perf_counter() < end:
        began = now()
        measured.task.step(measured.rows)
        found.append(now() - began)
    return found


def main(names: tuple[str, ...]) -> None:
    """Print the table."""
    print(f"{torch.get_num_threads()} threads, torch {torch.__version__}")
    columns = ("memory: plan", "allocated", "ratio", "step: plan", "least", "median", "ratio")
    print(f"{'recipe':<18}" + "".join(f"{each:>14}" for each in columns))
    for name in names:
        recipe = find_recipe(name)
        options = recipe.options()
        measured = measured_step(name, options)
        allocated = allocated_peak(measured)
        steps = step_seconds(measured, SECONDS)
        plan = make_plan(recipe, options, RunConfig(device="cpu", num_threads=torch.get_num_threads()))
        steps += step_seconds(measured, SECONDS)
        cells = (
            f"{plan.memory.peak / 1e6:.3f} MB",
            f"{allocated / 1e6:.3f} MB",
            f"{plan.memory.peak / allocated:.2f}",
            f"{plan.step_seconds * 1e3:.3f} ms",
            f"{min(steps) * 1e3:.3f} ms",
            f"{statistics.median(steps) * 1e3:.3f} ms",
            f"{plan.step_seconds / min(steps):.2f}",
        )
        print(f"{name:<18}" + "".join(f"{each:>14}" for each in cells))


if __name__ == "__main__":
    main(tuple(sys.argv[1:]) or RECIPES)
