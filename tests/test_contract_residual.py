"""The contract of residual blocks: each equals its definition in value and gradient, while training and after; Keras is
asked too."""

import os
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from quoin.errors import UserError
from quoin.layers import (
    BasicBlock,
    Bottleneck,
    ConvNorm,
    Residual,
    ResidualForward,
    ResNeXtBlock,
    basic_block_definition,
    bottleneck_definition,
    residual_definition,
    resnext_definition,
)
from quoin.models import DenseLayer, dense_block_definition
from seeds import seeded

DTYPES = [torch.float32, torch.float64]


pytestmark = pytest.mark.usefixtures("one_thread")  # tensors here are too small to share out


def shaken(block: nn.Module, dtype: torch.dtype, generator: torch.Generator) -> nn.Module:
    """Every parameter and running average drawn anew, as a start of ones and zeros would hide a mistake."""
    block = block.to(dtype)
    with torch.no_grad():
        for parameter in block.parameters():
            parameter.normal_(generator=generator)
        for module in block.modules():
            if (
                isinstance(module, nn.BatchNorm2d)
                and module.running_mean is not None
                and module.running_var is not None
            ):
                module.running_mean.normal_(generator=generator)
                module.running_var.uniform_(0.5, 2, generator=generator)
    return block


def conv_norm(convolution: nn.Module, norm: nn.Module) -> ConvNorm:
    assert isinstance(convolution, nn.Conv2d)
    assert isinstance(norm, nn.BatchNorm2d)
    running = () if norm.training else (norm.running_mean, norm.running_var)
    return ConvNorm(convolution.weight, norm.weight, norm.bias, *running)


def project(block: BasicBlock | Bottleneck | ResNeXtBlock) -> ConvNorm | None:
    return None if block.downsample is None else conv_norm(*block.downsample)


def basic(x: Tensor, block: BasicBlock, stride: int) -> ResidualForward:
    parts = conv_norm(block.conv1, block.bn1), conv_norm(block.conv2, block.bn2), project(block)
    return basic_block_definition(x, *parts, stride=stride)


def three(block: Bottleneck | ResNeXtBlock) -> tuple[ConvNorm, ConvNorm, ConvNorm, ConvNorm | None]:
    first, second, third = (
        conv_norm(*pair) for pair in ((block.conv1, block.bn1), (block.conv2, block.bn2), (block.conv3, block.bn3))
    )
    return first, second, third, project(block)


# name -> (a block that can be the identity, one that cannot, the definition applied to its weights)
BLOCKS = {
    "basic": (lambda: BasicBlock(4, 4), lambda s: BasicBlock(3, 4, stride=s), basic),
    "bottleneck": (
        lambda: Bottleneck(8, 2),
        lambda s: Bottleneck(3, 2, stride=s),
        lambda x, block, s: bottleneck_definition(x, *three(block), strides=(1, s, 1)),
    ),
    "resnext": (
        lambda: ResNeXtBlock(5, 5, groups=3, width_per_group=2),
        lambda s: ResNeXtBlock(3, 5, groups=3, width_per_group=2, stride=s),
        lambda x, block, s: resnext_definition(x, *three(block), groups=3, stride=s),
    ),
}


