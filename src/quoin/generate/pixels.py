"""Images pixel by pixel: each is sampled from its distribution given those before, for many images side by side.

A model is anything that gives logits of the levels of each pixel given the pixels before it, as quoin.models' PixelCNN
does.

    k grey levels
"""

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from quoin.errors import UserError, format_value
from quoin.generate.choosing import TokenSampler
from quoin.tensor import check_floating
from quoin.tensor.eval_mode import eval_mode

__all__ = ["PixelSampler", "PixelScores", "complete_pixels"]


@runtime_checkable
class PixelScores(Protocol):
    """A model of grey images whose pixels have the values 0, 1 / (k - 1), ..., 1."""

    image_shape: tuple[int, int, int]
    num_levels: int
    num_classes: int | None

    def predictor(
        self, images: Float[Tensor, "batch 1 height width"], labels: Int[Tensor, "batch"] | None = None
    ) -> Callable[[int], Tensor]:
        """What gives the logits (batch, k) of the level of pixel 0, 1, 2 and so on, row by row, while `images` are
        filled in."""
        ...

    def log_prob(
        self, images: Float[Tensor, "batch 1 height width"], labels: Int[Tensor, "batch"] | None = None
    ) -> Float[Tensor, "batch"]: ...

    def check_labels(self, labels: Int[Tensor, "{num_samples}"] | None, num_samples: int) -> None: ...


@torch.no_grad()
def complete_pixels(
    model: PixelScores,
    images: Float[Tensor, "batch 1 height width"],
    start_pixel: int,
    choose: TokenSampler,
    labels: Int[Tensor, "batch"] | None = None,
) -> Float[Tensor, "batch 1 height width"]:
    """`images` with every pixel from number `start_pixel` on, row by row, resampled: x_i ~ P(· | x_{<i}).

    Args:
        choose: Samples a grey level from the logits of each pixel.
        labels: The class of each image; None for a model without classes.

    Notes: D5.2-8.
    """
    _check(model, images, start_pixel, labels)
    images, width = images.clone(), images.shape[3]
    with eval_mode(model):
        predictor = model.predictor(images, labels)
        for index in range(images[0].numel()):
            logits = predictor(index)
            if index >= start_pixel:
                row, column = divmod(index, width)
                images[:, 0, row, column] = choose(logits).to(images.dtype) / (model.num_levels - 1)
    return images


class PixelSampler(nn.Module):
    """A model of pixels with its sampler: what reports, metrics and commands need of every generative model.

    Notes: D5.2-8.
    """

    def __init__(self, model: PixelScores) -> None:
        super().__init__()
        self.model: Any = model  # an nn.Module too

    def log_prob(
        self, images: Float[Tensor, "batch 1 height width"], labels: Int[Tensor, "batch"] | None = None
    ) -> Float[Tensor, "batch"]:
        """ln P(x), exact."""
        return self.model.log_prob(images, labels)

    def sample(
        self,
        num_samples: int,
        *,
        generator: torch.Generator,
        labels: Int[Tensor, "{num_samples}"] | None = None,
        temperature: float = 1.0,
    ) -> Float[Tensor, "{num_samples} 1 height width"]:
        """New images; where the model knows classes, of these, or of each in turn."""
        if num_samples < 1:
            raise UserError(
                f"expected at least one image to sample, got {format_value(num_samples)}; ask for 1 or more"
            )
        blank = next(self.model.parameters()).new_zeros(num_samples, *self.model.image_shape)
        if labels is None and self.model.num_classes is not None:
            labels = torch.arange(num_samples, device=blank.device) % self.model.num_classes
        return complete_pixels(self.model, blank, 0, TokenSampler(temperature, generator=generator), labels)


def _check(model: PixelScores, images: Tensor, start_pixel: int, labels: Tensor | None) -> None:
    if images.ndim != 4 or tuple(images.shape[1:]) != tuple(model.image_shape) or not len(images):
        raise UserError(
            f"expected images (n, {', '.join(map(str, model.image_shape))}), got shape {tuple(images.shape)}; "
            "resize them"
        )
    if not 0 <= start_pixel <= images[0].numel():
        raise UserError(
            f"expected a first pixel from 0 to {images[0].numel()}, got {format_value(start_pixel)}; 0 samples all "
            "of them"
        )
    check_floating(images, "images")  # a grey between 0 and 1 would be none
    model.check_labels(labels, len(images))
