"""What the layers of a model make of one image, layer by layer."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Real
from torch import Tensor, nn

from quoin.display import shown
from quoin.errors import UserError, format_value
from quoin.inspect.intermediates import intermediates
from quoin.inspect.layer_outputs import find_layer, layer_output
from quoin.plot import Plot, feature_map_rows
from quoin.tensor.eval_mode import eval_mode

__all__ = ["FeatureMaps", "feature_maps", "plot_feature_maps"]

_ROWS, _COLUMNS = 12, 8
# What only passes on, thins out or rescales what the layer before it shows already.
_QUIET = (nn.Identity, nn.Flatten, nn.Unflatten, nn.Dropout, nn.Dropout2d, nn.BatchNorm1d, nn.BatchNorm2d, nn.LayerNorm)


@shown
class FeatureMaps(NamedTuple):
    """The output of one layer for one image."""

    layer: str
    kind: str
    maps: Real[Tensor, "channels height width"]  # a dense layer's units are maps of one pixel


@torch.no_grad()
def feature_maps(
    model: nn.Module, image: Real[Tensor, "channels height width"], layers: Sequence[str] | None = None
) -> list[FeatureMaps]:
    """The maps of these `layers`, or of all innermost modules in calling order; outputs of other shapes are passed
    over.

    >>> model = nn.Sequential(nn.Conv2d(1, 6, 5), nn.ReLU(), nn.Flatten(), nn.Linear(96, 10))
    >>> [(found.kind, tuple(found.maps.shape)) for found in feature_maps(model, torch.zeros(1, 8, 8), ["0", "3"])]
    [('Conv2d', (6, 4, 4)), ('Linear', (10, 1, 1))]
    """
    if image.ndim != 3:
        raise UserError(f"expected one image (c, h, w), got shape {tuple(image.shape)}; take one from the batch")
    batch = image.unsqueeze(0)
    with eval_mode(model):
        if layers is None:
            steps = [(step.layer, step.module, step.output) for step in intermediates(model, batch)]
        else:
            steps = [(layer, find_layer(model, layer), layer_output(model, batch, layer)) for layer in layers]
    found = [
        FeatureMaps(layer, type(module).__name__, _as_maps(output))
        for layer, module, output in steps
        if output.ndim in (2, 4)
    ]
    if not found:
        raise UserError(
            f"expected layers with outputs (1, c, h, w) or (1, c), got none of {format_value(layers)}; choose others"
        )
    return found


def _as_maps(output: Tensor) -> Tensor:  # (1, c, h, w) or (1, c) -> (c, h, w)
    return output[0] if output.ndim == 4 else output[0, :, None, None]


def plot_feature_maps(found: Sequence[FeatureMaps]) -> Plot:
    """A row for each layer, of its first eight maps, on a scale of its own; of one layer, as many maps as fit the
    page."""
    if len(found) == 1:
        [only] = found
        return feature_map_rows({_label(only): only.maps[: 8 * _COLUMNS]}, columns=_COLUMNS)
    rows = {
        _label(each): each.maps[: 10 if each.maps.shape[1:] == (1, 1) else _COLUMNS] for each in _worth_a_row(found)
    }
    return feature_map_rows(rows, columns=10 if any(len(maps) > _COLUMNS for maps in rows.values()) else _COLUMNS)


def _label(found: FeatureMaps) -> str:
    channels, height, width = found.maps.shape
    shape = f"{channels} × {height} × {width}" if height * width > 1 else f"{channels} units"
    return f"{found.layer} {found.kind}".strip() + f"\n{shape}"


def _worth_a_row(found: Sequence[FeatureMaps]) -> list[FeatureMaps]:
    """At most twelve: without the quiet layers; of too many still, the convolutions with the first and last; of these,
    every so many."""
    names = {kind.__name__ for kind in _QUIET}
    kept = [each for each in found if each.kind not in names] or list(found)
    if len(kept) > _ROWS:
        kept = kept[:1] + [each for each in kept[1:-1] if each.kind == "Conv2d"] + kept[-1:]
    if len(kept) > _ROWS:
        indices = torch.linspace(0, len(kept) - 1, _ROWS).round().long().tolist()
        kept = [kept[index] for index in indices]
    return kept
