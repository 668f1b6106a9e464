"""One recipe many times: over seeds, or over the folds of a cross-validation; the mean and std of every final metric.

A multirun is a folder of runs. Killed, it is resumed like a run: what is finished stays, what was begun goes on, the
rest starts.
"""

import dataclasses
import statistics
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from quoin.errors import UserError, format_value
from quoin.runs.catalog import Recipe
from quoin.runs.environment import device_context_for, package_as_json
from quoin.runs.fit import RunResult, begin_task, fit_member, resume_run
from quoin.runs.jobs import Job, describe_sharing, run_jobs, with_threads
from quoin.runs.kinds import MULTIRUN
from quoin.runs.paths import options_here
from quoin.runs.run import Run
from quoin.runs.run_code import access_to, code_as_json, code_of, save_code
from quoin.runs.run_config import RunConfig
from quoin.runs.run_label import NO_LABEL, RunLabel
from quoin.tasks.memory_format import choose_memory_format
from quoin.train import RunFolder, report, torch_as_it_was
from quoin.train.progress import MultirunProgress
from quoin.train.run_files import MultirunResultFile, ResultFile

__all__ = ["Multirun", "MultirunResult", "fit_multirun", "resume_multirun"]

WORKER_ENDS_WITHIN = 10.0  # seconds after whoever started it was killed


@dataclass(frozen=True)
class Multirun:
    """How often, and over what."""

    over: Literal["seed", "fold"]
    count: int

    def member(self, index: int, options: Any) -> Any:
        """The options of one run of the multirun."""
        if self.over == "seed":
            return dataclasses.replace(options, seed=options.seed + index)
        return dataclasses.replace(options, fold=f"{index}/{self.count}")


@dataclass(frozen=True)
class MultirunResult:
    """How a multirun ended; `result` is None when it was interrupted."""

    folder: RunFolder
    result: MultirunResultFile | None
    report: Path | None
    about: str = ""  # what its metrics are of, where their names leave that open
    failures: dict[str, str] = field(default_factory=dict)  # runs that failed, and why; there is no result then


def fit_multirun(
    recipe: Recipe,
    options: Any,
    run_config: RunConfig,
    multirun: Multirun,
    runs: Path,
    *,
    label: RunLabel = NO_LABEL,
    jobs: int = 0,
    show_progress: bool = True,
) -> MultirunResult:
    """Make the folder, called by its label's name or `<recipe>-<n>`, and run every member.

    Args:
        jobs: How many train at a time, each in a process of its own; 0 trains one after another in this one.
    """
    if multirun.over == "fold" and not hasattr(options, "fold"):
        raise UserError(f"recipe {recipe.name} takes no data that could be folded: use --seeds {multirun.count}")
    if multirun.over == "fold" and options.fold:
        raise UserError(
            f"--fold and --folds were both given: --folds {multirun.count} trains on every fold in turn; leave one out"
        )
    if jobs:  # the number that was shared out is stored: it is what the bits depend on
        run_config = with_threads(run_config, min(jobs, multirun.count))
    config = {
        "kind": MULTIRUN,
        "options": dataclasses.asdict(options),
        "settings": dataclasses.asdict(run_config),
        "multirun": dataclasses.asdict(multirun),
        "data": None,
        "code": code_as_json(code := code_of(recipe, options)),
        **package_as_json(recipe),
        **label.as_json(),
    }
    multirun.member(
        multirun.count - 1, options
    )  # its seed may be out of range: an error now, not after the runs before it
    folder = RunFolder.create(runs, recipe.name, config, {}, name=label.name)
    save_code(folder, code)
    try:
        run = Run(folder, recipe=recipe, options=options, code=access_to(code))
        with run.own_code():  # read once: a file that changes meanwhile is the same for all
            return _run_members(run, multirun, jobs, show_progress)
    except UserError:
        if not folder.members():  # nothing was begun, so nothing is left behind
            folder.remove()
        raise


def resume_multirun(run: Run, *, jobs: int = 0, show_progress: bool = True) -> MultirunResult:
    """Go on with what is not finished, `jobs` at a time; of a finished multirun, the result it has."""
    assert run.folder.multirun is not None, "a single run is no multirun"
    with run.folder.locked():
        for member in _begun(run.folder, run.folder.members()).values():
            if not _is_finished(member):
                _wait_until_free(member)
    with run.own_code():
        return _run_members(run, Multirun(**run.folder.multirun), jobs, show_progress)


