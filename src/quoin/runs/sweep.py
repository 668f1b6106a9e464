"""A sweep: many trials of a recipe, each with other options; the best by the mean over seeds on validation.

    runs/sweep-<recipe>-<n>/
      config.json        what is searched and how; the options that are the same in all trials
      journal.jsonl      the trials, by Optuna; or elsewhere, as --storage says
      locks/             one a trial, held while it is trained
      trial-0/, ...      each a run, or a multirun over seeds
      result.json, report.html

Killed, it is resumed like a run: what is finished stays, what was begun goes on, the rest starts. Other processes may
join it meanwhile, by its folder or by its storage.
"""

import dataclasses
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from quoin.callbacks import current_listener
from quoin.errors import UserError
from quoin.own_code import is_code_reference, load_object
from quoin.processor import num_cores
from quoin.runs.catalog import Recipe
from quoin.runs.environment import device_context_for, package_as_json
from quoin.runs.fit import begin_task, check_data_unchanged
from quoin.runs.jobs import with_threads
from quoin.runs.kinds import SWEEP
from quoin.runs.paths import options_here
from quoin.runs.run import Run
from quoin.runs.run_code import UsedCode, access_to, code_as_json, code_of, save_code
from quoin.runs.run_config import RunConfig
from quoin.runs.run_label import NO_LABEL, RunLabel
from quoin.runs.sweep_page import sweep_page
from quoin.runs.sweep_result import sweep_result
from quoin.runs.sweep_space import Space, SweepChoices, check_space, grid_size, space_from_json, space_to_json
from quoin.runs.sweep_storage import ClaimedTrial, TrialStorage, check_storage_name, import_optuna
from quoin.runs.sweep_trial import SweepStopped, check_trial_is_free, only_failures, pruning_callback, train_trial
from quoin.runs.sweep_workers import run_workers
from quoin.tasks.memory_format import choose_memory_format
from quoin.train import NonFiniteLossError, RunFolder, Task, torch_as_it_was
from quoin.train.interrupt import Interrupt
from quoin.train.monitor import check_monitored
from quoin.train.run_files import SweepConfig, SweepResultFile

__all__ = ["Sweep", "SweepProgress", "SweepResult", "fit_sweep", "resume_sweep"]

DEFAULT_TRIALS = 20
SweepProgress = Callable[[int, int, float | None], None]  # so many trials are done, of so many; the best value so far


@dataclass(frozen=True)
class Sweep:
    """What is searched, and how.

    Args:
        num_trials: 0 for all of a grid, and 20 of the other samplers.
        storage: sqlite:///FILE or journal:FILE; a journal in the sweep's folder unless given.
        num_jobs: Trials side by side, each in a process of its own.
    """

    space: Space
    sampler: Literal["grid", "random", "tpe"] = "tpe"
    pruner: Literal["none", "median", "hyperband"] = "none"
    num_trials: int = 0
    num_seeds: int = 1
    num_jobs: int = 1
    storage: str = ""


@dataclass(frozen=True)
class SweepResult:
    """How a sweep ended. `result` is None where it was interrupted, or where trials are left to another folder."""

    run: Run
    storage: TrialStorage
    space: Space
    result: SweepResultFile | None
    report: Path | None
    interrupted: bool = False


