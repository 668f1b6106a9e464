"""How good a classifier is: a table of scores by class, ROC curves, and a reliability diagram."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from quoin.errors import UserError, format_value
from quoin.plot.palette import LIGHT
from quoin.plot.plots import COLORS, FAINT, INK, Plot, amount_map, house_style, numbers, plain, text_on

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["reliability_diagram", "roc_curves", "score_table"]

_MOST_POINTS = 1000  # of a curve: more only make the file larger
_LETTER = 0.085  # inches, of a label's font
_RATES = (0.0, 0.5, 1.0)
_DIAGONAL = {"color": INK, "linewidth": 1, "linestyle": (0, (4, 3))}


def _figure(width: float, height: float) -> Figure:
    """A figure whose axes are put where they belong by hand: every report of a classifier has three of these, and
    finding the places would take as long as plotting."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), facecolor=LIGHT.paper)


def score_table(scores: object, *, row_labels: Sequence[str], column_labels: Sequence[str], title: str = "") -> Plot:
    """Scores from 0 to 1 as a table whose cells are the bluer the larger they are; a dash where one is not finite."""
    cells = numbers(scores, "scores", 2)
    if cells.shape != (len(row_labels), len(column_labels)):
        raise UserError(
            f"expected a label for each row and column of {cells.shape}, got {len(row_labels)} and "
            f"{len(column_labels)}; give as many"
        )
    with house_style():
        from matplotlib.colors import Normalize

        left, height = 0.2 + _LETTER * max(map(len, row_labels)), 0.3 * len(cells)
        top = 0.7 if title else 0.4
        width = left + 0.9 * len(column_labels) + 0.1
        figure = _figure(width, height + top)
        axes = figure.add_axes((left / width, 0.0, 1 - (left + 0.1) / width, height / (height + top)))
        axes.set_title(plain(title))
        colors, norm = amount_map(), Normalize(0.0, 1.6)  # pale enough for a table
        axes.pcolormesh(np.ma.masked_invalid(cells), cmap=colors, norm=norm, edgecolors=LIGHT.paper)
        axes.invert_yaxis()
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0, labeltop=True, labelbottom=False)
        axes.set_xticks(np.arange(cells.shape[1]) + 0.5, [plain(label) for label in column_labels])
        axes.set_yticks(np.arange(cells.shape[0]) + 0.5, [plain(label) for label in row_labels])
        for i, j in np.ndindex(*cells.shape):
            known = bool(np.isfinite(cells[i, j]))
            text = f"{cells[i, j]:.3f}" if known else "–"
            ink = text_on(colors(norm(cells[i, j]))) if known else INK
            axes.text(j + 0.5, i + 0.5, text, ha="center", va="center", color=ink)
        return Plot(figure, title or f"table of {', '.join(column_labels)}")


def roc_curves(curves: Mapping[str, tuple[object, object]], *, title: str = "") -> Plot:
    """True against false positive rate, one line for each `label: (fpr, tpr)`; the diagonal is a random ranking."""
    if not curves:
        raise UserError("expected at least one curve, got none; give a mapping of label to (fpr, tpr)")
    with house_style():
        figure = _figure(4.8, 4.7)
        axes = figure.add_axes((0.14, 0.13, 0.82, 0.8))
        axes.set(title=plain(title), xlabel="false positive rate", ylabel="true positive rate")
        axes.set(xticks=_RATES, yticks=_RATES)
        axes.grid(True)
        axes.set_xlim(-0.02, 1.02)
        axes.set_ylim(-0.02, 1.02)
        axes.plot([0, 1], [0, 1], label="random", **_DIAGONAL)
        for i, (label, (fpr, tpr)) in enumerate(curves.items()):
            x, y = numbers(fpr, f"the fpr of {format_value(label)}", 1), numbers(tpr, f"the tpr of {label}", 1)
            if len(x) != len(y):
                raise UserError(f"expected as many fpr as tpr for {format_value(label)}, got {len(x)} and {len(y)}")
            keep = np.unique(np.linspace(0, len(x) - 1, min(len(x), _MOST_POINTS)).astype(int))
            axes.plot(x[keep], y[keep], color=COLORS[i % len(COLORS)], label=plain(label))
        axes.legend(loc="lower right")
        return Plot(figure, title or f"ROC curves: {', '.join(curves)}")


def reliability_diagram(confidence: object, frequency: object, counts: object, *, title: str = "") -> Plot:
    """Observed frequency against stated probability in bins of equal width on [0, 1], and how many examples each bin
    has; on the diagonal a classifier is calibrated.

    Args:
        confidence: The mean probability stated in each bin; NaN in an empty one.
        frequency: How often it was right there.
        counts: Examples in each bin.
    """
    stated, found, sizes = (
        numbers(values, name, 1)
        for values, name in ((confidence, "confidence"), (frequency, "frequency"), (counts, "counts"))
    )
    if not len(stated) == len(found) == len(sizes):
        raise UserError(f"expected one value for each bin, got {len(stated)}, {len(found)} and {len(sizes)}")
    width = 1 / len(sizes)
    centers = (np.arange(len(sizes)) + 0.5) * width
    with house_style():
        figure = _figure(4.8, 5.4)
        axes, below = figure.add_axes((0.15, 0.35, 0.82, 0.59)), figure.add_axes((0.15, 0.16, 0.82, 0.13))
        axes.set(title=plain(title), ylabel="fraction correct", xticks=_RATES, yticks=_RATES)
        axes.tick_params(labelbottom=False)
        axes.grid(True)
        axes.set_axisbelow(True)
        axes.bar(centers, np.nan_to_num(found), width=0.94 * width, color=COLORS[0], alpha=0.4)
        axes.plot([0, 1], [0, 1], label="calibrated", **_DIAGONAL)
        axes.plot(stated, found, "o", markersize=5, color=INK, label="mean of a bin")
        axes.set_xlim(-0.01, 1.01)
        axes.set_ylim(0, 1.02)
        below.bar(centers, sizes / max(1.0, sizes.sum()), width=0.94 * width, color=FAINT)
        largest = float(sizes.max() / max(1.0, sizes.sum()))
        below.set(xlabel="predicted probability", ylabel="examples", xlim=axes.get_xlim(), xticks=_RATES)
        below.set_yticks([0, largest], ["0", f"{largest:.0%}"])
        figure.legend(loc="lower center", ncols=2)  # inside the axes it would hide bars
        return Plot(figure, title or "reliability diagram")
