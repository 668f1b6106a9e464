"""The page of a sweep: the best trial and its curves, all trials, how they lie, and which options matter."""

import functools
import shlex
import warnings
from typing import Any

from quoin import plot
from quoin.display import metric_words
from quoin.options import flag_name
from quoin.plot import CoordinateAxis, Panel
from quoin.runs.run import Run
from quoin.runs.sweep_result import ranked, train_command
from quoin.runs.sweep_space import Space, SweepChoices, written
from quoin.runs.sweep_storage import TrialStorage, import_optuna, values_of
from quoin.train import report
from quoin.train.run_files import SweepConfig, SweepResultFile

__all__ = ["option_importances", "sweep_page", "trial_columns", "trial_rows"]

STATES = {"COMPLETE": "complete", "PRUNED": "pruned", "FAIL": "failed", "RUNNING": "running", "WAITING": "running"}


def trial_rows(trials: list[Any], space: Space, config: SweepConfig) -> list[tuple[Any, ...]]:
    """For each trial: its number, its options, mean and std of the metric, and what became of it; the best first."""
    best_first = ranked(trials, config)
    others = [each for each in trials if each.state.name != "COMPLETE"]
    return [_row(each, space, config) for each in (*best_first, *others)]


def _row(trial: Any, space: Space, config: SweepConfig) -> tuple[Any, ...]:
    values = values_of(trial, space)
    words = [_cell(values.get(name)) for name in space]
    mean, std = trial.user_attrs.get("metrics", {}).get(config["metric"], (None, None))
    return (trial.number, *words, mean, *([std] if config["seeds"] > 1 else []), STATES[trial.state.name])


def _cell(value: Any) -> Any:
    """A table would read True and False as verdicts."""
    return written(value) if isinstance(value, bool) else value


def trial_columns(space: Space, config: SweepConfig) -> list[str]:
    """What stands in the rows of `trial_rows`."""
    std = ["std"] if config["seeds"] > 1 else []
    return ["trial", *map(flag_name, space), config["metric"], *std, "state"]


def option_importances(storage: TrialStorage) -> dict[str, float]:
    """How much of the variance of the metric each option explains, by Optuna's fANOVA; empty where too few trials
    differ."""
    optuna = import_optuna()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            evaluator = optuna.importance.FanovaImportanceEvaluator(seed=0)
            return optuna.importance.get_param_importances(storage.study(), evaluator=evaluator)
    except (RuntimeError, ValueError):  # fewer than two complete trials, or all of one value
        return {}


def sweep_page(run: Run, storage: TrialStorage, space: Space, result: SweepResultFile) -> str:
    """The whole page."""
    config = run.folder.sweep
    assert config is not None, "a run is no sweep"
    trials = storage.trials()
    metric = metric_words(config["metric"])
    best = result["best"]
    over = f", mean over {config['seeds']} seeds" if config["seeds"] > 1 else ""
    lead = (
        f"Recipe {run.folder.recipe}, {len(trials)} trials ({config['sampler']}): {result['complete']} complete, "
        f"{result['pruned']} pruned, {result['failed']} failed. The best is chosen by {metric}{over}, and only its "
        "test metrics are read."
    )
    sections = [
        report.table(
            f"Best: trial {best['trial']}",
            ("option", "value"),
            [(flag_name(name), written(value)) for name, value in best["options"].items()],
        ),
        report.code("To train it again", shlex.join(train_command(run, result))),
        report.table(
            "Its metrics",
            ("metric", "mean", "std") if config["seeds"] > 1 else ("metric", "value"),
            [
                (report.Named(name), *(each.values() if config["seeds"] > 1 else [each["mean"]]))
                for name, each in sorted(result["metrics"].items())
            ],
        ),
    ]
    sections += report.figures(
        lambda: _panels(trials, storage, space, config), lambda: report.curve_panels(_curves(run, best["trial"]))
    )
    rows = trial_rows(trials, space, config)
    sections.append(report.table("Trials", _headings(space, config), rows))
    failed = [(each.number, each.user_attrs["error"]) for each in trials if "error" in each.user_attrs]
    if failed:
        sections.append(report.table("Failed trials", ("trial", "error"), failed))
    here = [name for name in sorted(run.folder.members(), key=_number) if (run.path / name / "report.html").exists()]
    sections.append(report.links("Each trial", {name: f"{name}/report.html" for name in here}))
    searched = {flag_name(name): str(each) for name, each in space.items()}
    sections.append(report.collapsible("Search space", searched))
    sections.append(report.collapsible("Options", run.folder.config["options"] | run.folder.config["settings"]))
    return report.page(run.path.name, lead, sections)


