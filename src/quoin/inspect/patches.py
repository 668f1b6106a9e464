"""What excites a unit most: of many images, the patches in the receptive fields of the most active units."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Real
from torch import Tensor, nn

from quoin.display import shown
from quoin.errors import UserError, format_value
from quoin.inspect.layer_outputs import layer_output
from quoin.inspect.receptive_field import ReceptiveField, ReceptiveFields, receptive_fields
from quoin.plot import Plot, image_grid
from quoin.tensor import check_floating, check_shapes
from quoin.tensor.eval_mode import eval_mode

__all__ = ["Patch", "crop_patches", "plot_patches", "top_activating_patches"]

_IMAGES = 256  # a forward pass


@shown
class Patch(NamedTuple):
    """A position in one of the images at which a channel is strongly active."""

    channel: int
    image: int
    activation: float
    field: ReceptiveField  # the pixels that the answer depends on


@torch.no_grad()
def top_activating_patches(
    model: nn.Module,
    images: Real[Tensor, "samples channels height width"],
    layer: str,
    *,
    channels: Sequence[int] | None = None,
    count: int = 8,
    fields: ReceptiveFields | None = None,
) -> list[list[Patch]]:
    """For each channel k of the layer, the `count` images whose largest activation max_ij a_kij is largest, cut to its
    receptive field.

    Each image counts once, at its best position: neighbouring positions of one image would show the same thing again.
    Of equal activations the earlier image comes first.

    Args:
        layer: Its name, as in `model.named_modules()`.
        channels: Which to look at; all unless given.
        fields: Those of the layer, where they are known already.
    """
    check_shapes("n c h w", images=images)
    if len(images) == 0 or count < 1:
        raise UserError(
            f"expected at least one image and a count of at least 1, got {len(images)} and {count}; give more"
        )
    fields = fields or receptive_fields(model, layer, (images.shape[1], images.shape[2], images.shape[3]))
    with eval_mode(model):
        best = [_best_positions(layer_output(model, piece, layer)) for piece in images.split(_IMAGES)]
    values, positions = (torch.cat(found).cpu() for found in zip(*best))  # (n, c')
    chosen = range(values.shape[1]) if channels is None else channels
    if strange := [channel for channel in chosen if not 0 <= channel < values.shape[1]]:
        raise UserError(
            f"expected channels of {format_value(layer)} from 0 to {values.shape[1] - 1}, got {strange[0]}; choose "
            "others"
        )
    columns = fields.boxes.shape[1]
    found = []
    for channel in chosen:
        order = values[:, channel].argsort(descending=True, stable=True)[:count].tolist()
        spots = [divmod(int(positions[image, channel]), columns) for image in order]
        found.append(
            [
                Patch(channel, image, float(values[image, channel]), fields.at(*spot))
                for image, spot in zip(order, spots)
            ]
        )
    return found


def _best_positions(output: Tensor) -> tuple[Tensor, Tensor]:  # (n, c', h', w') or (n, c') -> (n, c'), (n, c')
    flat = output.flatten(2) if output.ndim == 4 else output.unsqueeze(-1)
    return flat.amax(dim=-1), flat.argmax(dim=-1)


def crop_patches(
    images: Float[Tensor, "samples channels height width"], patches: Sequence[Patch], *, fill: float = 0.5
) -> Float[Tensor, "patches channels patch_height patch_width"]:
    """The patches cut out of the images, all of one size: what lies beyond the border, where the field saw padding, is
    `fill`."""
    check_shapes("n c h w", images=images)
    check_floating(images, "images")
    height = max(patch.field.bottom - patch.field.top for patch in patches)
    width = max(patch.field.right - patch.field.left for patch in patches)
    cut = torch.full((len(patches), images.shape[1], height, width), fill, dtype=images.dtype)
    for piece, (_, image, _, field) in zip(cut, patches):
        inside = images[image, :, field.top : field.bottom, field.left : field.right]
        # A field that the border cuts short lies against it: what is missing is on that side.
        top = height - inside.shape[1] if field.top == 0 else 0
        left = width - inside.shape[2] if field.left == 0 else 0
        piece[:, top : top + inside.shape[1], left : left + inside.shape[2]] = inside
    return cut


def plot_patches(images: Float[Tensor, "samples channels height width"], found: Sequence[Sequence[Patch]]) -> Plot:
    """A row for each channel, its strongest patch first, each over the channel's number and its activation; images are
    in [0, 1]."""
    flat = [patch for patches in found for patch in patches]
    captions = [f"{patch.channel}: {patch.activation:.2g}" for patch in flat]
    return image_grid(crop_patches(images.cpu(), flat), captions, columns=len(found[0]))
