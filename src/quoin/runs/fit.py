"""Start a run, resume one, and finish either with a result and a report."""

import dataclasses
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from quoin.data import keyed_generator
from quoin.errors import UserError
from quoin.options import ValidatedOptions
from quoin.own_code import keep_running
from quoin.runs.catalog import Recipe, final_metric_name
from quoin.runs.kinds import MODULE
from quoin.runs.module_recipe import ModuleRecipe
from quoin.runs.out_of_memory import explain_out_of_memory
from quoin.runs.paths import options_here
from quoin.runs.report import write_report
from quoin.runs.run import Run
from quoin.runs.run_code import code_as_json, code_of, save_code
from quoin.runs.run_config import RunConfig
from quoin.runs.run_label import NO_LABEL, RunLabel
from quoin.tasks.fine_tuning import FineTunedClassification
from quoin.tasks.memory_format import choose_memory_format
from quoin.tasks.own_module import ModuleTask
from quoin.train import (
    Callback,
    DeviceContext,
    Metrics,
    NonFiniteLossError,
    Progress,
    RunFolder,
    Task,
    Trainer,
    TrainOutput,
    check_finite,
    describe_environment,
    setup_device,
    torch_as_it_was,
)
from quoin.train.loggers import Logger, RunLog, check_log_packages, open_loggers
from quoin.train.monitor import check_monitored
from quoin.train.run_files import Environment, ResultFile
from quoin.train.state import generator_states, load_generator_states

__all__ = ["RunResult", "final_metrics", "fit_member", "fit_recipe", "load_task", "resume_run"]


@dataclass(frozen=True)
class RunResult:
    """How a run ended; `result` is None when it was interrupted."""

    folder: RunFolder
    output: TrainOutput
    result: ResultFile | None
    report: Path
    was_finished: bool = False  # before it was resumed
    remarks: tuple[str, ...] = ()  # what there was to say when it began


def fit_recipe(
    recipe: Recipe,
    options: ValidatedOptions,
    run_config: RunConfig,
    runs: Path,
    *,
    label: RunLabel = NO_LABEL,
    callbacks: Sequence[Callback] = (),
    loggers: Sequence[Logger] = (),
    show_progress: bool = True,
) -> RunResult:
    """Train `recipe` in a new folder under `runs`, called by its label's name or `<recipe>-<n>`.

    Args:
        loggers: Those of `run_config.log` write into the run's folder; these come besides.
    """
    make_folder = functools.partial(RunFolder.create, runs, recipe.name, name=label.name)
    return _fit(recipe, options, run_config, make_folder, label, callbacks, show_progress, loggers)


def fit_member(
    multirun: RunFolder,
    name: str,
    recipe: Recipe,
    options: ValidatedOptions,
    run_config: RunConfig,
    *,
    callbacks: Sequence[Callback] = (),
    show_progress: bool = True,
) -> RunResult:
    """Train `recipe` in the folder `name` of a multirun."""
    return _fit(
        recipe,
        options,
        run_config,
        functools.partial(RunFolder.create_member, multirun, name, recipe.name),
        NO_LABEL,
        callbacks,
        show_progress,
    )