def _headings(space: Space, config: SweepConfig) -> list[str | report.Named]:
    """The columns of the trials in words."""
    metric = config["metric"]
    return [report.Named(name) if name == metric else name.lstrip("-") for name in trial_columns(space, config)]


def _number(name: str) -> int:
    return int(name.partition("-")[2])


def _panels(trials: list[Any], storage: TrialStorage, space: Space, config: SweepConfig) -> list[Panel]:
    complete = [each for each in trials if each.state.name == "COMPLETE"]
    metric = metric_words(config["metric"])
    better = "high" if config["greater_is_better"] else "low"
    found = [
        Panel(
            "Parallel coordinates",
            functools.partial(_coordinates, complete, space, config),
            f"A line is a trial that was trained to its end; the bluer, the better its {metric} ({better} is good).",
        ),
        Panel(
            "History", functools.partial(_history, complete, config), f"The {metric} of each trial and the best so far."
        ),
    ]
    if importances := option_importances(storage):
        bars = functools.partial(plot.bars, {flag_name(name): round(value, 4) for name, value in importances.items()})
        about = (
            f"How much of the variance of {metric} an option explains by itself (fANOVA), as far as these trials show "
            "it; together they make 1."
        )
        found.insert(1, Panel("Importance of each option", bars, about))
    return found


def _coordinates(complete: list[Any], space: Space, config: SweepConfig) -> plot.Plot:
    axes = []
    for name, each in space.items():
        values = [values_of(trial, space)[name] for trial in complete]
        if isinstance(each, SweepChoices):
            words = tuple(map(written, each.values))
            axes.append(CoordinateAxis(flag_name(name), list(map(written, values)), choices=words))
        else:
            axes.append(CoordinateAxis(flag_name(name), values, log=each.log))
    measured = [trial.value for trial in complete]
    best = complete.index(ranked(complete, config)[0])
    axes.append(CoordinateAxis(metric_words(config["metric"]), measured, log=_is_wide(measured)))
    return plot.parallel_coordinates(axes, best=best, greater_is_better=config["greater_is_better"])


def _history(complete: list[Any], config: SweepConfig) -> plot.Plot:
    numbers = [trial.number for trial in complete]
    values = [trial.value for trial in complete]
    choose = max if config["greater_is_better"] else min
    best = [choose(values[: index + 1]) for index in range(len(values))]
    metric = metric_words(config["metric"])
    return plot.curves(
        {"trial": (numbers, values), "best so far": (numbers, best)},
        x_label="trial",
        y_label=metric,
        log_y=_is_wide(values),
    )


def _is_wide(values: list[float]) -> bool:
    """Whether only a logarithmic axis shows the small ones."""
    return min(values) > 0 and max(values) > 100 * min(values)


def _curves(run: Run, trial: int) -> dict[str, list[dict[str, Any]]]:
    """The learning curves of the best trial, seed by seed, if it was trained in this folder."""
    folder = run.folder.member(f"trial-{trial}")
    if folder is None:
        return {}
    if folder.multirun is None:
        return {"": folder.metrics()}
    members = [folder.member(name) for name in sorted(folder.members(), key=_number)]
    return {each.path.name: each.metrics() for each in members if each is not None}
