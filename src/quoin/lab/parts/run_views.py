"""Runs as exhibits: their curves, growing while they train, and what each kind of trained model can be asked.

Read only. A run that is being written, was killed or is damaged says so in one line and shows what there is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from quoin.errors import UserError
from quoin.lab.parts.controls import Choice, Clock, Switch
from quoin.lab.parts.exhibit import Exhibit, Number, View
from quoin.lab.parts.open_runs import run_names
from quoin.lab.parts.picture import Picture
from quoin.lab.parts.run_models import model_exhibits
from quoin.runs import Run

__all__ = ["curves_exhibit", "run_exhibits", "run_lines"]

NOT_METRICS = {"step", "epoch", "seconds", "lr"}
MOST_RUNS = 7  # as many as there are colours to tell apart


def run_exhibits(paths: Sequence[Path]) -> list[Exhibit]:
    """What can be played with, for runs that may be of different kinds: their curves, then the trained models."""
    opened = []
    for path in paths:
        try:
            opened.append(Run.open(path))
        except UserError:  # the curves' exhibit says what is wrong with it
            continue
    return [curves_exhibit(paths), *model_exhibits(opened)]


def run_lines(path: Path) -> tuple[list[dict[str, Any]], str]:
    """The lines of a run's metrics so far, and its state in words."""
    try:
        run = Run.open(path)
        lines = run.folder.metrics()
    except UserError as error:
        return [], str(error)
    if run.metrics is None:
        return lines, "not finished"
    shown = list(run.metrics.items())[:3]
    return lines, ", ".join(f"{name.replace('_', ' ')} {value:.3g}" for name, value in shown)


def metric_names(paths: Sequence[Path]) -> tuple[str, ...]:
    """The metrics that some run has curves of, without the names of the splits; the loss first."""
    names: dict[str, None] = {}
    for path in paths:
        for line in run_lines(path)[0][-1:]:
            for name, value in line.items():
                if name not in NOT_METRICS and isinstance(value, (int, float)):
                    names[name.removeprefix("train_").removeprefix("validation_")] = None
    return tuple(sorted(names, key=lambda name: name != "loss")) or ("loss",)


def curves_exhibit(paths: Sequence[Path]) -> Exhibit:
    """The learning curves of the runs over one another."""
    options = metric_names(paths)

    words = tuple(name.replace("_", " ") for name in options)
    question = "How did it learn?" if len(paths) == 1 else "How did they learn?"
    intro = "Solid: validation. Dashed: training. The curves grow while a run trains."
    controls = (Choice("metric", "metric", words), Switch("log", "logarithmic"), Clock("tick", "time"))

    def curves(metric: str, log: bool, tick: int) -> View:
        return _curves(paths, options[words.index(metric)], log)

    return Exhibit("curves", question, intro, (), controls, "", {}, (), {}, curves, yours=True)


def _curves(paths: Sequence[Path], metric: str, log: bool) -> View:
    names = run_names(paths)
    found = [(name, *run_lines(path)) for name, path in zip(names, paths[:MOST_RUNS])]
    series = []  # role, dashed, label, steps, values
    for number, (name, lines, _) in enumerate(found, start=1):
        for split, dashed in (("train_", True), ("validation_", False), ("", False)):
            points = [
                (line["step"], line[split + metric]) for line in lines if _drawable(line.get(split + metric), log)
            ]
            if points:
                series.append((f"series-{number}", dashed, f"{split.strip('_')} {name}".strip(), points))
    steps = [step for *_, points in series for step, _ in points] or [0, 1]
    values = [value for *_, points in series for _, value in points] or [0.1, 1.0]
    low, high = min(values), max(values)
    margin = (high - low) * 0.05 or abs(high) * 0.1 or 1.0
    span = (low / 1.1, high * 1.1) if log else (low - margin, high + margin)
    words = metric.replace("_", " ")
    picture = Picture(f"Curves of {words} over {max(steps):,} steps of {len(found)} runs.")
    axes = picture.axes(
        (0, max(max(steps), 1)), span, x_label="steps", y_label=words, y_log=log, box=(62, 12, 566, 320)
    )
    for role, dashed, label, points in series:
        axes.line([step for step, _ in points], [value for _, value in points], role, dashed=dashed, label=label)
        axes.points([points[-1][0]], [points[-1][1]], role, size=3.5)
    for number, (name, _, _) in enumerate(found):
        picture.text(62 + 190 * (number % 3), 384 + 18 * (number // 3), f"● {name}", role=f"series-{number + 1}")
    note = "; ".join(f"{name}: {state}" for name, _, state in found)
    last = max((line["step"] for _, lines, _ in found for line in lines), default=0)
    best = min(values) if "loss" in metric or "perplexity" in metric or "bits" in metric else max(values)
    numbers = [Number("steps so far", last)]
    if series:
        numbers.append(Number(f"best {words}", float(best)))
    return View(picture, numbers, note=note)


def _drawable(value: object, log: bool) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value) and (value > 0 or not log)