@pytest.mark.parametrize("name", BLOCKS)
@settings(
    max_examples=25, deadline=None, derandomize=True
)  # a ReLU's argument within float32 rounding of zero would be told apart
@given(
    dtype=st.sampled_from(DTYPES),
    training=st.booleans(),
    stride=st.integers(0, 3),
    sizes=st.tuples(st.integers(2, 4), st.integers(3, 7), st.integers(3, 7)),
    seed=st.integers(0, 10_000),
)
def test_a_block_is_its_definition(name, dtype, training, stride, sizes, seed):
    plain, striding, definition = BLOCKS[name]
    block = shaken(plain() if stride == 0 else striding(stride), dtype, seeded(seed)).train(training)
    assert isinstance(block.conv1, nn.Conv2d)
    x = torch.randn(
        sizes[0], block.conv1.in_channels, *sizes[1:], generator=seeded(seed + 1), dtype=dtype, requires_grad=True
    )
    told = definition(x, block, max(stride, 1))
    fast = block(x)
    close = 1e-4 if dtype == torch.float32 else 1e-9
    torch.testing.assert_close(told.output, fast, rtol=close, atol=close)
    torch.testing.assert_close(torch.relu(told.residual + told.shortcut), told.output, rtol=0, atol=0)
    arguments = [x, *block.parameters()]
    upstream = torch.randn(fast.shape, generator=seeded(seed + 2), dtype=dtype)
    ours, theirs = (torch.autograd.grad(output, arguments, upstream) for output in (told.output, fast))
    scale = max(float(each.abs().max()) for each in theirs)
    torch.testing.assert_close(
        [each / scale for each in ours], [each / scale for each in theirs], rtol=close, atol=close
    )
    assert (block.downsample is None) == (stride == 0)
    assert stride or torch.equal(told.shortcut, x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("projected", [False, True])
def test_any_body_and_shortcut(dtype, projected):
    outputs = 2 if projected else 3
    body = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, outputs))
    shortcut = nn.Linear(3, 2) if projected else None
    block = shaken(Residual(body, shortcut), dtype, seeded(0))
    x = torch.randn(4, 3, generator=seeded(1), dtype=dtype, requires_grad=True)
    told = residual_definition(x, body, shortcut) if shortcut else residual_definition(x, body)
    torch.testing.assert_close(block(x), told.output, rtol=0, atol=0)
    torch.testing.assert_close(block(x), body(x) + (shortcut(x) if shortcut else x), rtol=0, atol=0)
    arguments = [x, *block.parameters()]
    for got, want in zip(
        torch.autograd.grad(block(x).sum(), arguments), torch.autograd.grad(told.output.sum(), arguments), strict=True
    ):
        torch.testing.assert_close(got, want)


def test_the_stride_stands_on_the_three_by_three():
    for block in (Bottleneck(3, 2, stride=2), ResNeXtBlock(3, 8, groups=2, width_per_group=1, stride=2)):
        assert [layer.stride for layer in (block.conv1, block.conv2, block.conv3)] == [(1, 1), (2, 2), (1, 1)]
        assert [layer.kernel_size for layer in (block.conv1, block.conv2, block.conv3)] == [(1, 1), (3, 3), (1, 1)]
    # 32x4d at 256 channels: 256·128 + 128·4·9 + 128·256 weights, and two numbers for each of 128 + 128 + 256 normalised
    # channels
    branches = ResNeXtBlock(256, 256, groups=32, width_per_group=4)
    assert sum(parameter.numel() for parameter in branches.parameters()) == 256 * 128 + 128 * 4 * 9 + 128 * 256 + 2 * (
        128 + 128 + 256
    )


KERAS = """
import sys
import numpy as np
import keras
from keras.src.applications.resnet import residual_block_v1
rng = np.random.default_rng(0)
inputs = keras.Input((7, 6, 5))
model = keras.Model(inputs, residual_block_v1(inputs, 3, stride=2, conv_shortcut=True, name="b"))
told = {}
for layer in model.layers:
    drawn = [rng.uniform(0.5, 2, v.shape) if "variance" in v.path else rng.normal(size=v.shape) for v in layer.weights]
    layer.set_weights(drawn)
    told |= {f"{layer.name} {variable.name}": weight for variable, weight in zip(layer.weights, drawn)}
x = rng.normal(size=(2, 7, 6, 5)).astype("float32")
np.savez(sys.argv[1], x=x, y=keras.ops.convert_to_numpy(model(x, training=False)), **told)
"""


