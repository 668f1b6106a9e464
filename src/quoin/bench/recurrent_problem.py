"""The work of the row `lstm-lm`: the text of the language recipes in characters, read in lanes, and the sizes of an LSTM."""

import numpy as np

from quoin.bench.language_problem import Text

__all__ = ["BATCH", "CLIP", "HIDDEN", "LENGTH", "RATE", "STEPS", "WIDTH", "lanes", "test_lane"]

HIDDEN, WIDTH, LENGTH, BATCH = 256, 128, 64, 32
STEPS = 12  # updates of a lap
RATE, CLIP = 0.002, 1.0


def lanes(given: Text, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """What is read and what comes next, (steps, batch, length) each: every lane goes on where its last window ended, and round again."""
    lane = (len(given.tokens) - 1) // BATCH // LENGTH * LENGTH
    starts = np.arange(BATCH)[None, :, None] * lane + (np.arange(steps)[:, None, None] * LENGTH) % lane
    places = starts + np.arange(LENGTH)
    return given.tokens[places], given.tokens[places + 1]


def test_lane(given: Text) -> tuple[np.ndarray, np.ndarray]:
    """Windows of the test text to judge by, (32, 64)."""
    seen = given.test[: BATCH * LENGTH + 1]
    return seen[:-1].reshape(BATCH, LENGTH), seen[1:].reshape(BATCH, LENGTH)
