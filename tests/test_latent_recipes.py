"""The recipes of latent variables: a learnt bound comes up to the exact evidence, and options that cannot be are refused."""

import pytest

from commands import refused, tried


def test_the_bound_reaches_the_evidence(tmp_path):
    assert tried("train", "ppca", "--threads", 1, "--require-target", "--runs", tmp_path)[0] == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("ppca", "--latent", 10), "--latent must be below --features"),
        (("ppca", "--latent", 9, "--examples", 10), "--examples must be above --latent + 1"),
        (("elbo-approaches", "--draws", 1), "--draws must be at least 2"),
    ],
)
def test_options_that_cannot_be(words, told, tmp_path):
    assert told in refused("train", *words, "--threads", 1, "--runs", tmp_path)
