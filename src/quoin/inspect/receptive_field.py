"""Which pixels a unit can see, for any torch module, found exactly and without reading its layers' settings.

An unknown number poisons all that is computed from it: a NaN written into the image reaches the outputs that read its
pixel, and no others, through convolutions, pooling, residual sums and concatenations alike.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor, nn

from quoin.display import shown
from quoin.errors import UserError, format_value
from quoin.inspect.layer_outputs import capture_outputs
from quoin.tensor.eval_mode import eval_mode

__all__ = ["ReceptiveField", "ReceptiveFields", "receptive_fields"]

_IMAGES = 64  # a forward pass


@shown
class ReceptiveField(NamedTuple):
    """The pixels a unit can see: rows from `top` up to and without `bottom`, columns from `left` up to and without
    `right`."""

    top: int
    bottom: int
    left: int
    right: int


@shown
class ReceptiveFields(NamedTuple):
    """The boxes of all positions of one layer; an output without rows and columns has the one position (0, 0)."""

    boxes: Int[Tensor, "rows columns 4"]  # top, bottom, left, right

    def at(self, row: int, column: int) -> ReceptiveField:
        """The pixels inside the image that position (row, column) depends on; an empty box if it sees padding alone."""
        return ReceptiveField(*self.boxes[row, column].tolist())

    @property
    def largest(self) -> tuple[int, int]:
        """The height and the width of the largest fields; those cut by the border are smaller."""
        top, bottom, left, right = self.boxes.flatten(0, 1).unbind(-1)
        return int((bottom - top).max()), int((right - left).max())


def receptive_fields(model: nn.Module, layer: str, image_shape: tuple[int, int, int]) -> ReceptiveFields:  # (c, h, w)
    """For every position of this layer, the least box of pixels that holds all it depends on.

    A weight that happens to be zero still counts as a dependence: the field belongs to the architecture. The work is
    done on the CPU in float64, where torch has no convolution that mixes neighbouring outputs on the way (as Winograd's
    does).

    Args:
        layer: Its name, as in `model.named_modules()`.
        image_shape: (channels, height, width).

    >>> model = nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), nn.MaxPool2d(2))
    >>> receptive_fields(model, "1", (1, 8, 8)).at(1, 2)
    ReceptiveField(top=1, bottom=5, left=3, right=7)
    """
    return layer_receptive_fields(model, [layer], image_shape)[layer]


@torch.no_grad()
def layer_receptive_fields(
    model: nn.Module, layers: Sequence[str], image_shape: tuple[int, int, int]
) -> dict[str, ReceptiveFields]:
    """`receptive_fields` of several layers for the work of one."""
    channels, height, width = image_shape
    values = [*model.named_parameters(), *model.named_buffers()]
    exact = {
        name: tensor.detach().cpu().double() if tensor.is_floating_point() else tensor.detach().cpu()
        for name, tensor in values
    }

    def reached(poisoned: list[tuple[slice, slice]]) -> dict[str, Tensor]:  # a layer -> (len(poisoned), h', w')
        images = torch.zeros(len(poisoned), channels, height, width, dtype=torch.float64)
        for image, (rows, columns) in zip(images, poisoned):
            image[:, rows, columns] = torch.nan
        with capture_outputs(model, layers) as found:
            torch.func.functional_call(model, exact, (images,))
        return {layer: _poisoned(layer, output) for layer, output in found.items()}

    everything, nothing = slice(None), slice(0, 0)
    with eval_mode(model):
        if bad := [layer for layer, seen in reached([(nothing, nothing)]).items() if seen.any()]:
            raise UserError(
                f"expected finite outputs of {format_value(bad[0])} for a blank image, got NaN; check the weights first"
            )
        rows = _in_pieces(reached, [(slice(row, row + 1), everything) for row in range(height)])
        columns = _in_pieces(reached, [(everything, slice(column, column + 1)) for column in range(width)])
    return {
        layer: ReceptiveFields(torch.stack([*_extent(rows[layer]), *_extent(columns[layer])], dim=-1))
        for layer in layers
    }


def _poisoned(layer: str, output: Tensor) -> Tensor:  # (n, c', h', w') or (n, c') -> (n, h', w')
    if output.ndim not in (2, 4):
        raise UserError(
            f"expected an output (n, c, h, w) or (n, c), got {tuple(output.shape)} of {format_value(layer)}; "
            "choose another"
        )
    return output.isnan().any(dim=1).reshape(len(output), *(output.shape[2:] or (1, 1)))


def _in_pieces(reached, poisoned: list[tuple[slice, slice]]) -> dict[str, Tensor]:
    pieces = [reached(poisoned[start : start + _IMAGES]) for start in range(0, len(poisoned), _IMAGES)]
    return {layer: torch.cat([piece[layer] for piece in pieces]) for layer in pieces[0]}


def _extent(reached: Tensor) -> tuple[Tensor, Tensor]:  # (k, h', w') -> (h', w'), (h', w')
    """The first of the k lines that reaches each position, and the one after the last."""
    indices = torch.arange(len(reached)).reshape(-1, 1, 1)
    seen = reached.any(dim=0)
    first = indices.where(reached, len(reached)).amin(dim=0)
    last = indices.where(reached, -1).amax(dim=0)
    return torch.where(seen, first, 0), torch.where(seen, last + 1, 0)
