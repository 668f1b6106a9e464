"""The work of the benchmark `loop`: random rows, labelled by a linear teacher, and the weights that an implementation
starts from.
"""

from dataclasses import dataclass

import numpy as np

__all__ = ["BATCH_SIZE", "HIDDEN_DIM", "INPUTS", "LR", "OUTPUTS", "Problem", "accuracy", "problem"]

INPUTS, HIDDEN_DIM, OUTPUTS = 784, 256, 10
ROWS, TEST_ROWS = 20_000, 4_000
BATCH_SIZE = 256
LR = 0.05


@dataclass(frozen=True)
class Problem:
    """The same numbers in every process."""

    all_features: np.ndarray  # (24000, 784) float32, the test rows last
    all_labels: np.ndarray  # (24000,) int64
    weights: tuple[np.ndarray, np.ndarray]  # (784, 256), (256, 10): He's start; biases start at zero

    @property
    def features(self) -> np.ndarray:
        return self.all_features[:ROWS]

    @property
    def labels(self) -> np.ndarray:
        return self.all_labels[:ROWS]

    @property
    def test_features(self) -> np.ndarray:
        return self.all_features[ROWS:]

    @property
    def test_labels(self) -> np.ndarray:
        return self.all_labels[ROWS:]


def problem() -> Problem:
    random = np.random.default_rng(0)
    features = random.standard_normal((ROWS + TEST_ROWS, INPUTS), dtype=np.float32)
    labels = (features @ random.standard_normal((INPUTS, OUTPUTS), dtype=np.float32)).argmax(1)
    weights = tuple(
        random.standard_normal(shape, dtype=np.float32) * np.float32(np.sqrt(2 / shape[0]))
        for shape in ((INPUTS, HIDDEN_DIM), (HIDDEN_DIM, OUTPUTS))
    )
    return Problem(features, labels, (weights[0], weights[1]))


def accuracy(scores: np.ndarray, given: Problem) -> dict[str, float]:
    """The figure of quality: the fraction of test rows whose largest score is their label's."""
    return {"test accuracy": float((scores.argmax(1) == given.test_labels).mean())}
