"""A U-Net that is told the time, and a class: what a diffusion model of images asks for the noise in one.

It goes down through smaller and smaller images with more and more channels, and up again; on the way up each block also reads what
the block of the same size left on the way down. The weights are those of Hugging Face's `UNet2DModel`, in fewer tensors.

    b images, c channels, o output channels, h height, w width, d width of a code
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import silu

from quoin.errors import Mistake, shown
from quoin.layers import MultiHeadAttention, UpsampledConv2d, cross_correlate2d_definition, group_norm_definition, keeps_global_rng
from quoin.layers import silu as silu_definition
from quoin.models.denoiser_mlp import time_code
from quoin.models.image_start import ImageShape, check_image_model, start_image_weights
from quoin.tensor import check_image_batch

__all__ = ["UNet", "UNetBlock", "UNetBlockWeights", "unet_block_definition"]


class UNetBlockWeights(NamedTuple):
    """What a block has learnt: two normalisations with a convolution each, and a 1 x 1 shortcut where the channels change."""

    scale1: Tensor  # (c,)
    shift1: Tensor  # (c,)
    kernel1: Tensor  # (o, c, 3, 3)
    bias1: Tensor  # (o,)
    scale2: Tensor  # (o,)
    shift2: Tensor  # (o,)
    kernel2: Tensor  # (o, o, 3, 3)
    bias2: Tensor  # (o,)
    kernel_shortcut: Tensor | None = None  # (o, c, 1, 1)
    bias_shortcut: Tensor | None = None  # (o,)


def unet_block_definition(x: Tensor, told: Tensor, weights: UNetBlockWeights, *, groups: int) -> Tensor:  # (b, c, h, w), (b, o)
    """s(x) + K₂ ⋆ silu(N₂(K₁ ⋆ silu(N₁(x)) + told)): N normalise groups of channels, s is the identity or a 1 x 1 convolution.

    `told` is what the block makes of the time and the class, one number for each image and channel.

    Notes: D0-T.
    """
    w = weights
    h = silu_definition(group_norm_definition(x, w.scale1, w.shift1, groups=groups).output)
    h = cross_correlate2d_definition(h, w.kernel1, w.bias1, padding=1) + told[:, :, None, None]
    h = silu_definition(group_norm_definition(h, w.scale2, w.shift2, groups=groups).output)
    kept = x if w.kernel_shortcut is None else cross_correlate2d_definition(x, w.kernel_shortcut, w.bias_shortcut)
    return kept + cross_correlate2d_definition(h, w.kernel2, w.bias2, padding=1)


class UNetBlock(nn.Module):
    """`unet_block_definition` with its weights.

    Notes: D0-T.
    """

    def __init__(self, inputs: int, outputs: int, *, groups: int):
        super().__init__()
        self.outputs = outputs
        self.norm1, self.conv1 = nn.GroupNorm(groups, inputs), nn.Conv2d(inputs, outputs, 3, padding=1)
        self.norm2, self.conv2 = nn.GroupNorm(groups, outputs), nn.Conv2d(outputs, outputs, 3, padding=1)
        self.shortcut = nn.Identity() if inputs == outputs else nn.Conv2d(inputs, outputs, 1)

    def forward(self, x: Tensor, told: Tensor) -> Tensor:  # (b, c, h, w), (b, o) -> (b, o, h, w)
        h = self.conv1(silu(self.norm1(x)))
        h = self.conv2(silu(self.norm2(h + told[:, :, None, None])))
        return self.shortcut(x) + h


class PixelAttention(nn.Module):
    """x + attention among the pixels of N(x), each a token: every place sees every other."""

    def __init__(self, width: int, heads: int, *, groups: int):
        super().__init__()
        self.norm = nn.GroupNorm(groups, width)
        self.attend = MultiHeadAttention(width, heads)

    def forward(self, x: Tensor) -> Tensor:  # (b, c, h, w) -> (b, c, h, w)
        attended = self.attend(self.norm(x).flatten(2).mT)
        return x + attended.mT.unflatten(2, x.shape[2:])


class _Level(nn.Module):
    """The blocks at one size of image, attention behind each where there is any, and the way to the next size."""

    def __init__(self, blocks: list[UNetBlock], attentions: list[PixelAttention], resize: nn.Module | None):
        super().__init__()
        self.blocks, self.attentions, self.resize = nn.ModuleList(blocks), nn.ModuleList(attentions), resize
        self.outputs = [block.outputs for block in blocks]

    def parts(self) -> Iterator[tuple[nn.Module, nn.Module]]:
        return zip(self.blocks, self.attentions or [nn.Identity()] * len(self.blocks))


class _Levels(nn.ModuleList):
    """Levels in the order in which an image goes through them."""

    def __iter__(self) -> Iterator[_Level]:
        return super().__iter__()  # pyright: ignore[reportReturnType]


class UNet(nn.Module):
    """network(x, t, labels): images in, images of the same shape out, of the noise for instance.

    `widths` are the channels at each size, every size half of the one before, with `blocks` blocks each on the way down and one more
    on the way up; at the smallest, attention in heads of `head_width` follows every block. With `num_classes` the code of a class is
    added to that of the time; the label `num_classes` stands for none, and no labels for that.

    >>> model = UNet((1, 8, 8), widths=(8, 16), groups=4, num_classes=10, generator=torch.Generator().manual_seed(0))
    >>> model(torch.zeros(5, 1, 8, 8), torch.arange(5), torch.arange(5)).shape
    torch.Size([5, 1, 8, 8])

    Notes: D0-T.
    """

    @keeps_global_rng
    def __init__(
        self,
        image_shape: ImageShape,
        *,
        widths: tuple[int, ...] = (32, 64, 128),
        blocks: int = 1,
        groups: int = 32,
        head_width: int = 8,
        num_classes: int = 0,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        _check(image_shape, widths, blocks, groups, head_width, num_classes)
        channels, first, last = image_shape[0], widths[0], widths[-1]
        code = 4 * first
        self.image_shape, self.num_classes, self.time_dim = image_shape, num_classes, first
        self.time = nn.Sequential(nn.Linear(first, code), nn.SiLU(), nn.Linear(code, code))
        self.classes = nn.Embedding(num_classes + 1, code) if num_classes else None

        def level(inputs: list[int], width: int, *, attends: bool, resize: nn.Module | None = None) -> _Level:
            attentions = [PixelAttention(width, width // head_width, groups=groups) for _ in inputs] if attends else []
            return _Level([UNetBlock(each, width, groups=groups) for each in inputs], attentions, resize)

        self.enter = nn.Conv2d(channels, first, 3, padding=1)
        self.down = _Levels()
        kept = [first]  # channels of what the way down leaves for the way up
        for depth, width in enumerate(widths, start=1):
            smaller = nn.Conv2d(width, width, 3, stride=2, padding=1) if depth < len(widths) else None
            self.down.append(level([kept[-1]] + [width] * (blocks - 1), width, attends=depth == len(widths), resize=smaller))
            kept += [width] * (blocks + (depth < len(widths)))
        self.middle = _Levels([level([last], last, attends=True), level([last], last, attends=False)])
        self.up, below = _Levels(), last
        for depth, width in reversed([*enumerate(widths, start=1)]):
            inputs = [before + kept.pop() for before in [below] + [width] * blocks]
            larger = UpsampledConv2d(width, width) if depth > 1 else None
            self.up.append(level(inputs, width, attends=depth == len(widths), resize=larger))
            below = width
        self.norm, self.leave = nn.GroupNorm(groups, first), nn.Conv2d(first, channels, 3, padding=1)
        # What every block is told is one product for all of them.
        self.outputs = [width for level in (*self.down, *self.middle, *self.up) for width in level.outputs]
        self.tell = nn.Linear(code, sum(self.outputs))
        self._start(generator)

    def _start(self, generator: torch.Generator | None) -> None:
        """Every block begins as its shortcut, and the whole says nothing."""
        start_image_weights(self, generator)
        if self.classes is not None:
            nn.init.normal_(self.classes.weight, generator=generator)
        for module in self.modules():
            if isinstance(module, UNetBlock):
                nn.init.zeros_(module.conv2.weight)
            elif isinstance(module, PixelAttention):
                nn.init.zeros_(module.attend.f_o.weight)
        nn.init.zeros_(self.leave.weight)

    def forward(self, x: Tensor, t: Tensor, labels: Tensor | None = None) -> Tensor:  # (b, c, h, w), (b,), (b,) -> (b, c, h, w)
        check_image_batch(x, self.image_shape)
        told = iter(self.tell(silu(self.code(t, labels))).split(self.outputs, dim=1))
        h = self.enter(x)
        kept = [h]
        for level in self.down:
            for block, attend in level.parts():
                h = attend(block(h, next(told)))
                kept.append(h)
            if level.resize is not None:
                h = level.resize(h)
                kept.append(h)
        for level in self.middle:
            for block, attend in level.parts():
                h = attend(block(h, next(told)))
        for level in self.up:
            for block, attend in level.parts():
                h = attend(block(torch.cat([h, kept.pop()], dim=1), next(told)))
            if level.resize is not None:
                h = level.resize(h)
        return self.leave(silu(self.norm(h)))

    def code(self, t: Tensor, labels: Tensor | None = None) -> Tensor:  # (b,), (b,) -> (b, d)
        """What is known beside the image: its time, and its class where the model has classes."""
        code = self.time(time_code(t, self.time_dim).to(self.enter.weight))
        if self.classes is None:
            if labels is not None:
                raise Mistake("expected no labels for a U-Net without classes, came some; build it with num_classes")
            return code
        return code + self.classes(torch.full_like(t, self.num_classes) if labels is None else labels)


def _check(image_shape: ImageShape, widths: tuple[int, ...], blocks: int, groups: int, head_width: int, num_classes: int) -> None:
    check_image_model(image_shape, 1, smallest=1)
    if not widths or not all(isinstance(width, int) and width > 0 for width in widths):
        raise Mistake(f"expected the channels of at least one size of image, came {shown(widths)}; give e.g. (32, 64)")
    if min(blocks, groups, head_width) < 1 or num_classes < 0:
        came = f"{blocks}, {groups}, {head_width} and {num_classes}"
        raise Mistake(f"expected blocks, groups and a head_width from 1 on and num_classes from 0 on, came {came}; enlarge the small one")
    if any(width % groups for width in widths):
        raise Mistake(f"expected widths that {groups} groups share evenly, came {shown(widths)}; give multiples, or other groups")
    if widths[-1] % head_width:
        raise Mistake(f"expected a head_width that divides the smallest image's {widths[-1]} channels, came {head_width}; choose a divisor")
    if widths[0] % 2:
        raise Mistake(f"expected an even first width, half of it for sines of the time, came {widths[0]}; make it even")
    factor = 2 ** (len(widths) - 1)
    if any(side % factor for side in image_shape[1:]):
        raise Mistake(
            f"expected sides that can be halved {len(widths) - 1} times, multiples of {factor}, came {image_shape[1]} x {image_shape[2]}; "
            "pad or crop the images, or give fewer widths"
        )