def fit_sweep(
    recipe: Recipe,
    options: Any,
    run_config: RunConfig,
    sweep: Sweep,
    runs: Path,
    *,
    label: RunLabel = NO_LABEL,
    progress: SweepProgress | None = None,
) -> SweepResult:
    """Make the folder and train every trial, or join the sweep of that name if it is the same.

    Args:
        options: Those of the recipe that are the same in all trials.
    """
    import_optuna()
    name = label.name
    if not sweep.space:
        raise UserError("nothing to sweep over: give an option several values, such as --lr 1e-3..1e-1:log")
    check_storage_name(sweep.storage)
    check_space(options, sweep.space)
    options = dataclasses.replace(options, **{each: space.ends()[0] for each, space in sweep.space.items()})
    sweep, run_config = _settled(sweep, options, run_config)
    monitor = recipe.monitor_for(options)
    config: SweepConfig = {
        "id": uuid.uuid4().hex,
        "space": space_to_json(sweep.space),
        "sampler": sweep.sampler,
        "pruner": sweep.pruner,
        "trials": sweep.num_trials,
        "seeds": sweep.num_seeds,
        "metric": monitor.metric if monitor else "validation_loss",
        "greater_is_better": monitor.greater_is_better if monitor else False,
        "storage": sweep.storage,
        "jobs": sweep.num_jobs,
    }
    if "pretrained" not in sweep.space:  # whose hash each trial finds for itself
        options = options.resolved()
    resolved = dataclasses.asdict(options)
    if name and (runs / name / "config.json").exists():
        code = code_of(recipe, options, _named_code(sweep.space))
        folder = RunFolder.open(runs / name)
        if folder.sweep is None or folder.config["recipe"] != recipe.name:
            raise UserError(f"{runs / name} is there already and is no sweep of {recipe.name}: choose another --name")
        there = Run(folder, recipe=recipe, code=access_to(code))
        _check_same(there, config, resolved, run_config, code)
        return resume_sweep(there, progress=progress)
    for reference in _named_code(sweep.space):
        load_object(reference, "what the option takes")  # one that is not there is told now
    task = _tried(recipe, options, run_config, config)
    # Once for all trials: the last bits depend on it, and a clock would choose another way in another trial.
    layout, _ = choose_memory_format(task, run_config.memory_format, max_steps=run_config.max_steps)
    run_config = dataclasses.replace(run_config, memory_format=layout)  # type: ignore[arg-type]
    code = code_of(recipe, options, _named_code(sweep.space))
    whole = {
        "recipe": recipe.name,  # the folder is called by another name
        "kind": SWEEP,
        "options": resolved,
        "settings": dataclasses.asdict(run_config),
        "sweep": config,
        "data": task.data_info.as_json() if task.data_info else None,
        "code": code_as_json(code),
        **package_as_json(recipe),
        **label.as_json(),
    }
    del task  # its memory is for the trials
    folder = RunFolder.create(runs, f"sweep-{recipe.name}", whole, {}, name=name)
    try:
        save_code(folder, code)
        run = Run(folder, recipe=recipe, options=options, code=access_to(code))
        storage = _open_storage(run, config)
    except UserError:
        folder.remove()  # nothing was begun, so nothing is left behind
        raise
    return _go_on(run, storage, sweep.space, progress)


def resume_sweep(run: Run, *, jobs: int = 0, progress: SweepProgress | None = None) -> SweepResult:
    """Go on with what is not finished, beside other processes if there are any; of a finished sweep, its result.

    Args:
        jobs: Trials side by side from now on; 0 for as many as before. Each keeps the threads that it was begun with.
    """
    storage, space = open_sweep(run)
    config = run.folder.sweep
    assert config is not None, "a run is no sweep"
    if run.folder.result is None or not run.folder.has("report.html"):
        run.check_code()  # before a trial fails for want of it
        with run.own_code():
            task = _tried(run.recipe, options_here(run), run.run_config, config)
        check_data_unchanged(run, task)
        del task
    return _go_on(run, storage, space, progress, jobs)


def open_sweep(run: Run) -> tuple[TrialStorage, Space]:
    """The trials of a sweep, and what it searches."""
    config = run.folder.sweep
    assert config is not None, "a run is no sweep"
    import_optuna()
    space = space_from_json(run.options, config["space"], str(run.path / "config.json"))
    return _open_storage(run, config), space


def _named_code(space: Space) -> list[str]:
    """Files of the user's own among the choices."""
    choices = (each.values for each in space.values() if isinstance(each, SweepChoices))
    return [value for values in choices for value in values if isinstance(value, str) and is_code_reference(value)]


