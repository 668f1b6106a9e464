"""The laws of an image's pixels one after another, each as soon as those before it are known.

A reader looks at images that its caller fills pixel by pixel, and is asked for every pixel in turn, row by row. Reading all of an image
costs `GatedPixelReader` as much as one pass over it, where `WindowReader`, which remembers nothing, goes over a window for each pixel.

    n images, h height, w width, k grey levels, c channels of the hidden layers
"""

from typing import TYPE_CHECKING, Protocol, cast

import torch
from torch import Tensor

from quoin.errors import Mistake
from quoin.layers import GatedPixelLayer

if TYPE_CHECKING:
    from quoin.models.pixelcnn import GatedPixelCNN, PixelModel

__all__ = ["GatedPixelReader", "PixelReader", "WindowReader"]


class PixelReader(Protocol):
    """What gives the logits (n, k) of pixel number `place`; asked for 0, 1, 2 and so on, when all pixels before are filled in."""

    def __call__(self, place: int) -> Tensor: ...


class WindowReader:
    """Any model of pixels, shown no more of the images each time than a pixel can see."""

    def __init__(self, model: "PixelModel", images: Tensor, labels: Tensor | None = None):  # (n, 1, h, w), (n,)
        model.check_labels(labels, len(images))
        self._model, self._images, self._labels = model, images, labels

    @torch.no_grad()
    def __call__(self, place: int) -> Tensor:  # -> (n, k)
        reach = self._model.reach
        row, column = divmod(place, self._images.shape[3])
        top, left = max(0, row - reach), max(0, column - reach)
        window = self._images[:, :, top : row + 1, left : column + reach + 1]
        return self._model.scores(window, self._labels)[:, :, row - top, column - left]


class GatedPixelReader:
    """A gated PixelCNN that keeps what its layers found: the vertical stack goes on by a row, the horizontal one by a pixel."""

    def __init__(self, model: "GatedPixelCNN", images: Tensor, labels: Tensor | None = None):  # (n, 1, h, w), (n,)
        self._model, self._images, self._next = model, images, 0
        count, (height, width) = len(images), images.shape[2:]
        channels, self._layers = model.channels, cast("list[GatedPixelLayer]", list(model.layers))
        model.check_labels(labels, len(images))
        self._shifts = [None if model.shifts is None else model.shifts[number][labels] for number in range(len(self._layers))]
        self._vertical = [images.new_zeros(count, channels, height, width) for _ in self._layers]  # what each layer reads
        self._horizontal = [images.new_zeros(count, channels, 1, width) for _ in self._layers]  # of the row in work
        self._told: list[Tensor] = []  # by the vertical stack, to each layer of the horizontal one
        self._first = images  # what the first layer says of the rows above

    @torch.no_grad()
    def __call__(self, place: int) -> Tensor:  # -> (n, k)
        if place != self._next:
            raise Mistake(f"expected to be asked for pixel {self._next}, the next, came {place}; ask for every pixel in turn")
        self._next += 1
        row, column = divmod(place, self._images.shape[3])
        if column == 0:
            self._begin(row)
        here = slice(column, column + 1)
        known = self._images[:, :, row : row + 1, max(0, column - self._model.reach) : column + 1]
        x = self._first[..., here] + self._model.left(2 * known - 1)[..., -1:]
        for layer, told, read in zip(self._layers, self._told, self._horizontal):
            read[..., here] = x
            window = slice(max(0, column - layer.reach), column + 1)
            x = layer.look_left(read[..., window], told[..., window])[..., -1:]
        return self._model.head(x)[:, :, 0, 0]

    def _begin(self, row: int) -> None:
        """Take in the rows above."""
        known = self._images[:, :, max(0, row - self._model.reach) : row + 1]
        x = self._first = self._model.above(2 * known - 1)[:, :, -1:]
        self._told = []
        for layer, read, shift in zip(self._layers, self._vertical, self._shifts):
            read[:, :, row : row + 1] = x
            told, x = (each[:, :, -1:] for each in layer.look_up(read[:, :, max(0, row - layer.reach) : row + 1], shift))
            self._told.append(told)
