"""PixelCNN: the distribution of a grey image as a product of distributions, one a pixel, each given the pixels before
it, by masked convolutions.

    P(x) = Π_i P(x_i | x_{<i}),  i row by row from the top left

All factors come from one pass, so the likelihood is exact and quick; sampling goes pixel by pixel (pixel_predictor.py).
`PixelCNN` stacks plain masked convolutions and has a blind spot, `GatedPixelCNN` has none.

    k grey levels
"""

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from jaxtyping import Float, Int, Int64, Real
from torch import Tensor, nn

from quoin.errors import UserError, format_value
from quoin.layers import GatedPixelLayer, MaskedConv2d, PixelStacks, mask_a, mask_b, mask_rows_above
from quoin.models.image_init import ImageShape, check_image_model
from quoin.models.pixel_predictor import GatedPixelPredictor, PixelPredictor, WindowPixelPredictor
from quoin.tensor import as_floating, check_image_batch, check_shapes

__all__ = [
    "GatedPixelCNN",
    "PixelCNN",
    "PixelModel",
    "dequantize",
    "pixel_log_prob",
    "pixel_log_prob_definition",
    "quantize",
]

OFF_LEVEL = 1e-3  # of the step between two levels: float32 knows 255 of them to a hundred times that


def quantize(images: Real[Tensor, "batch 1 height width"], num_levels: int) -> Int64[Tensor, "batch height width"]:
    """The number of each pixel's grey level, 0 to k - 1, which stand for the values 0, 1 / (k - 1), ..., 1.

    >>> quantize(torch.tensor([[[[0.0, 0.25, 1.0]]]]), 5)
    tensor([[[0, 1, 4]]])
    """
    check_shapes("n 1 h w", images=images)
    scaled = as_floating(images) * (num_levels - 1)
    levels = scaled.round()
    off = ~((scaled - levels).abs() <= OFF_LEVEL) | (levels < 0) | (levels > num_levels - 1)  # a NaN is off too
    if off.any():
        got = f"{float(images[off][0]):.6g}"
        raise UserError(
            f"expected pixels on {num_levels} levels from 0 to 1, got {got}; round them, or build a model of their "
            "levels"
        )
    return levels.long().squeeze(1)


def dequantize(
    levels: Int[Tensor, "batch height width"], num_levels: int, dtype: torch.dtype = torch.float32
) -> Float[Tensor, "batch 1 height width"]:
    """The images that `quantize` made these numbers of."""
    return (levels.to(dtype) / (num_levels - 1)).unsqueeze(1)


def pixel_log_prob_definition(
    logits_fn: Callable[[Tensor], Tensor], images: Float[Tensor, "batch 1 height width"], num_levels: int
) -> Float[Tensor, "batch"]:
    """ln P(x) = Σ_i ln P(x_i | x_{<i}), where the model is shown x_{<i} and nothing else: pixel i and all behind it are
    black.

    `logits_fn` gives the logits of every pixel's level, (batch, levels, height, width). A model that is not causal has
    another likelihood in one pass.

    Notes: D5.2-8.
    """
    levels = quantize(images, num_levels)
    seen, total = torch.zeros_like(images), images.new_zeros(len(images))
    for row in range(images.shape[2]):
        for column in range(images.shape[3]):
            log_probs = logits_fn(seen)[:, :, row, column].log_softmax(dim=1)
            total = total + log_probs.gather(1, levels[:, row, column, None]).squeeze(1)
            seen = seen.clone()
            seen[:, :, row, column] = images[:, :, row, column]
    return total


def pixel_log_prob(
    logits: Float[Tensor, "batch levels height width"], levels: Int[Tensor, "batch height width"]
) -> Float[Tensor, "batch height width"]:
    """ln P(x_i | x_{<i}) of every pixel, from the logits of one pass."""
    check_shapes("n k h w, n h w", logits=logits, levels=levels)
    return -nn.functional.cross_entropy(logits, levels, reduction="none")


