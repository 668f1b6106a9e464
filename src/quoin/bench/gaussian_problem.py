"""The work of the benchmark `gaussian-conditioning`: 10,000 normal distributions on 20 coordinates in float32, each
conditioned on its last 10.
"""

from dataclasses import dataclass

import numpy as np

__all__ = ["GIVEN", "Normals", "normals", "quality"]

NUM_NORMALS, DIM = 10_000, 20
GIVEN = range(DIM // 2, DIM)


@dataclass(frozen=True)
class Normals:
    """The same numbers in every process."""

    mean: np.ndarray  # (10000, 20) float32
    covariance: np.ndarray  # (10000, 20, 20) float32
    y: np.ndarray  # (10000, 10) float32


def normals() -> Normals:
    random = np.random.default_rng(0)
    root = random.standard_normal((NUM_NORMALS, DIM, DIM), dtype=np.float32)
    covariance = root @ root.swapaxes(1, 2) / DIM + np.float32(0.1) * np.eye(DIM, dtype=np.float32)
    mean = random.standard_normal((NUM_NORMALS, DIM), dtype=np.float32)
    return Normals(mean, covariance, random.standard_normal((NUM_NORMALS, len(GIVEN)), dtype=np.float32))


def quality(given: Normals, mean: np.ndarray, covariance: np.ndarray) -> dict[str, float]:
    """The largest error of mean and covariance on the first 100 distributions, against the formula in float64."""
    k = len(GIVEN)
    S = given.covariance[:100].astype(np.float64)
    gain = S[:, :k, k:] @ np.linalg.inv(S[:, k:, k:])
    away = (given.y[:100] - given.mean[:100, k:]).astype(np.float64)
    means = given.mean[:100, :k] + (gain @ away[..., None])[..., 0]
    left = S[:, :k, :k] - gain @ S[:, k:, :k]
    return {"largest error": float(max(np.abs(mean[:100] - means).max(), np.abs(covariance[:100] - left).max()))}