def test_keras_computes_the_same_bottleneck(tmp_path):
    if find_spec("keras") is None or find_spec("jax") is None:
        pytest.skip("keras or jax is not installed")
    file = tmp_path / "k.npz"
    command = [sys.executable, "-c", KERAS, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "KERAS_BACKEND": "jax"})
    assert done.returncode == 0, done.stderr
    with np.load(file, allow_pickle=False) as archive:
        told = {name: torch.from_numpy(value).double() for name, value in archive.items()}

    def part(number: int) -> ConvNorm:
        names = ("gamma", "beta", "moving_mean", "moving_variance")
        scale, shift, mean, variance = (told[f"b_{number}_bn {name}"] for name in names)
        mean = mean - told[f"b_{number}_conv bias"]  # which a bias before the normalisation only moves
        return ConvNorm(told[f"b_{number}_conv kernel"].permute(3, 2, 0, 1), scale, shift, mean, variance)

    x, y = (told[name].permute(0, 3, 1, 2) for name in ("x", "y"))
    ours = bottleneck_definition(x, part(1), part(2), part(3), part(0), strides=(2, 1, 1), eps=1.001e-5)
    torch.testing.assert_close(ours.output, y, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("training", [False, True])
def test_dense_layers_in_a_row_are_a_dense_block(training, dtype):
    layers = [shaken(DenseLayer(inputs, 3), dtype, seeded(inputs)).train(training) for inputs in (4, 7, 10)]
    x = torch.randn(2, 4, 5, 6, generator=seeded(0), dtype=dtype, requires_grad=True)
    fast = nn.Sequential(*layers)(x)
    told = dense_block_definition(x, [layer.added for layer in layers])  # type: ignore[misc]
    assert fast.shape == (2, 13, 5, 6)
    torch.testing.assert_close(told, fast, rtol=0, atol=0)
    torch.testing.assert_close(fast[:, :4], x, rtol=0, atol=0)
    arguments = [x, *(parameter for layer in layers for parameter in layer.parameters())]
    upstream = torch.randn(fast.shape, generator=seeded(1), dtype=dtype)
    ours, theirs = (torch.autograd.grad(output, arguments, upstream) for output in (told, fast))
    torch.testing.assert_close(ours, theirs)


def test_mistakes_are_told_in_one_line():
    x = torch.zeros(2, 3, 4, 4)
    one = torch.ones(4)
    tangled = (
        ConvNorm(torch.zeros(4, 3, 1, 1), one, one),
        ConvNorm(torch.zeros(4, 1, 3, 3), one, one),
        ConvNorm(torch.zeros(3, 4, 1, 1), one, one),
    )
    for mistaken, words in (
        (
            lambda: residual_definition(x, lambda x: x[:, :1]),
            r"one shape, got \(2, 1, 4, 4\) and \(2, 3, 4, 4\)",
        ),  # torch would stretch it
        (lambda: Residual(nn.Flatten())(x), r"one shape, got \(2, 48\) and \(2, 3, 4, 4\)"),
        (lambda: BasicBlock(4, 4)(x), r"images \(n, 4, h, w\), got shape \(2, 3, 4, 4\)"),
        (lambda: Bottleneck(3, 2)(x[0]), r"images \(n, 3, h, w\), got shape \(3, 4, 4\)"),
        (lambda: BasicBlock(4, 4, stride=0), "stride to be a positive whole number, got 0"),
        (lambda: Bottleneck(4, 0), "bottleneck_channels to be a positive whole number, got 0"),
        (lambda: ResNeXtBlock(4, 8, groups=-1), "groups to be a positive whole number, got -1"),
        (lambda: resnext_definition(x, *tangled, groups=3), "groups that divide the 4 inner channels, got 3"),
        (lambda: DenseLayer(4, 0), "got 4 and 0"),
    ):
        with pytest.raises(UserError, match=words) as caught:
            mistaken()
        assert "\n" not in str(caught.value)
