"""Start a run, resume one, and finish either with a result and a report."""

import dataclasses
import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from quoin.data import keyed_generator
from quoin.errors import Mistake
from quoin.options import Checked
from quoin.runs.catalog import Recipe
from quoin.runs.out_of_memory import memory_told
from quoin.runs.report import write_report
from quoin.runs.run import Run
from quoin.runs.run_config import RunConfig
from quoin.tasks.memory_format import settle_layout
from quoin.train import (
    Ending,
    Loop,
    Metrics,
    Place,
    Progress,
    RunFolder,
    Task,
    check_finite,
    choose_place,
    describe_environment,
    torch_as_it_was,
)
from quoin.train.run_files import Environment, RunResult

__all__ = ["Finished", "final_metrics", "fit", "fit_member", "load_task", "resume", "resume_run"]


@dataclass(frozen=True)
class Finished:
    """How a run ended; `result` is None when it was interrupted."""

    folder: RunFolder
    ending: Ending
    result: RunResult | None
    report: Path
    was_finished: bool = False  # before it was resumed


def fit(recipe: Recipe, options: Checked, run_config: RunConfig, runs: Path, *, show_progress: bool = True) -> Finished:
    """Train `recipe` in a new folder under `runs`."""
    return _fit(recipe, options, run_config, functools.partial(RunFolder.create, runs, recipe.name), show_progress)


def fit_member(
    multirun: RunFolder, name: str, recipe: Recipe, options: Checked, run_config: RunConfig, *, show_progress: bool = True
) -> Finished:
    """Train `recipe` in the folder `name` of a multirun."""
    return _fit(recipe, options, run_config, functools.partial(RunFolder.create_member, multirun, name, recipe.name), show_progress)


