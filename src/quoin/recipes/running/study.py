"""One recipe many times: over seeds, or over the folds of a cross-validation; the mean and spread of every final metric.

A study is a folder of runs. Killed, it is resumed like a run: what is finished stays, what was begun goes on, the rest starts.
"""

import dataclasses
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from quoin.errors import Mistake, shown
from quoin.recipes.running.asked import read_config
from quoin.recipes.running.catalogue import Recipe
from quoin.recipes.running.run import Finished, resume_folder, start_member
from quoin.recipes.running.settings import Settings
from quoin.train import RunFolder, report
from quoin.train.run_files import RunResult, StudyResult

__all__ = ["FinishedStudy", "Study", "is_study", "resume_study", "start_study"]


@dataclass(frozen=True)
class Study:
    """How often, and over what."""

    over: Literal["seed", "fold"]
    count: int

    def member(self, index: int, options: Any) -> Any:
        """The options of one run of the study."""
        if self.over == "seed":
            return dataclasses.replace(options, seed=options.seed + index)
        return dataclasses.replace(options, fold=f"{index}/{self.count}")


@dataclass(frozen=True)
class FinishedStudy:
    """How a study ended; `result` is None when it was interrupted."""

    folder: RunFolder
    result: StudyResult | None
    report: Path | None


def is_study(folder: RunFolder) -> bool:
    return folder.study is not None


def start_study(recipe: Recipe, options: Any, settings: Settings, study: Study, runs: Path, *, visible: bool = True) -> FinishedStudy:
    """Make the folder and run every member."""
    if study.over == "fold" and not hasattr(options, "fold"):
        raise Mistake(f"recipe {recipe.name} takes no data that could be folded: use --seeds {study.count}")
    if study.over == "fold" and options.fold:
        raise Mistake(f"--fold and --folds were both given: --folds {study.count} trains on every fold in turn; leave one out")
    config = {
        "options": dataclasses.asdict(options),
        "settings": dataclasses.asdict(settings),
        "study": dataclasses.asdict(study),
        "data": None,
    }
    study.member(study.count - 1, options)  # its seed may be out of range: told now, not after the runs before it
    folder = RunFolder.create(runs, recipe.name, config, {})
    try:
        return _run_members(folder, recipe, options, settings, study, visible)
    except Mistake:
        if not folder.members():  # nothing was begun, so nothing is left behind
            folder.remove()
        raise


def resume_study(path: Path, *, visible: bool = True) -> FinishedStudy:
    folder = RunFolder.open(path)
    recipe, options, settings = read_config(folder)
    return _run_members(folder, recipe, options, settings, _told(folder), visible)


def _told(folder: RunFolder) -> Study:
    assert folder.study is not None, "a run is no study"
    return Study(**folder.study)


def _run_members(folder: RunFolder, recipe: Recipe, options: Any, settings: Settings, study: Study, visible: bool) -> FinishedStudy:
    with folder.locked():
        for index in range(study.count):
            member = folder.member(name := f"{study.over}-{index}")
            if member is None:
                ended: Finished = start_member(folder, name, recipe, study.member(index, options), settings, visible=visible)
            elif member.has("result.json") and member.has("report.html"):
                continue
            else:
                ended = resume_folder(member, visible=visible)
            if ended.result is None:
                return FinishedStudy(folder, None, None)
        result = _summary(folder, recipe, options, study)
        folder.save_result(result)
        return FinishedStudy(folder, result, folder.save_report(_page(folder, result, study)))


def _members(folder: RunFolder, study: Study) -> list[RunFolder]:
    found = []
    for name in (f"{study.over}-{index}" for index in range(study.count)):
        if (member := folder.member(name)) is None:
            raise Mistake(f"{folder.path} has lost its run {name}: `quoin resume` the study")
        found.append(member)
    return found


def _summary(folder: RunFolder, recipe: Recipe, options: Any, study: Study) -> StudyResult:
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


def _page(folder: RunFolder, result: StudyResult, study: Study) -> str:
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
