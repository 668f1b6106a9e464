"""LeNet, AlexNet, VGG, NiN and GoogLeNet: their sizes, their starts, what they refuse, and VGG's picture."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from quoin import models, plot
from quoin.errors import UserError
from quoin.models import init_image_weights, num_parameters
from quoin.notes import figures
from seeds import seeded

SMALL = [models.small_lenet, models.small_alexnet, models.small_vgg, models.small_nin, models.small_googlenet]
SMALLEST = {
    models.alexnet: 63,
    models.vgg11: 32,
    models.vgg16: 32,
    models.vgg19: 32,
    models.nin: 67,
    models.googlenet: 15,
}


# ---- sizes ------------------------------------------------------------------------------------------------------


def nin_block_count(inputs: int, outputs: int, kernel: int) -> int:
    return outputs * (inputs * kernel**2 + 1) + 2 * outputs * (outputs + 1)


COUNTS = {  # the first five are torchvision's documented numbers; the sixth is added up by hand
    models.alexnet: 61_100_840,
    models.vgg11: 132_863_336,
    models.vgg16: 14_714_688 + 123_642_856,
    models.vgg19: 143_667_240,
    models.googlenet: 6_624_904,
    models.nin: nin_block_count(3, 96, 11)
    + nin_block_count(96, 256, 5)
    + nin_block_count(256, 384, 3)
    + nin_block_count(384, 1000, 3),
}


@pytest.mark.parametrize("build", COUNTS, ids=lambda build: build.__name__)
def test_full_size_models_have_the_documented_number_of_parameters(build):
    with torch.device("meta"):
        model = build()
        assert num_parameters(model) == COUNTS[build]
        assert model(torch.empty(2, 3, 224, 224)).shape == (2, 1000)


def test_lenet_has_its_parameters():
    dense = (16 * 5 * 5 + 1) * 120 + (120 + 1) * 84 + (84 + 1) * 10
    assert num_parameters(models.lenet()) == (25 + 1) * 6 + (6 * 25 + 1) * 16 + dense == 61_706


@pytest.mark.parametrize("build", SMALLEST, ids=lambda build: build.__name__)
def test_full_size_models_take_images_down_to_the_size_they_state(build):
    side = SMALLEST[build]
    with torch.device("meta"):
        wide = build(5, image_shape=(1, side, side + 9))
        assert wide(torch.empty(2, 1, side, side + 9)).shape == (2, 5)
        with pytest.raises(UserError, match=f"at least {side} x {side} pixels, got {side + 9} x {side - 1}"):
            build(5, image_shape=(1, side + 9, side - 1))


@pytest.mark.parametrize("build", SMALL, ids=lambda build: build.__name__)
@settings(max_examples=8, deadline=None)
@given(channels=st.integers(1, 4), height=st.integers(8, 32), width=st.integers(8, 32), classes=st.integers(1, 12))
def test_small_models_take_any_small_image(build, channels, height, width, classes):
    with torch.device("meta"):
        model = build((channels, height, width), classes)
        assert model(torch.empty(2, channels, height, width)).shape == (2, classes)


@pytest.mark.parametrize("build", [*SMALL, models.lenet], ids=lambda build: build.__name__)
def test_every_parameter_learns(build):
    model = build((1, 12, 12), 10, generator=seeded()).eval()  # eval: dropout may silence a unit by chance
    functional.cross_entropy(model(torch.randn(64, 1, 12, 12, generator=seeded(1))), torch.arange(64) % 10).backward()
    assert [
        name for name, parameter in model.named_parameters() if parameter.grad is None or not parameter.grad.any()
    ] == []


# ---- starts -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("build", SMALL, ids=lambda build: build.__name__)
def test_the_generator_alone_decides_the_weights(build):
    first, second = (build((1, 8, 8), 10, generator=seeded(3)).state_dict() for _ in range(2))
    other = build((1, 8, 8), 10, generator=seeded(4)).state_dict()
    for name, tensor in first.items():
        assert torch.equal(tensor, second[name])
        if tensor.ndim > 1:
            assert not torch.equal(tensor, other[name])


def test_weights_start_with_the_stated_laws():
    grouped, line, dense = nn.Conv2d(8, 64, 5, groups=4), nn.Conv1d(40, 30, 7, bias=False), nn.Linear(300, 50)
    norm, layer_norm = nn.BatchNorm2d(64), nn.LayerNorm(50)
    model = nn.Sequential(grouped, norm, line, dense, layer_norm)
    with torch.no_grad():
        for tensor in [*model.parameters(), *model.buffers()]:
            tensor.fill_(9)
    assert init_image_weights(model, seeded()) is model
    # an input goes to 16 = 64 / 4 output channels at 25 places; to 30 channels at 7; a dense unit has 300 inputs
    for weight, variance in ((grouped.weight, 2 / (16 * 25)), (line.weight, 2 / (30 * 7)), (dense.weight, 2 / 300)):
        n, z = weight.numel(), weight.detach().double() / math.sqrt(variance)
        assert abs(float(z.mean())) < 5 / math.sqrt(n)
        assert abs(float(z.square().mean()) - 1) < 5 * math.sqrt(2 / n)
        assert float(z.abs().max()) > 2.5  # normal, not uniform
    for tensor in (grouped.bias, dense.bias, norm.bias, norm.running_mean, norm.num_batches_tracked, layer_norm.bias):
        assert tensor is not None
        assert not tensor.any()
    for tensor in (norm.weight, norm.running_var, layer_norm.weight):
        assert bool((tensor == 1).all())


def test_a_lazy_layer_cannot_start():
    with pytest.raises(UserError, match="a lazy one; send one batch"):
        init_image_weights(nn.Sequential(nn.LazyConv2d(4, 3)))


# ---- refusals ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ((2, 3, 8, 8), "1 channel and 8x8 pixels, got 3 channels and 8x8 pixels"),
        ((2, 1, 8, 9), "1 channel and 8x8 pixels, got 1 channel and 8x9 pixels"),
        ((2, 8, 8, 1), "got 8 channels and 8x1 pixels; permute them with channels_first"),
        ((1, 8, 8), r"\(1, 8, 8\), got shape \(1, 8, 8\); one image is"),
        ((2, 64), r"\(1, 8, 8\), got shape \(2, 64\)"),
    ],
)
def test_images_of_another_shape_are_refused_with_both_shapes(shape, words):
    for build in SMALL:
        with pytest.raises(UserError, match=words):
            build((1, 8, 8), 10)(torch.zeros(shape))


def test_images_of_bytes_are_told_what_to_become():
    model = models.small_lenet((1, 8, 8), 10)
    images = torch.zeros(2, 1, 8, 8, dtype=torch.uint8)
    with pytest.raises(UserError, match=r"got torch.uint8; convert them with images.float\(\)"):
        model(images)
    assert model(images.float()).shape == (2, 10)  # the advice is enough


@pytest.mark.parametrize("build", [*SMALL, models.lenet], ids=lambda build: build.__name__)
def test_what_is_no_image_and_no_class_is_refused(build):
    for shape in [(8, 8), (1, 8, 0), (1, 7, 8), (0, 8, 8), (1, 8, 8.5), 8]:
        with pytest.raises(UserError, match="; "):
            build(shape, 10)
    for classes in (0, 10.0):
        with pytest.raises(UserError, match=f"at least one class, got {classes}"):
            build((1, 16, 16), classes)


# ---- the picture ------------------------------------------------------------------------------------------------


def test_vgg_is_drawn_as_its_layers():
    (picture,) = figures.select(figures.collect(), ["M1F"])
    axes = picture.plot().figure.axes[0]
    assert len(axes.patches) == 3 * (
        1 + 13 + 5 + 3 + 1
    )  # three faces each: image, convolutions, poolings, dense layers, softmax
    labels = [text.get_text() for text in axes.texts if text.get_text()]
    sizes = [
        "224²\n×3",
        "224²\n×64",
        "112²\n×128",
        "56²\n×256",
        "28²\n×512",
        "14²\n×512",
        "4096",
        "4096",
        "1000",
        "softmax",
    ]
    assert labels == sizes


def test_volumes_refuses_what_is_no_output():
    for outputs in ([], [plot.Volume((1, 2), "image")], [plot.Volume((0,), "dense")]):
        with pytest.raises(UserError, match="leave the batch out"):
            plot.volumes(outputs)
    with pytest.raises(UserError, match="at most 6 kinds"):
        plot.volumes([plot.Volume((1,), str(kind)) for kind in range(7)])
    drawn = [plot.volumes([plot.Volume((3, 8, 8), "a $", "b $"), plot.Volume((10,), "c")]).svg() for _ in range(2)]
    assert drawn[0] == drawn[1]
