"""The distributions of an image's pixels one after another, each as soon as those before it are known.

A predictor sees images that its caller fills pixel by pixel, and is asked for every pixel in turn, row by row.
Predicting a whole image costs `GatedPixelPredictor` as much as one pass over it, where `WindowPixelPredictor`, which
caches nothing, goes over a window for each pixel.
"""

from typing import TYPE_CHECKING, Protocol, cast, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.layers import GatedPixelLayer

if TYPE_CHECKING:
    from quoin.models.pixelcnn import GatedPixelCNN, PixelModel

__all__ = ["GatedPixelPredictor", "PixelPredictor", "WindowPixelPredictor"]


@runtime_checkable
class PixelPredictor(Protocol):
    """What gives the logits of pixel number `index`; asked for 0, 1, 2 and so on, when all pixels before are
    filled in."""

    def __call__(self, index: int) -> Float[Tensor, "batch levels"]: ...


@shown
class WindowPixelPredictor:
    """Any model of pixels, shown no more of the images each time than a pixel can see.

    Args:
        images: Read at every call: the caller fills in each pixel before asking for the next.
        labels: The class of each image; None for a model without classes.
    """

    def __init__(
        self,
        model: "PixelModel",
        images: Float[Tensor, "batch 1 height width"],
        labels: Int[Tensor, "batch"] | None = None,
    ):
        model.check_labels(labels, len(images))
        self._model, self._images, self._labels = model, images, labels

    @torch.no_grad()
    def __call__(self, index: int) -> Float[Tensor, "batch levels"]:
        radius = self._model.radius
        row, column = divmod(index, self._images.shape[3])
        top, left = max(0, row - radius), max(0, column - radius)
        window = self._images[:, :, top : row + 1, left : column + radius + 1]
        return self._model.logits(window, self._labels)[:, :, row - top, column - left]


@shown
class GatedPixelPredictor:
    """A gated PixelCNN that keeps what its layers found: the vertical stack goes on by a row, the horizontal one by a
    pixel.

    Args:
        images: Read at every call: the caller fills in each pixel before asking for the next.
        labels: The class of each image; None for a model without classes.
    """

    def __init__(
        self,
        model: "GatedPixelCNN",
        images: Float[Tensor, "batch 1 height width"],
        labels: Int[Tensor, "batch"] | None = None,
    ):
        self._model, self._images, self._next = model, images, 0
        num_samples, (height, width) = len(images), images.shape[2:]
        channels, self._layers = model.channels, cast("list[GatedPixelLayer]", list(model.layers))
        model.check_labels(labels, len(images))
        self._shifts = [
            None if model.shifts is None else model.shifts[number][labels] for number in range(len(self._layers))
        ]
        self._vertical = [
            images.new_zeros(num_samples, channels, height, width) for _ in self._layers
        ]  # what each layer reads
        self._horizontal = [
            images.new_zeros(num_samples, channels, 1, width) for _ in self._layers
        ]  # of the row in work
        self._from_vertical: list[Tensor] = []  # by the vertical stack, to each layer of the horizontal one
        self._first = images  # what the first layer says of the rows above

    @torch.no_grad()
    def __call__(self, index: int) -> Float[Tensor, "batch levels"]:
        if index != self._next:
            raise UserError(
                f"expected to be asked for pixel {self._next}, the next, got {index}; ask for every pixel in turn"
            )
        self._next += 1
        row, column = divmod(index, self._images.shape[3])
        if column == 0:
            self._begin(row)
        here = slice(column, column + 1)
        known = self._images[:, :, row : row + 1, max(0, column - self._model.radius) : column + 1]
        x = self._first[..., here] + self._model.left(2 * known - 1)[..., -1:]
        for layer, from_vertical, read in zip(self._layers, self._from_vertical, self._horizontal):
            read[..., here] = x
            window = slice(max(0, column - layer.radius), column + 1)
            x = layer.horizontal_stack(read[..., window], from_vertical[..., window])[..., -1:]
        return self._model.head(x)[:, :, 0, 0]

    def _begin(self, row: int) -> None:
        """Take in the rows above."""
        known = self._images[:, :, max(0, row - self._model.radius) : row + 1]
        x = self._first = self._model.above(2 * known - 1)[:, :, -1:]
        self._from_vertical = []
        for layer, read, shift in zip(self._layers, self._vertical, self._shifts):
            read[:, :, row : row + 1] = x
            from_vertical, x = (
                each[:, :, -1:]
                for each in layer.vertical_stack(read[:, :, max(0, row - layer.radius) : row + 1], shift)
            )
            self._from_vertical.append(from_vertical)
