"""Independent variables of one distribution: their joint distribution, samples, means and sums.

n variables, k outcomes
"""

from collections.abc import Callable

import torch
from jaxtyping import Float, Real
from torch import Tensor

from quoin.errors import UserError
from quoin.prob.checks import check_probs
from quoin.tensor import check_floating
from quoin.tensor.array_like import ArrayLike, float_tensor

__all__ = [
    "iid_distribution",
    "iid_sample",
    "iid_sum_distribution",
    "iid_sum_distribution_definition",
    "running_means",
    "scaled_sums",
]

_MOST_OUTCOMES = 2**22


def iid_distribution(probs: Float[Tensor, "k"] | ArrayLike, num_variables: int) -> Float[Tensor, "..."]:
    """P[X_1 = x_1, ..., X_n = x_n] = p(x_1) ... p(x_n): independent, each with distribution p.

    The table has n axes, each of size k.

    Notes: D5-32.
    """
    probs = float_tensor(probs, "probs")
    check_probs(probs, "probs")
    if probs.ndim != 1 or num_variables < 1 or len(probs) ** num_variables > _MOST_OUTCOMES:
        got = f"{num_variables} variables of shape {tuple(probs.shape)}"
        raise UserError(
            f"expected one distribution and 1 or more variables with at most {_MOST_OUTCOMES} outcomes together, "
            f"got {got}; take fewer"
        )
    joint = probs
    for _ in range(num_variables - 1):
        joint = joint.unsqueeze(-1) * probs
    return joint


def iid_sample(quantile: Callable[[Tensor], Tensor], *shape: int, generator: torch.Generator) -> Real[Tensor, "*shape"]:
    """Independent X_i = F^{-1}(U_i), U_i uniform on (0, 1): each has the distribution function F.

    `quantile` is F^{-1}, such as `torch.distributions.Cauchy(0.0, 1.0).icdf`; samples are float64.

    Notes: D5-32.
    """
    uniform = torch.rand(shape, generator=generator, dtype=torch.float64)
    return quantile(
        uniform.clamp(min=torch.finfo(torch.float64).tiny)
    )  # zero itself would be sampled once in 2^53 and may be infinite


def running_means(x: Float[Tensor, "*batch n"] | ArrayLike) -> Float[Tensor, "*batch n"]:
    """(X_1 + ... + X_m) / m for m = 1, ..., n: by the strong law of large numbers they go to E X with probability one,
    if E|X| is finite.

    Notes: D5-33.
    """
    x = float_tensor(x, "x")
    check_floating(x)
    return x.cumsum(dim=-1) / torch.arange(1, x.shape[-1] + 1, dtype=x.dtype, device=x.device)


def scaled_sums(x: Float[Tensor, "*batch n"] | ArrayLike) -> Float[Tensor, "*batch n"]:
    """(X_1 + ... + X_m) / √m for m = 1, ..., n: if E X = 0 they go to N(0, E X²) in distribution.

    Notes: D5-34.
    """
    x = float_tensor(x, "x")
    check_floating(x)
    return x.cumsum(dim=-1) / torch.arange(1, x.shape[-1] + 1, dtype=x.dtype, device=x.device).sqrt()


def iid_sum_distribution_definition(
    probs: Float[Tensor, "k"] | ArrayLike, num_variables: int
) -> Float[Tensor, "{num_variables}*(k-1)+1"]:
    """The distribution of S = X_1 + ... + X_n for X_i with P[X_i = j] = p_j, j = 0, ..., k - 1: P[S_n = s] = sum_j p_j
    P[S_{n-1} = s - j].

    Notes: D5-34.
    """
    probs = float_tensor(probs, "probs")
    _check_sum(probs, num_variables)
    total = probs
    for _ in range(num_variables - 1):
        shifted = [torch.nn.functional.pad(p * total, (j, len(probs) - 1 - j)) for j, p in enumerate(probs)]
        total = torch.stack(shifted).sum(dim=0)
    return total


def iid_sum_distribution(
    probs: Float[Tensor, "k"] | ArrayLike, num_variables: int
) -> Float[Tensor, "{num_variables}*(k-1)+1"]:
    """`iid_sum_distribution_definition` by the discrete Fourier transform, which turns the n-fold convolution into
    an n-th power.

    Rounding is that of the largest probability, so that far tails are not known to all their digits, and none
    is below zero.

    Notes: D5-34.
    """
    probs = float_tensor(probs, "probs")
    _check_sum(probs, num_variables)
    size = num_variables * (len(probs) - 1) + 1
    if size == 1:  # one outcome
        return probs**num_variables
    return torch.fft.irfft(torch.fft.rfft(probs, n=size) ** num_variables, n=size).clamp(min=0)


def _check_sum(probs: Tensor, num_variables: int) -> None:
    check_probs(probs, "probs")
    if probs.ndim != 1 or num_variables < 1:
        raise UserError(
            f"expected one distribution and 1 or more variables, got shape {tuple(probs.shape)} and "
            f"{num_variables}; take them one by one"
        )
