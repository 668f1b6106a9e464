"""Fine-tuning: trained weights under a new head, some of them frozen, on the input that they are used to."""

import hashlib
import json
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import Tensor, nn

from commands import refused, stopping, tried
from quoin import models
from quoin.data import load
from quoin.errors import UserError
from quoin.runs import Run, RunConfig, find_lr, find_recipe
from quoin.tasks import fine_tuning
from quoin.train import DeviceContext
from seeds import seeded
from test_models_foreign_a import googlenet_layout, random_state

QUICK = ("--batch-size", "8", "--num-threads", "1", "--device", "cpu")
FAMILIES = {
    "alexnet": fine_tuning.ALEXNET,
    "densenet": fine_tuning.DENSENET,
    "googlenet": fine_tuning.GOOGLENET,
    "resnet": fine_tuning.RESNET,
    "resnext": fine_tuning.RESNET,
    "vgg": fine_tuning.VGG,
    "vit": fine_tuning.VIT,
}
SIZES = [
    (name, size)
    for name in FAMILIES
    for size in find_recipe(name).options.__dataclass_fields__["size"].type.__args__  # pyright: ignore
]


@pytest.fixture
def pictures(here) -> str:
    """Colour pictures of three classes, 8 x 8."""
    return write_pictures(here / "pictures.npz", 3)


def write_pictures(path: Path, channels: int, side: int = 8) -> str:
    labels = np.arange(30) % 3
    images = np.random.default_rng(1).integers(0, 80, (30, channels, side, side), dtype=np.uint8)
    images[labels == 1, :, :3] += 150
    images[labels == 2, 0] += 150
    np.savez(path, x=images, y=labels)
    return f"npz:{path}"


def weights_file(path: Path, model: nn.Module) -> Path:
    """The weights of `model`, none of them as it begins: vectors start as zeros and ones."""
    draw = seeded(7)
    for tensor in model.state_dict().values():
        if tensor.is_floating_point():
            tensor += 0.1 * torch.rand(tensor.shape, generator=draw)
    safetensors.torch.save_file(model.state_dict(), path)
    return path


def resnet_file(path: Path, classes: int = 5, channels: int = 3) -> Path:
    return weights_file(path, models.small_resnet((channels, 8, 8), classes, generator=seeded(3)))


def started(recipe: str, **options: Any) -> tuple[Any, list[str]]:
    """The task of a new run, as `quoin train` starts it, and what is told of its weights."""
    kind: Any = find_recipe(recipe).options
    task: Any = find_recipe(recipe).build(kind(batch_size=8, **options).resolved(), DeviceContext())
    return task, task.load_pretrained()


def trained_for(task: Any, steps: int) -> None:
    for rows in list(task.batches)[:steps]:
        task.evaluate("validation")  # which leaves the model in evaluation mode
        task.step(rows)


# ---- the weights ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("classes", "is_new"), [(5, True), (3, False)])
def test_all_weights_come_from_the_file_and_the_head_if_its_classes_are_as_many(classes, is_new, here, pictures):
    state = safetensors.torch.load_file(resnet_file(here / "w.safetensors", classes))
    task, told = started("resnet", data=pictures, pretrained="w.safetensors")
    fresh = find_recipe("resnet").model(task.options, task.data_info).state_dict()
    for name, tensor in task.model.state_dict().items():
        assert torch.equal(tensor, fresh[name] if is_new and name.startswith("fc.") else state[name]), name
    assert ("new head for 3 classes (left out its fc.weight and fc.bias for 5 classes)" in told[0]) == is_new
    assert ("its head for 3 classes included" in told[0]) != is_new


def test_weights_without_a_head_get_one(here, pictures):
    state = safetensors.torch.load_file(resnet_file(here / "w.safetensors"))
    safetensors.torch.save_file({name: state[name] for name in state if not name.startswith("fc.")}, "backbone")
    task, told = started("resnet", data=pictures, pretrained="backbone")
    assert torch.equal(task.model.layer1[0].conv1.weight, state["layer1.0.conv1.weight"])
    assert "a new head for 3 classes (which have none)" in told[0]


# torchvision's names of the small ones' tensors, as its documentation has those of the others
FOREIGN = {
    "vgg": lambda name: (
        name.replace("features.0.", "features.")
        .replace("features.1.0.", "features.5.")
        .replace("features.1.2.", "features.7.")
        .replace("head.", "classifier.")
    ),
    "alexnet": lambda name: name.replace("head.", "classifier."),
    "densenet": lambda name: re.sub(r"(denselayer\d\.(?:norm|conv))(\d)", r"\1.\2", name),
    "resnext": str,
}


