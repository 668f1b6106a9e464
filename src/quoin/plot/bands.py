"""Curves with bands: the middle of several runs and how far they spread, for few lines and for many."""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np

from quoin.display import shown
from quoin.errors import UserError, format_value
from quoin.plot.plots import COLORS, FAINT, INK, Plot, house_style, new_figure, numbers, plain

__all__ = ["Band", "curve_bands"]

_DASHES = (
    "-",
    (0, (5, 1.5)),
    (0, (1.2, 1.2)),
    (0, (5, 1.5, 1.2, 1.5)),
    (0, (9, 2)),
    (0, (3, 1, 1, 1, 1, 1)),
    (0, (2, 3)),
)


@shown
class Band(NamedTuple):
    """A line over `xs` and what lies around it; a band as wide as nothing is not shown."""

    xs: object
    middle: object
    low: object
    high: object


def curve_bands(
    panels: Mapping[str, Mapping[str, Band]],
    *,
    x_label: str = "",
    y_label: str = "",
    log_y: bool = False,
    faint: Collection[str] = (),
    band_label: str = "min to max",
    alt: str = "",
) -> Plot:
    """Panels side by side with one scale of y, such as training and validation, and in each a line and its band for
    each label. A label has one color and one kind of dashes in all of them: of seven no two are alike in either, and of
    49 no two are alike in both.

    Args:
        panels: Title of the panel to label to band.
        log_y: A logarithmic axis, if something on it is positive.
        faint: Labels that are shown in grey behind the others, and in the legend by their number.
        band_label: What the bands are, for the legend.
    """
    labels = list(dict.fromkeys(label for bands in panels.values() for label in bands))
    if not labels:
        raise UserError("expected at least one curve, got none; give a mapping of panels to labels to bands")
    shown = [label for label in labels if label not in faint]
    read = {
        title: {label: _read(label, band) for label, band in bands.items()} for title, bands in panels.items() if bands
    }
    with house_style():
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch
        from matplotlib.ticker import MaxNLocator

        handles: list[Any] = [Line2D([], [], **_look(i), label=plain(label)) for i, label in enumerate(shown)]
        if faint:
            handles.append(Line2D([], [], color=FAINT, linewidth=1, label=f"{len(labels) - len(shown)} others"))
        if any(_is_wide(band) for bands in read.values() for label, band in bands.items() if label in shown):
            handles.append(Patch(facecolor=INK, alpha=0.18, linewidth=0, label=plain(band_label)))
        columns = max(1, min(len(handles), 84 // (max(len(each.get_label()) for each in handles) + 10)))
        figure = new_figure(height=3.4 + 0.22 * -(-len(handles) // columns))
        axes = figure.subplots(1, len(read), sharex=True, sharey=True, squeeze=False)[0]
        for ax, (title, bands) in zip(axes, read.items(), strict=True):
            ax.set_title(plain(title))
            ax.set_xlabel(plain(x_label))
            ax.grid(True)
            for label, band in bands.items():
                _line(ax, band, shown.index(label) if label in shown else None)
            if all((band[0] == np.round(band[0])).all() for band in bands.values()):
                ax.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))  # there is no epoch 1.25
        axes[0].set_ylabel(plain(y_label))
        if log_y and any((band[1] > 0).any() for bands in read.values() for band in bands.values()):
            axes[0].set_yscale("log")
        if len(handles) > 1:
            figure.legend(handles=handles, loc="outside lower center", ncols=columns, handlelength=3)
        return Plot(figure, alt or f"curves: {', '.join(labels[:8])}")


def _look(index: int) -> dict:
    times, color = divmod(index, len(COLORS))  # as many dashes as colors: each time round they shift by one
    return {"color": COLORS[color], "linestyle": _DASHES[(color + times) % len(_DASHES)]}


def _line(ax, band: tuple[np.ndarray, ...], index: int | None) -> None:
    xs, middle, low, high = band
    if index is None:
        ax.plot(xs, middle, color=FAINT, linewidth=0.8, zorder=1)
        return
    # a point alone is no line: it needs a dot to be seen
    ax.plot(xs, middle, **_look(index), marker="o" if len(xs) == 1 else None, markersize=4, zorder=3)
    if _is_wide(band):
        ax.fill_between(xs, low, high, color=COLORS[index % len(COLORS)], alpha=0.18, linewidth=0, zorder=2)


def _is_wide(band: tuple[np.ndarray, ...]) -> bool:
    return bool((band[3] > band[2]).any())


def _read(label: str, band: Band) -> tuple[np.ndarray, ...]:
    found = tuple(numbers(values, f"the {name} of {format_value(label)}", 1) for name, values in band._asdict().items())
    if len({len(each) for each in found}) > 1:
        raise UserError(f"expected as many values as xs for {format_value(label)}, got {[len(each) for each in found]}")
    return tuple(np.where(np.isfinite(each), each, np.nan) for each in found)
