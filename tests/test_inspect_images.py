"""Seeing inside image networks: receptive fields, feature maps, kernels, saliency and patches are what mathematics says
they are."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from quoin.errors import UserError
from quoin.inspect import (
    FeatureMaps,
    Patch,
    ReceptiveField,
    crop_patches,
    feature_maps,
    input_gradient,
    input_x_gradient,
    kernels,
    layer_summary,
    pixel_weights,
    plot_feature_maps,
    plot_kernels,
    plot_patches,
    receptive_fields,
    saliency,
    smoothgrad,
    top_activating_patches,
)
from quoin.inspect.layer_outputs import layer_output
from quoin.inspect.receptive_field import layer_receptive_fields
from quoin.models import small_densenet, small_googlenet, small_lenet, small_resnet
from quoin.plot import feature_map_rows
from quoin.tensor.eval_mode import eval_mode
from seeds import seeded


def drawn(
    model: nn.Sequential, seed: int = 0
) -> Any:  # modules inside are known by number, whose types nobody can tell
    """The model with weights from a generator, so that no test hangs on what ran before it."""
    generator = seeded(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return model


# ---- receptive fields


def positive(model: nn.Module) -> nn.Module:
    """In float64 with weights from 1 to 2: nothing cancels and every ReLU passes, so that the gradient shows all
    dependences."""
    generator = seeded(0)
    with torch.no_grad():
        for parameter in model.double().parameters():
            parameter.copy_(1 + torch.rand(parameter.shape, generator=generator, dtype=torch.float64))
    return model


def by_gradient(model: nn.Module, path: str, image_shape: tuple[int, int, int]) -> Tensor:  # (h', w', 4)
    """The boxes around the support of the gradient of every position of the layer."""
    image = torch.ones(1, *image_shape, dtype=torch.float64, requires_grad=True)
    output = layer_output(model, image, path).sum(dim=1)[0]
    boxes = torch.zeros(*output.shape, 4, dtype=torch.int64)
    for i in range(output.shape[0]):
        for j in range(output.shape[1]):
            [gradient] = torch.autograd.grad(output[i, j], image, retain_graph=True, allow_unused=True)
            _, _, rows, columns = gradient.nonzero(as_tuple=True)
            if len(rows):
                boxes[i, j] = torch.tensor([rows.min(), rows.max() + 1, columns.min(), columns.max() + 1])
    return boxes


@st.composite
def chains(draw):
    """Convolutions and poolings of any sizes one after another, and the image they take."""
    height, width = draw(st.integers(6, 13)), draw(st.integers(6, 13))
    layers, channels, sides = [], 1, [height, width]
    for _ in range(draw(st.integers(1, 4))):
        size, stride, dilation = draw(st.integers(1, 4)), draw(st.integers(1, 3)), draw(st.integers(1, 2))
        padding = draw(st.integers(0, size // 2))
        after = [(side + 2 * padding - dilation * (size - 1) - 1) // stride + 1 for side in sides]
        if min(after) < 1:
            break
        if draw(st.booleans()):
            layers += [nn.Conv2d(channels, 2, size, stride, padding, dilation), nn.ReLU(inplace=True)]
            channels = 2
        else:
            layers.append(nn.MaxPool2d(size, stride, padding, dilation))
        sides = after
    return layers, (1, height, width)


class SumPool(nn.Module):
    """Every pixel of the window counts, where the gradient of max pooling shows only the largest."""

    def __init__(self, pool: Any) -> None:
        super().__init__()
        self.size, self.how = pool.kernel_size, (pool.stride, pool.padding, pool.dilation)

    def forward(self, x: Tensor) -> Tensor:
        weight = torch.ones(x.shape[1], 1, self.size, self.size, dtype=x.dtype)
        return nn.functional.conv2d(x, weight, None, *self.how, groups=x.shape[1])


@settings(max_examples=25, deadline=None)
@given(chains())
def test_receptive_fields_are_the_support_of_the_gradient(chain):
    layers, image_shape = chain
    if not layers:
        return
    last = str(len(layers) - 1)
    found = receptive_fields(nn.Sequential(*layers), last, image_shape)
    summed = [SumPool(layer) if isinstance(layer, nn.MaxPool2d) else layer for layer in layers]
    assert torch.equal(found.boxes, by_gradient(positive(nn.Sequential(*summed)), last, image_shape))


def test_receptive_fields_follow_branches():
    class Branches(nn.Module):
        """A residual sum and a concatenation: the wider branch decides."""

        def __init__(self) -> None:
            super().__init__()
            self.wide, self.narrow, self.last = nn.Conv2d(1, 2, 5, padding=2), nn.Conv2d(1, 2, 1), nn.Conv2d(4, 1, 3)

        def forward(self, x):
            a = self.wide(x)
            a += x  # written over
            return self.last(torch.cat([a, self.narrow(x)], dim=1))

    model = positive(Branches())
    found = layer_receptive_fields(model, ["wide", "narrow", "last"], (1, 9, 8))
    assert [found[path].largest for path in ("wide", "narrow", "last")] == [(5, 5), (1, 1), (7, 7)]
    assert torch.equal(found["last"].boxes, by_gradient(model, "last", (1, 9, 8)))


def convolution(size: int, stride: int = 1, padding: int = 0) -> list[nn.Module]:
    return [nn.Conv2d(1, 1, size, stride, padding), nn.ReLU()]


@pytest.mark.parametrize(
    ("layers", "height", "size"),
    # r + (k - 1) j at every layer, j the product of the strides so far; both numbers also in Araujo, Norris and Sim
    # (2019)
    [
        (
            [layer for n in (2, 2, 3, 3, 3) for layer in [*convolution(3, 1, 1) * n, nn.MaxPool2d(2)]],
            224,
            212,
        ),  # VGG-16
        (
            [*convolution(11, 4, 2), nn.MaxPool2d(3, 2), *convolution(5, 1, 2), nn.MaxPool2d(3, 2)]  # noqa: RUF005
            + [*convolution(3, 1, 1) * 3, nn.MaxPool2d(3, 2)],
            260,
            195,
        ),  # AlexNet
    ],
)
def test_receptive_fields_of_known_networks(layers, height, size):
    model = nn.Sequential(*layers)  # on strips of an image, which are quicker: the height tells
    assert receptive_fields(model, str(len(layers) - 1), (1, height, 64)).largest == (size, 64)


def test_receptive_fields_at_the_ends():
    padded = nn.Sequential(nn.Conv2d(1, 1, 1, padding=1), nn.Flatten(), nn.Linear(36, 3))
    found = receptive_fields(padded, "0", (1, 4, 4))
    assert found.at(0, 2) == ReceptiveField(0, 0, 0, 0)  # it sees padding alone
    assert found.at(2, 3) == ReceptiveField(1, 2, 2, 3)
    assert receptive_fields(padded, "2", (1, 4, 4)).at(0, 0) == ReceptiveField(0, 4, 0, 4)  # a dense unit sees all


def test_receptive_fields_leave_the_model_as_it_was():
    model = small_resnet((1, 8, 8), 10, generator=seeded(0))
    model.train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    path = [name for name, module in model.named_modules() if isinstance(module, nn.Conv2d)][1]
    receptive_fields(model, path, (1, 8, 8))
    assert all(module.training for module in model.modules())
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert not any(module._forward_hooks for module in model.modules())


# ---- a model in evaluation mode


def test_evaluation_mode_keeps_what_activations_would_overwrite():
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(inplace=True), nn.Dropout())
    model[2].eval()
    with eval_mode(model):
        assert not model.training
        assert not model[1].inplace
    assert model.training
    assert not model[2].training  # as it was, not as its parent is
    assert model[1].inplace


def test_the_output_of_a_layer_is_what_it_was_before_the_model_wrote_over_it():
    class Doubled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Conv2d(1, 2, 3)

        def forward(self, x):
            output = self.layer(x)
            output *= 2
            return output

    model, x = Doubled(), torch.randn(1, 1, 5, 5, generator=seeded(0))
    assert torch.equal(layer_output(model, x, "layer"), model.layer(x))
    assert torch.equal(feature_maps(model, x[0], ["layer"])[0].maps, model.layer(x)[0])


# ---- feature maps, kernels, the table of layers


def test_feature_maps_are_the_outputs_of_the_layers():
    model = drawn(nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(48, 5)))
    image = torch.randn(1, 6, 6, generator=seeded(1))
    conv, relu, flat, dense = feature_maps(model, image)
    assert torch.equal(conv.maps, model[0](image[None])[0])
    assert torch.equal(relu.maps, conv.maps.relu())
    assert (flat.maps.shape, dense.maps.shape) == ((48, 1, 1), (5, 1, 1))
    assert torch.allclose(dense.maps[:, 0, 0], model(image[None])[0])
    assert model.training
    [only] = feature_maps(model, image, ["1"])
    assert torch.equal(only.maps, relu.maps)


@pytest.mark.parametrize("build", [small_lenet, small_resnet, small_googlenet, small_densenet])
def test_every_network_can_be_seen_layer_by_layer(build):
    model = build((3, 16, 12), 7, generator=seeded(0))
    images = torch.randn(4, 3, 16, 12, generator=seeded(1))
    rows = layer_summary(model, images)
    assert sum(row.num_parameters for row in rows) == sum(parameter.numel() for parameter in model.parameters())
    assert rows[-1].output_shape == (7,)
    found = feature_maps(model, images[0])
    with eval_mode(model):
        assert torch.allclose(found[-1].maps.flatten(), model(images[:1])[0], atol=1e-6)
    shown = plot_feature_maps([FeatureMaps("image", "", images[0]), *found]).figure.axes[0].texts
    assert 2 <= len(shown) <= 12
    assert shown[0].get_text().startswith("image")
    assert kernels(model).weight.shape[1] == 3


def test_layers_are_summed_up():
    model: Any = nn.Sequential(nn.Conv2d(1, 2, 1), nn.ReLU())
    with torch.no_grad():
        model[0].weight.copy_(torch.tensor([1.0, -1.0]).reshape(2, 1, 1, 1))
        model[0].bias.copy_(torch.tensor([0.0, 0.0]))
    x = torch.tensor([[1.0, 2.0], [3.0, -4.0]]).reshape(1, 1, 2, 2)
    assert [(row.zeros, row.dead) for row in layer_summary(model, x)] == [
        (None, None),
        (0.5, 0),
    ]  # three of one, one of the other
    assert [row.dead for row in layer_summary(model, x.abs())] == [None, 1]


def test_kernels_are_the_weights():
    model = drawn(nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Conv2d(4, 6, 2, groups=2)))
    assert kernels(model).layer == "0"
    assert torch.equal(kernels(model, "2").weight, model[2].weight)
    assert kernels(model, "2").weight.shape == (6, 2, 2, 2)
    dense = drawn(nn.Sequential(nn.Flatten(), nn.Linear(12, 5), nn.Linear(5, 12)))
    weight = pixel_weights(dense, (1, 3, 4)).weight
    image = torch.randn(2, 1, 3, 4, generator=seeded(0))
    assert torch.allclose(
        (weight * image[:, None]).sum(dim=(2, 3, 4)) + dense[1].bias, dense[1](image.flatten(1)), atol=1e-5
    )


# ---- saliency


def smooth_net(bias: bool = True, activation: type[nn.Module] = nn.Tanh) -> nn.Module:
    layers = [
        nn.Conv2d(2, 3, 3, bias=bias),
        nn.BatchNorm2d(3, affine=False),
        activation(),
        nn.Flatten(),
        nn.Linear(48, 4, bias=bias),
    ]
    return drawn(nn.Sequential(*layers)).double()


def test_the_input_gradient_is_the_difference_quotient():
    model, x = smooth_net(), torch.randn(3, 2, 6, 6, generator=seeded(1), dtype=torch.float64)
    classes = torch.tensor([2, 0, 3])
    gradient = input_gradient(model, x, classes)
    assert model.training
    model.eval()
    direction = torch.randn(x.shape, generator=seeded(2), dtype=torch.float64)
    for row in range(3):  # each example's own, also after a batch normalisation, which at rest does not mix them
        step = torch.zeros_like(x)
        step[row] = 1e-6 * direction[row]
        quotient = (model(x + step) - model(x - step))[row, classes[row]] / 2e-6
        assert float((gradient[row] * direction[row]).sum()) == pytest.approx(quotient.item(), rel=1e-5)
    assert torch.equal(input_gradient(model, x), input_gradient(model, x, model(x).argmax(dim=1)))


def test_gradient_times_input_adds_up_to_the_score():
    model = smooth_net(
        bias=False, activation=nn.ReLU
    )  # positively homogeneous: its normalisation only divides, by the variance 1
    x = torch.randn(5, 2, 6, 6, generator=seeded(1), dtype=torch.float64)
    parts = input_x_gradient(model, x, torch.full((5,), 1))
    model.eval()
    assert torch.allclose(parts.sum(dim=(1, 2, 3)), model(x)[:, 1], rtol=1e-9)


def test_the_smooth_gradient_of_an_absolute_value_is_an_error_function():
    class Absolute(nn.Module):
        def forward(self, x):
            return x.abs().sum(dim=1)

    x = torch.linspace(-2, 2, 9, dtype=torch.float64)[None]
    samples = 1000
    found = smoothgrad(Absolute(), x, noise=0.8, num_samples=samples, generator=seeded(0))
    expected = torch.special.erf(x / (0.8 * math.sqrt(2)))  # E sign(x + z)
    assert (found - expected).abs().max() < 6 / math.sqrt(samples)  # six deviations of a mean of signs, at most
    assert (found - x.sign()).abs().max() > 0.1
    again = smoothgrad(Absolute(), x, noise=0.8, num_samples=3, generator=seeded(1))
    assert torch.equal(again, smoothgrad(Absolute(), x, noise=0.8, num_samples=3, generator=seeded(1)))


def test_saliency_is_between_nothing_and_one():
    gradient = torch.tensor([[[[1.0, -4.0]], [[-3.0, 2.0]]], [[[0.0, 0.0]], [[0.0, 0.0]]]])  # (2, 2, 1, 2)
    assert saliency(gradient).tolist() == [[[0.75, 1.0]], [[0.0, 0.0]]]


# ---- patches


def test_a_planted_pattern_is_the_strongest_patch():
    generator = seeded(0)
    pattern = torch.tensor([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 1.0]])
    images = 0.3 * torch.rand(20, 1, 9, 11, generator=generator)
    places = {3: (0, 0), 11: (6, 8), 17: (2, 5)}
    for number, (image, (i, j)) in enumerate(places.items()):
        images[image, 0, i : i + 3, j : j + 3] = pattern * (1 - 0.1 * number)
    model: Any = nn.Sequential(nn.Conv2d(1, 2, 3, padding=1, bias=False), nn.ReLU())
    with torch.no_grad():
        model[0].weight.copy_(torch.stack([pattern, -pattern])[:, None])
    [found] = top_activating_patches(model, images, "1", channels=[0], count=3)
    assert [patch.image for patch in found] == [3, 11, 17]
    for patch, (i, j) in zip(found, places.values()):
        assert patch.field == ReceptiveField(i, i + 3, j, j + 3)
    cut = crop_patches(images, found)
    assert torch.equal(cut[:, 0], torch.stack([pattern, pattern * 0.9, pattern * 0.8]))
    assert [patch.activation for patch in found] == pytest.approx([5.0, 4.5, 4.0])


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4))
def test_strongest_patches_by_brute_force(seed, count):
    model = drawn(nn.Sequential(nn.Conv2d(1, 3, 3, stride=2, padding=1), nn.MaxPool2d(2)), seed)
    images = torch.rand(6, 1, 8, 6, generator=seeded(seed))
    found = top_activating_patches(model, images, "1", count=count)
    answers = model(images).detach()
    fields = receptive_fields(model, "1", (1, 8, 6))
    for channel, patches in enumerate(found):
        best = []
        for image in range(6):
            value, i, j = max((float(answers[image, channel, i, j]), i, j) for i in range(2) for j in range(1))
            best.append((value, image, fields.at(i, j)))
        best.sort(key=lambda each: -each[0])
        assert [(patch.activation, patch.image, patch.field) for patch in patches] == best[:count]


def test_a_patch_at_the_border_is_filled_up_on_that_side():
    images = torch.arange(1.0, 17.0).reshape(1, 1, 4, 4) / 16
    model = nn.Sequential(nn.Conv2d(1, 1, 3, padding=1))
    fields = receptive_fields(model, "0", (1, 4, 4))
    spots = [(0, 0), (3, 3), (1, 1)]
    patches = [Patch(0, 0, 1.0, fields.at(*spot)) for spot in spots]
    cut = crop_patches(images, patches, fill=0.0)[:, 0] * 16
    assert cut[0].tolist() == [[0, 0, 0], [0, 1, 2], [0, 5, 6]]
    assert cut[1].tolist() == [[11, 12, 0], [15, 16, 0], [0, 0, 0]]
    assert cut[2].tolist() == [[1, 2, 3], [5, 6, 7], [9, 10, 11]]


# ---- pictures and mistakes


def test_map_rows_show_each_map_in_its_place_on_the_scale_of_its_row():
    first, second = torch.tensor([[[0.0, 2.0]], [[1.0, 0.0]], [[0.5, 0.5]]]), torch.tensor([[[-0.1, 0.05]]])
    axes: Any
    [axes] = feature_map_rows({"first": first, "second": second}, columns=2).figure.axes
    images = axes.get_images()
    assert [image.get_array().tolist() for image in images] == [*first.tolist(), *second.tolist()]
    assert [image.get_clim() for image in images] == [(0, 2.0)] * 3 + [pytest.approx((-0.1, 0.1))]
    extents = [image.get_extent() for image in images]
    assert extents[0][0] == extents[2][0] < extents[1][0]  # the third map begins a new line
    assert extents[0][2] < extents[2][3] < extents[3][3]
    assert [text.get_text() for text in axes.texts] == ["first\nup to 2", "second\n±0.1"]


def test_pictures_are_drawn():
    model = drawn(nn.Sequential(nn.Conv2d(3, 2, 3), nn.ReLU()))
    images = torch.rand(5, 3, 6, 6, generator=seeded(0))
    for drawing in (
        plot_kernels(kernels(model)),
        plot_feature_maps(feature_maps(model, images[0])),
        plot_feature_maps(feature_maps(model, images[0], ["1"])),
        plot_patches(images, top_activating_patches(model, images, "1", count=3)),
    ):
        assert drawing.svg().count("<image") + drawing.svg().count("<path") > 4
        assert drawing.png()[:4] == b"\x89PNG"


MODEL = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(32, 3))
BATCH = torch.zeros(2, 1, 6, 6)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: receptive_fields(MODEL, "7", (1, 6, 6)), "'7'"),
        (lambda: receptive_fields(nn.Sequential(nn.Unflatten(1, (1, 1))), "0", (1, 6, 6)), r"\(n, c, h, w\)"),
        (lambda: feature_maps(MODEL, BATCH), "take one"),
        (lambda: feature_maps(MODEL, BATCH[0], ["convolution"]), "'convolution'"),
        (lambda: kernels(MODEL, "1"), "a ReLU; choose from 0"),
        (lambda: kernels(nn.Linear(2, 3)), "pixel_weights"),
        (lambda: pixel_weights(MODEL, (1, 6, 6)), "36 inputs"),
        (lambda: input_gradient(MODEL, BATCH.long()), "float"),
        (lambda: input_gradient(MODEL, BATCH, torch.tensor([0, 3])), "0 to 2"),
        (lambda: input_gradient(MODEL, BATCH, torch.tensor([0])), "2 classes"),
        (lambda: input_gradient(MODEL[0], BATCH), "scores"),
        (lambda: smoothgrad(MODEL, BATCH, noise=-1.0, generator=seeded(0)), "noise"),
        (lambda: saliency(BATCH[0]), r"\(n, c, h, w\)"),
        (lambda: top_activating_patches(MODEL, BATCH, "0", channels=[2]), "0 to 1, got 2"),
        (lambda: top_activating_patches(MODEL, BATCH[:0], "0"), "at least one image"),
        (lambda: layer_summary(MODEL, BATCH[:0]), "at least one example"),
        (lambda: feature_map_rows({}), "at least one row"),
    ],
)
def test_mistakes_are_told_in_one_line(call, says):
    with pytest.raises(UserError, match=says) as told:
        call()
    assert "\n" not in str(told.value)


def test_a_layer_with_bad_weights_and_one_never_called_are_told():
    model: Any = nn.Sequential(nn.Conv2d(1, 1, 1))
    with torch.no_grad():
        model[0].bias.fill_(math.nan)
    with pytest.raises(UserError, match="blank image"):
        receptive_fields(model, "0", (1, 3, 3))

    class Idle(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.idle = nn.Conv2d(1, 1, 1), nn.Conv2d(1, 1, 1)

        def forward(self, x):
            return self.used(x)

    with pytest.raises(UserError, match="'idle', which it does not"):
        receptive_fields(Idle(), "idle", (1, 3, 3))
