"""Images as they are, the task of models of images, and what variational autoencoders make of it."""

import dataclasses
import json
import math

import numpy as np
import pytest
import torch

from quoin.cli import main
from quoin.data import ImageInfo, RowNoise, load, split, split_images
from quoin.errors import UserError
from quoin.models import BinomialDecoder, GaussianDecoder, LearnedGaussianDecoder
from quoin.runs import find_recipe
from quoin.tasks.vae import VAETask
from quoin.train import DeviceContext

pytestmark = pytest.mark.usefixtures("one_thread")


def built(name: str, **chosen) -> VAETask:
    recipe = find_recipe(name)
    task = recipe.build(
        dataclasses.replace(recipe.options(), num_samples=200, num_importance_samples=100, **chosen), DeviceContext()
    )
    assert isinstance(task, VAETask)
    return task


def trained(name: str, steps: int, **chosen) -> VAETask:
    task = built(name, **chosen)
    while True:
        for rows in task.batches:
            task.step(rows)
            if task.updater.step_count == steps:
                return task


def saved(path, images: np.ndarray) -> str:
    np.savez(path, X=images, y=np.arange(len(images)) % 2)
    return f"npz:{path}"


def test_images_stay_as_they_are_and_say_their_levels():
    digits = load("digits")
    parts = split_images(digits, split(digits, 3))
    assert parts.data_info.levels == 17
    assert parts.data_info.image_shape == (1, 8, 8)
    assert parts.data_info.num_pixels == 64
    assert sum(part.num_rows for part in parts[1:]) == digits.num_rows == parts.data_info.num_rows
    together = torch.cat([part.features for part in parts[1:]])
    torch.testing.assert_close(together.sum(dim=0), digits.features.sum(dim=0))
    assert ImageInfo.from_json(json.loads(json.dumps(parts.data_info.as_json()))) == parts.data_info
    with pytest.raises(UserError, match=r"config\.json: expected class_names, and there is none"):
        ImageInfo.from_json({"source": "digits"})
    for images, levels in (
        (digits.features.round(), 2),
        ((digits.features * 255).round() / 255, 256),
        (digits.features * 0.77, 0),
    ):
        assert split_images(dataclasses.replace(digits, features=images), split(digits, 3)).data_info.levels == levels
    with pytest.raises(UserError, match=r"values in \[0, 1\], got 0 to 2 in 'digits'"):
        split_images(dataclasses.replace(digits, features=digits.features * 2), split(digits, 3))
    iris = load("iris")
    with pytest.raises(UserError, match="expected images with classes"):
        split_images(iris, split(iris, 3))


@pytest.mark.parametrize(("name", "decoder"), [("vae", GaussianDecoder), ("vae-conv", BinomialDecoder)])
def test_a_short_run_learns_and_is_measured(name, decoder):
    task = trained(name, 60, seed=101, lr=0.004, schedule="constant")
    assert isinstance(task.model.decoder, decoder)
    before, after = built(name, seed=101).evaluate("validation"), task.evaluate("validation")
    assert after["loss"] < 0.8 * before["loss"]
    assert after["loss"] == pytest.approx(after["kl"] + after["reconstruction_nll"], rel=1e-5)
    assert after["bits_per_dimension"] == pytest.approx(after["loss"] / (64 * math.log(2)), rel=1e-5)
    assert after == task.evaluate("validation")  # the same noise
    titles = [panel.title for panel in task.panels()]
    assert titles == ["Samples", "Reconstructions", "Latent space", "KL per latent dimension", "Latent traversal"]


def test_the_end_of_a_run_is_measured_by_importance_and_by_the_judge():
    """More draws of the code tighten the bound; a model that knows nothing yet is far from covering the digits."""
    task = trained("vae", 60, seed=101, lr=0.004, schedule="constant")
    test = task.evaluate("test")
    assert test["iwae_bits_per_dimension"] < test["bits_per_dimension"]
    assert 1 <= test["effective_sample_size"] <= 100
    assert {"mmd", "frechet", "density", "coverage", "nn_distance_ratio"} <= test.keys()
    assert test["coverage"] < 0.9


