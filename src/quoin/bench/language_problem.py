"""The work of the benchmarks `gpt-small` and `gpt-medium`: the text of the language recipes in characters, and the
sizes of a GPT.
"""

import math
from dataclasses import dataclass

import numpy as np

__all__ = ["GPTS", "LR", "GPTWork", "Text", "nats", "text"]

LR = 0.001
TEST_WINDOWS = 32


@dataclass(frozen=True)
class GPTWork:
    """A repeat is `num_steps` optimizer steps on `batch_size` windows of `context_length` tokens."""

    embed_dim: int
    num_heads: int
    num_layers: int
    context_length: int
    batch_size: int
    num_steps: int


GPTS = {
    "small": GPTWork(128, 4, 4, 64, batch_size=12, num_steps=20),
    "medium": GPTWork(256, 8, 6, 256, batch_size=16, num_steps=2),
}


@dataclass(frozen=True)
class Text:
    """The same numbers in every process."""

    vocab_size: int
    tokens: np.ndarray  # of the training split, int64
    test: np.ndarray  # of the test split, int64

    def windows(self, work: GPTWork, steps: int) -> tuple[np.ndarray, np.ndarray]:
        """What is read and what comes next in `steps` batches of random windows."""
        starts = np.random.default_rng(0).integers(
            len(self.tokens) - work.context_length, size=(steps * work.batch_size, 1)
        )
        seen = self.tokens[starts + np.arange(work.context_length + 1)]
        return seen[:, :-1], seen[:, 1:]

    def test_windows(self, work: GPTWork) -> tuple[np.ndarray, np.ndarray]:
        seen = self.test[: TEST_WINDOWS * work.context_length + 1]
        return seen[:-1].reshape(TEST_WINDOWS, -1), seen[1:].reshape(TEST_WINDOWS, -1)


def text() -> Text:
    """The help texts of CPython in characters."""
    from quoin.data import load_corpus

    found = load_corpus("topics", "char", 0)
    return Text(
        found.tokenizer.vocab_size, np.asarray(found.train.tokens, np.int64), np.asarray(found.test.tokens, np.int64)
    )


def nats(logits: np.ndarray, targets: np.ndarray) -> dict[str, float]:
    """The figure of quality: the mean -ln P of the test windows' characters, after as many optimizer steps as there
    were repeats for.
    """
    shifted = logits - logits.max(axis=-1, keepdims=True)
    log_probs = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    mean = -np.take_along_axis(log_probs, targets[..., None], axis=-1).mean()
    return {"test nats": float(mean) if math.isfinite(mean) else math.inf}
