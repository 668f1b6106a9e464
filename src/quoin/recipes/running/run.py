"""Start a run, resume one, and finish either with a result and a report."""

import dataclasses
import functools
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from quoin.data import keyed_generator
from quoin.errors import Mistake
from quoin.options import Checked
from quoin.recipes.running.asked import read_config
from quoin.recipes.running.catalogue import Recipe
from quoin.recipes.running.generative_table import beside_others
from quoin.recipes.running.inspecting import report_panels
from quoin.recipes.running.memory import memory_told
from quoin.recipes.running.settings import Settings
from quoin.train import (
    Diverged,
    Ending,
    Loop,
    Metrics,
    Place,
    Progress,
    RunFolder,
    Task,
    choose_place,
    describe_environment,
    load_strictly,
    report,
    settle_layout,
    torch_as_it_was,
)
from quoin.train.run_files import Environment, RunResult, fitting, model_weights, read_state

__all__ = [
    "BestModel",
    "Finished",
    "best_model",
    "best_task",
    "evaluate_own",
    "open_one",
    "resume",
    "resume_folder",
    "saved_state",
    "start",
    "start_member",
]


@dataclass(frozen=True)
class Finished:
    """How a run ended; `result` is None when it was interrupted."""

    folder: RunFolder
    ending: Ending
    result: RunResult | None
    report: Path


def start(recipe: Recipe, options: Checked, settings: Settings, runs: Path, *, visible: bool = True) -> Finished:
    """Train `recipe` in a new folder under `runs`."""
    return _start(recipe, options, settings, functools.partial(RunFolder.create, runs, recipe.name), visible)


def start_member(study: RunFolder, name: str, recipe: Recipe, options: Checked, settings: Settings, *, visible: bool = True) -> Finished:
    """Train `recipe` in the folder `name` of a study."""
    return _start(recipe, options, settings, functools.partial(RunFolder.create_member, study, name, recipe.name), visible)


