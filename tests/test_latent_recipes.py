"""The recipes of latent variables: a learned ELBO comes up to the exact evidence, and options that cannot be are
refused."""

import itertools
from typing import Any

import pytest

from commands import refused, tried
from quoin.runs import find_recipe
from quoin.train import DeviceContext


def test_the_bound_reaches_the_evidence(tmp_path):
    assert tried("train", "ppca", "--num-threads", 1, "--require-target", "--runs", tmp_path)[0] == 0


def test_every_estimator_moves_its_q_towards_the_posterior():
    recipe = find_recipe("elbo-gradients")
    task: Any = recipe.build(recipe.options(num_latent_samples=64), DeviceContext())
    before = task.elbo_gaps()
    for rows in itertools.islice(task.batches, 40):
        task.step(rows)
    assert all(now < then / 2 for now, then in zip(task.elbo_gaps(), before, strict=True))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("ppca", "--latent-dim", 10), "--latent-dim must be below --num-features"),
        (("ppca", "--latent-dim", 9, "--num-examples", 10), "--num-examples must be above --latent-dim + 1"),
        (("elbo-gradients", "--num-latent-samples", 1), "--num-latent-samples must be at least 2"),
    ],
)
def test_options_that_cannot_be(words, told, tmp_path):
    assert told in refused("train", *words, "--num-threads", 1, "--runs", tmp_path)
