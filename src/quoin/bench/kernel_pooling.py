"""The row `nadaraya-watson`: Gaussian pooling of 20,000 values at as many places in four dimensions, in float32.

All n m weights at once would take 1.6 GB, so every side works in pieces. statsmodels' KernelReg takes one place at a time, in float64,
and is asked for a tenth of them: its ratio is to be read as ten times as large.
"""

import numpy as np

from quoin.bench.worker import Laps

__all__ = ["numpy_broadcast", "quoin", "sklearn_matrix", "statsmodels_regression"]

COUNT, DIM, WIDTH = 20_000, 4, 0.5
ROWS = 100  # places at a time: 32 MB of differences, the quickest of 25 to 800 that we found
CHECKED = 200


def problem() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same places, points and noisy values in every process."""
    random = np.random.default_rng(0)
    places, points = random.standard_normal((2, COUNT, DIM)).astype(np.float32)
    values = np.sin(points).sum(axis=1) + 0.3 * random.standard_normal(COUNT)
    return places, points, values.astype(np.float32)


def quality(found: np.ndarray) -> dict[str, float]:
    """The largest error of the first answers, beside the formula in float64."""
    places, points, values = (each.astype(np.float64) for each in problem())
    square = ((places[:CHECKED, None] - points) ** 2).sum(axis=-1) / WIDTH**2
    weights = np.exp(-(square - square.min(axis=1, keepdims=True)) / 2)
    return {"error": float(np.abs(found[:CHECKED] - weights @ values / weights.sum(axis=1)).max())}


def quoin(laps: Laps) -> dict[str, float]:
    import torch

    from quoin.layers import nadaraya_watson
    from quoin.tensor import GaussianWindow

    torch.set_num_threads(laps.threads)
    places, points, values = map(torch.from_numpy, problem())
    for _ in range(laps.count):
        found = nadaraya_watson(places, points, values.unsqueeze(-1), GaussianWindow(), WIDTH)
        laps.end()
    return quality(found.squeeze(-1).numpy())


def numpy_broadcast(laps: Laps) -> dict[str, float]:
    places, points, values = problem()
    found = np.empty(COUNT, np.float32)
    for _ in range(laps.count):
        for start in range(0, COUNT, ROWS):
            u = (places[start : start + ROWS, None] - points) / np.float32(WIDTH)
            weights = np.exp(-(u**2).sum(axis=-1) / 2)
            found[start : start + ROWS] = weights @ values / weights.sum(axis=1)
        laps.end()
    return quality(found)


def sklearn_matrix(laps: Laps) -> dict[str, float]:
    """One matrix product a piece, as scikit-learn has it."""
    from sklearn.metrics.pairwise import rbf_kernel

    places, points, values = problem()
    found = np.empty(COUNT, np.float32)
    for _ in range(laps.count):
        for start in range(0, COUNT, ROWS):
            weights = rbf_kernel(places[start : start + ROWS], points, gamma=1 / (2 * WIDTH**2))
            found[start : start + ROWS] = weights @ values / weights.sum(axis=1)
        laps.end()
    return quality(found)


def statsmodels_regression(laps: Laps) -> dict[str, float]:
    from statsmodels.nonparametric.kernel_regression import KernelReg  # pyright: ignore[reportMissingImports]

    places, points, values = problem()
    regression = KernelReg(values, points, var_type="c" * DIM, reg_type="lc", bw=[WIDTH] * DIM)  # type: ignore[arg-type]
    for _ in range(laps.count):
        found, _ = regression.fit(places[: COUNT // 10])
        laps.end()
    return quality(found)
