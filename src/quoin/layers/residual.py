"""Residual blocks: what a few layers compute is added to what went into them, so that the layers need only learn the
difference.

The definitions show the connections; convolution and normalization have definitions of their own in this package. A
convolution before a normalization has no bias, as that would only be subtracted again. Attributes of the modules are
named as in torchvision, so that its weights load by name.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from quoin.display import shown
from quoin.errors import UserError
from quoin.layers.activation import relu
from quoin.layers.conv import cross_correlate2d_definition
from quoin.layers.norm import EPS, Moments, batch_norm_definition, batch_norm_eval_definition
from quoin.tensor import check_floating

__all__ = [
    "BasicBlock",
    "Bottleneck",
    "ConvNorm",
    "ResNeXtBlock",
    "Residual",
    "ResidualForward",
    "basic_block_definition",
    "bottleneck_definition",
    "residual_definition",
    "resnext_definition",
]


@shown
class ResidualForward(NamedTuple):
    """A block taken apart: the output, and the two terms of its sum."""

    output: Float[Tensor, "*shape"]
    residual: Float[Tensor, "*shape"]  # F(x)
    shortcut: Float[Tensor, "*shape"]  # s(x)


def identity(x: Shaped[Tensor, "*shape"]) -> Shaped[Tensor, "*shape"]:
    return x


def residual_definition(
    x: Float[Tensor, "..."],
    body: Callable[[Tensor], Tensor],
    shortcut: Callable[[Tensor], Tensor] = identity,
    activation: Callable[[Tensor], Tensor] = identity,
) -> ResidualForward:
    """phi(F(x) + s(x)) for a body F and a shortcut s, the identity unless F changes the shape.

    >>> residual_definition(torch.tensor([1.0, 2.0]), torch.square).output
    tensor([2., 6.])

    Notes: D1.6-5, Z8.9.
    """
    check_floating(x)
    residual, kept = body(x), shortcut(x)
    _check_sum(residual, kept)
    return ResidualForward(activation(residual + kept), residual, kept)


@shown
class ConvNorm(NamedTuple):
    """A convolution with an odd kernel, padded to keep the size, and the batch normalization of its channels.

    Without a mean and a variance, the running averages, the batch is normalized by its own.
    """

    kernel: Float[Tensor, "out_channels in_channels size size"]
    scale: Float[Tensor, "out_channels"]  # gamma
    shift: Float[Tensor, "out_channels"]  # beta
    mean: Float[Tensor, "out_channels"] | None = None
    variance: Float[Tensor, "out_channels"] | None = None

    def __call__(
        self, x: Float[Tensor, "batch in_channels height width"], stride: int = 1, *, eps: float = EPS
    ) -> Float[Tensor, "batch out_channels out_height out_width"]:
        return self.normalize(
            cross_correlate2d_definition(x, self.kernel, stride=stride, padding=self.kernel.shape[-1] // 2), eps
        )

    def normalize(
        self, x: Float[Tensor, "batch out_channels height width"], eps: float = EPS
    ) -> Float[Tensor, "batch out_channels height width"]:
        if self.mean is None or self.variance is None:
            return batch_norm_definition(x, self.scale, self.shift, eps=eps).output
        return batch_norm_eval_definition(x, Moments(self.mean, self.variance), self.scale, self.shift, eps=eps)

    def split(self, groups: int) -> list["ConvNorm"]:
        """The output channels shared out; a channel passes normalization and ReLU by itself, so what follows may stay
        apart."""
        parts = [[None] * groups if part is None else part.chunk(groups) for part in self]
        return [ConvNorm(*part) for part in zip(*parts, strict=True)]


def basic_block_definition(
    x: Float[Tensor, "batch in_channels height width"],
    first: ConvNorm,
    second: ConvNorm,
    project: ConvNorm | None = None,
    *,
    stride: int = 1,
) -> ResidualForward:
    """relu(B2 relu(B1 x) + s(x)): two 3x3 convolutions B1, B2, each normalized, and a 1x1 shortcut s where the shape
    changes.

    Args:
        first: B1, which has the stride.
        second: B2.
        project: The 1x1 convolution of the shortcut s; None is the identity.

    Notes: D1.6-5, Z8.9.
    """
    return residual_definition(x, lambda x: second(relu(first(x, stride))), _shortcut(project, stride), relu)


def bottleneck_definition(
    x: Float[Tensor, "batch in_channels height width"],
    narrow: ConvNorm,
    across: ConvNorm,
    widen: ConvNorm,
    project: ConvNorm | None = None,
    *,
    strides: tuple[int, int, int] = (1, 1, 1),
    eps: float = EPS,
) -> ResidualForward:
    """relu(B3 relu(B2 relu(B1 x)) + s(x)): 1x1 to f channels, 3x3 among these, 1x1 to 4 f; s is the identity or 1x1 to
    4 f.

    With strides (s, 1, 1) and eps 1.001e-5 it is the block of Keras' ResNet, with (1, s, 1) that of torchvision
    ("v1.5").

    Args:
        narrow: B1.
        across: B2.
        widen: B3.
        project: The 1x1 convolution of the shortcut s; None is the identity.
        strides: Of B1, B2 and B3; the shortcut has their product.

    Notes: D1.6-15, DE23.
    """

    def body(x: Tensor) -> Tensor:
        h = relu(narrow(x, strides[0], eps=eps))
        h = relu(across(h, strides[1], eps=eps))
        return widen(h, strides[2], eps=eps)

    return residual_definition(x, body, _shortcut(project, math.prod(strides), eps), relu)


def resnext_definition(
    x: Float[Tensor, "batch in_channels height width"],
    narrow: ConvNorm,
    across: ConvNorm,
    widen: ConvNorm,
    project: ConvNorm | None = None,
    *,
    groups: int,
    stride: int = 1,
) -> ResidualForward:
    """relu(N(T_1(x) + ... + T_g(x)) + s(x)): bottlenecks T_i side by side, each with its fraction of the inner
    channels.

    T_i is a 1x1 convolution to its group, a 3x3 within the group, and a 1x1 back; N normalizes their sum.

    Args:
        narrow: The 1x1 convolutions of all T_i to their groups.
        across: The 3x3 ones, with a kernel (channels, channels / groups, 3, 3), the form of a grouped convolution.
        widen: The 1x1 ones back, and N.
        project: The 1x1 convolution of the shortcut s; None is the identity.

    Notes: Z8.9.
    """
    bottleneck_channels = widen.kernel.shape[1]
    if groups < 1 or bottleneck_channels % groups:
        raise UserError(
            f"expected groups that divide the {bottleneck_channels} inner channels, got {groups}; choose a divisor"
        )

    def body(x: Tensor) -> Tensor:
        grouped = zip(narrow.split(groups), across.split(groups), widen.kernel.chunk(groups, dim=1), strict=True)
        branches = [
            cross_correlate2d_definition(relu(middle(relu(first(x)), stride)), last) for first, middle, last in grouped
        ]
        return widen.normalize(torch.stack(branches).sum(0))

    return residual_definition(x, body, _shortcut(project, stride), relu)


class Residual(nn.Module):
    """`residual_definition` about any two modules, without an activation: body(x) + shortcut(x).

    Args:
        shortcut: The identity unless given.

    >>> block = Residual(nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 3)))
    >>> block(torch.zeros(2, 3)).shape
    torch.Size([2, 3])

    Notes: D1.6-5.
    """

    def __init__(self, body: nn.Module, shortcut: nn.Module | None = None):
        super().__init__()
        self.body = body
        self.shortcut = nn.Identity() if shortcut is None else shortcut

    def forward(self, x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        check_floating(x)
        residual, kept = self.body(x), self.shortcut(x)
        _check_sum(residual, kept)
        return residual + kept


class BasicBlock(nn.Module):
    """`basic_block_definition` with its weights, the block of ResNet-18 and 34; the first 3x3 convolution has the
    stride.

    Notes: D1.6-5, Z8.9.
    """

    def __init__(self, in_channels: int, out_channels: int, *, stride: int = 1):
        super().__init__()
        _check_sizes({"in_channels": in_channels, "out_channels": out_channels, "stride": stride})
        self.conv1 = _convolution(in_channels, out_channels, 3, stride)
        self.bn1 = nn.BatchNorm2d(out_channels)
        self.relu1 = nn.ReLU()  # a module each, and not torch.relu, so that hooks see what each lets through
        self.conv2 = _convolution(out_channels, out_channels, 3)
        self.bn2 = nn.BatchNorm2d(out_channels)
        self.relu2 = nn.ReLU()
        self.downsample = _projection(in_channels, out_channels, stride)

    def forward(
        self, x: Float[Tensor, "batch in_channels height width"]
    ) -> Float[Tensor, "batch out_channels out_height out_width"]:
        """The height and width are divided by the stride, rounded up."""
        _check_channels(x, self.conv1.in_channels)
        kept = x if self.downsample is None else self.downsample(x)
        h = self.relu1(self.bn1(self.conv1(x)))
        return self.relu2(self.bn2(self.conv2(h)) + kept)


class _Narrowed(nn.Module):
    """The three convolutions of a bottleneck, for any bottleneck_channels; the 3x3 has stride and groups."""

    def __init__(self, in_channels: int, bottleneck_channels: int, out_channels: int, stride: int, groups: int):
        super().__init__()
        self.conv1 = _convolution(in_channels, bottleneck_channels, 1)
        self.bn1 = nn.BatchNorm2d(bottleneck_channels)
        self.relu1 = nn.ReLU()
        self.conv2 = _convolution(bottleneck_channels, bottleneck_channels, 3, stride, groups)
        self.bn2 = nn.BatchNorm2d(bottleneck_channels)
        self.relu2 = nn.ReLU()
        self.conv3 = _convolution(bottleneck_channels, out_channels, 1)
        self.bn3 = nn.BatchNorm2d(out_channels)
        self.relu3 = nn.ReLU()
        self.downsample = _projection(in_channels, out_channels, stride)

    def forward(
        self, x: Float[Tensor, "batch in_channels height width"]
    ) -> Float[Tensor, "batch out_channels out_height out_width"]:
        """The height and width are divided by the stride, rounded up."""
        _check_channels(x, self.conv1.in_channels)
        kept = x if self.downsample is None else self.downsample(x)
        h = self.relu1(self.bn1(self.conv1(x)))
        h = self.relu2(self.bn2(self.conv2(h)))
        return self.relu3(self.bn3(self.conv3(h)) + kept)


class Bottleneck(_Narrowed):
    """`bottleneck_definition` with its weights, from `in_channels` to 4 `bottleneck_channels` channels; strides (1,
    stride, 1).

    The shortcut is a 1x1 convolution where the channels or the size change, otherwise the identity.

    Notes: D1.6-15, Z8.9, DE23.
    """

    def __init__(self, in_channels: int, bottleneck_channels: int, *, stride: int = 1):
        _check_sizes({"in_channels": in_channels, "bottleneck_channels": bottleneck_channels, "stride": stride})
        super().__init__(in_channels, bottleneck_channels, 4 * bottleneck_channels, stride, groups=1)


class ResNeXtBlock(_Narrowed):
    """`resnext_definition` on one grouped convolution: `groups` bottlenecks of `width_per_group` channels each; (1,
    stride, 1).

    Notes: Z8.9.
    """

    def __init__(
        self, in_channels: int, out_channels: int, *, groups: int = 32, width_per_group: int = 4, stride: int = 1
    ):
        _check_sizes(
            {
                "in_channels": in_channels,
                "out_channels": out_channels,
                "groups": groups,
                "width_per_group": width_per_group,
                "stride": stride,
            }
        )
        super().__init__(in_channels, groups * width_per_group, out_channels, stride, groups)


def _shortcut(project: ConvNorm | None, stride: int, eps: float = EPS) -> Callable[[Tensor], Tensor]:
    return identity if project is None else lambda x: project(x, stride, eps=eps)


def _convolution(in_channels: int, out_channels: int, size: int, stride: int = 1, groups: int = 1) -> nn.Conv2d:
    return nn.Conv2d(in_channels, out_channels, size, stride=stride, padding=size // 2, groups=groups, bias=False)


def _projection(in_channels: int, out_channels: int, stride: int) -> nn.Sequential | None:
    """The shortcut where the identity does not fit."""
    if in_channels == out_channels and stride == 1:
        return None
    return nn.Sequential(_convolution(in_channels, out_channels, 1, stride), nn.BatchNorm2d(out_channels))


def _check_sum(residual: Tensor, kept: Tensor) -> None:
    if residual.shape != kept.shape:  # torch would stretch some of these silently
        raise UserError(
            f"expected body and shortcut of one shape, got {tuple(residual.shape)} and {tuple(kept.shape)}; "
            "project the shortcut to the shape of the body"
        )


def _check_sizes(sizes: dict[str, int]) -> None:
    for name, size in sizes.items():
        if not isinstance(size, int) or size < 1:
            raise UserError(f"expected {name} to be a positive whole number, got {size!r}; give e.g. {name}=1")


def _check_channels(x: Tensor, channels: int) -> None:
    if x.ndim != 4 or x.shape[1] != channels:
        raise UserError(
            f"expected images (n, {channels}, h, w), got shape {tuple(x.shape)}; give the block {channels} channels"
        )