def _run_members(run: Run, multirun: Multirun, jobs: int, show_progress: bool) -> MultirunResult:
    folder = run.folder
    with folder.locked():
        if jobs and (stopped := _train_side_by_side(run, multirun, jobs, show_progress)) is not None:
            return stopped
        for index in range(multirun.count):
            member = folder.member(name := f"{multirun.over}-{index}")
            if member is None:
                ended: RunResult = fit_member(
                    folder,
                    name,
                    run.recipe,
                    multirun.member(index, options_here(run)),
                    _with_layout(run.run_config, _begun(folder, folder.members()).values()),
                    show_progress=show_progress,
                )
            elif _is_finished(member):
                continue
            else:
                opened = Run(member, data_now=run.data_now, code=run.code, recipe=run.recipe)
                ended = resume_run(opened, show_progress=show_progress)
            if ended.result is None:
                return MultirunResult(folder, None, None)
        result = _summary(folder, run.recipe, run.options, multirun)
        folder.save_result(result)
        about = ""
        if multirun.over == "fold":
            about = _describe_folds(multirun.count, chooses_epoch=run.recipe.monitor_for(run.options) is not None)
        return MultirunResult(folder, result, folder.save_report(_page(folder, result, multirun, about)), about)


def _train_side_by_side(run: Run, multirun: Multirun, num_jobs: int, show_progress: bool) -> MultirunResult | None:
    """Train what is not finished; None if all of it then is."""
    folder, options = run.folder, options_here(run)
    names = [f"{multirun.over}-{index}" for index in range(multirun.count)]
    begun = _begun(folder, names)
    waiting = [name for name in names if not (name in begun and _is_finished(begun[name]))]
    if not waiting:
        return None
    config = with_threads(run.run_config, num_jobs, begun.values())
    config = _with_layout(config, begun.values())
    if not begun and config.memory_format == "auto":
        config = _with_measured_layout(run.recipe, multirun.member(0, options), config)
    progress = MultirunProgress(
        run.recipe.name, multirun.count, multirun.count - len(waiting), show_progress=show_progress
    )
    for remark in describe_sharing(config, min(num_jobs, len(waiting))):
        progress.say(remark)
    ended = run_jobs(
        [
            Job(
                name,
                {
                    "multirun": str(folder.path),
                    "member": name,
                    "code": run.code.files,
                    "trust_code": run.code.trust_copies,
                    "options": dataclasses.asdict(multirun.member(names.index(name), options)),
                    "settings": dataclasses.asdict(config),
                    "data_now": run.data_now,
                },
            )
            for name in waiting
        ],
        min(num_jobs, len(waiting)),
        progress,
    )
    failed = {name: each for name, each in ended.items() if each.how == "failed"}
    mistakes = {each.why for each in failed.values() if each.exit_code == UserError.exit_code}
    if len(mistakes) == 1 and all(each.exit_code == UserError.exit_code for each in ended.values()):
        raise UserError(mistakes.pop())  # the same for all: the input is at fault
    if len(ended) == len(waiting) and all(each.how == "finished" for each in ended.values()):
        return None
    return MultirunResult(folder, None, None, failures={name: each.why for name, each in failed.items()})


def _with_layout(config: RunConfig, begun: Iterable[RunFolder]) -> RunConfig:
    """The config of a further run: in the memory format of those that have begun, on which the last bits depend."""
    known = next((each.config["settings"].get("memory_format") for each in begun), None)
    return dataclasses.replace(config, memory_format=known) if config.memory_format == "auto" and known else config


@torch_as_it_was()
def _with_measured_layout(recipe: Recipe, options: Any, config: RunConfig) -> RunConfig:
    """The config with the memory format measured once, before runs side by side could each measure another."""
    device_context, _ = device_context_for(config)
    task, _ = begin_task(recipe, options.resolved(), device_context)
    chosen, _ = choose_memory_format(task, config.memory_format, max_steps=config.max_steps)
    return dataclasses.replace(config, memory_format=chosen)  # type: ignore[arg-type]


def _begun(folder: RunFolder, names: Sequence[str]) -> dict[str, RunFolder]:
    """Those of the runs that have begun and can be opened; what is wrong with the others is told when they train."""
    found = {}
    for name in names:
        with suppress(UserError):
            if (member := folder.member(name)) is not None:
                found[name] = member
    return found


