"""The work of the benchmarks `lenet-28` and `resnet18-cifar`: noisy images of ten patterns, and how a repeat goes
through them.
"""

from dataclasses import dataclass

import numpy as np

__all__ = ["CLASSES", "LENET", "LR", "MOMENTUM", "RESNET", "Images", "Work", "accuracy"]

CLASSES = 10
LR, MOMENTUM = 0.02, 0.9
TEST_ROWS = 200


@dataclass(frozen=True)
class Images:
    """The same numbers in every process."""

    features: np.ndarray  # (n, c, h, w) float32, about standard
    labels: np.ndarray  # (n,) int64
    test_features: np.ndarray
    test_labels: np.ndarray


@dataclass(frozen=True)
class Work:
    """A repeat is one pass over `num_steps` batches, none of them short."""

    image_shape: tuple[int, int, int]  # (c, h, w)
    batch_size: int
    num_steps: int

    def images(self) -> Images:
        random = np.random.default_rng(0)
        num_rows = self.batch_size * self.num_steps + TEST_ROWS
        patterns = random.standard_normal((CLASSES, *self.image_shape), dtype=np.float32)
        labels = random.integers(CLASSES, size=num_rows)
        features = (
            patterns[labels] + random.standard_normal((num_rows, *self.image_shape), dtype=np.float32)
        ) / np.float32(np.sqrt(2))
        splits = np.split(features, [num_rows - TEST_ROWS]), np.split(labels, [num_rows - TEST_ROWS])
        return Images(splits[0][0], splits[1][0], splits[0][1], splits[1][1])


LENET = Work((1, 28, 28), batch_size=128, num_steps=40)
RESNET = Work((3, 32, 32), batch_size=32, num_steps=4)


def accuracy(scores: np.ndarray, given: Images) -> dict[str, float]:
    """The figure of quality: the fraction of test rows whose largest score is their label's."""
    return {"test accuracy": float((scores.argmax(1) == given.test_labels).mean())}
