"""The recipes of chance and bits end where mathematics says, also away from their default options."""

import pytest

from commands import tried


@pytest.mark.parametrize(
    "words",
    [
        ("cross-entropy-descent", "--num-outcomes", 5),
        ("forward-reverse-kl",),
        ("forward-reverse-kl", "--mode-distance", 1),  # so near that KL(Q, P) too is least between the modes
        ("hmm",),
    ],
)
def test_the_target_is_met(words, tmp_path):
    assert tried("train", *words, "--num-threads", 1, "--require-target", "--runs", tmp_path)[0] == 0
