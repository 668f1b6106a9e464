"""Learning curves of groups: the mean over the seeds of each, in a band from the lowest to the highest."""

import functools
from typing import Any

import numpy as np

from quoin import plot
from quoin.display import capitalized, metric_words
from quoin.plot import Band, Panel
from quoin.runs.compare import Comparison
from quoin.runs.compare_groups import RunGroup

__all__ = ["band_panels", "metric_band"]

MOST_COLORED = 7  # lines that a reader can tell apart; of more, the best by the first metric
SPLITS = {"train": "training", "validation": "validation"}


def metric_band(group: RunGroup, name: str) -> Band | None:
    """The curve of a metric over the group: mean, lowest and highest of its finished runs, or of all while none is, as
    far as the shortest goes.

    The xs are the first run's; where another was evaluated at other epochs, its values between them are taken by linear
    interpolation.
    """
    curves = [_curve(run.history, name) for run in group.finished or group.runs]
    curves = [(xs, ys) for xs, ys in curves if len(xs)]
    if not curves:
        return None
    first, end = curves[0][0], min(xs[-1] for xs, _ in curves)
    grid = first[first <= end]
    if not len(grid):
        grid = np.array([end])
    values = np.stack([np.interp(grid, xs, ys) for xs, ys in curves])
    with np.errstate(over="ignore"):
        return Band(grid, values.mean(axis=0), values.min(axis=0), values.max(axis=0))


def _curve(history: list[dict[str, Any]], name: str) -> tuple[np.ndarray, np.ndarray]:
    points = {line["epoch"]: line[name] for line in history if name in line}
    xs = np.array(sorted(points), dtype=float)
    return xs, np.array([points[x] for x in sorted(points)], dtype=float)


def band_panels(found: Comparison) -> list[Panel]:
    """One panel per metric of every epoch, training beside validation."""
    keys = {key for group in found.groups for run in group.runs for line in run.history for key in line}
    metrics = sorted(
        {key.partition("_")[2] for key in keys if key.startswith(tuple(f"{split}_" for split in SPLITS))},
        key=lambda name: (name != "loss", name),
    )
    return [_panel(found, metric) for metric in metrics]


def _panel(found: Comparison, metric: str) -> Panel:
    panels = {
        title: {group.name: band for group in found.groups if (band := metric_band(group, f"{split}_{metric}"))}
        for split, title in SPLITS.items()
    }
    faint = _faint(found)
    every: list[Any] = [each for bands in panels.values() for band in bands.values() for each in band[1:]]
    values = np.concatenate(every)
    words = metric_words(metric)
    content = functools.partial(
        plot.curve_bands,
        {title: bands for title, bands in panels.items() if bands},
        x_label="epoch",
        y_label=words,
        log_y=bool(values.min() > 0 and values.max() > 100 * values.min()),
        faint=faint,
        alt=f"{words} by epoch of {len(found.groups)} runs",
    )
    return Panel(capitalized(f"{words} by epoch"), content, _caption(found, values, bool(faint)))


def _faint(found: Comparison) -> set[str]:
    """The names that are shown in grey: all but the best few by the first metric, and the baseline."""
    if len(found.groups) <= MOST_COLORED:
        return set()
    ranked = [group.name for group in found.ranked() if group is not found.baseline]
    return set(ranked[MOST_COLORED - (found.baseline is not None) :])


def _caption(found: Comparison, values: np.ndarray, has_faint: bool) -> str:
    told = []
    if any(len(group.finished or group.runs) > 1 for group in found.groups):
        told.append("Lines are means over the seeds or folds; a band goes from the lowest to the highest of them.")
    if has_faint:
        told.append(
            f"In color the best by {metric_words(found.metrics[0])}{' and the baseline' if found.baseline else ''}."
        )
    if beyond := int((np.abs(values) > plot.LARGEST).sum()):
        told.append(f"{beyond} of {len(values)} values are beyond {plot.LARGEST:g} and are not plotted.")
    return " ".join(told)
