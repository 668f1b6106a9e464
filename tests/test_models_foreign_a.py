"""Weights brought from torchvision into AlexNet, VGG and GoogLeNet, and foreign weights in general.

The layouts (`vgg_layout` and its kin) are torchvision's as it documents them, and the forward passes are written from
those names with functional operations only: a name map that is right in shape but wrong in meaning gives another
output.
"""

import math

import pytest
import safetensors.torch
import torch
from torch import Tensor, nn
from torch.nn import functional

from quoin import models
from quoin.errors import UserError
from seeds import seeded

# ---- torchvision's layouts, from its documentation --------------------------------------------------------------

VGG_CHANNELS = {
    models.vgg11: "64 M 128 M 256 256 M 512 512 M 512 512 M",
    models.vgg16: "64 64 M 128 128 M 256 256 256 M 512 512 512 M 512 512 512 M",
    models.vgg19: "64 64 M 128 128 M 256 256 256 256 M 512 512 512 512 M 512 512 512 512 M",
}


def with_bias(shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """For every weight (outputs, ...) a bias (outputs,) beside it."""
    return {
        f"{name}.{kind}": shape
        for name, full in shapes.items()
        for kind, shape in (("weight", full), ("bias", full[:1]))
    }


def vgg_layout(channels: str, classes: int, hidden: int = 4096) -> dict[str, tuple[int, ...]]:
    layers, place, inputs = {}, 0, 3
    for word in channels.split():
        if word == "M":
            place += 1
        else:
            layers[f"features.{place}"] = (int(word), inputs, 3, 3)
            inputs, place = int(word), place + 2  # its ReLU has a place of its own
    return with_bias(
        {
            **layers,
            "classifier.0": (hidden, 512 * 49),
            "classifier.3": (hidden, hidden),
            "classifier.6": (classes, hidden),
        }
    )


def vgg_forward(x: Tensor, state: dict[str, Tensor], channels: str) -> Tensor:
    place = 0
    for word in channels.split():
        if word == "M":
            x, place = functional.max_pool2d(x, 2), place + 1
        else:
            x = functional.relu(
                functional.conv2d(x, state[f"features.{place}.weight"], state[f"features.{place}.bias"], padding=1)
            )
            place += 2
    x = functional.adaptive_avg_pool2d(x, 7).flatten(1)
    for place in (0, 3):
        x = functional.relu(
            functional.linear(x, state[f"classifier.{place}.weight"], state[f"classifier.{place}.bias"])
        )
    return functional.linear(x, state["classifier.6.weight"], state["classifier.6.bias"])


def alexnet_layout(classes: int, hidden: int = 4096) -> dict[str, tuple[int, ...]]:
    convolutions = {
        0: (64, 3, 11, 11),
        3: (192, 64, 5, 5),
        6: (384, 192, 3, 3),
        8: (256, 384, 3, 3),
        10: (256, 256, 3, 3),
    }
    dense = {1: (hidden, 256 * 36), 4: (hidden, hidden), 6: (classes, hidden)}
    return with_bias(
        {
            f"{part}.{i}": shape
            for part, of in (("features", convolutions), ("classifier", dense))
            for i, shape in of.items()
        }
    )


def alexnet_forward(x: Tensor, state: dict[str, Tensor]) -> Tensor:
    def convolve(x: Tensor, place: int, stride: int, padding: int) -> Tensor:
        weight, bias = state[f"features.{place}.weight"], state[f"features.{place}.bias"]
        return functional.relu(functional.conv2d(x, weight, bias, stride=stride, padding=padding))

    x = functional.max_pool2d(convolve(x, 0, 4, 2), 3, stride=2)
    x = functional.max_pool2d(convolve(x, 3, 1, 2), 3, stride=2)
    for place in (6, 8, 10):
        x = convolve(x, place, 1, 1)
    x = functional.adaptive_avg_pool2d(functional.max_pool2d(x, 3, stride=2), 6).flatten(1)
    for place in (1, 4):
        x = functional.relu(
            functional.linear(x, state[f"classifier.{place}.weight"], state[f"classifier.{place}.bias"])
        )
    return functional.linear(x, state["classifier.6.weight"], state["classifier.6.bias"])


INCEPTIONS = {  # inputs, 1x1, 3x3 narrowed, 3x3, "5x5" narrowed, "5x5", pooled
    "3a": (192, 64, 96, 128, 16, 32, 32),
    "3b": (256, 128, 128, 192, 32, 96, 64),
    "4a": (480, 192, 96, 208, 16, 48, 64),
    "4b": (512, 160, 112, 224, 24, 64, 64),
    "4c": (512, 128, 128, 256, 24, 64, 64),
    "4d": (512, 112, 144, 288, 32, 64, 64),
    "4e": (528, 256, 160, 320, 32, 128, 128),
    "5a": (832, 256, 160, 320, 32, 128, 128),
    "5b": (832, 384, 192, 384, 48, 128, 128),
}


def googlenet_layout(classes: int) -> dict[str, tuple[int, ...]]:
    kernels = {"conv1": (64, 3, 7, 7), "conv2": (64, 64, 1, 1), "conv3": (192, 64, 3, 3)}
    for name, (inputs, one, narrow3, three, narrow5, five, pooled) in INCEPTIONS.items():
        kernels |= {
            f"inception{name}.branch1": (one, inputs, 1, 1),
            f"inception{name}.branch2.0": (narrow3, inputs, 1, 1),
            f"inception{name}.branch2.1": (three, narrow3, 3, 3),
            f"inception{name}.branch3.0": (narrow5, inputs, 1, 1),
            f"inception{name}.branch3.1": (five, narrow5, 3, 3),
            f"inception{name}.branch4.1": (pooled, inputs, 1, 1),
        }
    layout = {"fc.weight": (classes, 1024), "fc.bias": (classes,)}
    for name, shape in kernels.items():
        layout |= {f"{name}.conv.weight": shape, f"{name}.bn.num_batches_tracked": ()}
        layout |= {f"{name}.bn.{part}": shape[:1] for part in ("weight", "bias", "running_mean", "running_var")}
    return layout


def googlenet_forward(x: Tensor, state: dict[str, Tensor]) -> Tensor:
    def convolve(x: Tensor, name: str, stride: int = 1) -> Tensor:
        weight = state[f"{name}.conv.weight"]
        x = functional.conv2d(x, weight, stride=stride, padding=weight.shape[-1] // 2)
        mean, variance, scale, shift = (
            state[f"{name}.bn.{part}"][:, None, None] for part in ("running_mean", "running_var", "weight", "bias")
        )
        return functional.relu(scale * (x - mean) / torch.sqrt(variance + 0.001) + shift)

    def pool(x: Tensor, kernel: int) -> Tensor:
        return functional.max_pool2d(x, kernel, stride=2, ceil_mode=True)

    x = pool(convolve(x, "conv1", stride=2), 3)
    x = pool(convolve(convolve(x, "conv2"), "conv3"), 3)
    for name in INCEPTIONS:
        path = f"inception{name}.branch"
        x = pool(x, 3) if name == "4a" else pool(x, 2) if name == "5a" else x
        kernels = [convolve(x, f"{path}1"), *(convolve(convolve(x, f"{path}{at}.0"), f"{path}{at}.1") for at in (2, 3))]
        x = torch.cat([*kernels, convolve(functional.max_pool2d(x, 3, stride=1, padding=1), f"{path}4.1")], dim=1)
    return functional.linear(x.mean(dim=(2, 3)), state["fc.weight"], state["fc.bias"])


def random_state(layout: dict[str, tuple[int, ...]], seed: int = 0) -> dict[str, Tensor]:
    """Tensors of these shapes, at the scale at which a ReLU network passes its signal on."""
    generator = seeded(seed)
    state = {}
    for name, shape in layout.items():
        if name.endswith("num_batches_tracked"):
            state[name] = torch.tensor(int(torch.randint(1, 100, (), generator=generator)))
        elif len(shape) == 1:
            state[name] = 0.5 + torch.rand(shape, generator=generator)  # a variance too: positive
        else:
            state[name] = torch.randn(shape, generator=generator).mul_(math.sqrt(2 / math.prod(shape[1:])))
    return state


# units of the dense layers where numbers are computed: 4096 cost half a gigabyte, and the tests of shapes have them
HIDDEN = 16


def empty(build, side: int, hidden_layers: tuple[int, ...] = ()) -> models.ImageClassifier:
    """A model for seven classes, its dense layers narrow, whose memory holds anything: all of it must come from what is
    loaded."""
    with torch.device("meta"):
        model = build(7, image_shape=(3, side, side))
        for place, (inputs, outputs) in zip(hidden_layers, ((None, HIDDEN), (HIDDEN, HIDDEN), (HIDDEN, 7))):
            model.head[place] = nn.Linear(inputs or model.head[place].in_features, outputs)
    return model.to_empty(device="cpu").eval()


def assert_same_outputs(model: nn.Module, side: int, forward) -> None:
    x = torch.randn(2, 3, side, side, generator=seeded(5))
    with torch.no_grad():
        expected, found = forward(x), model(x)
    assert float(expected.std()) > 1e-3  # a signal that died on the way would compare equal whatever the weights
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4 * float(expected.abs().max()))


@pytest.mark.parametrize("build", VGG_CHANNELS, ids=lambda build: build.__name__)
def test_torchvision_vgg_loads_and_means_the_same(build):
    state = random_state(vgg_layout(VGG_CHANNELS[build], 7, HIDDEN))
    model = empty(build, 64, (0, 3, 6))  # 2 x 2 pixels are left, so that the average to 7 x 7 is over more than one
    models.load_torchvision_vgg(model, state)
    assert_same_outputs(model, 64, lambda x: vgg_forward(x, state, VGG_CHANNELS[build]))


def test_torchvision_alexnet_loads_and_means_the_same():
    state = random_state(alexnet_layout(7, HIDDEN))
    model = empty(
        models.alexnet, 159, (1, 4, 6)
    )  # 4 x 4 pixels are left, so that the average to 6 x 6 is over more than one
    models.load_torchvision_alexnet(model, state)
    assert_same_outputs(model, 159, lambda x: alexnet_forward(x, state))


def test_torchvision_googlenet_loads_and_means_the_same():
    state = random_state(googlenet_layout(7))
    heads = {"aux1.conv.conv.weight": torch.zeros(128, 512, 1, 1), "aux2.fc2.bias": torch.zeros(7)}
    model = empty(models.googlenet, 32)
    models.load_torchvision_googlenet(model, state | heads)
    assert_same_outputs(model, 32, lambda x: googlenet_forward(x, state))


LOADERS = {
    models.load_torchvision_vgg: (models.vgg16, lambda: vgg_layout(VGG_CHANNELS[models.vgg16], 1000)),
    models.load_torchvision_alexnet: (models.alexnet, lambda: alexnet_layout(1000)),
    models.load_torchvision_googlenet: (models.googlenet, lambda: googlenet_layout(1000)),
}


@pytest.mark.parametrize("load", LOADERS, ids=lambda load: load.__name__)
def test_every_missing_or_surplus_key_and_wrong_shape_is_named(load):
    build, layout = LOADERS[load]
    with torch.device("meta"):
        model = build()
        state = {name: torch.empty(shape) for name, shape in layout().items()}
        load(model, state)
        for name in list(state)[::5]:
            less = {other: tensor for other, tensor in state.items() if other != name}
            if name.endswith("num_batches_tracked"):
                load(model, less)
                continue
            with pytest.raises(UserError, match=f"expected a tensor '{name}', got weights without it"):
                load(model, less)
            wrong = torch.empty(3, *state[name].shape)
            with pytest.raises(UserError) as caught:
                load(model, state | {name: wrong})
            assert f"{name!r} of shape {tuple(state[name].shape)}, got {tuple(wrong.shape)}" in str(caught.value)
        with pytest.raises(UserError, match=r"no tensor beyond the model's, got 'features\.99\.weight'"):
            load(model, state | {"features.99.weight": torch.empty(1)})
        for other in (models.vgg11(), models.nin(), models.small_googlenet((3, 32, 32), 10), models.lenet()):
            with pytest.raises(UserError):
                load(other, state)


# ---- foreign weights in general ---------------------------------------------------------------------------------


def test_foreign_weights_come_from_a_safetensors_file(tmp_path):
    path = tmp_path / "weights.safetensors"
    state = {"a.weight": torch.randn(2, 3, dtype=torch.float64, generator=seeded()), "a.bias": torch.ones(2)}
    safetensors.torch.save_file(state, path)
    for where in (path, str(path)):
        model = nn.Linear(3, 2)
        models.load_renamed(model, where, lambda name: f"a.{name}")
        assert torch.equal(model.weight, state["a.weight"].float())  # dtype stays the model's
        assert torch.equal(model.bias, state["a.bias"])


def test_a_file_that_is_no_safetensors_is_refused(tmp_path):
    damaged = tmp_path / "weights.safetensors"
    damaged.write_bytes(b"PK\x03\x04 a pickled state_dict")
    (text := tmp_path / "text").write_text("no weights")
    for path, told in (
        (damaged, "got a pickle, which could run code"),
        (text, "does not read as such"),
        (tmp_path / "absent", "No such file"),
        (tmp_path, "Is a directory"),
    ):
        with pytest.raises(UserError, match=told) as caught:
            models.load_renamed(nn.Linear(3, 2), path, str)
        assert "\n" not in str(caught.value)


def test_a_model_without_memory_is_refused():
    with torch.device("meta"):
        model = nn.Linear(3, 2)
    state = {"weight": torch.zeros(2, 3), "bias": torch.zeros(2)}
    with pytest.raises(UserError, match="on the meta device; give it some"):
        models.load_renamed(model, state, str)
    models.load_renamed(model.to_empty(device="cpu"), state, str)
    assert not model.weight.any()


def test_a_refused_state_changes_nothing():
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    good = {name: torch.zeros_like(tensor) for name, tensor in before.items()}
    for bad in ({**good, "1.bias": torch.zeros(2)}, {**good, "1.bias": [0.0]}, {**good, "2.bias": torch.zeros(1)}):
        with pytest.raises(UserError):
            models.load_renamed(model, bad, str)
        assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
