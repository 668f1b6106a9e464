"""Start a run, resume one, and finish either with a result and a report."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from quoin.data import keyed_generator
from quoin.errors import Mistake
from quoin.options import Checked, options_from_json
from quoin.recipes.running.catalogue import Recipe, find_recipe
from quoin.recipes.running.settings import Settings
from quoin.train import Ending, Loop, Place, Progress, RunFolder, Task, choose_place, describe_environment, report

__all__ = ["Finished", "resume", "start", "start_in"]


@dataclass(frozen=True)
class Finished:
    """How a run ended; `result` is None when it was interrupted."""

    folder: RunFolder
    ending: Ending
    result: dict[str, Any] | None
    report: Path
    remarks: tuple[str, ...] = ()


def start(recipe: Recipe, options: Checked, settings: Settings, runs: Path, *, visible: bool = True) -> Finished:
    """Train `recipe` in a new folder under `runs`."""
    return _start(recipe, options, settings, lambda config, environment: RunFolder.create(runs, recipe.name, config, environment), visible)


def start_in(path: Path, recipe: Recipe, options: Checked, settings: Settings, *, visible: bool = True) -> Finished:
    """Train `recipe` in the folder `path`, as a part of a study."""
    return _start(recipe, options, settings, lambda config, environment: RunFolder.create_at(path, recipe.name, config, environment), visible)


def _start(recipe: Recipe, options: Any, settings: Settings, make_folder, visible: bool) -> Finished:
    place, remarks = _place(settings)
    task = _build(recipe, options, place)
    config = {
        "options": dataclasses.asdict(options),
        "settings": dataclasses.asdict(settings),
        "data": task.facts.as_json() if task.facts else None,
    }
    folder = make_folder(config, describe_environment(place, options.seed))
    with folder.locked():
        return _train(recipe, options, settings, folder, task, visible, remarks)


def resume(path: Path, *, step: int | None = None, visible: bool = True) -> Finished:
    """Go on with the run at `path` from its newest checkpoint, or from that of `step`."""
    folder = RunFolder.open(path)
    config = folder.config
    recipe = find_recipe(folder.recipe)
    options: Any = options_from_json(recipe.options, config["options"], str(path / "config.json"))
    settings = options_from_json(Settings, config["settings"], str(path / "config.json"))
    with folder.locked():
        # The promise of equal bits holds for an equal number of threads, so a choice left to torch is remembered.
        place, remarks = _place(dataclasses.replace(settings, threads=folder.environment["threads"]))
        task = _build(recipe, options, place)
        if config["data"] and task.facts and task.facts.fingerprint != config["data"]["fingerprint"]:
            raise Mistake(f"the data of {path} ({options.data}) changed since it was started: bring them back, or train anew")
        return _train(recipe, options, settings, folder, task, visible, remarks, resuming=True, step=step)


def _place(settings: Settings) -> tuple[Place, list[str]]:
    return choose_place(
        settings.device,
        threads=settings.threads,
        precision=settings.precision,
        compile=settings.compile,
        deterministic=settings.deterministic,
    )


def _build(recipe: Recipe, options: Any, place: Place) -> Task:
    """The task, built after torch's own generator was set: dropout and its kin draw from it."""
    torch.manual_seed(keyed_generator("torch", options.seed).initial_seed())
    return recipe.build(options, place)


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
    if resuming:
        loop.resume(step)
    ending = loop.run()
    result = _result(recipe, options, task, loop, ending) if ending.finished else None
    if result is not None:
        folder.save_result(result)
    return Finished(folder, ending, result, write_report(folder, task), tuple(remarks))


def _result(recipe: Recipe, options: Any, task: Task, loop: Loop, ending: Ending) -> dict[str, Any]:
    """The final metrics of the best model, each part evaluated whole."""
    metrics = {f"{part}_{name}": value for part in ("train", "validation", "test") for name, value in task.evaluate(part).items()}
    target = recipe.target_for(options)
    return {
        "metrics": metrics,
        "target": target and target.judged(metrics[target.metric]),
        "steps": ending.step,
        "epochs": ending.epoch,
        "best_step": loop.at.best_step or ending.step,
        "seconds": round(ending.seconds, 3),
        "saving_seconds": round(ending.saving_seconds, 3),
    }


def write_report(folder: RunFolder, task: Task) -> Path:
    """The run's page, from what the folder holds and the pictures that the task can draw of itself."""
    config, result = folder.config, folder.result
    lines = folder.metrics()
    sections = []
    lead = f"Recipe {config['recipe']}, seed {config['options']['seed']}; "
    if result is None:
        lead += "interrupted: these are the curves so far."
    else:
        lead += f"{result['steps']:,} steps in {result['seconds']:.1f} s."
        sections.append(report.table("Result", ("metric", "value"), sorted(result["metrics"].items())))
        if target := result["target"]:
            row = (target["metric"], target["bound"], target["value"], target["met"])
            sections.insert(0, report.table("Target", ("metric", "target", "reached", ""), [row]))
    if lines:
        sections += report.figures(report.curve_panels({"": lines}))
    sections += report.figures(task.panels())
    sections.append("<h2>How it was run</h2>")
    sections.append(report.folded("Options", config["options"] | config["settings"]))
    if config["data"]:
        sections.append(report.folded("Data", {name: _short(value) for name, value in config["data"].items()}))
    sections.append(report.folded("Environment", folder.environment))
    return folder.save_report(report.page(folder.path.name, lead, sections))


def _short(value: Any) -> Any:
    return [*value[:12], f"... {len(value)} in all"] if isinstance(value, list) and len(value) > 12 else value
