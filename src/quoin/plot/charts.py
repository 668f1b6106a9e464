"""Numbers against numbers: curves, predictions against truth, bars."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from quoin.display import format_number
from quoin.errors import UserError, format_value
from quoin.plot.plots import COLORS, FAINT, INK, Plot, house_style, new_figure, numbers, plain

__all__ = ["bars", "curves", "scatter"]

_MOST_POINTS = 2000  # a curve has about 600 pixels of width; more points only make the file larger
_DASHES = ("-", "--", ":", "-.")
_LEVELS = ((0, (4, 3)), (0, (1, 2)), (0, (7, 2, 1, 2)))  # of horizontal lines, which all have one colour


def curves(
    series: Mapping[str, tuple[object, object]],
    *,
    title: str = "",
    x_label: str = "",
    y_label: str = "",
    log_x: bool = False,
    log_y: bool = False,
    reference_lines: Mapping[str, float] | Sequence[tuple[str, float]] = (),
    vertical_lines: Mapping[str, float] | None = None,
) -> Plot:
    """One line for each `label: (xs, ys)`, and a dashed horizontal line for each level, such as a target.

    A gap stands where a value is not finite.

    Args:
        series: Label to (xs, ys).
        log_x: A logarithmic axis, if something on it is positive.
        log_y: The same for the other axis.
        reference_lines: Name to level, or pairs of them.
        vertical_lines: Name to x, for a dotted line there.
    """
    if not series:
        raise UserError("expected at least one curve, got none; give a mapping of label to (xs, ys)")
    points = {label: _points(label, xs, ys) for label, (xs, ys) in series.items()}
    lines = list(reference_lines.items() if isinstance(reference_lines, Mapping) else reference_lines)
    with house_style():
        from matplotlib.ticker import MaxNLocator

        figure = new_figure(height=3.8)
        axes = figure.add_subplot(title=plain(title), xlabel=plain(x_label), ylabel=plain(y_label))
        axes.grid(True)
        if log_x and any(_some_positive(xs) for xs, _ in points.values()):
            axes.set_xscale("log")
        elif all((xs == np.round(xs)).all() for xs, _ in points.values()):
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))  # there is no epoch 1.25
        if log_y and any(_some_positive(ys) for _, ys in points.values()):
            axes.set_yscale("log")
        for i, (label, (xs, ys)) in enumerate(points.items()):
            marker = "o" if len(xs) <= 20 else None
            dash = _DASHES[i // len(COLORS) % len(_DASHES)]
            axes.plot(xs, ys, dash, marker=marker, markersize=4, color=COLORS[i % len(COLORS)], label=plain(label))
        for i, (name, level) in enumerate(lines):
            dash, label = _LEVELS[i % len(_LEVELS)], f"{plain(name)} ({format_number(level)})"
            axes.axhline(level, color=INK, linewidth=1, linestyle=dash, label=label)
        for color, (name, x) in zip(reversed(COLORS), (vertical_lines or {}).items()):
            axes.axvline(x, color=color, linewidth=1.2, linestyle=":", label=f"{plain(name)} ({format_number(x)})")
        labels = axes.get_legend_handles_labels()[1]
        if len(labels) > 1:
            longest = max(map(len, labels))
            figure.legend(loc="outside lower center", ncols=max(1, min(len(labels), 84 // (longest + 8))))
        return Plot(figure, title or f"curves: {', '.join(points)}")


def _some_positive(values: np.ndarray) -> bool:
    return bool(((values > 0) & np.isfinite(values)).any())


def _points(label: str, xs: object, ys: object) -> tuple[np.ndarray, np.ndarray]:
    x, y = numbers(xs, f"the xs of {format_value(label)}", 1), numbers(ys, f"the ys of {format_value(label)}", 1)
    if len(x) != len(y):
        raise UserError(f"expected as many xs as ys for {format_value(label)}, got {len(x)} and {len(y)}; pair them up")
    if len(x) <= _MOST_POINTS:
        return x, y
    # Keep the lowest and the highest point of each stretch: a spike of one step must still be seen.
    edges = np.linspace(0, len(x), _MOST_POINTS // 2 + 1).astype(int)
    low = [a + int(np.argmin(np.nan_to_num(y[a:b], nan=np.inf))) for a, b in pairwise(edges)]
    high = [a + int(np.argmax(np.nan_to_num(y[a:b], nan=-np.inf))) for a, b in pairwise(edges)]
    keep = np.unique([0, *low, *high, len(x) - 1])
    return x[keep], y[keep]


def scatter(
    true: object, predicted: object, *, title: str = "", x_label: str = "true", y_label: str = "predicted"
) -> Plot:
    """Predicted against true values; on the diagonal a prediction is exact."""
    x, y = numbers(true, "true values", 1), numbers(predicted, "predicted values", 1)
    if len(x) != len(y):
        raise UserError(f"expected as many true values as predictions, got {len(x)} and {len(y)}; pair them up")
    finite = np.concatenate([x, y])
    finite = finite[np.isfinite(finite)]
    low, high = (finite.min(), finite.max()) if finite.size else (0.0, 1.0)
    margin = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
    with house_style():
        figure = new_figure(height=4.6, width=5.0)
        axes = figure.add_subplot(title=plain(title), xlabel=plain(x_label), ylabel=plain(y_label), aspect="equal")
        axes.grid(True)
        axes.set_xlim(low - margin, high + margin)
        axes.set_ylim(low - margin, high + margin)
        axes.axline((low, low), slope=1, color=INK, linewidth=1, linestyle=(0, (4, 3)), label="exact")
        alpha = 0.8 if len(x) <= 200 else 0.35
        axes.scatter(x, y, s=18, color=COLORS[0], alpha=alpha, linewidths=0, rasterized=len(x) > _MOST_POINTS, zorder=2)
        axes.legend(loc="upper left")
        return Plot(figure, title or f"{y_label} against {x_label}")


def bars(values: Mapping[str, float], *, title: str = "", x_label: str = "") -> Plot:
    """One horizontal bar for each `label: value`, the first on top, each with its number."""
    if not values:
        raise UserError("expected at least one bar, got none; give a mapping of label to value")
    lengths = numbers(list(values.values()), "bars", 1)
    rows = np.arange(len(lengths))
    with house_style():
        figure = new_figure(height=0.9 + 0.32 * len(lengths))
        axes = figure.add_subplot(title=plain(title), xlabel=plain(x_label))
        handles = axes.barh(rows, np.nan_to_num(lengths, posinf=0.0, neginf=0.0), height=0.7, color=COLORS[0])
        axes.bar_label(handles, labels=[format_number(value).replace("-", "−") for value in lengths], padding=3)
        axes.set_yticks(rows, [plain(label) for label in values])
        axes.invert_yaxis()
        axes.axvline(0, color=FAINT, linewidth=1)
        axes.spines["left"].set_visible(False)
        axes.tick_params(left=False)
        axes.margins(x=0.12)
        return Plot(figure, title or f"bars: {', '.join(values)}")
