"""Runs side by side."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from quoin.errors import UserError
from quoin.runs.generative_table import GenerativeLine, generative_line, generative_section, is_measured
from quoin.runs.run import Run
from quoin.train import report

__all__ = ["Comparison", "LanguageModelLine", "comparison", "comparison_page"]


class LanguageModelLine(NamedTuple):
    """The first metrics of a language model, on its test text; None where its run has not come so far."""

    run: str
    tokens: str  # what a token is: perplexities compare only where it is the same, bits per character always
    perplexity: float | None
    bits_per_character: float | None
    parameters: int | None
    seconds: float | None


@dataclass(frozen=True)
class Comparison:
    """What differs between runs; values stand in the order of `names`, None where a run has none."""

    names: list[str]
    options: dict[str, list[Any]]
    metrics: dict[str, list[float | None]]
    curves: dict[str, list[dict[str, Any]]]
    language_models: list[LanguageModelLine]  # those among the runs
    generative_models: list[GenerativeLine]  # likewise, if their samples were measured

    def option_rows(self) -> list[tuple[str, ...]]:
        """The options as text: a table would read True and False as verdicts."""
        return [(name, *map(report.format_cell, values)) for name, values in self.options.items()]


def comparison(paths: list[Path]) -> Comparison:
    """Read the folders and keep what differs."""
    runs = [Run.open(path) for path in paths]
    firsts = [_first(run) for run in runs]
    names = [run.path.name for run in runs]
    if len(set(names)) < len(names):
        names = [str(path) for path in paths]
    names = [name + _standing(run) for name, run in zip(names, runs)]
    configs = [
        {"recipe": run.recipe.name, **dataclasses.asdict(run.options), **dataclasses.asdict(run.run_config)}
        for run in runs
    ]
    results = [run.metrics or {} for run in runs]
    every_option = dict.fromkeys(name for config in configs for name in config)
    every_metric = dict.fromkeys(name for result in results for name in sorted(result))
    options = {name: [config.get(name) for config in configs] for name in every_option}
    return Comparison(
        names,
        {name: values for name, values in options.items() if any(value != values[0] for value in values)},
        {name: [result.get(name) for result in results] for name in every_metric},
        {name: run.history for name, run in zip(names, runs)},
        [_line(name, run, one) for name, run, one in zip(names, runs, firsts) if one.kind == "language-modeling"],
        [generative_line(name, run, one) for name, run, one in zip(names, runs, firsts) if is_measured(run)],
    )


def _line(name: str, run: Run, one: Run) -> LanguageModelLine:
    result, metrics = run.folder.result, run.metrics or {}
    try:
        parameters = one.trained.num_parameters  # type: ignore[attr-defined]
    except UserError:  # there is no checkpoint yet
        parameters = None
    return LanguageModelLine(
        run=name,
        tokens=one.data_info.tokenizer_json["kind"],
        perplexity=metrics.get("test_perplexity"),
        bits_per_character=metrics.get("test_bits_per_character"),
        parameters=parameters,
        seconds=result and result["seconds"],
    )


def _first(run: Run) -> Run:
    """The run itself, or the first one of several: all of them have the same model."""
    multirun = run.folder.multirun
    member = run.folder.member(f"{multirun['over']}-0") if multirun else None
    return Run(member) if member else run


def _standing(run: Run) -> str:
    """What to know of a column: that its run is not finished, or that it stands for several."""
    if run.metrics is None:
        return " (unfinished)"
    multirun = run.folder.multirun
    return f" (mean of {multirun['count']} {multirun['over']}s)" if multirun else ""


def comparison_page(found: Comparison) -> str:
    """The comparison as a page with the curves plotted together."""
    sections = [
        report.table("Results", ("metric", *found.names), [(name, *values) for name, values in found.metrics.items()])
    ]
    if found.language_models:
        sections.insert(
            0, report.table("Language models, on their test text", LanguageModelLine._fields, found.language_models)
        )
    if found.generative_models:
        sections.insert(0, generative_section("Samples of generative models", found.generative_models))
    if found.options:
        sections.insert(0, report.table("Options that differ", ("option", *found.names), found.option_rows()))
    sections += report.figures(
        lambda: report.curve_panels({name: lines for name, lines in found.curves.items() if lines})
    )
    return report.page("Runs compared", ", ".join(found.names), sections)
