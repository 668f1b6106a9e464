"""A run as a notebook shows it: its final metrics, how it was trained, and its curves."""

import html
from typing import TYPE_CHECKING

from quoin.display import short, table
from quoin.train import report

if TYPE_CHECKING:
    from quoin.runs.run import Run

__all__ = ["run_html"]

_MOST_CURVES = 2


def run_html(run: "Run") -> str:
    """Tables of metrics and options, then the curves of the loss and of one more metric."""
    result, config = run.folder.result, run.folder.config
    sections = []
    if run.metrics is None or result is None:
        sections.append(f"<p>{html.escape(repr(run))}</p>")
    else:
        footer = f"{result['seconds']:.1f} s" if "seconds" in result else ""
        rows = [(name.replace("_", " "), value) for name, value in run.metrics.items()]
        sections.append(table(("metric", "value"), rows, caption=f"{run.path.name}: {run.recipe_name}", footer=footer))
    rows = [(name.replace("_", " "), short(value, 80)) for name, value in config["options"].items()]
    sections.append(f"<details><summary>options</summary>{table(('option', 'value'), rows)}</details>")
    if run.folder.sweep is None and run.folder.multirun is None and run.history:
        panels = report.curve_panels({"": run.history})[:_MOST_CURVES]
        sections += [panel._repr_html_() for panel in panels]
    return "\n".join(sections)
