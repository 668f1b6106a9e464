"""The work of the rows `gpt-small` and `gpt-medium`: the text of the language recipes in characters, and the sizes of a GPT."""

import math
from dataclasses import dataclass

import numpy as np

__all__ = ["GPTS", "RATE", "GPTWork", "Text", "nats", "text"]

RATE = 0.001
TEST_WINDOWS = 32


@dataclass(frozen=True)
class GPTWork:
    """A lap is `steps` updates on `batch` windows of `length` tokens."""

    width: int
    heads: int
    layers: int
    length: int
    batch: int
    steps: int


GPTS = {"small": GPTWork(128, 4, 4, 64, batch=12, steps=20), "medium": GPTWork(256, 8, 6, 256, batch=16, steps=2)}


@dataclass(frozen=True)
class Text:
    """The same numbers in every process."""

    vocabulary_size: int
    tokens: np.ndarray  # of the training part, int64
    test: np.ndarray  # of the test part, int64

    def windows(self, work: GPTWork, steps: int) -> tuple[np.ndarray, np.ndarray]:
        """What is read and what comes next in `steps` batches of random windows."""
        starts = np.random.default_rng(0).integers(len(self.tokens) - work.length, size=(steps * work.batch, 1))
        seen = self.tokens[starts + np.arange(work.length + 1)]
        return seen[:, :-1], seen[:, 1:]

    def test_windows(self, work: GPTWork) -> tuple[np.ndarray, np.ndarray]:
        seen = self.test[: TEST_WINDOWS * work.length + 1]
        return seen[:-1].reshape(TEST_WINDOWS, -1), seen[1:].reshape(TEST_WINDOWS, -1)


def text() -> Text:
    """The help texts of CPython in characters."""
    from quoin.data import load_corpus

    found = load_corpus("topics", "characters", 0)
    return Text(found.vocabulary.size, np.asarray(found.train.tokens, np.int64), np.asarray(found.test.tokens, np.int64))


def nats(logits: np.ndarray, targets: np.ndarray) -> dict[str, float]:
    """The figure of quality: the mean -ln P of the test windows' characters, after as many updates as there were laps for."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    log_laws = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    mean = -np.take_along_axis(log_laws, targets[..., None], axis=-1).mean()
    return {"test nats": float(mean) if math.isfinite(mean) else math.inf}