def _wait_until_free(member: RunFolder) -> None:
    """Until the worker of a multirun that was killed is gone too, which is a matter of moments."""
    end = time.monotonic() + WORKER_ENDS_WITHIN
    while True:
        try:
            with member.locked():
                return
        except UserError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def _is_finished(member: RunFolder) -> bool:
    return member.has("result.json") and member.has("report.html")


def _members(folder: RunFolder, multirun: Multirun) -> list[RunFolder]:
    found = []
    for name in (f"{multirun.over}-{index}" for index in range(multirun.count)):
        if (member := folder.member(name)) is None:
            raise UserError(f"{folder.path} has lost its run {name}: `quoin resume` the multirun")
        found.append(member)
    return found


def _summary(folder: RunFolder, recipe: Recipe, options: Any, multirun: Multirun) -> MultirunResultFile:
    """Mean, std (of the sample), min and max of every metric; the target checked run by run."""
    results = [_result(member) for member in _members(folder, multirun)]
    metrics: dict[str, Any] = {}
    # A small fold may lack a class, and with it a metric: what not all have has no mean.
    for name in (name for name in results[0]["metrics"] if all(name in each["metrics"] for each in results)):
        values = [float(each["metrics"][name]) for each in results]
        try:
            std = statistics.stdev(values) if len(values) > 1 else 0.0
            metrics[name] = {"mean": statistics.fmean(values), "std": std, "min": min(values), "max": max(values)}
        except OverflowError:
            got = f"{format_value(name)} {format_value(values)}"
            raise UserError(
                f"{folder.path}: expected values whose mean a float can hold, got {got}; train them again"
            ) from None
    target = recipe.target_for(multirun.member(0, options))
    met = [each["target"]["met"] for each in results if each["target"]]
    return {
        "multirun": {"over": multirun.over, "count": multirun.count},
        "metrics": metrics,
        # A target is met if nine of ten runs meet it.
        "target": target
        and {
            "metric": target.metric,
            "bound": target.bound,
            "met_runs": sum(met),
            "runs": len(met),
            "met": 10 * sum(met) >= 9 * len(met),
        },
        "seconds": sum(each["seconds"] for each in results),
    }


def _result(member: RunFolder) -> ResultFile:
    """The result of one run of a multirun, which has the metrics of the first."""
    result = member.result
    if result is None or "steps" not in result:
        raise UserError(
            f"expected a finished run at {member.path}, got one without a result of its own; train it again"
        )
    return result


def _describe_folds(num_folds: int, *, chooses_epoch: bool) -> str:
    """What the metrics of a cross-validation are of."""
    chosen = "which chooses the epoch" if chooses_epoch else "which chooses nothing: the last weights are kept"
    return (
        f"held_out_fold is the one of {num_folds} folds that a run has not seen; validation is a tenth of the others, "
        f"{chosen}."
    )


def _page(folder: RunFolder, result: MultirunResultFile, multirun: Multirun, about: str) -> str:
    rows = [(report.Named(name), *found.values()) for name, found in sorted(result["metrics"].items())]
    sections = [report.table("Over all runs", ("metric", "mean", "std", "min", "max"), rows)]
    if target := result["target"]:
        row = (
            report.Named(target["metric"]),
            target["bound"],
            f"{target['met_runs']} of {target['runs']} runs",
            target["met"],
        )
        sections.insert(0, report.table("Target", ("metric", "target", "met by", ""), [row]))
    validation = {
        member.path.name: [{k: v for k, v in line.items() if not k.startswith("train_")} for line in member.metrics()]
        for member in _members(folder, multirun)
    }
    sections += report.figures(lambda: report.curve_panels(validation))
    sections.append(report.links("Each run", {name: f"{name}/report.html" for name in validation}))
    sections.append(report.collapsible("Options", folder.config["options"] | folder.config["settings"]))
    lead = (
        f"Recipe {folder.recipe}, {multirun.count} {multirun.over}s. The std is the standard deviation over the runs."
    )
    sections.insert(0, report.label(folder.config.get("note", ""), folder.config.get("tags", [])))
    in_words = about.replace("held_out_fold", "The held-out fold")
    return report.page(folder.path.name, f"{lead} {in_words}".rstrip(), sections)