@torch_as_it_was()
def _fit(
    recipe: Recipe,
    options: Any,
    run_config: RunConfig,
    make_folder,
    label: RunLabel,
    callbacks: Sequence[Callback],
    show_progress: bool,
    loggers: Sequence[Logger] = (),
) -> RunResult:
    check_log_packages(run_config.log)
    if options.patience and not options.monitor and recipe.monitor is None:
        raise UserError(
            f"--patience {options.patience}: {recipe.name} keeps its last weights and waits for no metric; say which "
            "with --monitor, such as --monitor validation_loss, or leave --patience out"
        )
    options = options.resolved()
    device_context, remarks = device_context_for(run_config)
    task, told = begin_task(recipe, options, device_context)
    code = code_of(recipe, options)
    remarks += told
    if device_context.compiled_nothing:
        remarks.append(f"--compile changes nothing here: {recipe.name} has no step that can be compiled")
    if options.monitor:
        _check_monitor(task, options.monitor)
        recipe.monitor_for(options)
    if micro_batch_size := getattr(options, "micro_batch_size", 0):
        pieces = -(-options.batch_size // micro_batch_size)
        remarks.append(
            f"each batch of {options.batch_size} is split into {pieces} micro-batches of at most {micro_batch_size}"
        )
    with explain_out_of_memory():
        layout, remark = choose_memory_format(task, run_config.memory_format, max_steps=run_config.max_steps)
    run_config = dataclasses.replace(run_config, memory_format=layout)  # resolved: a resumed run asks no clock
    remarks += [remark] if remark else []
    if task.data_info is not None:
        remarks += task.data_info.remarks
    config = {
        "kind": task.kind,
        "options": dataclasses.asdict(options),
        "settings": dataclasses.asdict(run_config),
        "data": task.data_info.as_json() if task.data_info else None,
        "code": code_as_json(code),
        **package_as_json(recipe),
        **label.as_json(),
    }
    folder = make_folder(config, _environment(recipe, device_context, options.seed))
    save_code(folder, code)
    with folder.locked():
        return _train(
            Run(folder, recipe=recipe, options=options), task, callbacks, show_progress, remarks, loggers=loggers
        )


def _check_monitor(task: Task, metric: str) -> None:
    """Evaluate once before the training: a metric that is not there is told now, not after an epoch."""
    before = generator_states()
    try:
        found = task.evaluate("validation")
    except NonFiniteLossError:  # of an untrained model, such as one of no counts: the trainer will see
        return
    finally:
        load_generator_states(before)
    check_monitored(metric, [*(f"validation_{name}" for name in found), "train_loss"])


def resume_run(
    run: Run, *, callbacks: Sequence[Callback] = (), loggers: Sequence[Logger] = (), show_progress: bool = True
) -> RunResult:
    """Go on with a run that is open already."""
    run.check_single()
    if run.step is None and (stored := _stored(run)) is not None:
        return stored
    if isinstance(run.recipe, ModuleRecipe) and run.recipe.parts is None:
        raise run.recipe.lacking("resume", "model=..., data=...")
    check_log_packages(run.run_config.log)
    with run.folder.locked():
        device_context, remarks = device_context_for(_as_begun(run))
        remarks += _changed(run.folder.environment, _environment(run.recipe, device_context, run.options.seed))
        task = _build_again(run, device_context)
        check_data_unchanged(run, task)
        remarks += task.data_remarks if isinstance(task, ModuleTask) else []
        return _train(run, task, callbacks, show_progress, remarks, resuming=True, loggers=loggers)


def _stored(run: Run) -> RunResult | None:
    """How a run ended that is finished and has its report: without loading its data."""
    result: Any = run.folder.result
    if result is None or not run.folder.has("report.html"):
        return None
    output = TrainOutput(True, result["steps"], result["epochs"], result["seconds"], result["saving_seconds"])
    return RunResult(run.folder, output, result, run.path / "report.html", was_finished=True)


def device_context_for(config: RunConfig) -> tuple[DeviceContext, list[str]]:
    return setup_device(
        config.device,
        threads=config.num_threads,
        precision=config.precision,
        compile=config.compile,
        deterministic=config.deterministic,
    )


def _as_begun(run: Run) -> RunConfig:
    """A run is reproducible to the bit for an equal number of threads, so a choice that was left to torch is
    recorded."""
    threads = run.folder.environment.get("threads")
    if not isinstance(threads, int):
        raise UserError(f"{run.path / 'environment.json'} has no number of threads: restore it or train again")
    return dataclasses.replace(run.run_config, num_threads=threads)


def package_as_json(recipe: Recipe) -> dict[str, Any]:
    """What config.json keeps of the package that offers the recipe."""
    return {"package": recipe.package.package} if recipe.package else {}


def _environment(recipe: Recipe, device_context: DeviceContext, seed: int) -> dict[str, Any]:
    found = describe_environment(device_context, seed)
    return found | ({"recipe_package": recipe.package.origin} if recipe.package else {})


def _changed(before: Environment, now: dict[str, Any]) -> list[str]:
    """A remark where the run goes on with something else than it began with: it is then not reproducible to the bit."""
    names = ("quoin", "torch", "device", "device_name", "system", "recipe_package")
    changes = [
        f"{name} {before[name]} is now {now.get(name)}"
        for name in names
        if name in before and before[name] != now.get(name)
    ]
    return [f"{'; '.join(changes)}: the run goes on, but not to the bits it would have had"] if changes else []


def build_task(recipe: Recipe, options: Any, device_context: DeviceContext) -> Task:
    """The task, built after torch's own generator was set: dropout and its kin sample from it."""
    torch.manual_seed(keyed_generator("torch", options.seed).initial_seed())
    with explain_out_of_memory():
        return recipe.build(options, device_context)


def begin_task(recipe: Recipe, options: Any, device_context: DeviceContext) -> tuple[Task, list[str]]:
    """The task of a new run, its weights read where the options name trained ones, and what there is to say of them.

    A run that is resumed has its weights from the checkpoint.
    """
    task = build_task(recipe, options, device_context)
    if isinstance(task, FineTunedClassification) and options.pretrained:
        return task, task.load_pretrained()
    return task, [*task.remarks, *task.data_remarks] if isinstance(task, ModuleTask) else []


def _build_again(run: Run, device_context: DeviceContext) -> Task:
    """The task of a run that was begun, in the memory format it was begun with."""
    options = run.options if run.kind == MODULE else options_here(run)  # no path stands among a module's
    with run.own_code():
        task = build_task(run.recipe, options, device_context)
    choose_memory_format(task, "contiguous" if run.run_config.memory_format == "auto" else run.run_config.memory_format)
    return task


def _train(
    run: Run,
    task: Task,
    callbacks: Sequence[Callback],
    show_progress: bool,
    remarks: list[str],
    *,
    resuming: bool = False,
    loggers: Sequence[Logger] = (),
) -> RunResult:
    options, folder = run.options, run.folder
    log = RunLog([*open_loggers(run.run_config.log, folder), *loggers], run.run_config.log_every)
    trainer = Trainer(
        task,
        folder,
        epochs=options.num_epochs,
        monitor=run.recipe.monitor_for(options),
        patience=options.patience,
        checkpoint_every=run.run_config.checkpoint_every,
        max_steps=run.run_config.max_steps,
        progress=Progress(run.recipe.name, show_progress=show_progress),
        callbacks=(log, *callbacks) if log.loggers else callbacks,
    )
    for remark in remarks:
        trainer.progress.say(remark)
    with explain_out_of_memory():
        if resuming:
            trainer.resume(run.step)
            if not trainer.at.finished:
                folder.delete_result()
        elif run.kind == MODULE or getattr(options, "pretrained", ""):
            trainer.save()  # the weights it was given are nowhere else, and a kill may come before the first step
    with log.open(trainer.at.step, dataclasses.asdict(options), folder.config.get("note", "")):
        with explain_out_of_memory(), keep_running(f"code of {run.recipe.name}", run.recipe.code):
            output = trainer.run()
        result = _result(run, task, trainer, output) if output.finished else None
        if result is not None:
            folder.save_result(result)
            log.log_result(output, result["metrics"])
        path = write_report(run, task, result, functools.partial(log.log_panel, output))
    return RunResult(folder, output, result, path, remarks=tuple(remarks))


def load_task(run: Run) -> Task:
    """The task of a run, its own data loaded again and the best model so far in it."""
    run.check_single()
    device_context, _ = device_context_for(_as_begun(run))
    task = _build_again(run, device_context)
    check_data_unchanged(run, task)
    trainer = Trainer(task, run.folder, epochs=run.options.num_epochs)
    state, _ = run.load_state()
    trainer.load_state_dict(state)
    trainer.load_best()
    return task


def check_data_unchanged(run: Run, task: Task) -> None:
    recorded = run.folder.config["data"]
    if recorded and task.data_info and task.data_info.fingerprint != recorded.get("fingerprint"):
        raise UserError(f"the data of {run.path} changed since it was started: bring them back, or train anew")


def final_metrics(task: Task, options: Any) -> Metrics:
    """Every split evaluated whole; the test split of a cross-validation is called the held-out fold."""
    return {
        final_metric_name(f"{split}_{name}", options): value
        for split in ("train", "validation", "test")
        for name, value in task.evaluate(split).items()
    }


def _result(run: Run, task: Task, trainer: Trainer, output: TrainOutput) -> ResultFile:
    metrics = final_metrics(task, run.options)
    check_finite(metrics, f"after step {output.step}")
    target = run.recipe.target_for(run.options)
    # A hidden Markov model with other states than the true one has no distance from it, and so no verdict.
    verdict: Any = target.verdict(metrics[target.metric]) if target and target.metric in metrics else None
    found: ResultFile = {
        "metrics": metrics,
        "target": verdict,
        "steps": output.step,
        "epochs": output.epoch,
        "best_step": trainer.at.best_step or output.step,
        "seconds": round(output.seconds, 3),
        "saving_seconds": round(output.saving_seconds, 3),
    }
    if isinstance(model := getattr(task, "model", None), nn.Module):
        found["num_parameters"] = _num_learned(model)
    return found


def _num_learned(model: nn.Module) -> int:
    """How many numbers were learnt, shared ones once; of a model that counts, the numbers in its tables."""
    tables = sum(each.numel() for each in model.buffers() if each.is_floating_point())
    return sum(each.numel() for each in model.parameters()) or tables