def test_a_gaussian_decoder_learns_from_pixels_moved_within_their_level():
    """An evenly moved pixel stays within half a level, and a density is told as a probability by the width of a
    level."""
    task = built("vae", seed=102, decoder="gaussian", std=10.0)
    assert isinstance(task.model.decoder, GaussianDecoder)
    images = task.data.test.features
    moved = 16 * (task._dequantize(images, RowNoise("x", num_rows=len(images))) - images)
    assert -0.5 <= float(moved.min()) < -0.49
    assert 0.49 < float(moved.max()) <= 0.5
    found = task.evaluate("validation")
    # A flat distribution: bits = log2(16) + log2(s √2π) + small squares, plus a divergence that is almost nothing at
    # the start.
    assert found["bits_per_dimension"] == pytest.approx(4 + math.log2(10 * math.sqrt(2 * math.pi)), abs=0.05)
    with torch.no_grad():
        finally_found = task.compute_final_metrics(
            images, task.data.test.targets, noise=RowNoise("x", num_rows=len(images))
        )
    assert float(finally_found["iwae_bits_per_dimension"].mean()) == pytest.approx(
        found["bits_per_dimension"], abs=0.05
    )
    # Codes of an untrained encoder are drawn nearly from the prior, and a flat distribution weighs them alike: most
    # draws count, of all pieces.
    assert 0.7 < float(finally_found["effective_sample_size"].mean()) / task.options.num_importance_samples <= 1
    assert built("vae", seed=102, decoder="binomial").level_width == 0.0
    assert isinstance(built("vae", seed=102, decoder="learned-gaussian").model.decoder, LearnedGaussianDecoder)


def test_only_the_divergence_warms_up():
    task = built("vae", seed=103, kl_warmup_ratio=0.5)
    images, labels = task.data.train.features[:50], task.data.train.targets[:50]
    free = task.losses(images, labels, noise=RowNoise("x", num_rows=50))
    task.updater.step_count = task.updater.total_steps
    full = task.losses(images, labels, noise=RowNoise("x", num_rows=50))
    parts = task.compute_metrics(images, labels, noise=RowNoise("x", num_rows=50))
    torch.testing.assert_close(full - free, parts["kl"], rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(
        full, parts["loss"]
    )  # what is told of training and what is measured are in the same unit


def test_one_latent_is_enough_for_every_picture():
    task = built("vae", seed=104, latent_dim=1)
    assert len(list(task.panels())) == 5


def test_mistakes_cost_one_line(here, capsys):
    """Of the command line, in the words of its flags."""
    gray = saved(here / "grey.npz", np.random.default_rng(0).random((60, 6, 6), dtype=np.float32))
    loud = saved(here / "loud.npz", 3 * np.random.default_rng(0).random((60, 6, 6), dtype=np.float32))
    for words, said in (
        (["--latent-dim", "0"], "--latent-dim must be at least 1, got 0"),
        (["--kl-warmup-ratio", "-0.1"], "--kl-warmup-ratio must be at least 0.0, got -0.1"),
        (["--std", "0"], "--std must be above 0.0, got 0"),
        (["--num-samples", "0"], "--num-samples must be at least 2, got 0"),
        (["--data", gray], "--decoder binomial expects images with 2, 17 or 256 grey levels"),
        (["--data", loud], "expected images with values in [0, 1]"),
        (["--data", "iris"], "expected images, got iris"),
        (["--classifier", "nowhere"], "no run folder at 'nowhere'; `quoin train lenet` makes one"),
    ):
        assert main(["train", "vae-conv", *words]) == 2
        told = capsys.readouterr().err
        assert said in told, told
        assert told.count("\n") == 1
