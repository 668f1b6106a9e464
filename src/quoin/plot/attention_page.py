"""Attention of every layer and head: a grid of small maps, and as a page, maps to point at for their numbers and
tokens.

The page is attention_page.html beside this file, filled here: it holds all its weights in half precision and asks for
nothing outside itself. What the weights are and where they come from is `quoin.inspect`'s matter.
"""

import base64
import html
import json
import math
import re
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from quoin.display import shown
from quoin.errors import UserError, format_value
from quoin.plot.maps import feature_map_rows
from quoin.plot.palette import amounts, css_variables, signed
from quoin.plot.plots import Plot, numbers

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["AttentionLayer", "AttentionPlot", "attention"]

_MOST_POSITIONS = 2048  # a canvas of one pixel a weight still fits a screen and its scroll bars
_MOST_WEIGHTS = 2**24  # 64 heads of 512 tokens: about 30 MB of page
_FINEST = 128  # pixels of a small map in the grid
_COLUMNS = 8


@shown
@dataclass(frozen=True)
class AttentionLayer:
    """One layer as it is shown: its weights, what its rows and columns are called, and details about each head."""

    name: str
    weights: Any  # (heads, queries, keys): a tensor, an array or lists
    query_labels: tuple[str, ...]
    key_labels: tuple[str, ...]
    details: tuple[tuple[tuple[str, str], ...], ...] = ()  # for each head, names and texts


class AttentionPlot(Plot):
    """A grid with a row for each layer and a map for each head; as a page, one map at a time with all its numbers."""

    def __init__(self, figure: "Figure", alt: str, layers: Sequence[AttentionLayer]):
        super().__init__(figure, alt)
        self._layers = tuple(layers)

    def html(self, title: str = "") -> str:
        """A page of its own, with choosers of layer and head, and the tokens and the weight under the pointer or the
        arrow keys."""
        packed = [base64.b64encode(_packed(layer.weights)).decode("ascii") for layer in self._layers]
        shown = [_as_json(layer) for layer in self._layers]
        filling = {
            "palette": css_variables(),
            "light": json.dumps(_stops(dark=False)),
            "dark": json.dumps(_stops(dark=True)),
            "title": html.escape(title or self.alt),
            "layers": re.sub(
                "[<>&]", lambda sign: f"\\u{ord(sign[0]):04x}", json.dumps(shown)
            ),  # no text can end the script element
            "weights": "\n".join(
                f'<script type="text/plain" id="weights-{n}">{text}</script>' for n, text in enumerate(packed)
            ),
        }
        page = Path(__file__).with_suffix(".html").read_text(encoding="utf-8")
        return re.sub(r"\{\{(\w+)\}\}", lambda match: filling[match[1]], page)


def attention(layers: Sequence[AttentionLayer], *, title: str = "") -> AttentionPlot:
    """The layers one under another with a map for each head, queries downwards and keys across, each layer on one
    scale.

    Where a map has more positions than the grid has pixels for, the largest weight of those that share one is shown
    there.
    """
    if not layers:
        raise UserError("expected at least one layer of attention, got none; give its weights")
    layers = _with_distinct_names([_checked(layer) for layer in layers])
    if (count := sum(layer.weights.size for layer in layers)) > _MOST_WEIGHTS:
        raise UserError(
            f"expected at most {_MOST_WEIGHTS:,} weights in one page, got {count:,}; take fewer layers or positions"
        )
    rows = {layer.name: _pooled(layer.weights) for layer in layers}
    captions = {layer.name: _captions(layer) for layer in layers}
    alt = title or f"attention of {len(layers)} layer{'s' if len(layers) > 1 else ''}"
    return AttentionPlot(feature_map_rows(rows, captions=captions, columns=_COLUMNS, title=title).figure, alt, layers)


def _stops(dark: bool) -> list[list[list[int]]]:
    """The colours of the map from zero up, and from zero down, as red, green and blue to 255."""
    downwards = list(reversed(signed(dark)))
    ways = amounts(dark), downwards[len(downwards) // 2 :]
    return [[[int(color[start : start + 2], 16) for start in (1, 3, 5)] for color in way] for way in ways]


def _packed(weights: np.ndarray) -> bytes:
    """Half precision, first the high bytes of all weights and then the low ones, which deflate better apart,
    deflated."""
    high_and_low = weights.astype("<f2").view(np.uint8).reshape(-1, 2)[:, ::-1].T
    return zlib.compress(np.ascontiguousarray(high_and_low).tobytes(), level=6)


def _as_json(layer: AttentionLayer) -> dict[str, object]:
    heads, queries, keys = layer.weights.shape
    return {
        "name": layer.name,
        "heads": heads,
        "queries": queries,
        "keys": keys,
        "query_labels": layer.query_labels,
        "key_labels": layer.key_labels,
        "details": layer.details or ((),) * heads,
    }


def _with_distinct_names(layers: Sequence[AttentionLayer]) -> list[AttentionLayer]:
    """Under names of which no two are alike: a layer that was called twice has the number of its call behind its
    name."""
    calls, seen = Counter(layer.name for layer in layers), Counter[str]()
    renamed = []
    for layer in layers:
        seen[layer.name] += 1
        renamed.append(
            layer if calls[layer.name] == 1 else replace(layer, name=f"{layer.name}, call {seen[layer.name]}")
        )
    return renamed


def _checked(layer: AttentionLayer) -> AttentionLayer:
    """The same with an array for its weights, once all of it fits together."""
    weights = numbers(layer.weights, f"weights of {format_value(layer.name)}", 3)
    heads, queries, keys = weights.shape
    if not np.isfinite(weights).all() or np.abs(weights).max() > 65504:
        raise UserError(
            f"expected finite weights of {format_value(layer.name)}, got NaN or numbers beyond half precision; "
            "check its input first"
        )
    if max(queries, keys) > _MOST_POSITIONS:
        raise UserError(
            f"expected at most {_MOST_POSITIONS} positions, got {queries} queries and {keys} keys; show a shorter piece"
        )
    for labels, count, name in ((layer.query_labels, queries, "query"), (layer.key_labels, keys, "key")):
        if len(labels) != count:
            raise UserError(
                f"expected {count} {name} labels of {format_value(layer.name)}, got {len(labels)}; give one for "
                "each position"
            )
    if layer.details and len(layer.details) != heads:
        raise UserError(
            f"expected details of {heads} heads of {format_value(layer.name)}, got {len(layer.details)}; "
            "give one tuple for each head"
        )
    return replace(layer, weights=weights)


def _pooled(weights: np.ndarray) -> np.ndarray:
    """At most 128 rows and columns: of each block, the weight largest in size."""
    heads, queries, keys = weights.shape
    tall, wide = math.ceil(queries / _FINEST), math.ceil(keys / _FINEST)
    if tall == wide == 1:
        return weights
    padded = np.pad(weights, ((0, 0), (0, -queries % tall), (0, -keys % wide)))
    blocks = padded.reshape(heads, padded.shape[1] // tall, tall, padded.shape[2] // wide, wide)
    high, low = blocks.max(axis=(2, 4)), blocks.min(axis=(2, 4))
    return np.where(high >= -low, high, low)


def _captions(layer: AttentionLayer) -> list[str]:
    details = layer.details or ((),) * len(layer.weights)
    return ["\n".join([f"head {head}", *(text for _, text in named)]) for head, named in enumerate(details, start=1)]
