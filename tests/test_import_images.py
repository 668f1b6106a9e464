"""`quoin import` of torchvision's families: the run answers as a forward pass written from torchvision's documentation,
and eval, predict, inspect and fine-tuning take its folder."""

import csv
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
import safetensors.torch
import torch

import test_models_foreign_a as first
import test_models_image_b as second
from commands import refused, tried
from quoin import models
from quoin.models.vit_weights import huggingface_vit_weights
from quoin.runs import Run
from seeds import seeded

NUM_CLASSES, SIDE = 7, 64
IMAGENET, HALF = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)), ((0.5,) * 3, (0.5,) * 3)


class Family(NamedTuple):
    recipe: str
    size: str
    state: Callable
    forward: Callable
    documented: int  # parameters for 1000 classes
    features: int  # that the last layer reads
    statistics: tuple = IMAGENET


def vgg(name: str, documented: int) -> Family:
    channels = first.VGG_CHANNELS[getattr(models, name)]
    return Family(
        "vgg", name.removeprefix("vgg"), lambda: first.random_state(first.vgg_layout(channels, NUM_CLASSES)),
        lambda x, state: first.vgg_forward(x, state, channels), documented, 4096,
    )  # fmt: skip


def of_second(name: str, recipe: str, size: str, features: int) -> Family:
    _, layout, documented = second.FULL[name]
    return Family(
        recipe, size, lambda: second.random_state(layout(NUM_CLASSES), 0), second.LOADED[name][1], documented, features
    )


FAMILIES = {
    "resnet18": of_second("resnet18", "resnet", "18", 512),
    "resnext50": of_second("resnext50", "resnext", "50", 2048),
    "densenet121": of_second("densenet121", "densenet", "121", 1024),
    "googlenet": Family(
        "googlenet", "full", lambda: first.random_state(first.googlenet_layout(NUM_CLASSES)), first.googlenet_forward,
        6_624_904, 1024, HALF,
    ),
    "alexnet": Family(
        "alexnet", "full", lambda: first.random_state(first.alexnet_layout(NUM_CLASSES)), first.alexnet_forward,
        61_100_840, 4096,
    ),
    "vgg11": vgg("vgg11", 132_863_336),
    "vgg16": vgg("vgg16", 138_357_544),
}  # fmt: skip
HEAVY = ("alexnet", "vgg11", "vgg16", "resnext50")  # hundreds of megabytes


@pytest.fixture
def pictures(tmp_path):
    images = np.random.default_rng(1).integers(0, 255, (42, 3, SIDE, SIDE), dtype=np.uint8)
    np.savez(tmp_path / "pictures.npz", x=images, y=np.arange(42) % NUM_CLASSES)
    return tmp_path / "pictures.npz"


def imported(name, folder, *words):
    family = FAMILIES[name]
    state, file = family.state(), folder / "weights.safetensors"
    safetensors.torch.save_file(state, file)
    code, out, err = tried("import", file, "-o", folder / "run", "--image-size", SIDE, *words)
    file.unlink()
    assert code == 0, err
    return family, state, out


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.deep] if name in HEAVY else []) for name in FAMILIES]
)
def test_a_family_answers_as_torchvision_documents_it(name, tmp_path):
    family, state, out = imported(name, tmp_path)
    count = family.documented - (1000 - NUM_CLASSES) * (family.features + 1)
    assert f"a run of {family.recipe}, {count:,} parameters" in out
    run = Run.open(tmp_path / "run")
    assert (run.recipe_name, run.options.size) == (family.recipe, family.size)
    images = torch.rand(2, 3, SIDE, SIDE, generator=seeded(2))
    mean, std = (torch.tensor(each)[:, None, None] for each in family.statistics)
    with torch.no_grad():
        expected = family.forward((images - mean) / std, state)
    scale = float(expected.abs().max())
    torch.testing.assert_close(run.trained.outputs(images) / scale, expected / scale, atol=1e-5, rtol=0)  # type: ignore


