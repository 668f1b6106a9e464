"""Images pixel by pixel: each is drawn from its law given those before, for many images side by side.

A model is anything that scores the levels of each pixel given the pixels before it, as quoin.models' PixelCNN does.

    n images, h height, w width, k grey levels
"""

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor, nn

from quoin.errors import Mistake, shown
from quoin.generate.choosing import Sampling
from quoin.tensor import check_floating
from quoin.tensor.eval_mode import eval_mode

__all__ = ["PixelSampler", "PixelScores", "complete_pixels"]


class PixelScores(Protocol):
    """A model of grey images whose pixels have the values 0, 1 / (k - 1), ..., 1."""

    image_shape: tuple[int, int, int]
    num_levels: int
    num_classes: int | None

    def reader(self, images: Tensor, labels: Tensor | None = None) -> Callable[[int], Tensor]:  # (n, 1, h, w), (n,)
        """What gives the logits (n, k) of the level of pixel 0, 1, 2 and so on, row by row, while `images` are filled in."""
        ...

    def log_prob(self, images: Tensor, labels: Tensor | None = None) -> Tensor:  # (n, 1, h, w), (n,) -> (n,)
        ...

    def check_labels(self, labels: Tensor | None, count: int) -> None: ...


@torch.no_grad()
def complete_pixels(
    model: PixelScores, images: Tensor, first: int, choose: Sampling, labels: Tensor | None = None
) -> Tensor:  # (n, 1, h, w), (n,) -> (n, 1, h, w)
    """`images` with every pixel from number `first` on, row by row, drawn anew: x_i ~ P(· | x_{<i}), one after another.

    Notes: D5.2-8.
    """
    _check(model, images, first, labels)
    images, width = images.clone(), images.shape[3]
    with eval_mode(model):
        reader = model.reader(images, labels)
        for place in range(images[0].numel()):
            logits = reader(place)
            if place >= first:
                row, column = divmod(place, width)
                images[:, 0, row, column] = choose(logits).to(images.dtype) / (model.num_levels - 1)
    return images


class PixelSampler(nn.Module):
    """A model of pixels with its way to draw: what reports, measures and commands ask of every generative model.

    Notes: D5.2-8.
    """

    def __init__(self, model):  # an nn.Module with PixelScores
        super().__init__()
        self.model = model

    def log_prob(self, images: Tensor, labels: Tensor | None = None) -> Tensor:  # (n, 1, h, w), (n,) -> (n,)
        """ln P(x), exact."""
        return self.model.log_prob(images, labels)

    def sample(
        self, count: int, *, generator: torch.Generator, labels: Tensor | None = None, temperature: float = 1.0
    ) -> Tensor:  # (count,) -> (count, 1, h, w)
        """New images; where the model knows classes, of these, or of each in turn."""
        if count < 1:
            raise Mistake(f"expected at least one image to draw, came {shown(count)}; ask for 1 or more")
        blank = next(self.model.parameters()).new_zeros(count, *self.model.image_shape)
        if labels is None and self.model.num_classes is not None:
            labels = torch.arange(count, device=blank.device) % self.model.num_classes
        return complete_pixels(self.model, blank, 0, Sampling(temperature, generator=generator), labels)


def _check(model: PixelScores, images: Tensor, first: int, labels: Tensor | None) -> None:
    if images.ndim != 4 or tuple(images.shape[1:]) != tuple(model.image_shape) or not len(images):
        raise Mistake(f"expected images (n, {', '.join(map(str, model.image_shape))}), came shape {tuple(images.shape)}; resize them")
    if not 0 <= first <= images[0].numel():
        raise Mistake(f"expected a first pixel from 0 to {images[0].numel()}, came {shown(first)}; 0 draws all of them")
    check_floating(images, "images")  # a grey between 0 and 1 would be none
    model.check_labels(labels, len(images))
