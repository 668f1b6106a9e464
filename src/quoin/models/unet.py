"""A U-Net conditioned on the timestep, and on a class: the network of a diffusion model of images.

It goes down through smaller and smaller images with more and more channels, and up again; on the way up each block also
reads what the block of the same size left on the way down. The weights are those of Hugging Face's `UNet2DModel`, in
fewer tensors.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float, Int, Real
from torch import Tensor, nn
from torch.nn.functional import silu

from quoin.display import shown
from quoin.errors import UserError, format_value
from quoin.layers import (
    MultiHeadAttention,
    UpsampledConv2d,
    cross_correlate2d_definition,
    group_norm_definition,
    keeps_global_rng,
)
from quoin.layers import silu as silu_definition
from quoin.layers.checkpointing import call_block
from quoin.models.image_init import ImageShape, check_image_model, init_image_weights
from quoin.models.time_mlp import timestep_embedding
from quoin.tensor import check_image_batch

__all__ = ["UNet", "UNetBlock", "UNetBlockWeights", "unet_block_definition"]


@shown
class UNetBlockWeights(NamedTuple):
    """What a block has learnt: two normalizations with a convolution each, and a 1 x 1 shortcut where the channels
    change."""

    scale1: Float[Tensor, "in_channels"]
    shift1: Float[Tensor, "in_channels"]
    kernel1: Float[Tensor, "out_channels in_channels 3 3"]
    bias1: Float[Tensor, "out_channels"]
    scale2: Float[Tensor, "out_channels"]
    shift2: Float[Tensor, "out_channels"]
    kernel2: Float[Tensor, "out_channels out_channels 3 3"]
    bias2: Float[Tensor, "out_channels"]
    kernel_shortcut: Float[Tensor, "out_channels in_channels 1 1"] | None = None
    bias_shortcut: Float[Tensor, "out_channels"] | None = None


def unet_block_definition(
    x: Float[Tensor, "batch in_channels height width"],
    embedding: Float[Tensor, "batch out_channels"],
    weights: UNetBlockWeights,
    *,
    num_groups: int,
) -> Float[Tensor, "batch out_channels height width"]:
    """s(x) + K₂ ⋆ silu(N₂(K₁ ⋆ silu(N₁(x)) + embedding)): N normalize groups of channels, s the identity or a 1 x 1
    convolution.

    `embedding` is what the block makes of the time and the class, one number for each image and channel.

    Notes: D0-T.
    """
    w = weights
    h = silu_definition(group_norm_definition(x, w.scale1, w.shift1, num_groups=num_groups).output)
    h = cross_correlate2d_definition(h, w.kernel1, w.bias1, padding=1) + embedding[:, :, None, None]
    h = silu_definition(group_norm_definition(h, w.scale2, w.shift2, num_groups=num_groups).output)
    kept = x if w.kernel_shortcut is None else cross_correlate2d_definition(x, w.kernel_shortcut, w.bias_shortcut)
    return kept + cross_correlate2d_definition(h, w.kernel2, w.bias2, padding=1)


class UNetBlock(nn.Module):
    """`unet_block_definition` with its weights.

    Args:
        num_groups: Groups of channels that are normalized together; divides both numbers of channels.

    Notes: D0-T.
    """

    checkpoints_activations = False  # see quoin/layers/checkpointing.py

    def __init__(self, in_channels: int, out_channels: int, *, num_groups: int):
        super().__init__()
        self.out_channels = out_channels
        self.norm1, self.conv1 = (
            nn.GroupNorm(num_groups, in_channels),
            nn.Conv2d(in_channels, out_channels, 3, padding=1),
        )
        self.norm2, self.conv2 = (
            nn.GroupNorm(num_groups, out_channels),
            nn.Conv2d(out_channels, out_channels, 3, padding=1),
        )
        self.shortcut = nn.Identity() if in_channels == out_channels else nn.Conv2d(in_channels, out_channels, 1)

    def forward(
        self, x: Float[Tensor, "batch in_channels height width"], embedding: Float[Tensor, "batch out_channels"]
    ) -> Float[Tensor, "batch out_channels height width"]:
        h = self.conv1(silu(self.norm1(x)))
        h = self.conv2(silu(self.norm2(h + embedding[:, :, None, None])))
        return self.shortcut(x) + h


class SpatialSelfAttention(nn.Module):
    """x + attention among the pixels of N(x), each a token: every pixel attends to every other."""

    def __init__(self, channels: int, num_heads: int, *, num_groups: int):
        super().__init__()
        self.norm = nn.GroupNorm(num_groups, channels)
        self.attend = MultiHeadAttention(channels, num_heads)

    def forward(self, x: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch channels height width"]:
        attended = self.attend(self.norm(x).flatten(2).mT)
        return x + attended.mT.unflatten(2, x.shape[2:])


class _Level(nn.Module):
    """The blocks at one size of image, attention behind each where there is any, and the way to the next size."""

    def __init__(self, blocks: list[UNetBlock], attentions: list[SpatialSelfAttention], resize: nn.Module | None):
        super().__init__()
        self.blocks, self.attentions, self.resize = nn.ModuleList(blocks), nn.ModuleList(attentions), resize
        self.out_channels = [block.out_channels for block in blocks]

    def parts(self) -> Iterator[tuple[nn.Module, nn.Module]]:
        return zip(self.blocks, self.attentions or [nn.Identity()] * len(self.blocks))


class _Levels(nn.ModuleList):
    """Levels in the order in which an image goes through them."""

    def __iter__(self) -> Iterator[_Level]:
        return super().__iter__()  # pyright: ignore[reportReturnType]


class UNet(nn.Module):
    """network(x, t, labels): images in, images of the same shape out, of the noise for instance.

    Args:
        image_shape: (channels, height, width), both sides multiples of 2^(len(channels) - 1).
        channels: Channels at each size, every size half of the one before.
        num_blocks: Blocks at each size on the way down; one more on the way up.
        num_groups: Groups of channels that are normalized together; divides all of `channels`.
        head_dim: Features of a head of attention, which follows blocks at the smallest size alone.
        num_classes: Above 0, the embedding of a class is added to that of the time; the label `num_classes` stands for
            none, and no labels for that. With 0 no labels are taken.

    >>> rng = torch.Generator().manual_seed(0)
    >>> model = UNet((1, 8, 8), channels=(8, 16), num_groups=4, num_classes=10, generator=rng)
    >>> model(torch.zeros(5, 1, 8, 8), torch.arange(5), torch.arange(5)).shape
    torch.Size([5, 1, 8, 8])

    Notes: D0-T.
    """

    @keeps_global_rng
    def __init__(
        self,
        image_shape: ImageShape,
        *,
        channels: tuple[int, ...] = (32, 64, 128),
        num_blocks: int = 1,
        num_groups: int = 32,
        head_dim: int = 8,
        num_classes: int = 0,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        _check(image_shape, channels, num_blocks, num_groups, head_dim, num_classes)
        image_channels, first, last = image_shape[0], channels[0], channels[-1]
        embed_dim = 4 * first
        self.image_shape, self.num_classes, self.time_dim = image_shape, num_classes, first
        self.time = nn.Sequential(nn.Linear(first, embed_dim), nn.SiLU(), nn.Linear(embed_dim, embed_dim))
        self.classes = nn.Embedding(num_classes + 1, embed_dim) if num_classes else None

        def level(
            in_channels: list[int], out_channels: int, *, attends: bool, resize: nn.Module | None = None
        ) -> _Level:
            attentions = (
                [
                    SpatialSelfAttention(out_channels, out_channels // head_dim, num_groups=num_groups)
                    for _ in in_channels
                ]
                if attends
                else []
            )
            return _Level(
                [UNetBlock(each, out_channels, num_groups=num_groups) for each in in_channels], attentions, resize
            )

        self.enter = nn.Conv2d(image_channels, first, 3, padding=1)
        self.down = _Levels()
        kept = [first]  # channels of what the way down leaves for the way up
        for depth, out_channels in enumerate(channels, start=1):
            smaller = nn.Conv2d(out_channels, out_channels, 3, stride=2, padding=1) if depth < len(channels) else None
            self.down.append(
                level(
                    [kept[-1]] + [out_channels] * (num_blocks - 1),
                    out_channels,
                    attends=depth == len(channels),
                    resize=smaller,
                )
            )
            kept += [out_channels] * (num_blocks + (depth < len(channels)))
        self.middle = _Levels([level([last], last, attends=True), level([last], last, attends=False)])
        self.up, below = _Levels(), last
        for depth, out_channels in reversed([*enumerate(channels, start=1)]):
            in_channels = [before + kept.pop() for before in [below] + [out_channels] * num_blocks]
            larger = UpsampledConv2d(out_channels, out_channels) if depth > 1 else None
            self.up.append(level(in_channels, out_channels, attends=depth == len(channels), resize=larger))
            below = out_channels
        self.norm, self.leave = nn.GroupNorm(num_groups, first), nn.Conv2d(first, image_channels, 3, padding=1)
        # The conditioning of all blocks is one product.
        self.out_channels = [
            out_channels for level in (*self.down, *self.middle, *self.up) for out_channels in level.out_channels
        ]
        self.condition_proj = nn.Linear(embed_dim, sum(self.out_channels))
        self._start(generator)

    def _start(self, generator: torch.Generator | None) -> None:
        """Every block begins as its shortcut, and the whole says nothing."""
        init_image_weights(self, generator)
        if self.classes is not None:
            nn.init.normal_(self.classes.weight, generator=generator)
        for module in self.modules():
            if isinstance(module, UNetBlock):
                nn.init.zeros_(module.conv2.weight)
            elif isinstance(module, SpatialSelfAttention):
                nn.init.zeros_(module.attend.out_proj.weight)
        nn.init.zeros_(self.leave.weight)

    def forward(
        self,
        x: Float[Tensor, "batch channels height width"],
        t: Real[Tensor, "batch"],
        labels: Int[Tensor, "batch"] | None = None,
    ) -> Float[Tensor, "batch channels height width"]:
        check_image_batch(x, self.image_shape)
        embeddings = iter(self.condition_proj(silu(self.embed_condition(t, labels))).split(self.out_channels, dim=1))
        h = self.enter(x)
        kept = [h]
        for level in self.down:
            for block, attend in level.parts():
                h = attend(call_block(block, block, h, next(embeddings)))
                kept.append(h)
            if level.resize is not None:
                h = level.resize(h)
                kept.append(h)
        for level in self.middle:
            for block, attend in level.parts():
                h = attend(call_block(block, block, h, next(embeddings)))
        for level in self.up:
            for block, attend in level.parts():
                joined = torch.cat([h, kept.pop()], dim=1)
                h = attend(call_block(block, block, joined, next(embeddings)))
            if level.resize is not None:
                h = level.resize(h)
        return self.leave(silu(self.norm(h)))

    def embed_condition(
        self, t: Real[Tensor, "batch"], labels: Int[Tensor, "batch"] | None = None
    ) -> Float[Tensor, "batch embed"]:
        """What is known beside the image: its time, and its class where the model has classes."""
        embedding = self.time(timestep_embedding(t, self.time_dim).to(self.enter.weight))
        if self.classes is None:
            if labels is not None:
                raise UserError("expected no labels for a U-Net without classes, got some; build it with num_classes")
            return embedding
        if labels is None:
            labels = torch.full_like(t, self.num_classes, dtype=torch.long)
        return embedding + self.classes(labels)


def _check(
    image_shape: ImageShape,
    channels: tuple[int, ...],
    num_blocks: int,
    num_groups: int,
    head_dim: int,
    num_classes: int,
) -> None:
    check_image_model(image_shape, 1, smallest=1)
    if not channels or not all(isinstance(out_channels, int) and out_channels > 0 for out_channels in channels):
        raise UserError(
            f"expected the channels of at least one size of image, got {format_value(channels)}; give e.g. (32, 64)"
        )
    if min(num_blocks, num_groups, head_dim) < 1 or num_classes < 0:
        got = f"{num_blocks}, {num_groups}, {head_dim} and {num_classes}"
        raise UserError(
            f"expected num_blocks, num_groups and a head_dim from 1 on and num_classes from 0 on, got {got}; "
            "enlarge the small one"
        )
    if any(out_channels % num_groups for out_channels in channels):
        raise UserError(
            f"expected channels that num_groups {num_groups} divides, got {format_value(channels)}; give "
            "multiples, or other groups"
        )
    if channels[-1] % head_dim:
        raise UserError(
            f"expected a head_dim that divides the smallest image's {channels[-1]} channels, got {head_dim}; "
            "choose a divisor"
        )
    if channels[0] % 2:
        raise UserError(
            "expected an even first number of channels, half of them for sines of the timestep, got "
            f"{channels[0]}; make it even"
        )
    factor = 2 ** (len(channels) - 1)
    if any(side % factor for side in image_shape[1:]):
        raise UserError(
            f"expected sides that can be halved {len(channels) - 1} times, multiples of {factor}, got "
            f"{image_shape[1]} x {image_shape[2]}; "
            "pad or crop the images, or give fewer channels"
        )