class PixelModel(nn.Module, ABC):
    """What models of images pixel by pixel share: which images, how many levels, and the likelihood in one pass.

    Args:
        image_shape: (1, height, width).
        num_levels: Grey levels k: pixels have the values 0, 1 / (k - 1), ..., 1.
        radius: How many pixels up and to each side a logit sees.
        num_classes: Of the labels that the model is given; None for a model without.
    """

    def __init__(self, image_shape: ImageShape, num_levels: int, *, radius: int, num_classes: int | None = None):
        super().__init__()
        check_image_model(image_shape, 1 if num_classes is None else num_classes, smallest=1)
        if image_shape[0] != 1:
            raise UserError(
                f"expected grey images (1, height, width), got {format_value(image_shape)}; the mean over their "
                "channels is grey"
            )
        if num_levels < 2:
            raise UserError(
                f"expected at least 2 grey levels, got {format_value(num_levels)}; digits have 17, bytes 256"
            )
        self.image_shape, self.num_levels, self.num_classes = image_shape, num_levels, num_classes
        self.radius = radius  # the pixels that a logit sees up and to each side

    @abstractmethod
    def logits(
        self, images: Float[Tensor, "batch 1 height width"], labels: Int[Tensor, "batch"] | None = None
    ) -> Float[Tensor, "batch levels height width"]:
        """The logits of each pixel's level given the pixels before it; `images` may be a piece of some."""

    def predictor(
        self, images: Float[Tensor, "batch 1 height width"], labels: Int[Tensor, "batch"] | None = None
    ) -> PixelPredictor:
        """The logits of one pixel after another, while the caller fills in `images`: what sampling and coding need."""
        return WindowPixelPredictor(self, images, labels)

    def forward(
        self, images: Float[Tensor, "batch 1 height width"], labels: Int[Tensor, "batch"] | None = None
    ) -> Float[Tensor, "batch levels height width"]:
        """`logits` of whole images, checked; `labels` are theirs where the model knows classes."""
        check_image_batch(images, self.image_shape)
        self.check_labels(labels, images.shape[0])
        return self.logits(images, labels)

    def pixel_log_prob(
        self, images: Float[Tensor, "batch 1 height width"], labels: Int[Tensor, "batch"] | None = None
    ) -> Float[Tensor, "batch height width"]:
        """ln P(x_i | x_{<i}) of every pixel, in nats; with classes, given that too."""
        return pixel_log_prob(self(images, labels), quantize(images, self.num_levels))

    def log_prob(
        self, images: Float[Tensor, "batch 1 height width"], labels: Int[Tensor, "batch"] | None = None
    ) -> Float[Tensor, "batch"]:
        """ln P(x), exact: `pixel_log_prob_definition` in one pass.

        Notes: D5.2-8.
        """
        return self.pixel_log_prob(images, labels).sum(dim=(1, 2))

    def check_labels(self, labels: Int[Tensor, "batch"] | None, num_samples: int) -> None:
        """Raise an error for labels where the model knows none, and for those it does not know."""
        if self.num_classes is None:
            if labels is not None:
                raise UserError("expected no labels, for the model was built without classes, got some; leave them out")
            return
        if labels is None:
            raise UserError(f"expected the class of each image, 0 to {self.num_classes - 1}, got none; give labels")
        if labels.dtype != torch.int64 or labels.shape != (num_samples,):
            raise UserError(
                f"expected {num_samples} labels of int64, got {labels.dtype} of shape {tuple(labels.shape)}; give "
                "one for each image"
            )
        if torch.compiler.is_exporting():  # a program has no values yet
            return
        if labels.min() < 0 or labels.max() >= self.num_classes:
            got = int(labels.min() if labels.min() < 0 else labels.max())
            raise UserError(
                f"expected labels from 0 to {self.num_classes - 1}, got {got}; the model knows no other class"
            )