@pytest.mark.parametrize("name", FOREIGN)
def test_every_family_reads_its_own_names_and_torchvisions(name, here, pictures):
    weights_file(here / "own", getattr(models, f"small_{name}")((3, 8, 8), 5, generator=seeded(3)))
    state = safetensors.torch.load_file("own")
    safetensors.torch.save_file({FOREIGN[name](each): tensor for each, tensor in state.items()}, "foreign")
    for file in ("own", "foreign"):
        task, told = started(name, data=pictures, pretrained=file)
        for each, tensor in task.model.state_dict().items():
            assert each.startswith(FAMILIES[name].head) or torch.equal(tensor, state[each]), each
        head = FAMILIES[name].head if file == "own" else FAMILIES[name].foreign_heads[0]
        assert f"new head for 3 classes (left out its {head}.weight" in told[0]


def test_googlenet_at_full_size_reads_torchvisions_and_expects_pixels_from_minus_one_to_one(here):
    state = random_state(googlenet_layout(20))
    safetensors.torch.save_file(state, "g.safetensors")
    task, _ = started(
        "googlenet", data=write_pictures(here / "large.npz", 3, side=16), size="full", pretrained="g.safetensors"
    )
    weights = task.model.state_dict()
    assert torch.equal(weights["features.conv1.0.weight"], state["conv1.conv.weight"])
    assert weights["head.1.weight"].shape == (3, 1024)
    raw = load(task.data_info.source).features
    assert float(task.data.train.features.min()) >= -1
    assert float(task.data.train.features.max()) == pytest.approx(2 * float(raw.max()) - 1, abs=0.1)


def test_the_folder_of_a_run_gives_its_weights_and_its_statistics(here, pictures):
    code, _, err = tried("train", "resnet", "--data", pictures, *QUICK, "--max-steps", "2")
    assert code == 0, err
    before = Run.open("runs/resnet-1").trained
    task, _ = started("resnet", data=pictures, pretrained="runs/resnet-1", fold="0/3")  # other rows, of another mean
    for name, tensor in before.model.state_dict().items():
        assert torch.equal(task.model.state_dict()[name], tensor)
    assert torch.equal(task.data.feature_scaler.mean, before.feature_scaler.mean)  # pyright: ignore


# ---- the input --------------------------------------------------------------------------------------------------


def test_images_are_normalized_as_the_weights_expect(here, pictures):
    resnet_file(here / "w.safetensors")
    raw = load(pictures).features.double()
    mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])  # of ImageNet
    expected = ((raw - mean[:, None, None].double()) / std[:, None, None].double()).float()
    task, _ = started("resnet", data=pictures, pretrained="w.safetensors")
    found = torch.cat([getattr(task.data, split).features for split in ("train", "validation", "test")])
    torch.testing.assert_close(found.sum(0), expected.sum(0), rtol=1e-4, atol=1e-3)
    given, _ = started(
        "resnet", data=pictures, pretrained="w.safetensors", image_mean=(0.0, 0.0, 0.0), image_std=(0.5, 0.5, 0.5)
    )
    assert float(given.data.train.features.max()) == pytest.approx(2 * float(raw.max()), rel=0.1)


def test_statistics_can_be_given_without_weights(here, pictures):
    kind: Any = find_recipe("resnet").options
    task: Any = find_recipe("resnet").build(
        kind(data=pictures, image_mean=(0.0, 0.0, 0.0), image_std=(1.0, 1.0, 1.0)), DeviceContext()
    )
    assert 0 <= float(task.data.train.features.min()) <= float(task.data.train.features.max()) <= 1


# ---- freezing ---------------------------------------------------------------------------------------------------


def changed_by(task: Any, steps: int) -> set[str]:
    before = {name: tensor.clone() for name, tensor in task.model.state_dict().items()}
    trained_for(task, steps)
    return {name for name, tensor in task.model.state_dict().items() if not torch.equal(tensor, before[name])}


@pytest.mark.parametrize(
    ("freeze", "moving"),
    [("backbone", "fc"), ("4", "fc"), ("2", "layer2 layer3 fc"), ("", "conv1 bn1 layer1 layer2 layer3 fc")],
)
def test_what_is_frozen_stays_to_the_bit_running_averages_too(freeze, moving, here, pictures):
    """With momentum and weight decay, either of which would move a weight without a gradient."""
    resnet_file(here / "w.safetensors")
    task, told = started("resnet", data=pictures, pretrained="w.safetensors", freeze=freeze, weight_decay=0.1)
    names = {name for name, _ in task.model.named_parameters()}
    moved = changed_by(task, 3)
    assert moved & names == {name for name in names if name.split(".")[0] in moving.split()}
    assert {name.split(".")[0] for name in moved} == set(moving.split())
    held = {id(each) for group in task.updater.optimizer.param_groups for each in group["params"]}
    assert held == {id(each) for name, each in task.model.named_parameters() if name in moved}
    assert all(each.grad is None for name, each in task.model.named_parameters() if name not in moved)
    assert ("are frozen" in told[0]) == bool(freeze)


