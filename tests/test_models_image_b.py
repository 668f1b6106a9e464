"""ResNet, ResNeXt and DenseNet: sizes that torchvision documents, weights by its names, and the small ones on small
images.

The layouts and the forward passes below are written from torchvision's documentation with functional torch alone, so
that they can contradict the models.
"""

from collections.abc import Callable, Sequence

import pytest
import safetensors.torch
import torch
from torch import Tensor, nn
from torch.nn import functional

from quoin import models
from quoin.errors import UserError
from quoin.inspect import layer_summary
from quoin.models import load_torchvision_densenet, load_torchvision_resnet, num_parameters
from seeds import seeded

State = dict[str, Tensor]
Shapes = dict[str, tuple[int, ...]]


pytestmark = pytest.mark.usefixtures("one_thread")  # tensors here are too small to share out


# ---- torchvision's layouts, written out


def norm_layout(name: str, channels: int) -> Shapes:
    parts = ("weight", "bias", "running_mean", "running_var")
    return {**{f"{name}.{part}": (channels,) for part in parts}, f"{name}.num_batches_tracked": ()}


def resnet_layout(
    depths: Sequence[int], *, bottleneck: bool, groups: int = 1, base_width: int = 64, num_classes: int = 1000
) -> Shapes:
    shapes: Shapes = {"conv1.weight": (64, 3, 7, 7), **norm_layout("bn1", 64)}
    inputs = 64
    for stage, depth in enumerate(depths):
        planes = 64 * 2**stage
        width = planes * base_width // 64 * groups
        outputs = 4 * planes if bottleneck else planes
        for block in range(depth):
            name = f"layer{stage + 1}.{block}"
            if bottleneck:
                kernels = [(width, inputs, 1, 1), (width, width // groups, 3, 3), (outputs, width, 1, 1)]
            else:
                kernels = [(planes, inputs, 3, 3), (planes, planes, 3, 3)]
            for number, kernel in enumerate(kernels, start=1):
                shapes |= {f"{name}.conv{number}.weight": kernel, **norm_layout(f"{name}.bn{number}", kernel[0])}
            if block == 0 and (stage > 0 or inputs != outputs):
                shapes |= {
                    f"{name}.downsample.0.weight": (outputs, inputs, 1, 1),
                    **norm_layout(f"{name}.downsample.1", outputs),
                }
            inputs = outputs
    return {**shapes, "fc.weight": (num_classes, inputs), "fc.bias": (num_classes,)}


def densenet_layout(depths: Sequence[int], growth: int = 32, num_classes: int = 1000) -> Shapes:
    channels = 64
    shapes: Shapes = {"features.conv0.weight": (channels, 3, 7, 7), **norm_layout("features.norm0", channels)}
    for block, depth in enumerate(depths, start=1):
        for layer in range(1, depth + 1):
            name = f"features.denseblock{block}.denselayer{layer}"
            shapes |= {**norm_layout(f"{name}.norm1", channels), f"{name}.conv1.weight": (4 * growth, channels, 1, 1)}
            shapes |= {**norm_layout(f"{name}.norm2", 4 * growth), f"{name}.conv2.weight": (growth, 4 * growth, 3, 3)}
            channels += growth
        if block < len(depths):
            name = f"features.transition{block}"
            shapes |= {**norm_layout(f"{name}.norm", channels), f"{name}.conv.weight": (channels // 2, channels, 1, 1)}
            channels //= 2
    shapes |= norm_layout("features.norm5", channels)
    return {**shapes, "classifier.weight": (num_classes, channels), "classifier.bias": (num_classes,)}


def random_state(shapes: Shapes, seed: int) -> State:
    """Every tensor drawn, variances about one, kernels so that activations keep their size through the depth."""
    generator, state = seeded(seed), {}
    for name, shape in shapes.items():
        if name.endswith("num_batches_tracked"):
            state[name] = torch.tensor(7)
        elif name.endswith("running_var"):
            state[name] = torch.empty(shape).uniform_(0.5, 2, generator=generator)
        else:
            fan = max(1, torch.Size(shape[1:]).numel())
            state[name] = torch.empty(shape).normal_(
                0, (2 / fan) ** 0.5 if len(shape) > 1 else 0.5, generator=generator
            )
    return state


# ---- forward passes on such a state


def norm(x: Tensor, state: State, name: str) -> Tensor:
    mean, variance, scale, shift = (
        state[f"{name}.{part}"] for part in ("running_mean", "running_var", "weight", "bias")
    )
    return functional.batch_norm(x, mean, variance, scale, shift)


def resnet_forward(x: Tensor, state: State, groups: int = 1) -> Tensor:
    x = functional.conv2d(x, state["conv1.weight"], stride=2, padding=3)
    x = functional.max_pool2d(functional.relu(norm(x, state, "bn1")), 3, stride=2, padding=1)
    for stage in range(1, 5):
        block = 0
        while (name := f"layer{stage}.{block}") + ".conv1.weight" in state:
            stride = 2 if stage > 1 and block == 0 else 1
            last = 3 if f"{name}.conv3.weight" in state else 2
            strided = 2 if last == 3 else 1  # the 3x3 convolution that carries the stride
            kept, h = x, x
            for number in range(1, last + 1):
                kernel = state[f"{name}.conv{number}.weight"]
                step = stride if number == strided else 1
                grouped = groups if number == 2 and last == 3 else 1
                h = norm(
                    functional.conv2d(h, kernel, stride=step, padding=kernel.shape[-1] // 2, groups=grouped),
                    state,
                    f"{name}.bn{number}",
                )
                h = functional.relu(h) if number < last else h
            if f"{name}.downsample.0.weight" in state:
                kept = norm(
                    functional.conv2d(x, state[f"{name}.downsample.0.weight"], stride=stride),
                    state,
                    f"{name}.downsample.1",
                )
            x = functional.relu(h + kept)
            block += 1
    return functional.linear(functional.adaptive_avg_pool2d(x, 1).flatten(1), state["fc.weight"], state["fc.bias"])


def densenet_forward(x: Tensor, state: State, depths: Sequence[int]) -> Tensor:
    def normal_relu_conv(x: Tensor, norm_name: str, conv_name: str, padding: int = 0) -> Tensor:
        return functional.conv2d(
            functional.relu(norm(x, state, norm_name)), state[f"{conv_name}.weight"], padding=padding
        )

    x = functional.conv2d(x, state["features.conv0.weight"], stride=2, padding=3)
    x = functional.max_pool2d(functional.relu(norm(x, state, "features.norm0")), 3, stride=2, padding=1)
    for block, depth in enumerate(depths, start=1):
        seen = [x]
        for layer in range(1, depth + 1):
            name = f"features.denseblock{block}.denselayer{layer}"
            narrow = normal_relu_conv(torch.cat(seen, 1), f"{name}.norm1", f"{name}.conv1")
            seen.append(normal_relu_conv(narrow, f"{name}.norm2", f"{name}.conv2", padding=1))
        x = torch.cat(seen, 1)
        if block < len(depths):
            name = f"features.transition{block}"
            x = functional.avg_pool2d(normal_relu_conv(x, f"{name}.norm", f"{name}.conv"), 2, stride=2)
    x = functional.relu(norm(x, state, "features.norm5"))
    return functional.linear(
        functional.adaptive_avg_pool2d(x, 1).flatten(1), state["classifier.weight"], state["classifier.bias"]
    )


DENSE = (6, 12, 24, 16)
# name -> (model, torchvision's layout, its documented number of parameters)
FULL: dict[str, tuple[Callable[..., nn.Module], Callable[..., Shapes], int]] = {
    "resnet18": (models.resnet18, lambda q: resnet_layout((2, 2, 2, 2), bottleneck=False, num_classes=q), 11_689_512),
    "resnet34": (models.resnet34, lambda q: resnet_layout((3, 4, 6, 3), bottleneck=False, num_classes=q), 21_797_672),
    "resnet50": (models.resnet50, lambda q: resnet_layout((3, 4, 6, 3), bottleneck=True, num_classes=q), 25_557_032),
    "resnet101": (models.resnet101, lambda q: resnet_layout((3, 4, 23, 3), bottleneck=True, num_classes=q), 44_549_160),
    "resnext50": (
        models.resnext50,
        lambda q: resnet_layout((3, 4, 6, 3), bottleneck=True, groups=32, base_width=4, num_classes=q),
        25_028_904,
    ),
    "densenet121": (models.densenet121, lambda q: densenet_layout(DENSE, num_classes=q), 7_978_856),
}


@pytest.mark.parametrize("name", FULL)
def test_a_full_size_model_is_torchvisions_in_names_shapes_and_count(name):
    build, layout, documented = FULL[name]
    with torch.device("meta"):
        model = build()
    assert {key: tuple(tensor.shape) for key, tensor in model.state_dict().items()} == layout(1000)
    assert num_parameters(model) == documented


def test_the_cifar_variant_keeps_the_size_of_a_small_image():
    with torch.device("meta"):
        model = models.cifar_resnet18()
    # torchvision's ResNet-18 with 10 classes for 1000 and a 3x3 kernel for the 7x7 one
    assert num_parameters(model) == 11_689_512 - 990 * 513 - 64 * 3 * (49 - 9) == 11_173_962
    maps = []
    for number in range(1, 5):
        model.get_submodule(f"layer{number}").register_forward_hook(
            lambda module, given, found: maps.append(tuple(found.shape))
        )
    assert model(torch.zeros(2, 3, 32, 32, device="meta")).shape == (2, 10)
    assert maps == [(2, 64, 32, 32), (2, 128, 16, 16), (2, 256, 8, 8), (2, 512, 4, 4)]


LOADED = {
    "resnet18": (load_torchvision_resnet, resnet_forward),
    "resnet50": (load_torchvision_resnet, resnet_forward),
    "resnext50": (load_torchvision_resnet, lambda x, state: resnet_forward(x, state, groups=32)),
    "densenet121": (load_torchvision_densenet, lambda x, state: densenet_forward(x, state, DENSE)),
}


@pytest.mark.parametrize("name", LOADED)
def test_torchvisions_weights_mean_the_same_here(name, tmp_path):
    (build, layout, _), (load, forward) = FULL[name], LOADED[name]
    state = random_state(layout(7), seed=0)
    x = torch.randn(2, 3, 32, 64, generator=seeded(1))  # not square, so that no two axes can be mixed up
    with torch.device("meta"):
        model = build(7, image_shape=(3, 32, 64))
    model = model.to_empty(device="cpu")
    path = tmp_path / "weights.safetensors"
    safetensors.torch.save_file(state, path)
    for weights in (state, path):
        with torch.no_grad():
            for tensor in model.state_dict().values():
                tensor.zero_()
        load(model, weights)
        assert all(torch.equal(tensor, state[key]) for key, tensor in model.state_dict().items())
    with torch.no_grad():
        expected = forward(x, state)
        assert float(expected.std()) > 0.01
        scale = float(expected.abs().max())
        torch.testing.assert_close(model.eval()(x) / scale, expected / scale, rtol=1e-4, atol=1e-4)


def test_densenet_reads_the_names_of_the_files_once_published():
    state = random_state(densenet_layout(DENSE, num_classes=3), seed=0)
    old = {}
    for name, tensor in state.items():
        for part in ("norm1", "norm2", "conv1", "conv2"):
            name = name.replace(f".{part}.", f".{part[:-1]}.{part[-1]}.") if "denselayer" in name else name
        old[name] = tensor
    assert "features.denseblock1.denselayer1.norm.1.weight" in old
    old = {
        name: tensor for name, tensor in old.items() if "num_batches_tracked" not in name
    }  # they are older than this count
    model = models.densenet121(3)
    load_torchvision_densenet(model, old)
    assert all(
        torch.equal(tensor, state[key]) for key, tensor in model.state_dict().items() if "num_batches" not in key
    )


@pytest.mark.parametrize(
    ("build", "load", "layout", "lost", "changed"),
    [
        (
            lambda: models.resnet18(3),
            load_torchvision_resnet,
            lambda: resnet_layout((2, 2, 2, 2), bottleneck=False, num_classes=3),
            "layer2.0.downsample.0.weight",
            "fc.weight",
        ),
        (
            lambda: models.densenet121(3),
            load_torchvision_densenet,
            lambda: densenet_layout(DENSE, num_classes=3),
            "features.transition2.norm.running_mean",
            "classifier.weight",
        ),
    ],
)
def test_weights_of_another_model_are_refused_by_name(build, load, layout, lost, changed):
    state: State = {name: torch.zeros(shape) for name, shape in layout().items()}
    model = build()
    before = model.state_dict()[changed].clone()
    for wrong, named in (
        ({name: tensor for name, tensor in state.items() if name != lost}, lost),
        ({**state, "aux.weight": torch.zeros(1)}, "aux.weight"),
        ({**state, changed: torch.zeros(1000, 5)}, changed),
    ):
        with pytest.raises(UserError, match=named.replace(".", r"\.")) as caught:
            load(model, wrong)
        assert "\n" not in str(caught.value)
        assert torch.equal(model.state_dict()[changed], before)


# ---- the small ones

SMALL = {"resnet": models.small_resnet, "resnext": models.small_resnext, "densenet": models.small_densenet}
STAGES = {
    "resnet": ["layer1", "layer2", "layer3"],
    "densenet": ["features.denseblock1", "features.denseblock2", "features.denseblock3"],
}
STAGES["resnext"] = STAGES["resnet"]


@pytest.mark.parametrize("image_shape", [(1, 8, 8), (3, 32, 32), (2, 9, 13), (1, 28, 28), (1, 8, 32)])
@pytest.mark.parametrize("name", SMALL)
def test_a_small_model_takes_small_images(name, image_shape):
    model = SMALL[name](image_shape, 5, generator=seeded(0))
    maps: list[Tensor] = []
    for stage in STAGES[name]:
        model.get_submodule(stage).register_forward_hook(lambda module, given, found: maps.append(found))
    x = torch.randn(3, *image_shape, generator=seeded(1))
    scores = model(x)
    assert scores.shape == (3, 5)
    assert len(maps) == 3
    assert min(size for each in maps for size in each.shape[2:]) >= 2  # so that even a batch of one has a variance
    assert model(x[:1]).isfinite().all()
    scores.square().sum().backward()
    idle = [key for key, parameter in model.named_parameters() if parameter.grad is None or not parameter.grad.any()]
    assert idle == []  # every weight is on the way to the loss


@pytest.mark.parametrize("name", SMALL)
def test_the_start_is_the_generators_alone(name):
    first = SMALL[name]((1, 8, 8), 5, generator=seeded(3))
    torch.manual_seed(99)
    second = SMALL[name]((1, 8, 8), 5, generator=seeded(3))
    other = SMALL[name]((1, 8, 8), 5, generator=seeded(4))
    assert all(
        torch.equal(a, b) for a, b in zip(first.state_dict().values(), second.state_dict().values(), strict=True)
    )
    assert any(not torch.equal(a, b) for a, b in zip(first.parameters(), other.parameters(), strict=True))


@pytest.mark.parametrize("name", SMALL)
def test_the_memory_layout_changes_nothing(name):
    model = SMALL[name]((3, 12, 12), 5, generator=seeded(0)).double()
    x = torch.randn(4, 3, 12, 12, generator=seeded(1), dtype=torch.float64)
    before = model(x)
    model = model.to(memory_format=torch.channels_last)
    torch.testing.assert_close(model(x.contiguous(memory_format=torch.channels_last)), before)


@pytest.mark.parametrize("name", SMALL)
def test_a_small_model_learns(name):
    """Sixteen random images with random labels are learnt by heart: every wire is joined to the loss the right way
    round."""
    model = SMALL[name]((1, 8, 8), 4, generator=seeded(0))
    x, y = torch.randn(16, 1, 8, 8, generator=seeded(1)), torch.randint(0, 4, (16,), generator=seeded(2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(20):
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    assert float(loss.detach()) < 0.1


def test_wrong_images_are_told_in_one_line():
    small = models.small_resnet((1, 8, 8), 10)
    with torch.device("meta"):
        large, dense = models.resnet18(), models.densenet121()
    for mistaken, words in (
        (lambda: small(torch.zeros(2, 3, 8, 8)), "1 channel and 8x8 pixels, got 3 channels and 8x8 pixels"),
        (lambda: small(torch.zeros(2, 1, 9, 8)), "1 channel and 8x8 pixels, got 1 channel and 9x8 pixels"),
        (lambda: small(torch.zeros(1, 8, 8)), r"got shape \(1, 8, 8\)"),
        (lambda: large(torch.zeros(1, 3, 32, 32, device="meta")), "224x224 pixels, got 3 channels and 32x32 pixels"),
        (lambda: dense(torch.zeros(1, 3, 32, 32, device="meta")), "224x224 pixels, got 3 channels and 32x32 pixels"),
        (lambda: models.cifar_resnet18(0), "at least one class, got 0"),
        *((lambda build=build: build((1, 7, 8), 10), "at least 8 x 8 pixels, got 7 x 8") for build in SMALL.values()),
        *((lambda build=build: build((1, 8, 8), 0), "at least one class, got 0") for build in SMALL.values()),
        *(
            (lambda build=build: build(image_shape=(3, 31, 40)), "at least 32 x 32 pixels, got 31 x 40")
            for build, _, _ in FULL.values()
        ),
    ):
        with pytest.raises(UserError, match=words) as caught:
            mistaken()
        assert "\n" not in str(caught.value)


def test_a_small_densenet_grows_by_twelve_a_layer_and_is_halved_between_blocks():
    channels = 24
    for block in range(3):
        channels += 4 * 12
        channels //= 2 if block < 2 else 1
    assert models.small_densenet((1, 8, 8), 10, generator=seeded(0)).classifier.in_features == channels


@pytest.mark.parametrize(
    ("build", "count"), [(models.small_resnet, 13), (models.small_resnext, 19), (models.small_densenet, 27)]
)
def test_every_relu_can_be_looked_at(build, count):
    """One after the stem, two or three in each of six blocks; or two in each of twelve layers, one in either
    transition, one at the end."""
    generator = torch.Generator().manual_seed(0)
    rows = layer_summary(build((1, 8, 8), 10, generator=generator), torch.rand(2, 1, 8, 8, generator=generator))
    seen = [row for row in rows if row.kind == "ReLU"]
    assert len({row.layer for row in seen}) == len(seen) == count
    assert all(row.zeros is not None for row in seen)
