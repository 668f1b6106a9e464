"""The work of the benchmark `lstm-lm`: the text of the language recipes in characters, read in parallel streams, and
the sizes of an LSTM.
"""

import numpy as np

from quoin.bench.language_problem import Text

__all__ = [
    "BATCH_SIZE",
    "EMBED_DIM",
    "HIDDEN_DIM",
    "LENGTH",
    "LR",
    "MAX_GRAD_NORM",
    "NUM_STEPS",
    "streams",
    "test_stream",
]

HIDDEN_DIM, EMBED_DIM, LENGTH, BATCH_SIZE = 256, 128, 64, 32
NUM_STEPS = 12  # optimizer steps of a repeat
LR, MAX_GRAD_NORM = 0.002, 1.0


def streams(given: Text, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """What is read and what comes next, (steps, batch, length) each: every stream goes on where its last window ended,
    and starts again at its end.
    """
    stream = (len(given.tokens) - 1) // BATCH_SIZE // LENGTH * LENGTH
    starts = np.arange(BATCH_SIZE)[None, :, None] * stream + (np.arange(steps)[:, None, None] * LENGTH) % stream
    indices = starts + np.arange(LENGTH)
    return given.tokens[indices], given.tokens[indices + 1]


def test_stream(given: Text) -> tuple[np.ndarray, np.ndarray]:
    """Windows of the test text to evaluate on, (32, 64)."""
    seen = given.test[: BATCH_SIZE * LENGTH + 1]
    return seen[:-1].reshape(BATCH_SIZE, LENGTH), seen[1:].reshape(BATCH_SIZE, LENGTH)
