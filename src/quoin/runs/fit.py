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
from quoin.layers.checkpointing import checkpoint_activations
from quoin.options import ValidatedOptions
from quoin.own_code import keep_running
from quoin.runs.catalog import Recipe, final_metric_name
from quoin.runs.environment import (
    config_as_begun,
    describe_changes,
    device_context_for,
    environment_of,
    package_as_json,
)
from quoin.runs.kinds import LANGUAGE_MODELING, MODULE
from quoin.runs.launch import tell_launcher
from quoin.runs.module_recipe import ModuleRecipe
from quoin.runs.out_of_memory import explain_out_of_memory
from quoin.runs.paths import options_here
from quoin.runs.processes import check_processes, explain_lost_process, memory_format_for_all
from quoin.runs.report import write_report
from quoin.runs.run import Run
from quoin.runs.run_code import code_as_json, code_of, save_code
from quoin.runs.run_config import RunConfig
from quoin.runs.run_label import NO_LABEL, RunLabel
from quoin.tasks.fine_tuning import FineTunedClassification
from quoin.tasks.language_modeling import LanguageTask
from quoin.tasks.memory_format import choose_memory_format
from quoin.tasks.own_module import ModuleTask
from quoin.tasks.text_data import recorded_tokenizer
from quoin.train import (
    Callback,
    DeviceContext,
    GradientTask,
    Metrics,
    NonFiniteLossError,
    Progress,
    RunFolder,
    Task,
    Trainer,
    TrainOutput,
    check_finite,
    torch_as_it_was,
)
from quoin.train.gradient_task import whole_weights
from quoin.train.loggers import Logger, RunLog, check_log_packages, open_loggers
from quoin.train.monitor import check_monitored
from quoin.train.peak_memory import forget_peak_memory, peak_memory
from quoin.train.processes import alone, from_main, is_main
from quoin.train.run_files import ResultFile
from quoin.train.run_state import fitting
from quoin.train.shared_folder import shared_folder
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
    check_processes(recipe, task, device_context)
    code = code_of(recipe, options)
    remarks += told
    if run_config.checkpoint_activations and not _checkpoint_activations(task):
        remarks.append(
            f"--checkpoint-activations changes nothing here: the model of {recipe.name} is not built of blocks that can"
        )
    if device_context.compiled_nothing:
        remarks.append(f"--compile changes nothing here: {recipe.name} has no step that can be compiled")
    if options.monitor:
        _check_monitor(task, options.monitor)
        recipe.monitor_for(options)
    if micro_batch_size := getattr(options, "micro_batch_size", 0):
        pieces = -(-options.batch_size // micro_batch_size)
        remarks.append(
            f"each batch of {options.batch_size} is split into {pieces} micro-batches of at most {micro_batch_size}"
            f"{_whose_statistics(task)}"
        )
    with explain_out_of_memory():
        layout, remark = memory_format_for_all(task, run_config)
    # resolved: a resumed run asks no clock
    run_config = dataclasses.replace(run_config, memory_format=layout, processes=device_context.world_size)
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
    folder = shared_folder(lambda: make_folder(config, environment_of(recipe, device_context, options.seed)))
    tell_launcher(str(folder.path))
    save_code(folder, code)
    with folder.locked(), explain_lost_process(folder):
        return _train(
            Run(folder, recipe=recipe, options=options),
            task,
            callbacks,
            show_progress,
            remarks,
            device_context.device,
            loggers=loggers,
        )


def _whose_statistics(task: Any) -> str:
    """What micro-batches change, where they change the result."""
    normalized = isinstance(task, GradientTask) and any(
        isinstance(each, torch.nn.modules.batchnorm._BatchNorm) for each in task.model.modules()
    )
    return ", and batch normalization takes the mean and variance of each of these" if normalized else ""


def _check_monitor(task: Task, metric: str) -> None:
    """Evaluate once before the training: a metric that is not there is told now, not after an epoch."""
    before = generator_states()
    try:
        found = from_main(task.evaluate("validation"))
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
    if "imported" in run.folder.config:
        raise UserError(
            f"{run.path} was imported, and there is no training to go on with: fine-tune it with `quoin train "
            f"{run.recipe_name} --pretrained {run.path}`"
        )
    if run.step is None and (stored := _stored(run)) is not None:
        return stored
    if isinstance(run.recipe, ModuleRecipe) and run.recipe.parts is None:
        raise run.recipe.lacking("resume", "model=..., data=...")
    check_log_packages(run.run_config.log)
    tell_launcher(str(run.path))
    with run.folder.locked(), explain_lost_process(run.folder):
        device_context, remarks = device_context_for(config_as_begun(run))
        remarks += describe_changes(
            run.folder.environment, environment_of(run.recipe, device_context, run.options.seed)
        )
        task = _build_again(run, device_context)
        check_processes(run.recipe, task, device_context)
        check_data_unchanged(run, task)
        remarks += task.data_remarks if isinstance(task, ModuleTask) else []
        device = device_context.device
        return _train(run, task, callbacks, show_progress, remarks, device, resuming=True, loggers=loggers)


def _stored(run: Run) -> RunResult | None:
    """How a run ended that is finished and has its report: without loading its data."""
    result: Any = run.folder.result
    if result is None or not run.folder.has("report.html"):
        return None
    output = TrainOutput(True, result["steps"], result["epochs"], result["seconds"], result["saving_seconds"])
    return RunResult(run.folder, output, result, run.path / "report.html", was_finished=True)


def build_task(recipe: Recipe, options: Any, device_context: DeviceContext) -> Task:
    """The task, built after torch's own generator was set: dropout and its kin sample from it."""
    torch.manual_seed(keyed_generator("torch", options.seed).initial_seed())
    with explain_out_of_memory():
        return recipe.build(options, device_context)


def _checkpoint_activations(task: Task) -> int:
    """The blocks that now keep their input alone."""
    model = getattr(task, "model", None)
    return checkpoint_activations(model) if isinstance(model, nn.Module) else 0


def begin_task(recipe: Recipe, options: Any, device_context: DeviceContext) -> tuple[Task, list[str]]:
    """The task of a new run, its weights read where the options name trained ones, and what there is to say of them.

    A run that is resumed has its weights from the checkpoint.
    """
    task = build_task(recipe, options, device_context)
    if isinstance(task, FineTunedClassification | LanguageTask) and getattr(options, "pretrained", ""):
        return task, task.load_pretrained()
    return task, [*task.remarks, *task.data_remarks] if isinstance(task, ModuleTask) else []


def _build_again(run: Run, device_context: DeviceContext) -> Task:
    """The task of a run that was begun, in the memory format it was begun with."""
    options = run.options if run.kind == MODULE else options_here(run)  # no path stands among a module's
    with run.own_code(), recorded_tokenizer(run.data_info.tokenizer if run.kind == LANGUAGE_MODELING else None):
        task = build_task(run.recipe, options, device_context)
    if run.run_config.checkpoint_activations:
        _checkpoint_activations(task)
    choose_memory_format(task, "contiguous" if run.run_config.memory_format == "auto" else run.run_config.memory_format)
    return task


def _train(
    run: Run,
    task: Task,
    callbacks: Sequence[Callback],
    show_progress: bool,
    remarks: list[str],
    device: torch.device,
    *,
    resuming: bool = False,
    loggers: Sequence[Logger] = (),
) -> RunResult:
    options, folder = run.options, run.folder
    wanted = [*open_loggers(run.run_config.log, folder), *loggers] if is_main() else []
    log = RunLog(wanted, run.run_config.log_every)
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
            forget_peak_memory(device)
            output = trainer.run()
        with whole_weights(task):
            result = _result(run, task, trainer, output, device) if output.finished else None
            if not is_main():
                return RunResult(folder, output, result, folder.path / "report.html", remarks=tuple(remarks))
            if result is not None:
                folder.save_result(result)
                log.log_result(output, result["metrics"])
            with alone():
                path = write_report(run, task, result, functools.partial(log.log_panel, output))
    return RunResult(folder, output, result, path, remarks=tuple(remarks))


def load_task(run: Run) -> Task:
    """The task of a run, its own data loaded again and the best model so far in it."""
    run.check_single()
    is_imported = "imported" in run.folder.config
    if is_imported and not run.options.data and run.data_now is None:
        raise UserError(
            f"{run.path} was imported without data: say on which with --data (of a language model, what it reads with "
            "--text), or import it again with --data"
        )
    device_context, _ = device_context_for(config_as_begun(run))
    task = _build_again(run, device_context)
    check_data_unchanged(run, task)
    if is_imported:  # there is a model, and no trainer that it came from
        with fitting(f"the checkpoint of {run.path}"):
            task.load_state_dict({**task.state_dict(), "model": run.trained.saved})
        return task
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


def _result(run: Run, task: Task, trainer: Trainer, output: TrainOutput, device: torch.device) -> ResultFile:
    metrics = from_main(final_metrics(task, run.options))
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
    if (peak := peak_memory(device)) is not None:
        found["peak_memory"] = peak
    if isinstance(model := getattr(task, "model", None), nn.Module):
        found["num_parameters"] = _num_learned(model)
    return found


def _num_learned(model: nn.Module) -> int:
    """How many numbers were learnt, shared ones once; of a model that counts, the numbers in its tables."""
    tables = sum(each.numel() for each in model.buffers() if each.is_floating_point())
    return sum(each.numel() for each in model.parameters()) or tables
