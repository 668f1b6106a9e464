"""Errors of a predicted vector: the mean of |v_j - w_j|^p over its d entries, one value per example.

A single number is a vector of one entry: give it a last axis with `unsqueeze(-1)`.
"""

from torch import Tensor
from torch.nn import functional

from quoin.errors import Mistake
from quoin.tensor import check_shapes

__all__ = ["mae", "mean_power_error", "mse"]


def mean_power_error(prediction: Tensor, target: Tensor, power: float) -> Tensor:  # (..., d), (..., d) -> (...)
    """(1/d) sum_j |v_j - w_j|^power for a power of at least 1.

    Notes: D1.3-9.
    """
    _check(prediction, target)
    if not 1 <= power < float("inf"):
        raise Mistake(f"expected a power of at least 1 and finite, came {power}; 1 is the absolute error, 2 the squared one")
    return (prediction - target).abs().pow(power).mean(dim=-1)


def mae(prediction: Tensor, target: Tensor) -> Tensor:  # (..., d), (..., d) -> (...)
    """The mean absolute error, `mean_power_error` of power 1.

    Notes: D1.3-9.
    """
    _check(prediction, target)
    return functional.l1_loss(prediction, target, reduction="none").mean(dim=-1)


def mse(prediction: Tensor, target: Tensor) -> Tensor:  # (..., d), (..., d) -> (...)
    """The mean squared error, `mean_power_error` of power 2; without the half of `squared_loss`.

    >>> import torch
    >>> mse(torch.tensor([1.0, 3.0]), torch.tensor([0.0, 0.0]))
    tensor(5.)

    Notes: D1.3-9.
    """
    _check(prediction, target)
    return functional.mse_loss(prediction, target, reduction="none").mean(dim=-1)


def _check(prediction: Tensor, target: Tensor) -> None:
    check_shapes("... d, ... d", prediction=prediction, target=target)
    if prediction.shape[-1] == 0:
        raise Mistake(f"expected vectors of at least one entry, came shape {tuple(prediction.shape)}; give predictions a last axis")
    if not (prediction.is_floating_point() and target.is_floating_point()):
        raise Mistake(f"expected floats, came {prediction.dtype} and {target.dtype}; convert both, e.g. with .float()")
