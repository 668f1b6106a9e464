"""The benchmark `gaussian-conditioning`: Quoin, which checks its input, beside batched torch without checks and loops
over distributions.
"""

import numpy as np
import torch
from torch import Tensor

from quoin.bench.gaussian_problem import GIVEN, normals, quality
from quoin.bench.worker import Repeats

__all__ = ["numpy_batched", "numpy_loop", "quoin", "scipy_loop", "torch_cholesky", "torch_triangular"]

K = len(GIVEN)


def quoin(repeats: Repeats) -> dict[str, float]:
    from quoin.prob import condition_normal

    given, (mean, covariance, y) = _on_torch(repeats)
    found = repeats.timed(lambda: condition_normal(mean, covariance, GIVEN, y))
    return quality(given, found.mean.numpy(), found.covariance.numpy())


def torch_cholesky(repeats: Repeats) -> dict[str, float]:
    """As GPyTorch has it: a batched Cholesky factor and cholesky_solve."""
    given, (mean, covariance, y) = _on_torch(repeats)

    def condition() -> tuple[Tensor, Tensor]:
        factor = torch.linalg.cholesky(covariance[:, K:, K:])
        solved = torch.cholesky_solve(covariance[:, K:, :K], factor)
        means = mean[:, :K] + (solved.mT @ (y - mean[:, K:]).unsqueeze(-1)).squeeze(-1)
        return means, covariance[:, :K, :K] - covariance[:, :K, K:] @ solved

    means, left = repeats.timed(condition)
    return quality(given, means.numpy(), left.numpy())


def torch_triangular(repeats: Repeats) -> dict[str, float]:
    """The same with half the solves: W = L^-1 Σ_YX and Σ_XX - W^T W, the quickest that we found in plain torch."""
    given, (mean, covariance, y) = _on_torch(repeats)

    def condition() -> tuple[Tensor, Tensor]:
        factor = torch.linalg.cholesky(covariance[:, K:, K:])
        away = (y - mean[:, K:]).unsqueeze(-1)
        whitened = torch.linalg.solve_triangular(factor, covariance[:, K:, :K], upper=False)
        means = mean[:, :K] + (whitened.mT @ torch.linalg.solve_triangular(factor, away, upper=False)).squeeze(-1)
        return means, covariance[:, :K, :K] - whitened.mT @ whitened

    means, left = repeats.timed(condition)
    return quality(given, means.numpy(), left.numpy())


def numpy_batched(repeats: Repeats) -> dict[str, float]:
    given = normals()
    S, mean, y = given.covariance, given.mean, given.y

    def condition() -> tuple[np.ndarray, np.ndarray]:
        solved = np.linalg.solve(S[:, K:, K:], S[:, K:, :K])
        means = mean[:, :K] + (solved.swapaxes(1, 2) @ (y - mean[:, K:])[..., None])[..., 0]
        return means, S[:, :K, :K] - S[:, :K, K:] @ solved

    means, left = repeats.timed(condition)
    return quality(given, means, left)


def numpy_loop(repeats: Repeats) -> dict[str, float]:
    given = normals()
    means, left = np.empty_like(given.y), np.empty((len(given.y), K, K), dtype=np.float32)
    for _ in range(repeats.count):
        for index, (mean, S, y) in enumerate(zip(given.mean, given.covariance, given.y)):
            solved = np.linalg.solve(S[K:, K:], S[K:, :K])
            means[index] = mean[:K] + solved.T @ (y - mean[K:])
            left[index] = S[:K, :K] - S[:K, K:] @ solved
        repeats.end()
    return quality(given, means, left)


def scipy_loop(repeats: Repeats) -> dict[str, float]:
    from scipy.linalg import cho_factor, cho_solve

    given = normals()
    means, left = np.empty_like(given.y), np.empty((len(given.y), K, K), dtype=np.float32)
    for _ in range(repeats.count):
        for index, (mean, S, y) in enumerate(zip(given.mean, given.covariance, given.y)):
            factor = cho_factor(S[K:, K:], lower=True, check_finite=False)
            solved = cho_solve(factor, S[K:, :K], check_finite=False)
            means[index] = mean[:K] + solved.T @ (y - mean[K:])
            left[index] = S[:K, :K] - S[:K, K:] @ solved
        repeats.end()
    return quality(given, means, left)


def _on_torch(repeats: Repeats):
    torch.set_num_threads(repeats.threads)
    given = normals()
    return given, [torch.from_numpy(each) for each in (given.mean, given.covariance, given.y)]
