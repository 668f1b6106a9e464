"""The recipes of convolutional networks: digits, IDX, CIFAR-10 and NPZ images go in, tables and sizes that cannot be
are told."""

import json
from types import SimpleNamespace
from typing import Any, get_args

import numpy as np
import pytest
import torch

from commands import refused, tried
from quoin.data import load, split
from quoin.options import flag_name
from quoin.runs import Run, find_recipe
from quoin.tasks.supervised import eval_batch_size
from quoin.train import DeviceContext
from test_data_files import cifar, idx

RECIPES = ("alexnet", "densenet", "googlenet", "lenet", "nin", "resnet", "resnext", "vgg")
# Parameters for colour images of 224 x 224 and 1000 classes, as torchvision publishes them; NiN's are counted by hand.
NUM_PARAMETERS = {
    ("alexnet", "full"): 61_100_840,
    ("densenet", "121"): 7_978_856,
    ("googlenet", "full"): 6_624_904,
    ("nin", "full"): (363 + 1 + 2 * 97) * 96
    + (2400 + 1 + 2 * 257) * 256
    + (2304 + 1 + 2 * 385) * 384
    + (3456 + 1 + 2 * 1001) * 1000,
    ("resnet", "18"): 11_689_512,
    ("resnet", "34"): 21_797_672,
    ("resnet", "50"): 25_557_032,
    ("resnet", "101"): 44_549_160,
    ("resnext", "50"): 25_028_904,
    ("vit", "ti16"): 5_717_416,  # timm's
    ("vit", "s16"): 22_050_664,
    ("vit", "b16"): 86_567_656,
    ("vit", "b32"): 88_224_232,
    ("vit", "l16"): 304_326_632,
    ("vgg", "11"): 132_863_336,
    ("vgg", "16"): 138_357_544,
    ("vgg", "19"): 143_667_240,
}


def built(name, **options: Any) -> Any:
    """The task of a recipe, on the CPU."""
    kind: Any = find_recipe(name).options
    return find_recipe(name).build(kind(**options), DeviceContext())


def write_idx(folder, side=(9, 12), rows=30):
    """Grey images, of which some are lit at the top and some at the bottom; sides that no pooling divides."""
    labels = np.arange(rows, dtype=np.uint8) % 3
    images = np.random.default_rng(1).integers(0, 80, (rows, *side), dtype=np.uint8)
    images[labels == 1, :3] += 150
    images[labels == 2, -3:] += 150
    folder.mkdir()
    (folder / "train-images-idx3-ubyte").write_bytes(idx(images))
    (folder / "train-labels-idx1-ubyte").write_bytes(idx(labels))
    return images, labels


@pytest.fixture
def sources(tmp_path):
    """One source of every kind of image file."""
    images, labels = write_idx(tmp_path / "idx")
    (tmp_path / "cifar").mkdir()
    cifar(tmp_path / "cifar", per_file=4)
    np.savez(tmp_path / "images.npz", x=images, y=labels)
    return {"idx": f"idx:{tmp_path}/idx", "cifar10": f"cifar10:{tmp_path}/cifar", "npz": f"npz:{tmp_path}/images.npz"}


@pytest.mark.parametrize("kind", ["idx", "cifar10"])
@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_learns_from_image_files(name, kind, sources):
    task = built(name, data=sources[kind], batch_size=8)
    before = {key: value.clone() for key, value in task.model.state_dict().items()}
    assert all(task.step(rows)["loss"].isfinite() for rows in task.batches)
    assert not any(
        torch.equal(before[key], value) for key, value in task.model.state_dict().items() if key.endswith("weight")
    )
    assert task.data_info.feature_shape == load(sources[kind]).features.shape[1:]
    assert 0 <= task.evaluate("test")["accuracy"] <= 1


def test_a_whole_run_on_images_from_a_file_with_every_change(sources, tmp_path):
    """Trained, opened again and judged alike; the target, which speaks of the digits, is silent."""
    changes = ("--shift", "2", "--crop", "2", "--flip", "--cutout", "3")
    quick = ("--epochs", "1", "--batch-size", "8", "--num-threads", "1", "--device", "cpu")
    code, out, err = tried(
        "train", "lenet", "--data", sources["npz"], *quick, *changes, "--runs", tmp_path / "runs", "--json"
    )
    assert code == 0, err
    result = json.loads(out)
    assert result["target"] is None
    data, run = load(sources["npz"]), Run.open(tmp_path / "runs" / "lenet-1").trained
    options = {name: getattr(run.options, name) for name in ("shift", "crop", "flip", "cutout")}
    assert options == {"shift": 2, "crop": 2, "flip": True, "cutout": 3}
    test = data.take(split(data, 0, validation=0.1).test)
    assert run.evaluate(test)["accuracy"] == pytest.approx(result["metrics"]["test_accuracy"])