@torch_as_it_was()
def _start(recipe: Recipe, options: Any, settings: Settings, make_folder, visible: bool) -> Finished:
    if options.patience and recipe.goal is None:
        raise Mistake(f"--patience {options.patience}: {recipe.name} keeps its last weights and has no metric to wait for; leave it out")
    place, remarks = _place(settings)
    task = _build(recipe, options, place)
    if place.compiled_nothing:
        remarks.append(f"--compile changes nothing here: {recipe.name} has no step that can be compiled")
    if micro_batch := getattr(options, "micro_batch", 0):
        pieces = -(-options.batch_size // micro_batch)
        remarks.append(f"each batch of {options.batch_size} is worked off in {pieces} micro-batches of at most {micro_batch}")
    with memory_told():
        layout, remark = settle_layout(task, settings.layout, max_steps=settings.max_steps)
    settings = dataclasses.replace(settings, layout=layout)  # resolved: a resumed run asks no clock
    remarks += [remark] if remark else []
    config = {
        "options": dataclasses.asdict(options),
        "settings": dataclasses.asdict(settings),
        "data": task.facts.as_json() if task.facts else None,
    }
    folder = make_folder(config, describe_environment(place, options.seed))
    with folder.locked():
        return _train(recipe, options, settings, folder, task, visible, remarks)


@torch_as_it_was()
def resume(path: Path, *, step: int | None = None, visible: bool = True) -> Finished:
    """Go on with the run at `path` from its newest checkpoint, or from that of `step`."""
    return resume_folder(open_one(path), step=step, visible=visible)


def resume_folder(folder: RunFolder, *, step: int | None = None, visible: bool = True) -> Finished:
    """Go on with a run that is open already."""
    _refuse_study(folder)
    recipe, options, settings = read_config(folder)
    with folder.locked():
        place, remarks = _place(_as_begun(folder, settings))
        remarks += _changed(folder.environment, describe_environment(place, options.seed))
        task = _build_again(recipe, options, settings, place)
        check_data_unchanged(folder, task)
        return _train(recipe, options, settings, folder, task, visible, remarks, resuming=True, step=step)


def _place(settings: Settings) -> tuple[Place, list[str]]:
    return choose_place(
        settings.device,
        threads=settings.threads,
        precision=settings.precision,
        compile=settings.compile,
        deterministic=settings.deterministic,
    )


def _as_begun(folder: RunFolder, settings: Settings) -> Settings:
    """The promise of equal bits holds for an equal number of threads, so a choice that was left to torch is remembered."""
    threads = folder.environment.get("threads")
    if not isinstance(threads, int):
        raise Mistake(f"{folder.path / 'environment.json'} has no number of threads: restore it or train again")
    return dataclasses.replace(settings, threads=threads)


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


def _build_again(recipe: Recipe, options: Any, settings: Settings, place: Place) -> Task:
    """The task of a run that was begun, in the layout it was begun with."""
    task = _build(recipe, options, place)
    settle_layout(task, "channels-first" if settings.layout == "auto" else settings.layout)
    return task


def _train(
    recipe: Recipe,
    options: Any,
    settings: Settings,
    folder: RunFolder,
    task: Task,
    visible: bool,
    remarks: list[str],
    *,
    resuming: bool = False,
    step: int | None = None,
) -> Finished:
    loop = Loop(
        task,
        folder,
        epochs=options.epochs,
        goal=recipe.goal,
        patience=options.patience,
        checkpoint_every=settings.checkpoint_every,
        max_steps=settings.max_steps,
        progress=Progress(recipe.name, visible=visible),
    )
    for remark in remarks:
        loop.progress.say(remark)
    with memory_told():
        if resuming:
            loop.resume(step)
            if not loop.at.finished:
                folder.forget_result()
        ending = loop.run()
    result = _result(recipe, options, task, loop, ending) if ending.finished else None
    if result is not None:
        folder.save_result(result)
    return Finished(folder, ending, result, write_report(folder, task, result))


@torch_as_it_was()
def evaluate_own(path: Path, *, step: int | None = None) -> Metrics:
    """The metrics of a run's best model so far, on the parts of its own data."""
    _, task = best_task(path, step=step)
    return final_metrics(task)


def best_task(path: Path, *, step: int | None = None) -> tuple[RunFolder, Task]:
    """A run's folder and its task, its own data loaded again and the best model so far in it."""
    folder = open_one(path)
    recipe, options, settings = read_config(folder)
    place, _ = _place(_as_begun(folder, settings))
    task = _build_again(recipe, options, settings, place)
    check_data_unchanged(folder, task)
    loop = Loop(task, folder, epochs=options.epochs)
    state, _ = saved_state(folder, step)
    loop.load(state)
    loop.take_best()
    return folder, task


def saved_state(folder: RunFolder, step: int | None) -> tuple[Any, int]:
    """The newest state of a run, or that of `step`, and its step; there must be one."""
    found = folder.load_checkpoint(step)
    if found is None:
        raise Mistake(f"{folder.path} has no checkpoint yet: let it train for a while, or `quoin resume {folder.path}`")
    return found


class BestModel(NamedTuple):
    """The model of a run at its best by validation, or at its end where nothing is chosen; `saved` is all that was kept with it."""

    recipe: Recipe
    options: Any
    model: nn.Module
    saved: dict[str, Any]
    step: int


def best_model(folder: RunFolder, facts: Any, step: int | None) -> BestModel:
    """The best model that the newest checkpoint, or that of `step`, knows; `facts` are what the recipe's model must know of its data."""
    recipe, options, _ = read_config(folder)
    state, at = saved_state(folder, step)
    where = f"the checkpoint of {folder.path}"
    told = read_state(state, where)
    saved: Any = told["best"] or told["task"].get("model")
    weights = model_weights(saved, f"{where}, model")
    with fitting(str(folder.path / "config.json")), memory_told():
        model = recipe.model(options, facts)
    with fitting(where):
        load_strictly(model, weights)
    return BestModel(recipe, options, model.eval(), saved, at)


def open_one(path: Path) -> RunFolder:
    """The folder of one run; that of a study holds several."""
    folder = RunFolder.open(path)
    _refuse_study(folder)
    return folder


def _refuse_study(folder: RunFolder) -> None:
    if study := folder.study:
        raise Mistake(f"{folder.path} holds several runs: name one of the folders inside it, such as {folder.path}/{study['over']}-0")


def check_data_unchanged(folder: RunFolder, task: Task) -> None:
    told = folder.config["data"]
    if told and task.facts and task.facts.fingerprint != told.get("fingerprint"):
        raise Mistake(f"the data of {folder.path} changed since it was started: bring them back, or train anew")


def final_metrics(task: Task) -> Metrics:
    """Every part evaluated whole."""
    return {f"{part}_{name}": value for part in ("train", "validation", "test") for name, value in task.evaluate(part).items()}


def _result(recipe: Recipe, options: Any, task: Task, loop: Loop, ending: Ending) -> RunResult:
    metrics = final_metrics(task)
    if bad := [name for name, value in metrics.items() if not math.isfinite(value)]:
        raise Diverged(f"{bad[0]} is not finite after step {ending.step}; try a smaller --lr, or --clip 1")
    target = recipe.target_for(options)
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


def write_report(folder: RunFolder, task: Task, result: RunResult | None) -> Path:
    """The run's page, from what the folder holds and the pictures that the task can draw of itself."""
    config, lines = folder.config, folder.metrics()
    sections = []
    lead = f"Recipe {config['recipe']}, seed {config['options']['seed']}; "
    if result is None:
        lead += "interrupted: these are the curves so far."
    else:
        lead += f"{result['steps']:,} steps in {result['seconds']:.1f} s."
        best = next((line for line in lines if line["step"] == result["best_step"]), None)
        if best is not None and result["best_step"] < result["steps"]:
            lead += f" The result is that of the best model by validation, of epoch {best['epoch']:g}."
        sections.append(report.metrics_table(result["metrics"]))
        sections += beside_others(folder)
        if target := result["target"]:
            row = (target["metric"], target["bound"], target["value"], target["met"])
            sections.insert(0, report.table("Target", ("metric", "target", "reached", ""), [row]))
    if lines:
        sections += report.figures(lambda: report.curve_panels({"": lines}))
    sections += report.figures(task.panels, lambda: report_panels(task))
    sections.append("<h2>How it was run</h2>")
    sections.append(report.folded("Options", config["options"] | config["settings"]))
    if config["data"]:
        sections.append(report.folded("Data", {name: _short(value) for name, value in config["data"].items()}))
    sections.append(report.folded("Environment", folder.environment))
    return folder.save_report(report.page(folder.path.name, lead, sections))


def _short(value: Any) -> Any:
    return [*value[:12], f"... {len(value)} in all"] if isinstance(value, list) and len(value) > 12 else value
