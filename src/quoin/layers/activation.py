"""Activations and their derivatives, entry by entry, from their definitions.

The fast forms are torch's: `torch.relu`, `torch.sigmoid`, `torch.tanh`, and `gelu` and `elu` of torch.nn.functional.
The definitions are as safe as those: no finite input gives NaN, in the value or in the gradient. Softmax, which is not
entry by entry, is in quoin.tensor.
"""

import math

import torch
from jaxtyping import Float, Real
from torch import Tensor

from quoin.tensor import as_floating

__all__ = [
    "elu",
    "elu_derivative",
    "gelu",
    "gelu_derivative",
    "relu",
    "relu_derivative",
    "sigmoid",
    "sigmoid_derivative",
    "tanh",
    "tanh_derivative",
]


def relu(x: Real[Tensor, "*shape"]) -> Real[Tensor, "*shape"]:
    """max(0, x), entry by entry, with derivative 0 at 0.

    Notes: D1-3.
    """
    # The condition decides the derivative at 0: torch.maximum would split it in half, clamp would take 1.
    return torch.where(x <= 0, 0, x)


def relu_derivative(x: Real[Tensor, "*shape"]) -> Real[Tensor, "*shape"]:
    """1 where x > 0 and 0 elsewhere, at 0 too (there the derivative jumps, and 0 is the convention); NaN stays NaN.

    Notes: D1-3.
    """
    return torch.where(x > 0, 1, torch.where(x <= 0, 0, x))


def sigmoid(x: Real[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """1 / (1 + e^-x), written for x < 0 as e^x / (1 + e^x): then no exponential overflows.

    Notes: D1-5.
    """
    x = as_floating(x)
    small = _minus_abs(x).exp()
    return torch.where(x < 0, small, 1) / (1 + small)


def sigmoid_derivative(x: Real[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """sigmoid(x) sigmoid(-x), which is sigmoid (1 - sigmoid) and at most 1/4.

    Notes: D1-5.
    """
    x = as_floating(x)
    return sigmoid(x) * sigmoid(-x)  # 1 - sigmoid(x) would lose every digit for large x


def tanh(x: Real[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """(1 - e^-2x) / (1 + e^-2x) = 2 sigmoid(2x) - 1, taken at |x| and given the sign of x.

    For very negative x the quotient would be inf / inf, and near 0 the difference 1 - e^-2x would lose its digits.

    Notes: D1-4.
    """
    x = as_floating(x)
    decay = torch.expm1(2 * _minus_abs(x))  # e^(-2|x|) - 1, exact to rounding near 0
    return torch.where(x < 0, decay, -decay) / (2 + decay)


def tanh_derivative(x: Real[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """1 - tanh(x)^2, as 4 sigmoid(2x) sigmoid(-2x).

    Notes: D1-4.
    """
    return 4 * sigmoid_derivative(2 * as_floating(x))


def gelu(x: Real[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """x Phi(x) with the standard normal distribution function Phi(x) = erfc(-x / sqrt 2) / 2.

    Notes: D1-6.
    """
    x = as_floating(x)
    return x * _normal_distribution(x)


def gelu_derivative(x: Real[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Phi(x) + x phi(x) with the standard normal density phi.

    Notes: D1-6.
    """
    x = as_floating(x)
    return _normal_distribution(x) + x * (-x.square() / 2).exp() / math.sqrt(2 * math.pi)


def elu(x: Real[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """x where x > 0, and e^x - 1 elsewhere.

    Notes: D1-7.
    """
    return torch.where(x > 0, x, torch.expm1(_at_most_zero(x)))


def elu_derivative(x: Real[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """1 where x > 0, and e^x elsewhere: continuous at 0, unlike that of ReLU.

    Notes: D1-7.
    """
    return _at_most_zero(x).exp()


def _minus_abs(x: Tensor) -> Tensor:
    # Not -x.abs(), whose derivative at 0 is 0: there either branch, which is smooth, gives the right one.
    return torch.where(x < 0, x, -x)


def _at_most_zero(x: Tensor) -> Tensor:
    # A branch that is not taken must not overflow either: its gradient would be 0 times infinity.
    return torch.where(x > 0, 0, x)


def _normal_distribution(x: Tensor) -> Tensor:
    return torch.special.erfc(-x / math.sqrt(2)) / 2  # 1 + erf loses its digits for negative x