@pytest.mark.parametrize(("name", "size"), SIZES, ids=str)
def test_stages_and_head_are_all_of_a_model_once(name, size):
    kind: Any = find_recipe(name).options
    info: Any = type("Info", (), {"image_shape": (3, 64, 64), "num_classes": 7})
    with torch.device("meta"):
        names = [each for each, _ in find_recipe(name).model(kind(size=size), info).named_parameters()]
    patterns = [*FAMILIES[name].stages, re.escape(f"{FAMILIES[name].head}.")]
    assert all(sum(bool(re.match(pattern, each)) for pattern in patterns) == 1 for each in names)
    assert {each for each in names if re.match(patterns[-1], each)} == {
        f"{FAMILIES[name].head}.weight",
        f"{FAMILIES[name].head}.bias",
    }


# ---- a run ------------------------------------------------------------------------------------------------------


def test_a_run_keeps_path_and_hash_and_does_not_need_the_file_again(here, pictures):
    file = resnet_file(here / "w.safetensors")
    words = ("train", "resnet", "--data", pictures, "--pretrained", "w.safetensors", "--freeze", "backbone", *QUICK)
    code, _, err = tried(*words, "--max-steps", "3")
    assert code == 0, err
    assert "resnet: starts from" in err
    assert "new head for 3 classes" in err
    options = json.loads((here / "runs" / "resnet-1" / "config.json").read_text())["options"]
    assert options["pretrained"] == str(file)
    assert options["pretrained_sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
    assert options["image_mean"] == [0.485, 0.456, 0.406]
    frozen = safetensors.torch.load_file(file)["layer1.0.conv1.weight"]
    file.unlink()
    run = Run.open(here / "runs" / "resnet-1")
    assert torch.equal(run.model.layer1[0].conv1.weight, frozen)  # pyright: ignore
    again = run.evaluate()
    assert again == run.metrics
    assert run.trained.feature_scaler.mean.flatten().tolist() == options["image_mean"]  # pyright: ignore
    code, out, err = tried("predict", here / "runs" / "resnet-1", here / "pictures.npz")
    assert (code, len(out.splitlines())) == (0, 31), err


def test_a_learning_rate_is_looked_for_from_the_trained_weights(here, pictures):
    file = resnet_file(here / "w.safetensors")
    recipe, first = find_recipe("resnet"), []
    for pretrained in ("", str(file)):
        scale = {"image_mean": (0.485, 0.456, 0.406), "image_std": (0.229, 0.224, 0.225)}  # the same on both sides
        options = recipe.options(data=pictures, pretrained=pretrained, **scale)
        found = find_lr(recipe, options, RunConfig(num_threads=1), num_steps=20, show_progress=False)
        first.append(found.losses[0])
    assert first[0] != first[1]


def test_mistakes_are_told_in_one_line_before_anything_is_made(here, pictures):
    file = resnet_file(here / "w.safetensors")
    state = safetensors.torch.load_file(file)
    spoilt: dict[str, Tensor] = {name: tensor for name, tensor in state.items() if name != "layer2.0.bn1.bias"}
    safetensors.torch.save_file(spoilt, "less.safetensors")
    safetensors.torch.save_file(state | {"layer9.weight": torch.zeros(1)}, "more.safetensors")
    safetensors.torch.save_file(state | {"conv1.weight": torch.full_like(state["conv1.weight"], torch.nan)}, "nan")
    torch.save(state, "w.pth")
    Path("text").write_text("no weights")
    grey = write_pictures(here / "grey.npz", 1)

    def told(*words: str, data: str = pictures, recipe: str = "resnet") -> str:
        return refused("train", recipe, "--data", data, *words)

    assert "'layer2.0.bn1.bias', got weights without it" in told("--pretrained", "less.safetensors")
    assert "got 'layer9.weight'" in told("--pretrained", "more.safetensors")
    assert "NaN or infinity in 'conv1.weight'" in told("--pretrained", "nan")
    assert "with --size small: expected a tensor" in told("--pretrained", file.name, recipe="densenet")
    message = told("--pretrained", "w.pth")
    assert "got a pickle" in message
    assert "weights_only=True" in message
    assert "does not read as such" in told("--pretrained", "text")
    assert "No such file" in told("--pretrained", "absent.safetensors")
    assert str(here) in told("--pretrained", ".")  # a folder that is no run
    assert "images of 3 channels, got images of 1: give --image-channels 3" in told(
        "--pretrained", file.name, data=grey
    )
    assert "at most 4 stages" in told("--pretrained", file.name, "--freeze", "5")
    assert "a number of stages or backbone" in told("--pretrained", file.name, "--freeze", "head")
    assert "--pretrained, got none" in told("--freeze", "backbone")
    assert "got 3 and 0: give both" in told("--image-mean", "0", "0", "0")
    assert "must be above 0" in told("--image-mean", "0", "--image-std", "0")
    assert f"have {hashlib.sha256(file.read_bytes()).hexdigest()}" in told(
        "--pretrained", file.name, "--pretrained-sha256", "0" * 64
    )
    assert "at least 32 x 32 pixels, got 8 x 8" in told("--size", "18", "--pretrained", file.name)
    assert not (here / "runs").exists()


def test_the_line_that_converts_a_pickle_converts_it(here):
    state = {"a.weight": torch.ones(2, 3)}
    torch.save(state, "w.pth")
    with pytest.raises(UserError) as caught:
        models.read_safetensors("w.pth")
    (line,) = re.findall(r'python -c "(.*)"', str(caught.value))
    exec(line, {})
    assert torch.equal(models.read_safetensors("weights.safetensors")["a.weight"], state["a.weight"])


@pytest.mark.deep
def test_killed_and_resumed_without_the_file_it_ends_like_one_that_never_stopped(here, pictures):
    file = resnet_file(here / "w.safetensors")
    words = ("train", "resnet", "--data", pictures, "--pretrained", file, "--freeze", "2", *QUICK, "--epochs", "3")
    assert tried(*words, "--runs", "whole")[0] == 0
    killed = subprocess.run(
        stopping(signal.SIGKILL, *words, "--checkpoint-every", 1, "--runs", "killed"), capture_output=True
    )
    assert killed.returncode == -signal.SIGKILL
    file.unlink()
    code, _, err = tried("resume", "killed/resnet-1", "--json")
    assert code == 0, err
    runs = [Run.open(f"{name}/resnet-1") for name in ("killed", "whole")]
    assert runs[0].metrics == runs[1].metrics
    for name, tensor in runs[1].model.state_dict().items():
        assert torch.equal(runs[0].model.state_dict()[name], tensor)


def gratings(path: Path, angles: tuple[int, ...], rows: int, seed: int) -> str:
    """Pictures of 32 x 32 whose class is the angle of their stripes; phase, contrast and colours are random."""
    draw = np.random.default_rng(seed)
    y, x = np.mgrid[0:32, 0:32]
    labels = np.repeat(angles, rows)
    turn, shape = np.deg2rad(labels)[:, None, None], (len(labels), 1, 1)
    waves = 0.5 + 0.5 * np.sin(0.9 * (x * np.cos(turn) + y * np.sin(turn)) + draw.uniform(0, 2 * np.pi, shape))
    light, dark = draw.uniform(0.5, 1, (len(labels), 3, 1, 1)), draw.uniform(0, 0.5, (len(labels), 3, 1, 1))
    images = dark + (light - dark) * waves[:, None] + draw.normal(0, 0.15, (len(labels), 3, 32, 32))
    order = draw.permutation(len(labels))
    np.savez(path, x=(images.clip(0, 1) * 255).astype(np.uint8)[order], y=np.array([f"{a} deg" for a in labels])[order])
    return f"npz:{path}"


@pytest.mark.deep
def test_weights_of_other_classes_are_worth_more_than_a_start_from_scratch(here):
    """ResNet-18 learns six angles, then from a few pictures four others: with its weights, with these frozen, and
    without. All are judged by pictures of their own, under ImageNet's statistics."""
    many = gratings(here / "many.npz", (0, 30, 60, 90, 120, 150), 60, seed=0)
    few, unseen = (gratings(here / f"{rows}.npz", (15, 45, 105, 135), rows, seed=rows) for rows in (15, 40))
    size = ("--size", "18", "--optimizer", "adamw", "--lr", "0.001", "--shift", "0", "--num-threads", "1", "--json")
    statistics = ("--image-mean", "0.485", "0.456", "0.406", "--image-std", "0.229", "0.224", "0.225")

    def accuracy(test: str, *words: str) -> float:
        code, out, err = tried("train", "resnet", *size, *words)
        assert code == 0, err
        code, out, err = tried("eval", json.loads(out)["run"], "--data", test, "--json")
        assert code == 0, err
        return json.loads(out)["accuracy"]

    accuracy(many, "--data", many, "--epochs", "8", *statistics)
    safetensors.torch.save_file(Run.open("runs/resnet-1").model.state_dict(), "w.safetensors")  # torchvision's names
    again = (unseen, "--data", few, "--epochs", "4", "--batch-size", "16")
    scratch = accuracy(*again, *statistics)
    tuned = accuracy(*again, "--pretrained", "w.safetensors")
    frozen = accuracy(*again, "--pretrained", "w.safetensors", "--freeze", "backbone", "--lr", "0.01")
    print(f"from scratch {scratch:.3f}, fine-tuned {tuned:.3f}, head alone {frozen:.3f}")
    assert tuned > scratch + 0.15
    assert frozen > scratch + 0.15
