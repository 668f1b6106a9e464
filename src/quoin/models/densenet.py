"""DenseNet: every layer of a block sees the outputs of all layers before it, side by side as channels, and adds a few
of its own.

Where a residual block sums, a dense block concatenates. Names of weights are torchvision's
(`features.denseblock1.denselayer1.norm1.weight`).
"""

import re
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from quoin.errors import UserError
from quoin.layers import keeps_global_rng
from quoin.models.image_init import ImageShape, check_image_model, init_image_weights
from quoin.models.pretrained import Weights, load_renamed, read_safetensors
from quoin.models.resnet import large_pool, large_stem, small_stem
from quoin.tensor import check_image_batch

__all__ = [
    "DenseLayer",
    "DenseNet",
    "dense_block_definition",
    "densenet121",
    "load_torchvision_densenet",
    "small_densenet",
]

NARROWING = 4  # the 1x1 convolution of a layer leaves this many times the channels that it adds


def dense_block_definition(
    x: Float[Tensor, "batch channels height width"], layers: Sequence[Callable[[Tensor], Tensor]]
) -> Float[Tensor, "batch out_channels height width"]:
    """[x_0, x_1, ..., x_l] with x_i = H_i([x_0, ..., x_{i-1}]) and x_0 = x, the brackets being concatenation along the
    channels.

    >>> dense_block_definition(torch.ones(1, 2, 1, 1), [lambda x: x.sum(1, keepdim=True)] * 2).flatten()
    tensor([1., 1., 2., 4.])

    Notes: Z8.0.
    """
    found = [x]
    for layer in layers:
        found.append(layer(torch.cat(found, dim=1)))
    return torch.cat(found, dim=1)


class DenseLayer(nn.Module):
    """[x, H(x)] with H = 3x3 relu norm 1x1 relu norm, so that layers in a row are a dense block: normalized before, not
    after.

    Args:
        growth_rate: Channels that the layer adds.

    Notes: Z8.0.
    """

    def __init__(self, in_channels: int, growth_rate: int):
        super().__init__()
        if in_channels < 1 or growth_rate < 1:
            raise UserError(
                f"expected a positive number of inputs and of added channels, got {in_channels} and {growth_rate}; "
                "give e.g. 64 and 32"
            )
        bottleneck_channels = NARROWING * growth_rate
        self.norm1 = nn.BatchNorm2d(in_channels)
        self.relu1 = nn.ReLU()
        self.conv1 = nn.Conv2d(in_channels, bottleneck_channels, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(bottleneck_channels)
        self.relu2 = nn.ReLU()
        self.conv2 = nn.Conv2d(bottleneck_channels, growth_rate, 3, padding=1, bias=False)

    def added(self, x: Float[Tensor, "batch in_channels height width"]) -> Float[Tensor, "batch growth height width"]:
        """H(x), the channels that this layer adds."""
        return self.conv2(self.relu2(self.norm2(self.conv1(self.relu1(self.norm1(x))))))

    def forward(
        self, x: Float[Tensor, "batch in_channels height width"]
    ) -> Float[Tensor, "batch out_channels height width"]:
        return torch.cat([x, self.added(x)], dim=1)


class DenseNet(nn.Module):
    """classifier(mean over pixels of relu(features(x))): dense blocks, and between two a transition that halves
    channels and sides.

    Weights start as `init_image_weights` says.

    Args:
        image_shape: (channels, height, width).
        stem: What the image passes first.
        channels: How many the stem gives.
        block_config: How many layers each dense block has.
        growth_rate: Channels that each layer adds.

    Notes: Z8.0.
    """

    @keeps_global_rng
    def __init__(
        self,
        image_shape: ImageShape,
        num_classes: int,
        *,
        stem: "OrderedDict[str, nn.Module]",
        channels: int,
        block_config: Sequence[int],
        growth_rate: int,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        self.image_shape = image_shape
        self.features = nn.Sequential(stem)
        for number, num_layers in enumerate(block_config, start=1):
            if number > 1:
                self.features.add_module(f"transition{number - 1}", _transition(channels))
                channels //= 2
            block = OrderedDict[str, nn.Module](
                (f"denselayer{i + 1}", DenseLayer(channels + i * growth_rate, growth_rate)) for i in range(num_layers)
            )
            self.features.add_module(f"denseblock{number}", nn.Sequential(block))
            channels += num_layers * growth_rate
        self.features.add_module("norm5", nn.BatchNorm2d(channels))  # its number in torchvision, whatever the depth
        self.relu = nn.ReLU()
        self.classifier = nn.Linear(channels, num_classes)
        init_image_weights(self, generator)

    def forward(self, x: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch classes"]:
        check_image_batch(x, self.image_shape)
        return self.classifier(self.relu(self.features(x)).mean(dim=(2, 3)))


def _transition(channels: int) -> nn.Sequential:
    layers = {
        "norm": nn.BatchNorm2d(channels),
        "relu": nn.ReLU(),
        "conv": nn.Conv2d(channels, channels // 2, 1, bias=False),
        "pool": nn.AvgPool2d(2),
    }
    return nn.Sequential(OrderedDict(layers))


@keeps_global_rng
def densenet121(
    num_classes: int = 1000, *, image_shape: ImageShape = (3, 224, 224), generator: torch.Generator | None = None
) -> DenseNet:
    """DenseNet-121: dense blocks of 6, 12, 24 and 16 layers that add 32 channels each; images of 32 x 32 pixels or
    more.

    Notes: Z8.0.
    """
    check_image_model(image_shape, num_classes, smallest=32)
    layers = {
        "conv0": large_stem(image_shape[0]),
        "norm0": nn.BatchNorm2d(64),
        "relu0": nn.ReLU(),
        "pool0": large_pool(),
    }
    stem = OrderedDict[str, nn.Module](layers)
    return DenseNet(
        image_shape,
        num_classes,
        stem=stem,
        channels=64,
        block_config=(6, 12, 24, 16),
        growth_rate=32,
        generator=generator,
    )


@keeps_global_rng
def small_densenet(image_shape: ImageShape, num_classes: int, *, generator: torch.Generator | None = None) -> DenseNet:
    """A DenseNet for images from 8 x 8 pixels: 3x3 stem, three dense blocks of four layers that add 12 channels each.

    >>> model = small_densenet((1, 8, 8), 10, generator=torch.Generator().manual_seed(0))
    >>> model(torch.zeros(2, 1, 8, 8)).shape
    torch.Size([2, 10])

    Notes: Z8.0.
    """
    check_image_model(image_shape, num_classes, smallest=8)
    stem = OrderedDict[str, nn.Module](conv0=small_stem(image_shape[0], 24))
    return DenseNet(
        image_shape, num_classes, stem=stem, channels=24, block_config=(4, 4, 4), growth_rate=12, generator=generator
    )


def load_torchvision_densenet(model: DenseNet, weights: Weights) -> None:
    """Fill `model` from torchvision's `state_dict` of the same depth, given as such or as a safetensors path.

    The names are ours, but that the files it once published say `denselayer1.norm.1` for `denselayer1.norm1`; both are
    read.
    """
    state = weights if isinstance(weights, Mapping) else read_safetensors(weights)
    old = any(re.search(_OLD, name) for name in state)
    load_renamed(model, state, (lambda name: re.sub(_NEW, r"\1.\2.", name)) if old else str)


_OLD = r"denselayer\d+\.(norm|conv)\.\d\."
_NEW = r"(denselayer\d+\.(?:norm|conv))(\d)\."
