"""Losses of predicted numbers: one value per example, so that a caller may sum over batches and ranks and divide once.

The squared loss is also what Gaussian noise of fixed scale makes of maximum likelihood. The mean of |v_j - w_j|^p takes
vectors of d
entries: a single number is one of one entry, give it a last axis with `unsqueeze(-1)`.
"""

import math

from jaxtyping import Float, Real
from torch import Tensor
from torch.nn import functional

from quoin.errors import UserError
from quoin.tensor import as_floating, check_shapes

__all__ = ["gaussian_nll", "mae", "mean_power_error", "mse", "squared_loss"]


def squared_loss(prediction: Real[Tensor, "*shape"], target: Real[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """(prediction - target)^2 / 2 for each example; `empirical_risk` takes the mean.

    Notes: Z3.3.
    """
    check_shapes("..., ...", prediction=prediction, target=target)
    return (as_floating(prediction, target) - as_floating(target, prediction)).square() / 2


def gaussian_nll(
    prediction: Real[Tensor, "*shape"], target: Real[Tensor, "*shape"], scale: float
) -> Float[Tensor, "*shape"]:
    """-log N(target; prediction, scale^2) = log(2 pi scale^2) / 2 + (target - prediction)^2 / (2 scale^2) for each
    example.

    Notes: Z3.12, Z3.14.
    """
    if not scale > 0:
        raise UserError(f"expected a positive scale (standard deviation), got {scale}; give e.g. 1.0")
    return squared_loss(prediction, target) / scale**2 + math.log(2 * math.pi * scale**2) / 2


def mean_power_error(
    prediction: Float[Tensor, "*batch d"], target: Float[Tensor, "*batch d"], power: float
) -> Float[Tensor, "*batch"]:
    """(1/d) sum_j |v_j - w_j|^power for a power of at least 1.

    Notes: D1.3-9.
    """
    _check_vectors(prediction, target)
    if not 1 <= power < float("inf"):
        raise UserError(
            f"expected a power of at least 1 and finite, got {power}; 1 is the absolute error, 2 the squared one"
        )
    return (prediction - target).abs().pow(power).mean(dim=-1)


def mae(prediction: Float[Tensor, "*batch d"], target: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch"]:
    """The mean absolute error, `mean_power_error` of power 1.

    Notes: D1.3-9.
    """
    _check_vectors(prediction, target)
    return functional.l1_loss(prediction, target, reduction="none").mean(dim=-1)


def mse(prediction: Float[Tensor, "*batch d"], target: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch"]:
    """The mean squared error, `mean_power_error` of power 2; without the half of `squared_loss`.

    >>> import torch
    >>> mse(torch.tensor([1.0, 3.0]), torch.tensor([0.0, 0.0]))
    tensor(5.)

    Notes: D1.3-9.
    """
    _check_vectors(prediction, target)
    return functional.mse_loss(prediction, target, reduction="none").mean(dim=-1)


def _check_vectors(prediction: Tensor, target: Tensor) -> None:
    check_shapes("... d, ... d", prediction=prediction, target=target)
    if prediction.shape[-1] == 0:
        raise UserError(
            f"expected vectors of at least one entry, got shape {tuple(prediction.shape)}; give predictions a last axis"
        )
    if not (prediction.is_floating_point() and target.is_floating_point()):
        raise UserError(f"expected floats, got {prediction.dtype} and {target.dtype}; convert both, e.g. with .float()")
