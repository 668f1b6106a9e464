"""The work of the benchmarks `lstsq`, `logreg`, `svm` and `softmax`: 20,000 images of digits, 784 centred pixels each.

There is no bias, which some peers penalise and others do not, so that all have one objective: a mean loss plus (L2 / 2)
|w|^2, and for `lstsq` no penalty. Pixels are correlated, as real ones are: on independent features every method is
quick.
"""

from dataclasses import dataclass

import numpy as np

__all__ = [
    "L2",
    "LEAST",
    "ROWS",
    "DigitImages",
    "above_least",
    "digit_images",
    "log_objective",
    "squared_objective",
    "svm_objective",
]

ROWS = 20_000
L2 = 1 / ROWS  # scikit-learn's C = 1
# The least objective of each benchmark in float64: by numpy's lstsq, by scikit-learn's newton-cholesky to 1e-12,
# between bounds that are 3e-8 apart (fit_linear_svm), and where the largest gradient is 1e-7 (fit_linear_scores).
LEAST = {"lstsq": 0.9532461576782, "logreg": 0.3106453312361, "svm": 0.32530361, "softmax": 0.15377269}


@dataclass(frozen=True)
class DigitImages:
    """The same numbers in every process."""

    features: np.ndarray  # (20000, 784) float32
    digits: np.ndarray  # (20000,) 0 to 9
    signs: np.ndarray  # (20000,) 1 for odd digits, -1 for even ones
    numbers: np.ndarray  # (20000,) float32, linear in the pixels but for noise


def digit_images() -> DigitImages:
    import torch

    from quoin.data import make_segment_digits

    sampled = make_segment_digits(ROWS, generator=torch.Generator().manual_seed(0))
    features = sampled.features.flatten(1).numpy()
    features = features - features.mean(axis=0)
    random = np.random.default_rng(0)
    weight = random.standard_normal(features.shape[1], dtype=np.float32)
    numbers = features @ weight + random.standard_normal(ROWS, dtype=np.float32)
    digits = sampled.targets.numpy()
    return DigitImages(features, digits, 2 * (digits % 2) - 1, numbers)


def squared_objective(predicted: np.ndarray, numbers: np.ndarray) -> float:
    """The mean squared error, in float64."""
    return float(np.square(predicted.astype(np.float64) - numbers).mean())


def log_objective(scores: np.ndarray, labels: np.ndarray, coefficients: np.ndarray) -> float:
    """The mean of -ln P and the penalty, in float64: of k scores (n, k) and digits, or of one score (n,) and signs."""
    scores = scores.astype(np.float64)
    if scores.ndim == 1:
        losses = np.logaddexp(0, -labels * scores)
    else:
        losses = np.logaddexp.reduce(scores, axis=1) - scores[np.arange(len(labels)), labels]
    return float(losses.mean()) + _penalty(coefficients)


def svm_objective(scores: np.ndarray, signs: np.ndarray, coefficients: np.ndarray) -> float:
    """The mean hinge loss of the scores (n,) and the penalty, in float64."""
    return float(np.maximum(0, 1 - signs * scores.astype(np.float64)).mean()) + _penalty(coefficients)


def above_least(benchmark: str, objective: float) -> dict[str, float]:
    """The figures of quality: the objective reached, and how far it is above the least one, as a fraction of that."""
    return {"objective": objective, "relative suboptimality": objective / LEAST[benchmark] - 1}


def _penalty(coefficients: np.ndarray) -> float:
    return L2 / 2 * float(np.square(coefficients.astype(np.float64)).sum())
