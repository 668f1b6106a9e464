"""Attention weights of a trained run's heads on rows of its own test split."""

from collections.abc import Sequence

from torch import Tensor, nn

from quoin import inspect
from quoin.data import PreparedData
from quoin.inspect import AttentionMaps
from quoin.plot import Panel

__all__ = ["ATTENTION_CAPTION", "attention_panels"]

ATTENTION_CAPTION = (
    "A row for each layer, a map for each head: its rows are the queries, its columns the keys, the bluer the more "
    "weight. "
    "Under each head stand its entropy, 0 where every query attends to one key, and its mean attention distance."
)


def attention_panels(
    model: nn.Module, data: PreparedData, rows: Sequence[int], *, layer: str | None = None
) -> list[Panel]:
    """A panel for each of the test rows, counted from 0: the maps of all attentions, or of those in this layer, if
    there are any."""
    if not inspect.has_attention(model):
        return []
    return [panel for row in rows for panel in _panel(model, data, row, layer)]


def _panel(model: nn.Module, data: PreparedData, row: int, layer: str | None) -> list[Panel]:
    found = inspect.attention_maps(model, data.test.features[row : row + 1])
    if layer is not None:
        found = [
            each
            for each in found
            if f"{each.layer}.".startswith(f"{layer}.") or f"{layer}.".startswith(f"{each.layer}.")
        ]
    if not found:
        return []
    content = inspect.plot_attention_maps(
        [_named(each, data, row) for each in found]
    )  # now: what is too long is the caller's to report
    return [Panel(f"Attention of test row {row + 1}", content, ATTENTION_CAPTION)]


def _named(found: AttentionMaps, data: PreparedData, row: int) -> AttentionMaps:
    """With the names that the data give to positions: a symbol for each, or a row of the image; else they stay
    numbered."""
    queries, keys = found.weights.shape[1:]
    names = _names(data.test.features[row], queries)
    return found.labeled(names) if names is not None and queries == keys else found


def _names(features: Tensor, positions: int) -> list[str] | None:
    if features.ndim == 1 and len(features) == positions and not features.is_floating_point():
        return [str(symbol) for symbol in features.tolist()]
    if features.ndim == 3 and features.shape[1] == positions:  # (c, h, w) read row by row
        return [f"row {number}" for number in range(1, positions + 1)]
    return None