@torch_as_it_was()
def _fit(recipe: Recipe, options: Any, run_config: RunConfig, make_folder, show_progress: bool) -> Finished:
    if options.patience and recipe.monitor is None:
        raise Mistake(f"--patience {options.patience}: {recipe.name} keeps its last weights and has no metric to wait for; leave it out")
    place, remarks = _place(run_config)
    task = _build(recipe, options, place)
    if place.compiled_nothing:
        remarks.append(f"--compile changes nothing here: {recipe.name} has no step that can be compiled")
    if micro_batch := getattr(options, "micro_batch", 0):
        pieces = -(-options.batch_size // micro_batch)
        remarks.append(f"each batch of {options.batch_size} is worked off in {pieces} micro-batches of at most {micro_batch}")
    with memory_told():
        layout, remark = settle_layout(task, run_config.layout, max_steps=run_config.max_steps)
    run_config = dataclasses.replace(run_config, layout=layout)  # resolved: a resumed run asks no clock
    remarks += [remark] if remark else []
    config = {
        "kind": task.kind,
        "options": dataclasses.asdict(options),
        "settings": dataclasses.asdict(run_config),
        "data": task.facts.as_json() if task.facts else None,
    }
    folder = make_folder(config, describe_environment(place, options.seed))
    with folder.locked():
        return _train(Run(folder), task, show_progress, remarks)


@torch_as_it_was()
def resume(path: Path | str, *, step: int | None = None, show_progress: bool = True) -> Finished:
    """Go on with the run at `path` from its newest checkpoint, or from that of `step`; of a finished run, the result it has."""
    return resume_run(Run.open(path, step=step), show_progress=show_progress)


def resume_run(run: Run, *, show_progress: bool = True) -> Finished:
    """Go on with a run that is open already."""
    run.check_single()
    if run.step is None and (stored := _stored(run)) is not None:
        return stored
    with run.folder.locked():
        place, remarks = _place(_as_begun(run))
        remarks += _changed(run.folder.environment, describe_environment(place, run.options.seed))
        task = _build_again(run, place)
        check_data_unchanged(run, task)
        return _train(run, task, show_progress, remarks, resuming=True)


def _stored(run: Run) -> Finished | None:
    """How a run ended that is finished and has its report: told without loading its data."""
    result: Any = run.folder.result
    if result is None or not run.folder.has("report.html"):
        return None
    ending = Ending(True, result["steps"], result["epochs"], result["seconds"], result["saving_seconds"])
    return Finished(run.folder, ending, result, run.path / "report.html", was_finished=True)


def _place(config: RunConfig) -> tuple[Place, list[str]]:
    return choose_place(
        config.device,
        threads=config.threads,
        precision=config.precision,
        compile=config.compile,
        deterministic=config.deterministic,
    )


def _as_begun(run: Run) -> RunConfig:
    """The promise of equal bits holds for an equal number of threads, so a choice that was left to torch is remembered."""
    threads = run.folder.environment.get("threads")
    if not isinstance(threads, int):
        raise Mistake(f"{run.path / 'environment.json'} has no number of threads: restore it or train again")
    return dataclasses.replace(run.run_config, threads=threads)


def _changed(before: Environment, now: dict[str, Any]) -> list[str]:
    """A remark where the run goes on with something else than it began with: equal bits are then not promised."""
    names = ("quoin", "torch", "device", "device_name", "system")
    changes = [f"{name} {before[name]} is now {now[name]}" for name in names if name in before and before[name] != now[name]]
    return [f"{'; '.join(changes)}: the run goes on, but not to the bits it would have had"] if changes else []


def _build(recipe: Recipe, options: Any, place: Place) -> Task:
    """The task, built after torch's own generator was set: dropout and its kin draw from it."""
    torch.manual_seed(keyed_generator("torch", options.seed).initial_seed())
    with memory_told():
        return recipe.build(options, place)


def _build_again(run: Run, place: Place) -> Task:
    """The task of a run that was begun, in the layout it was begun with."""
    task = _build(run.recipe, run.options, place)
    settle_layout(task, "channels-first" if run.run_config.layout == "auto" else run.run_config.layout)
    return task


def _train(run: Run, task: Task, show_progress: bool, remarks: list[str], *, resuming: bool = False) -> Finished:
    options, folder = run.options, run.folder
    loop = Loop(
        task,
        folder,
        epochs=options.epochs,
        monitor=run.recipe.monitor,
        patience=options.patience,
        checkpoint_every=run.run_config.checkpoint_every,
        max_steps=run.run_config.max_steps,
        progress=Progress(run.recipe.name, visible=show_progress),
    )
    for remark in remarks:
        loop.progress.say(remark)
    with memory_told():
        if resuming:
            loop.resume(run.step)
            if not loop.at.finished:
                folder.forget_result()
        ending = loop.run()
    result = _result(run, task, loop, ending) if ending.finished else None
    if result is not None:
        folder.save_result(result)
    return Finished(folder, ending, result, write_report(run, task, result))


def load_task(run: Run) -> Task:
    """The task of a run, its own data loaded again and the best model so far in it."""
    run.check_single()
    place, _ = _place(_as_begun(run))
    task = _build_again(run, place)
    check_data_unchanged(run, task)
    loop = Loop(task, run.folder, epochs=run.options.epochs)
    state, _ = run.load_state()
    loop.load(state)
    loop.take_best()
    return task


def check_data_unchanged(run: Run, task: Task) -> None:
    told = run.folder.config["data"]
    if told and task.facts and task.facts.fingerprint != told.get("fingerprint"):
        raise Mistake(f"the data of {run.path} changed since it was started: bring them back, or train anew")


def final_metrics(task: Task) -> Metrics:
    """Every part evaluated whole."""
    return {f"{part}_{name}": value for part in ("train", "validation", "test") for name, value in task.evaluate(part).items()}


def _result(run: Run, task: Task, loop: Loop, ending: Ending) -> RunResult:
    metrics = final_metrics(task)
    check_finite(metrics, f"after step {ending.step}")
    target = run.recipe.target_for(run.options)
    judged: Any = target and target.judged(metrics[target.metric])
    return {
        "metrics": metrics,
        "target": judged,
        "steps": ending.step,
        "epochs": ending.epoch,
        "best_step": loop.at.best_step or ending.step,
        "seconds": round(ending.seconds, 3),
        "saving_seconds": round(ending.saving_seconds, 3),
    }
