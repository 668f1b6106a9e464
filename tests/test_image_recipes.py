"""The recipes of convolutional networks: digits, IDX, CIFAR-10 and NPZ images go in, tables and sizes that cannot be are told."""

import json

import numpy as np
import pytest
import torch

from commands import refused, tried
from quoin.data import load
from quoin.options import flag_name
from quoin.recipes import find_recipe, open_run
from quoin.train import Place
from test_data_files import cifar, idx

RECIPES = ("densenet", "lenet", "resnet", "resnext", "vgg")
QUICK = ("--epochs", "1", "--batch-size", "8", "--threads", "1", "--device", "cpu")


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


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_learns_from_every_kind_of_image_file(name, sources, tmp_path):
    """An epoch on each, with all augmentations on; the model that was saved is opened again and judged alike."""
    changes = ("--shift", "2", "--crop", "2", "--flip", "--cutout", "3") if name == "lenet" else ()
    for number, source in enumerate(sources.values() if name == "lenet" else [sources["idx"], sources["cifar10"]], start=1):
        code, out, err = tried("train", name, "--data", source, *QUICK, *changes, "--runs", tmp_path / "runs", "--json")
        assert code == 0, err
        result = json.loads(out)
        assert result["target"] is None  # it speaks of the digits
        run = open_run(tmp_path / "runs" / f"{name}-{number}")
        data = load(source)
        assert run.facts.feature_shape == data.features.shape[1:]
        own = json.loads(tried("eval", run.folder.path, "--json")[1])
        assert own["metrics"]["test_accuracy"] == result["metrics"]["test_accuracy"]
        assert 0 <= run.evaluate(data)["accuracy"] <= 1


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
    assert "of 0 to 7 pixels for images of 8 x 8, came 8" in refused("train", "lenet", flag_name(name), "8")
    assert "must be at least 0" in refused("train", "lenet", flag_name(name), "-1")
    assert not (here / "runs").exists()


@pytest.mark.parametrize("name", RECIPES)
def test_batches_of_one_image_train(name):
    """The smallest images leave 2 x 2 pixels to the last normalisation: enough for a variance even of one image."""
    recipe = find_recipe(name)
    task = recipe.build(recipe.options(batch_size=1), Place())
    assert task.step(torch.tensor([0]))["loss"].isfinite()


def test_weights_that_multiply_are_pulled_towards_zero_and_vectors_are_not():
    recipe = find_recipe("resnet")
    task = recipe.build(recipe.options(weight_decay=0.25), Place())
    pulled = {id(each) for group in task.optimiser.param_groups if group["weight_decay"] == 0.25 for each in group["params"]}
    for name, parameter in task.model.named_parameters():
        assert (id(parameter) in pulled) == (name.endswith("weight") and ("conv" in name or "downsample.0" in name or name == "fc.weight"))