@pytest.mark.parametrize("name", RECIPES)
def test_a_table_is_refused_before_anything_is_made(name, here):
    np.savez(here / "table.npz", x=np.eye(9), y=np.arange(9) % 3)
    for source, numbers in (("iris", 4), ("diabetes", 10), ("npz:table.npz", 9)):
        told = refused("train", name, "--data", source)
        assert f"expected images, got {source} with rows of {numbers} numbers" in told
        assert all(word in told for word in ("digits", "idx:FOLDER", "cifar10:FOLDER"))
    assert not (here / "runs").exists()


@pytest.mark.parametrize("name", RECIPES)
def test_images_too_small_for_the_network_are_refused(name, here):
    write_idx(here / "idx", side=(4, 12))
    assert "4 x 12" in refused("train", name, "--data", "idx:idx")
    assert not (here / "runs").exists()


@pytest.mark.parametrize("name", ["shift", "crop", "cutout"])
def test_a_change_larger_than_the_images_is_refused_before_the_run(name, here):
    assert "of 0 to 7 pixels for images of 8 x 8, got 8" in refused("train", "lenet", flag_name(name), "8")
    assert "must be at least 0" in refused("train", "lenet", flag_name(name), "-1")
    assert not (here / "runs").exists()


@pytest.mark.parametrize("name", RECIPES)
def test_batches_of_one_image_train(name):
    """The smallest images leave 2 x 2 pixels to the last normalisation: enough for a variance even of one image."""
    task = built(name, batch_size=1)
    assert task.step(torch.tensor([0]))["loss"].isfinite()


@pytest.mark.parametrize(("name", "size"), NUM_PARAMETERS, ids=str)
def test_a_size_is_the_published_network(name, size):
    options: Any = find_recipe(name).options
    info: Any = SimpleNamespace(image_shape=(3, 224, 224), num_classes=1000)
    with torch.device("meta"):
        model = find_recipe(name).model(options(size=size), info)
    assert sum(each.numel() for each in model.parameters()) == NUM_PARAMETERS[name, size]


@pytest.mark.parametrize(("name", "size"), NUM_PARAMETERS, ids=str)
def test_a_network_too_large_for_its_images_says_the_smallest(name, size, here):
    smallest = {"alexnet": 63, "googlenet": 15, "nin": 67}.get(name, 32)
    told = refused("train", name, "--size", size)
    if name == "vit":
        assert f"a patch whose side divides images of 8 x 8 pixels, got {size.lstrip('tisbl')}" in told
    else:
        assert f"at least {smallest} x {smallest} pixels, got 8 x 8" in told
    assert not (here / "runs").exists()


def test_every_size_of_every_recipe_is_tried():
    sizes = {
        (name, size)
        for name in (*RECIPES, "vit")
        if (field := find_recipe(name).options.__dataclass_fields__.get("size"))
        for size in get_args(field.type)
    }
    assert sizes - NUM_PARAMETERS.keys() == {(name, "small") for name in (*RECIPES, "vit") if name != "lenet"}


def test_weights_that_multiply_are_pulled_towards_zero_and_vectors_are_not():
    task = built("resnet", weight_decay=0.25)
    pulled = {
        id(each)
        for group in task.updater.optimizer.param_groups
        if group["weight_decay"] == 0.25
        for each in group["params"]
    }
    for name, parameter in task.model.named_parameters():
        assert (id(parameter) in pulled) == (
            name.endswith("weight") and ("conv" in name or "downsample.0" in name or name == "fc.weight")
        )


@pytest.mark.parametrize(
    ("image_shape", "rows"), [((1, 8, 8), 4096), ((3, 32, 32), 341), ((3, 224, 224), 6), ((3, 2000, 2000), 1)]
)
def test_large_images_are_judged_few_at_a_time(image_shape, rows):
    """At most 4096 rows and at most 2^20 numbers, but always one row."""
    assert eval_batch_size(torch.empty(2, *image_shape)) == rows
