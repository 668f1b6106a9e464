"""The benchmark `nadaraya-watson`: Gaussian pooling of 20,000 values at as many points in four dimensions, in float32.

All n m weights at once would take 1.6 GB, so every implementation works in pieces. statsmodels' KernelReg takes one
point at a time, in float64, and is asked for a tenth of them: its ratio is to be read as ten times as large.
"""

import numpy as np

from quoin.bench.worker import Repeats

__all__ = ["numpy_broadcast", "quoin", "sklearn_matrix", "statsmodels_regression"]

COUNT, DIM, BANDWIDTH = 20_000, 4, 0.5
ROWS = 100  # points at a time: 32 MB of differences, the quickest of 25 to 800 that we found
CHECKED = 200


def problem() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same queries, keys and noisy values in every process."""
    random = np.random.default_rng(0)
    queries, points = random.standard_normal((2, COUNT, DIM)).astype(np.float32)
    values = np.sin(points).sum(axis=1) + 0.3 * random.standard_normal(COUNT)
    return queries, points, values.astype(np.float32)


def quality(found: np.ndarray) -> dict[str, float]:
    """The largest error of the first answers, beside the formula in float64."""
    queries, points, values = (each.astype(np.float64) for each in problem())
    square = ((queries[:CHECKED, None] - points) ** 2).sum(axis=-1) / BANDWIDTH**2
    weights = np.exp(-(square - square.min(axis=1, keepdims=True)) / 2)
    return {"error": float(np.abs(found[:CHECKED] - weights @ values / weights.sum(axis=1)).max())}


def quoin(repeats: Repeats) -> dict[str, float]:
    import torch

    from quoin.layers import nadaraya_watson
    from quoin.tensor import GaussianKernel

    torch.set_num_threads(repeats.threads)
    queries, points, values = map(torch.from_numpy, problem())
    found = repeats.timed(lambda: nadaraya_watson(queries, points, values.unsqueeze(-1), GaussianKernel(), BANDWIDTH))
    return quality(found.squeeze(-1).numpy())


def numpy_broadcast(repeats: Repeats) -> dict[str, float]:
    queries, points, values = problem()
    found = np.empty(COUNT, np.float32)
    for _ in range(repeats.count):
        for start in range(0, COUNT, ROWS):
            u = (queries[start : start + ROWS, None] - points) / np.float32(BANDWIDTH)
            weights = np.exp(-(u**2).sum(axis=-1) / 2)
            found[start : start + ROWS] = weights @ values / weights.sum(axis=1)
        repeats.end()
    return quality(found)


def sklearn_matrix(repeats: Repeats) -> dict[str, float]:
    """One matrix product a piece, as scikit-learn has it."""
    from sklearn.metrics.pairwise import rbf_kernel

    queries, points, values = problem()
    found = np.empty(COUNT, np.float32)
    for _ in range(repeats.count):
        for start in range(0, COUNT, ROWS):
            weights = rbf_kernel(queries[start : start + ROWS], points, gamma=1 / (2 * BANDWIDTH**2))
            found[start : start + ROWS] = weights @ values / weights.sum(axis=1)
        repeats.end()
    return quality(found)


def statsmodels_regression(repeats: Repeats) -> dict[str, float]:
    from statsmodels.nonparametric.kernel_regression import KernelReg  # pyright: ignore[reportMissingImports]

    queries, points, values = problem()
    regression = KernelReg(values, points, var_type="c" * DIM, reg_type="lc", bw=[BANDWIDTH] * DIM)  # type: ignore[arg-type]
    found, _ = repeats.timed(lambda: regression.fit(queries[: COUNT // 10]))
    return quality(found)
