"""One recipe many times: over seeds, or over the folds of a cross-validation; the mean and spread of every final metric.

A study is a folder of runs. Killed, it is resumed like a run: what is finished stays, what was begun goes on, the rest starts.
"""

import dataclasses
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from quoin.errors import Mistake, shown
from quoin.runs.catalog import Recipe
from quoin.runs.fit import Finished, fit_member, resume_run
from quoin.runs.kinds import MULTIRUN
from quoin.runs.run import Run
from quoin.runs.run_config import RunConfig
from quoin.train import RunFolder, report
from quoin.train.run_files import RunResult, StudyResult

__all__ = ["FinishedMultirun", "Multirun", "fit_multirun", "resume_multirun"]


@dataclass(frozen=True)
class Multirun:
    """How often, and over what."""

    over: Literal["seed", "fold"]
    count: int

    def member(self, index: int, options: Any) -> Any:
        """The options of one run of the study."""
        if self.over == "seed":
            return dataclasses.replace(options, seed=options.seed + index)
        return dataclasses.replace(options, fold=f"{index}/{self.count}")


@dataclass(frozen=True)
class FinishedMultirun:
    """How a study ended; `result` is None when it was interrupted."""

    folder: RunFolder
    result: StudyResult | None
    report: Path | None


def fit_multirun(
    recipe: Recipe, options: Any, run_config: RunConfig, study: Multirun, runs: Path, *, show_progress: bool = True
) -> FinishedMultirun:
    """Make the folder and run every member."""
    if study.over == "fold" and not hasattr(options, "fold"):
        raise Mistake(f"recipe {recipe.name} takes no data that could be folded: use --seeds {study.count}")
    if study.over == "fold" and options.fold:
        raise Mistake(f"--fold and --folds were both given: --folds {study.count} trains on every fold in turn; leave one out")
    config = {
        "kind": MULTIRUN,
        "options": dataclasses.asdict(options),
        "settings": dataclasses.asdict(run_config),
        "study": dataclasses.asdict(study),
        "data": None,
    }
    study.member(study.count - 1, options)  # its seed may be out of range: told now, not after the runs before it
    folder = RunFolder.create(runs, recipe.name, config, {})
    try:
        return _run_members(Run(folder), study, show_progress)
    except Mistake:
        if not folder.members():  # nothing was begun, so nothing is left behind
            folder.remove()
        raise


def resume_multirun(run: Run, *, show_progress: bool = True) -> FinishedMultirun:
    """Go on with what is not finished; of a finished study, the result it has."""
    assert run.folder.study is not None, "a single run is no study"
    return _run_members(run, Multirun(**run.folder.study), show_progress)


def _run_members(run: Run, study: Multirun, show_progress: bool) -> FinishedMultirun:
    folder = run.folder
    with folder.locked():
        for index in range(study.count):
            member = folder.member(name := f"{study.over}-{index}")
            if member is None:
                ended: Finished = fit_member(
                    folder, name, run.recipe, study.member(index, run.options), run.run_config, show_progress=show_progress
                )
            elif member.has("result.json") and member.has("report.html"):
                continue
            else:
                ended = resume_run(Run(member), show_progress=show_progress)
            if ended.result is None:
                return FinishedMultirun(folder, None, None)
        result = _summary(folder, run.recipe, run.options, study)
        folder.save_result(result)
        return FinishedMultirun(folder, result, folder.save_report(_page(folder, result, study)))


def _members(folder: RunFolder, study: Multirun) -> list[RunFolder]:
    found = []
    for name in (f"{study.over}-{index}" for index in range(study.count)):
        if (member := folder.member(name)) is None:
            raise Mistake(f"{folder.path} has lost its run {name}: `quoin resume` the study")
        found.append(member)
    return found


def _summary(folder: RunFolder, recipe: Recipe, options: Any, study: Multirun) -> StudyResult:
    """Mean, spread (sample standard deviation), least and largest of every metric; the target judged run by run."""
    results = [_result(member) for member in _members(folder, study)]
    metrics: dict[str, Any] = {}
    for name in results[0]["metrics"]:
        values = [float(each["metrics"][name]) for each in results]
        try:
            spread = statistics.stdev(values) if len(values) > 1 else 0.0
            metrics[name] = {"mean": statistics.fmean(values), "spread": spread, "least": min(values), "largest": max(values)}
        except OverflowError:
            came = f"{shown(name)} {shown(values)}"
            raise Mistake(f"{folder.path}: expected values whose mean a float can hold, came {came}; train them again") from None
    target = recipe.target_for(options)
    met = [each["target"]["met"] for each in results if each["target"]]
    return {
        "study": {"over": study.over, "count": study.count},
        "metrics": metrics,
        # The promise of a target: nine of ten runs keep it.
        "target": target
        and {"metric": target.metric, "bound": target.bound, "met_runs": sum(met), "runs": len(met), "met": 10 * sum(met) >= 9 * len(met)},
        "seconds": sum(each["seconds"] for each in results),
    }


def _result(member: RunFolder) -> RunResult:
    """The result of one run of a study, which has the metrics of the first."""
    result = member.result
    if result is None or "steps" not in result:
        raise Mistake(f"expected a finished run at {member.path}, came one without a result of its own; train it again")
    return result


def _page(folder: RunFolder, result: StudyResult, study: Multirun) -> str:
    rows = [(name, *found.values()) for name, found in sorted(result["metrics"].items())]
    sections = [report.table("Over all runs", ("metric", "mean", "spread", "least", "largest"), rows)]
    if target := result["target"]:
        row = (target["metric"], target["bound"], f"{target['met_runs']} of {target['runs']} runs", target["met"])
        sections.insert(0, report.table("Target", ("metric", "target", "met by", ""), [row]))
    validation = {
        member.path.name: [{k: v for k, v in line.items() if not k.startswith("train_")} for line in member.metrics()]
        for member in _members(folder, study)
    }
    sections += report.figures(lambda: report.curve_panels(validation))
    sections.append(report.links("Each run", {name: f"{name}/report.html" for name in validation}))
    sections.append(report.folded("Options", folder.config["options"] | folder.config["settings"]))
    lead = f"Recipe {folder.recipe}, {study.count} {study.over}s. The spread is the standard deviation over the runs."
    return report.page(folder.path.name, lead, sections)