def _settled(sweep: Sweep, options: Any, run_config: RunConfig) -> tuple[Sweep, RunConfig]:
    """Numbers that were left open, and what there is to say of those that were given."""
    say = current_listener().say
    if sweep.sampler == "grid":
        size = grid_size(sweep.space)
        if sweep.num_trials > size:
            say(f"--trials {sweep.num_trials}: the grid has {size} combinations, and each is tried once")
        elif 0 < sweep.num_trials < size:
            say(f"--trials {sweep.num_trials}: the grid has {size} combinations, and the others are not tried")
        sweep = dataclasses.replace(sweep, num_trials=min(sweep.num_trials or size, size))
    sweep = dataclasses.replace(sweep, num_trials=sweep.num_trials or DEFAULT_TRIALS)
    if sweep.pruner != "none" and options.num_epochs == 1 and "epochs" not in sweep.space:
        say(f"--pruner {sweep.pruner}: with one epoch no trial can be stopped early")
    if sweep.num_jobs > num_cores():
        say(f"--jobs {sweep.num_jobs}: there are {num_cores()} cores; more jobs than cores are slower, not faster")
    if sweep.num_jobs > 1:
        run_config = with_threads(run_config, sweep.num_jobs)
    dataclasses.replace(options, seed=options.seed + sweep.num_seeds - 1)  # its seed may be out of range: told now
    return sweep, run_config


@torch_as_it_was()
def _tried(recipe: Recipe, options: Any, run_config: RunConfig, config: SweepConfig) -> Task:
    """Build the task once before any trial: data that are not there, or a metric that is not, are told now."""
    device_context, _ = device_context_for(run_config)
    task, _ = begin_task(recipe, options.resolved(), device_context)
    try:
        found = task.evaluate("validation")
    except NonFiniteLossError:  # of an untrained model: the trials will see
        return task
    check_monitored(config["metric"], [*(f"validation_{name}" for name in found), "train_loss"])
    return task


def _check_same(
    run: Run, config: SweepConfig, options: dict[str, Any], run_config: RunConfig, code: list[UsedCode]
) -> None:
    """Raise an error unless the sweep that is there already under this name is the same."""
    path, there = run.path, cast(Any, run.folder.sweep)
    stored = run.folder.config
    ours: Any = {**config, "id": there["id"], "jobs": there["jobs"], "options": options}
    ours |= {"settings": _telling(dataclasses.asdict(run_config)), "code": _hashes(code_as_json(code))}
    theirs = {**there, "options": dataclasses.asdict(run.options), "settings": _telling(stored["settings"])}
    theirs["code"] = _hashes(stored.get("code", []))
    for name, value in theirs.items():
        if ours[name] != value:
            raise UserError(
                f"{path} is another sweep, which differs in {name.replace('_', ' ')}: `quoin resume {path}` goes on "
                "with it, another --name begins a new one"
            )