class PixelCNN(PixelModel):
    """The first PixelCNN: a masked convolution of type A, then residual ones of type B; it does not see all that it
    may.

    Args:
        num_levels: Grey levels k: pixels have the values 0, 1 / (k - 1), ..., 1.
        kernel_size: Of the convolutions of type B, odd.
        first_kernel_size: Of the convolution of type A, odd.

    >>> PixelCNN((1, 8, 8), 17, channels=16, num_layers=4).log_prob(torch.zeros(3, 1, 8, 8)).shape
    torch.Size([3])

    Notes: D5.2-8.
    """

    def __init__(
        self,
        image_shape: ImageShape,
        num_levels: int,
        *,
        channels: int = 32,
        num_layers: int = 6,
        kernel_size: int = 3,
        first_kernel_size: int = 7,
        generator: torch.Generator | None = None,
    ):
        super().__init__(image_shape, num_levels, radius=first_kernel_size // 2 + num_layers * (kernel_size // 2))
        self.first = MaskedConv2d(1, channels, mask_a(first_kernel_size), generator=generator)
        self.layers = nn.ModuleList(
            MaskedConv2d(channels, channels, mask_b(kernel_size), generator=generator) for _ in range(num_layers)
        )
        self.head = _head(channels, num_levels, generator)

    def logits(
        self, images: Float[Tensor, "batch 1 height width"], labels: Int[Tensor, "batch"] | None = None
    ) -> Float[Tensor, "batch levels height width"]:
        x = self.first(2 * images - 1)
        for layer in self.layers:
            x = x + layer(torch.relu(x))
        return self.head(x)


class GatedPixelCNN(PixelModel):
    """Gated layers of a vertical and a horizontal stack: every pixel before, none behind, and the class of the image if
    it is given.

    A logit sees first_kernel_size // 2 + num_layers (kernel_size // 2) pixels up and to each side.

    Args:
        num_levels: Grey levels k: pixels have the values 0, 1 / (k - 1), ..., 1.
        num_classes: Of the labels that the model is given; None for a model without.

    >>> model = GatedPixelCNN((1, 8, 8), 17, channels=16, num_layers=4, num_classes=10)
    >>> model(torch.zeros(3, 1, 8, 8), torch.tensor([0, 1, 2])).shape
    torch.Size([3, 17, 8, 8])

    Notes: D5.2-8.
    """

    def __init__(
        self,
        image_shape: ImageShape,
        num_levels: int,
        *,
        channels: int = 32,
        num_layers: int = 6,
        kernel_size: int = 3,
        first_kernel_size: int = 7,
        num_classes: int | None = None,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ):
        radius = first_kernel_size // 2 + num_layers * (kernel_size // 2)
        super().__init__(image_shape, num_levels, radius=radius, num_classes=num_classes)
        self.channels = channels
        self.above = MaskedConv2d(1, channels, mask_rows_above(first_kernel_size), generator=generator)
        self.left = MaskedConv2d(1, channels, mask_a((1, first_kernel_size)), generator=generator)
        self.layers = nn.ModuleList(
            GatedPixelLayer(channels, kernel_size, dropout=dropout, generator=generator) for _ in range(num_layers)
        )
        self.head = _head(channels, num_levels, generator)
        # For each class what to add before the gates of each layer; all alike at first.
        self.shifts = None if num_classes is None else nn.Parameter(torch.zeros(num_layers, num_classes, 4 * channels))

    def logits(
        self, images: Float[Tensor, "batch 1 height width"], labels: Int[Tensor, "batch"] | None = None
    ) -> Float[Tensor, "batch levels height width"]:
        x = 2 * images - 1  # black is -1, so that the zeros beyond the border are something else
        above = self.above(x)
        stacks = PixelStacks(above + self.left(x), above)
        for number, layer in enumerate(self.layers):
            stacks = layer(stacks, None if self.shifts is None else self.shifts[number][labels])
        return self.head(stacks.horizontal)

    def predictor(
        self, images: Float[Tensor, "batch 1 height width"], labels: Int[Tensor, "batch"] | None = None
    ) -> PixelPredictor:
        return GatedPixelPredictor(self, images, labels)


def _head(channels: int, num_levels: int, generator: torch.Generator | None) -> nn.Sequential:
    """From features to logits, each pixel by itself."""
    return nn.Sequential(
        nn.ReLU(), MaskedConv2d(channels, channels, mask_b(1), generator=generator),
        nn.ReLU(), MaskedConv2d(channels, num_levels, mask_b(1), generator=generator),
    )  # fmt: skip
