"""Losses of a predicted number: one value per example, so that a caller may sum over batches and ranks and divide once.

The squared loss is also what Gaussian noise of fixed scale makes of maximum likelihood.
"""

import math

from torch import Tensor

from quoin.errors import Mistake
from quoin.tensor import as_floating, check_shapes

__all__ = ["gaussian_nll", "squared_loss"]


def squared_loss(prediction: Tensor, target: Tensor) -> Tensor:  # (...), (...) -> (...)
    """(prediction - target)^2 / 2 for each example; `empirical_risk` takes the mean.

    Notes: Z3.3.
    """
    check_shapes("..., ...", prediction=prediction, target=target)
    return (as_floating(prediction, target) - as_floating(target, prediction)).square() / 2


def gaussian_nll(prediction: Tensor, target: Tensor, scale: float) -> Tensor:  # (...), (...) -> (...)
    """-log N(target; prediction, scale^2) = log(2 pi scale^2) / 2 + (target - prediction)^2 / (2 scale^2) for each example.

    Notes: Z3.12, Z3.14.
    """
    if not scale > 0:
        raise Mistake(f"expected a positive scale (standard deviation), came {scale}; give e.g. 1.0")
    return squared_loss(prediction, target) / scale**2 + math.log(2 * math.pi * scale**2) / 2