def _telling(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the settings on which results depend by more than rounding."""
    return {name: settings[name] for name in ("max_steps", "precision", "compile", "deterministic")}


def _hashes(code: Sequence[Any]) -> list[str]:
    """Of the user's own files; on another machine they may lie elsewhere."""
    return sorted(each["sha256"] for each in code if each["use"] != "import")


def _open_storage(run: Run, config: SweepConfig) -> TrialStorage:
    """Its trials; a storage that another sweep has is refused."""
    same: dict[str, Any] = {name: config[name] for name in ("id", "space", "sampler", "pruner", "trials", "seeds")}
    same |= {"metric": config["metric"], "recipe": run.folder.recipe}
    stored = run.folder.config
    same |= {"settings": _telling(stored["settings"]), "code": _hashes(stored.get("code", []))}
    same["options"] = {
        name: value for name, value in dataclasses.asdict(run.options).items() if name not in config["space"]
    }
    data = run.folder.config["data"] or {}
    same["data"] = data.get("fingerprint")
    if data:
        same["options"].pop("data", None)  # the same data may lie elsewhere on another machine
    return TrialStorage(
        run.folder,
        same,
        place=config["storage"],
        greater_is_better=config["greater_is_better"],
        num_trials=config["trials"],
    )


def _go_on(run: Run, storage: TrialStorage, space: Space, progress: SweepProgress | None, jobs: int = 0) -> SweepResult:
    config = run.folder.sweep
    assert config is not None, "a run is no sweep"
    jobs = jobs or config["jobs"]
    with run.own_code(), Interrupt() as interrupt:
        if jobs == 1:
            work(run, storage, space, interrupt, progress)
        else:
            run_workers(run, storage, jobs, interrupt, lambda: tell(storage, config, progress))
    trials = storage.trials()
    if len(trials) < config["trials"] or not all(each.state.is_finished() for each in trials):
        return SweepResult(run, storage, space, None, None, interrupted=interrupt.asked)
    result = sweep_result(trials, space, config)
    with storage.held("result"):  # another process may have come to the end as well
        if RunFolder.open(run.path).result == result and run.folder.has("report.html"):
            return SweepResult(run, storage, space, result, run.path / "report.html")
        run.folder.save_result(result)
        page = run.folder.save_report(sweep_page(run, storage, space, result))
    return SweepResult(run, storage, space, result, page)


def work(
    run: Run, storage: TrialStorage, space: Space, interrupt: Interrupt, progress: SweepProgress | None = None
) -> None:
    """Train trials, one after another, until there is none to take up."""
    config = run.folder.sweep
    assert config is not None, "a run is no sweep"
    while not interrupt.asked:
        tell(storage, config, progress)
        trial = storage.claim()
        if trial is not None:
            try:
                _work_on(trial, run, storage, space, config, interrupt)
            except KeyboardInterrupt:
                if not interrupt.asked:
                    raise
            finally:
                trial.release()
        elif not storage.is_waited_for():
            break
        else:
            time.sleep(0.2)
    tell(storage, config, progress)


def _work_on(
    trial: ClaimedTrial, run: Run, storage: TrialStorage, space: Space, config: SweepConfig, interrupt: Interrupt
) -> None:
    """One trial to its end; what it fails of is noted, and is no reason to end the others."""
    check_trial_is_free(run, f"trial-{trial.number}")
    values = storage.sample(trial, space, config["sampler"], run.options.seed)
    try:
        with only_failures():
            epochs = dataclasses.replace(run.options, **values).num_epochs
            pruning = None
            if config["pruner"] != "none":
                pruning = pruning_callback(storage, trial, config["metric"], storage.pruner(config["pruner"], epochs))
            output = train_trial(
                run,
                trial,
                values,
                storage,
                num_seeds=config["seeds"],
                pruning=pruning,
                interrupted=lambda: interrupt.asked,
            )
            if output is None:
                interrupt.asked = True
                return
            found = output.mean_and_std()
            if config["metric"] not in found:
                raise UserError(f"expected the final metric {config['metric']}, got {', '.join(sorted(found))}")
    except SweepStopped:
        raise
    except Exception as error:  # of a model or a recipe of somebody's own, anything
        kind = "" if isinstance(error, UserError) else f"{type(error).__name__}: "
        storage.note(trial, "error", (kind + " ".join(str(error).split()))[:300])
        storage.end(trial, "failed")
        return
    storage.note(trial, "metrics", {name: list(each) for name, each in found.items()})
    storage.note(trial, "seconds", output.seconds)
    storage.end(trial, *(("pruned", None) if output.pruned else ("complete", found[config["metric"]][0])))


def tell(storage: TrialStorage, config: SweepConfig, progress: SweepProgress | None) -> None:
    """How far all processes are together."""
    if progress is not None:
        trials = storage.trials()
        values = [each.value for each in trials if each.state.name == "COMPLETE" and each.value is not None]
        best = (max if config["greater_is_better"] else min)(values) if values else None
        progress(sum(each.state.is_finished() for each in trials), config["trials"], best)