@pytest.mark.deep
@pytest.mark.parametrize("name", FAMILIES)
def test_the_folder_is_evaluated_inspected_and_fine_tuned(name, tmp_path, pictures):
    family, _, _ = imported(name, tmp_path, "--data", f"npz:{pictures}")
    run = tmp_path / "run"
    assert tried("eval", run)[0] == 0
    assert tried("inspect", run, "--out", tmp_path / "page.html")[0] == 0
    assert tried("predict", run, pictures, "--out", tmp_path / "found.csv")[0] == 0
    with open(tmp_path / "found.csv", encoding="utf-8", newline="") as file:
        found = [row[0] for row in csv.reader(file)][1:]
    images = torch.from_numpy(np.load(pictures)["x"]).float() / 255
    assert found == [str(int(each)) for each in Run.open(run).predict(images).values]
    words = ["--size", family.size, "--freeze", "backbone", "--max-steps", 2, "--batch-size", 4]
    code, _, err = tried(
        "train", family.recipe, "--pretrained", run, "--data", f"npz:{pictures}", *words, "--runs", tmp_path / "tuned"
    )
    assert code == 0, err
    tuned, before = Run.open(tmp_path / "tuned" / f"{family.recipe}-1"), Run.open(run)
    assert (tuned.options.image_mean, tuned.options.image_std) == family.statistics
    kept = before.model.state_dict()
    frozen = [name for name, each in tuned.model.named_parameters() if torch.equal(each, kept[name])]
    assert len(frozen) == len(list(tuned.model.parameters())) - 2  # all but the head's weight and bias


def test_a_vit_s_positions_tell_the_size_of_its_images(tmp_path):
    model = models.ViT((3, 64, 64), 4, patch_size=16, embed_dim=192, num_heads=3, num_layers=12, class_token=True)
    weights = {name: each.contiguous() for name, each in huggingface_vit_weights(model).items()}
    safetensors.torch.save_file(weights, tmp_path / "vit.safetensors")
    assert tried("import", tmp_path / "vit.safetensors", "-o", tmp_path / "run")[0] == 0
    run = Run.open(tmp_path / "run")
    assert run.data_info.feature_shape == (3, 64, 64)
    table = run.model.get_parameter("position_embedding.weight")
    assert torch.equal(table, model.get_parameter("position_embedding.weight"))
    words = ("--image-size", 63, "-o", tmp_path / "other")
    assert "side divides images of 63 x 63" in refused("import", tmp_path / "vit.safetensors", *words)


def test_grey_weights_need_a_mean(tmp_path):
    model = models.resnet18(7, image_shape=(1, SIDE, SIDE), generator=seeded(3)).eval()
    safetensors.torch.save_file(model.state_dict(), tmp_path / "grey.safetensors")
    words = ["import", tmp_path / "grey.safetensors", "-o", tmp_path / "run", "--image-size", SIDE]
    assert "--image-mean and --image-std of 1 numbers" in refused(*words)
    assert "got 1 and 0" in refused(*words, "--image-mean", 0.3)
    assert "above 0, got 0.0" in refused(*words, "--image-mean", 0.3, "--image-std", 0)
    assert not (tmp_path / "run").exists()
    assert tried(*words, "--image-mean", 0.3, "--image-std", 0.2)[0] == 0
    images = torch.rand(2, 1, SIDE, SIDE, generator=seeded(4))
    with torch.no_grad():
        expected = model((images - 0.3) / 0.2)
    torch.testing.assert_close(Run.open(tmp_path / "run").trained.outputs(images), expected, atol=1e-4, rtol=1e-4)  # type: ignore


@pytest.mark.parametrize(
    ("layout", "told"),
    [
        (lambda: second.resnet_layout((3, 8, 36, 3), bottleneck=True, num_classes=5), ["resnet --size 101", "r2.4"]),
        (lambda: second.densenet_layout((6, 12, 32, 32), num_classes=5), ["densenet --size 121", "denselayer25"]),
        (lambda: {"features.0.0.weight": (32, 3, 3, 3), "classifier.1.weight": (5, 8)}, ["alexnet, dense", "folder"]),
    ],
    ids=["resnet152", "densenet169", "mobilenet"],
)  # fmt: skip
def test_another_model_is_told_beside_the_nearest(layout, told, tmp_path):
    weights = {name: torch.zeros(()).expand(shape).contiguous() for name, shape in layout().items()}
    safetensors.torch.save_file(weights, tmp_path / "other.safetensors")
    words = refused("import", tmp_path / "other.safetensors", "-o", tmp_path / "run")
    assert all(each in words for each in told), words
    assert [each.name for each in tmp_path.iterdir()] == ["other.safetensors"]
