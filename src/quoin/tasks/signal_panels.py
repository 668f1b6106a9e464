"""Signals of a run's own test split, as panels for the report."""

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor

from quoin import plot
from quoin.data import PreparedData
from quoin.plot import Panel

__all__ = ["example_signals", "signals_panel"]

CLASSES = 6  # that examples are shown of
EXAMPLES = 3  # of each class
SCALE = "On the standardised scale, a colour for each channel."


def example_signals(probabilities: Float[Tensor, "samples classes"], names: Sequence[str], data: PreparedData) -> Panel:
    """The first test signals of each of the first classes, a row a class, with what the model predicts."""
    labels: list[int] = data.test.targets.tolist()
    predicted: list[int] = probabilities.argmax(-1).tolist()
    rows = [
        row
        for label in sorted(set(labels))[:CLASSES]
        for row in [row for row, each in enumerate(labels) if each == label][:EXAMPLES]
    ]
    captions = [
        names[labels[row]] if predicted[row] == labels[row] else f"{names[predicted[row]]}, true {names[labels[row]]}"
        for row in rows
    ]
    caption = "Test signals with the predicted class, and the true one where the prediction is wrong."
    return signals_panel("Example signals", data, rows, captions, caption)


def signals_panel(title: str, data: PreparedData, rows: Sequence[int], captions: Sequence[str], caption: str) -> Panel:
    """These test signals, each under its caption."""
    signals = data.test.features[list(rows)].cpu()
    return Panel(title, lambda: plot.signal_grid(signals, captions, columns=EXAMPLES), f"{caption} {SCALE}")
