"""GoogLeNet: modules of four paths with kernels of different sizes, side by side, whose channels are laid one on
another."""

import re
from collections import OrderedDict
from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor, nn

from quoin.layers import keeps_global_rng
from quoin.models.image_classifier import ImageClassifier
from quoin.models.image_init import ImageShape, check_image_model, init_image_weights
from quoin.models.pretrained import Weights, load_renamed, read_safetensors

__all__ = ["Inception", "googlenet", "load_torchvision_googlenet", "small_googlenet"]


class Inception(nn.Module):
    """Four paths over the same image, joined along the channels: 1 x 1; 1 x 1 then 3 x 3; the same again; pooling then
    1 x 1.

    Every convolution is normalized over the batch and goes through ReLU.

    Args:
        ch1x1: Output channels of the 1 x 1 path.
        ch3x3: Output channels of the narrowing 1 x 1 convolution and of the 3 x 3 after it.
        ch5x5: The same for the third path, 5 x 5 in the paper and 3 x 3 here, as in torchvision's weights.
        pool_proj: Output channels of the 1 x 1 convolution behind the pooling.

    Notes: Z8.0.
    """

    def __init__(self, in_channels: int, ch1x1: int, ch3x3: tuple[int, int], ch5x5: tuple[int, int], pool_proj: int):
        super().__init__()
        self.ch1x1 = _convolution(in_channels, ch1x1, 1)
        self.ch3x3 = nn.Sequential(
            _convolution(in_channels, ch3x3[0], 1), _convolution(ch3x3[0], ch3x3[1], 3, padding=1)
        )
        self.ch5x5 = nn.Sequential(
            _convolution(in_channels, ch5x5[0], 1), _convolution(ch5x5[0], ch5x5[1], 3, padding=1)
        )
        self.pool_proj = nn.Sequential(nn.MaxPool2d(3, stride=1, padding=1), _convolution(in_channels, pool_proj, 1))

    def forward(
        self, x: Float[Tensor, "batch in_channels height width"]
    ) -> Float[Tensor, "batch out_channels height width"]:
        return torch.cat([self.ch1x1(x), self.ch3x3(x), self.ch5x5(x), self.pool_proj(x)], dim=1)


@keeps_global_rng
def googlenet(
    num_classes: int = 1000, *, image_shape: ImageShape = (3, 224, 224), generator: torch.Generator | None = None
) -> ImageClassifier:
    """GoogLeNet as torchvision has it, without its auxiliary heads: 6,624,904 parameters for 1000 classes; sides from
    15.

    Notes: Z8.0.
    """
    check_image_model(image_shape, num_classes, smallest=15)
    features = OrderedDict[str, nn.Module](
        conv1=_convolution(image_shape[0], 64, 7, stride=2, padding=3),
        pool1=_halving(3),
        conv2=_convolution(64, 64, 1),
        conv3=_convolution(64, 192, 3, padding=1),
        pool2=_halving(3),
        inception3a=Inception(192, 64, (96, 128), (16, 32), 32),
        inception3b=Inception(256, 128, (128, 192), (32, 96), 64),
        pool3=_halving(3),
        inception4a=Inception(480, 192, (96, 208), (16, 48), 64),
        inception4b=Inception(512, 160, (112, 224), (24, 64), 64),
        inception4c=Inception(512, 128, (128, 256), (24, 64), 64),
        inception4d=Inception(512, 112, (144, 288), (32, 64), 64),
        inception4e=Inception(528, 256, (160, 320), (32, 128), 128),
        pool4=_halving(2),
        inception5a=Inception(832, 256, (160, 320), (32, 128), 128),
        inception5b=Inception(832, 384, (192, 384), (48, 128), 128),
        mean=nn.AdaptiveAvgPool2d(1),
        flat=nn.Flatten(),
    )
    return init_image_weights(
        ImageClassifier(nn.Sequential(features), _head(1024, num_classes), image_shape), generator
    )


@keeps_global_rng
def small_googlenet(
    image_shape: ImageShape, num_classes: int, *, generator: torch.Generator | None = None
) -> ImageClassifier:
    """GoogLeNet for small images: one convolution, with stride two for sides from 16, and three modules; sides from 8.

    Args:
        image_shape: (channels, height, width).

    Notes: Z8.0.
    """
    check_image_model(image_shape, num_classes, smallest=8)
    features = nn.Sequential(
        _convolution(image_shape[0], 32, 3, stride=2 if min(image_shape[1:]) >= 16 else 1, padding=1),
        Inception(32, 16, (16, 24), (8, 12), 12),
        Inception(64, 24, (24, 40), (12, 16), 16),
        _halving(3),
        Inception(96, 32, (32, 56), (16, 20), 20),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    )
    return init_image_weights(ImageClassifier(features, _head(128, num_classes), image_shape), generator)


def load_torchvision_googlenet(model: ImageClassifier, weights: Weights) -> None:
    """Fill `googlenet` from torchvision's `state_dict`, given as such or as a safetensors path; its auxiliary heads are
    passed over.

    Its trained weights expect images with values from -1 to 1, not those that ImageNet's mean and standard deviation
    would give.
    """
    state = weights if isinstance(weights, Mapping) else read_safetensors(weights)
    paths = {"ch1x1": "branch1", "ch3x3": "branch2", "ch5x5": "branch3", "pool_proj": "branch4"}

    def theirs(name: str) -> str:
        name = re.sub(r"^head\.1\.", "fc.", name.removeprefix("features."))
        name = re.sub(r"\.(ch1x1|ch3x3|ch5x5|pool_proj)\.", lambda at: f".{paths[at[1]]}.", name)
        return re.sub(r"\.([01])\.(\w+)$", lambda at: f".{('conv', 'bn')[int(at[1])]}.{at[2]}", name)

    load_renamed(
        model, {name: tensor for name, tensor in state.items() if not name.startswith(("aux1.", "aux2."))}, theirs
    )


def _convolution(
    in_channels: int, out_channels: int, kernel_size: int, *, stride: int = 1, padding: int = 0
) -> nn.Sequential:
    """Convolution, batch normalization (whose shift makes a bias needless) and ReLU."""
    return nn.Sequential(
        nn.Conv2d(in_channels, out_channels, kernel_size, stride=stride, padding=padding, bias=False),
        nn.BatchNorm2d(out_channels, eps=0.001),
        nn.ReLU(),
    )


def _halving(kernel_size: int) -> nn.MaxPool2d:
    """A pooling that leaves half of the pixels a side, rounded up: a last window may hang over the edge."""
    return nn.MaxPool2d(kernel_size, stride=2, ceil_mode=True)


def _head(channels: int, num_classes: int) -> nn.Sequential:
    return nn.Sequential(nn.Dropout(0.2), nn.Linear(channels, num_classes))
