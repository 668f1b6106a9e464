"""The report of a run: its target, metrics, curves and plots on one page, and how it was run."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from quoin.display import format_number, metric_words
from quoin.plot import Panel
from quoin.runs.generative_table import beside_others
from quoin.runs.inspect_run import report_panels, report_remarks
from quoin.runs.kinds import MODULE
from quoin.runs.run import Run
from quoin.train import Task, report
from quoin.train.peak_memory import describe_peak_memory
from quoin.train.processes import alone
from quoin.train.run_files import ResultFile

__all__ = ["write_report"]


def write_report(
    run: Run, task: Task, result: ResultFile | None, on_panel: Callable[[Panel], None] = lambda panel: None
) -> Path:
    """The run's page, from what the folder holds and the plots that the task makes of itself, of which `on_panel` gets
    each."""
    folder = run.folder
    config, lines = folder.config, folder.metrics()
    sections = []
    what = f"Module {config['options']['model']}" if run.kind == MODULE else f"Recipe {config['recipe']}"
    lead = f"{what}, seed {config['options']['seed']}; "
    if result is None:
        lead += "interrupted: these are the curves so far."
    else:
        lead += f"{result['steps']:,} steps in {format_number(result['seconds'])} s"
        lead += f"; {describe_peak_memory(peak)}." if (peak := result.get("peak_memory")) else "."
        best = next((line for line in lines if line["step"] == result["best_step"]), None)
        if best is not None and result["best_step"] < result["steps"]:
            monitor = run.recipe.monitor_for(run.options)
            by = metric_words(monitor.metric) if monitor else "validation"
            lead += f" The results are those of the best checkpoint by {by}, of epoch {best['epoch']:g}."
        sections.append(report.metrics_table(result["metrics"]))
        sections += beside_others(folder)
        if target := result["target"]:
            row = (report.Named(target["metric"]), target["bound"], target["value"], target["met"])
            sections.insert(0, report.table("Quality target", ("metric", "target", "value", ""), [row]))
    if lines:
        sections += report.figures(lambda: report.curve_panels({"": lines}))
    with alone():  # of several processes one writes the report: its plots are made without the others
        sections += report.figures(
            lambda: _handed_on(task.panels(), on_panel), lambda: _handed_on(report_panels(task), on_panel)
        )
    sections += [report.paragraph(f"{each[0].upper()}{each[1:]}.") for each in report_remarks(task)]
    sections.append("<h2>Configuration</h2>")
    sections.append(report.collapsible("Options", config["options"] | config["settings"]))
    if config["data"]:
        sections.append(report.collapsible("Data", {name: _short(value) for name, value in config["data"].items()}))
    sections.append(report.collapsible("Environment", folder.environment))
    sections.insert(0, report.label(config.get("note", ""), config.get("tags", [])))
    return folder.save_report(report.page(folder.path.name, lead, sections))


def _handed_on(panels: Iterable[Panel], on_panel: Callable[[Panel], None]) -> Iterator[Panel]:
    for panel in panels:
        yield panel  # first into the page, where one that fails is told of
        on_panel(panel)


def _short(value: Any) -> Any:
    return [*value[:12], f"... {len(value)} in all"] if isinstance(value, list) and len(value) > 12 else value
