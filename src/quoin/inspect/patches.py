"""What excites a unit most: of many images, the patches that the most strongly answering units look at."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from quoin.errors import Mistake, shown
from quoin.inspect.layer_outputs import layer_output
from quoin.inspect.receptive_field import ReceptiveField, ReceptiveFields, receptive_fields
from quoin.plot import Drawing, image_grid
from quoin.tensor import check_floating, check_shapes
from quoin.tensor.eval_mode import eval_mode

__all__ = ["Patch", "crop_patches", "draw_patches", "strongest_patches"]

_IMAGES = 256  # a forward pass


class Patch(NamedTuple):
    """A place in one of the images at which a channel answers strongly."""

    channel: int
    image: int
    activation: float
    field: ReceptiveField  # the pixels that the answer depends on


@torch.no_grad()
def strongest_patches(
    model: nn.Module,
    images: Tensor,
    path: str,
    *,
    channels: Sequence[int] | None = None,
    count: int = 8,
    fields: ReceptiveFields | None = None,
) -> list[list[Patch]]:  # (n, c, h, w)
    """For each channel k of the layer, the `count` images whose largest answer max_ij a_kij is largest, cut to that answer's field.

    Each image counts once, at its best place: neighbouring places of one image would show the same thing again. Of equal answers the
    earlier image comes first. `fields` are those of the layer, where they are known already.
    """
    check_shapes("n c h w", images=images)
    if len(images) == 0 or count < 1:
        raise Mistake(f"expected at least one image and a count of at least 1, came {len(images)} and {count}; give more")
    fields = fields or receptive_fields(model, path, (images.shape[1], images.shape[2], images.shape[3]))
    with eval_mode(model):
        best = [_best_places(layer_output(model, piece, path)) for piece in images.split(_IMAGES)]
    values, places = (torch.cat(parts).cpu() for parts in zip(*best))  # (n, c')
    chosen = range(values.shape[1]) if channels is None else channels
    if strange := [channel for channel in chosen if not 0 <= channel < values.shape[1]]:
        raise Mistake(f"expected channels of {shown(path)} from 0 to {values.shape[1] - 1}, came {strange[0]}; choose others")
    columns = fields.boxes.shape[1]
    found = []
    for channel in chosen:
        order = values[:, channel].argsort(descending=True, stable=True)[:count].tolist()
        spots = [divmod(int(places[image, channel]), columns) for image in order]
        found.append([Patch(channel, image, float(values[image, channel]), fields.at(*spot)) for image, spot in zip(order, spots)])
    return found


def _best_places(output: Tensor) -> tuple[Tensor, Tensor]:  # (n, c', h', w') or (n, c') -> (n, c'), (n, c')
    flat = output.flatten(2) if output.ndim == 4 else output.unsqueeze(-1)
    return flat.amax(dim=-1), flat.argmax(dim=-1)


def crop_patches(images: Tensor, patches: Sequence[Patch], *, fill: float = 0.5) -> Tensor:  # (n, c, h, w) -> (k, c, ph, pw)
    """The patches cut out of the images, all of one size: what lies beyond the border, where the field saw padding, is `fill`."""
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


def draw_patches(images: Tensor, found: Sequence[Sequence[Patch]]) -> Drawing:  # (n, c, h, w) in [0, 1]
    """A row for each channel, its strongest patch first, each over the channel's number and its answer."""
    flat = [patch for patches in found for patch in patches]
    captions = [f"{patch.channel}: {patch.activation:.2g}" for patch in flat]
    return image_grid(crop_patches(images.cpu(), flat), captions, columns=len(found[0]))
