"""The Fréchet distance between normal distributions: how far mass must move to make one the other.

d²(N(μ, Σ), N(ν, Λ)) = min E|X - Y|² over all pairs with these distributions = ‖μ - ν‖² + tr(Σ + Λ - 2
(Σ^(1/2) Λ Σ^(1/2))^(1/2))

It is the Wasserstein distance of order two, and stays finite where the Kullback-Leibler divergence of singular
distributions does not. d coordinates
"""

import torch
from jaxtyping import Float, Real
from torch import Tensor

from quoin.errors import UserError
from quoin.prob.covariance import check_covariance, check_semi_definite
from quoin.prob.matrix_root import symmetric_root
from quoin.tensor import as_floating, check_finite, check_floating, check_same_dtype, check_shapes
from quoin.tensor.array_like import ArrayLike, float_tensor, number_tensor

__all__ = ["squared_frechet_definition", "squared_frechet_of_samples"]


def squared_frechet_definition(
    mean_p: Real[Tensor, "d"] | ArrayLike,
    covariance_p: Float[Tensor, "d d"] | ArrayLike,
    mean_q: Real[Tensor, "d"] | ArrayLike,
    covariance_q: Float[Tensor, "d d"] | ArrayLike,
) -> Float[Tensor, ""]:
    """‖μ_p - μ_q‖² + tr(Σ_p + Σ_q - 2 (Σ_p^(1/2) Σ_q Σ_p^(1/2))^(1/2)); the covariances may be singular.

    In covariances that are, the gradient is right for every change that keeps their ranks (matrix_root.py).

    >>> mean, covariance = torch.zeros(1), torch.eye(1)
    >>> float(squared_frechet_definition(mean, covariance, mean + 3, 4 * covariance))  # 3² + (2 - 1)²
    10.0

    Notes: D5.2-9.
    """
    mean_p = number_tensor(mean_p, "mean_p", covariance_p, mean_q, covariance_q)
    covariance_p = float_tensor(covariance_p, "covariance_p", mean_p, mean_q, covariance_q)
    mean_q = number_tensor(mean_q, "mean_q", mean_p, covariance_p, covariance_q)
    covariance_q = float_tensor(covariance_q, "covariance_q", mean_p, covariance_p, mean_q)
    check_shapes("d, d d, d, d d", mean_p=mean_p, covariance_p=covariance_p, mean_q=mean_q, covariance_q=covariance_q)
    for covariance in (covariance_p, covariance_q):
        check_covariance(covariance)
        check_semi_definite(covariance)
    mean_p, mean_q = as_floating(mean_p), as_floating(mean_q)
    root = symmetric_root(covariance_p)
    return (mean_p - mean_q).square().sum() + torch.trace(
        covariance_p + covariance_q - 2 * symmetric_root(root @ covariance_q @ root)
    )


def squared_frechet_of_samples(
    first: Float[Tensor, "n d"] | ArrayLike, second: Float[Tensor, "m d"] | ArrayLike
) -> Float[Tensor, ""]:
    """`squared_frechet_definition` between the normal distributions fitted to two samples, with covariances over n - 1
    and m - 1.

    A sample less its mean is QR, so that its covariance is RᵀR/(n - 1), and the trace of the root is the sum of the
    singular values of R_p R_qᵀ: no covariance is formed and no root is taken. It is biased upwards, for samples of one
    distribution N(μ, σ² I), n each, by about σ² d(d + 5)/(2n): compare it between samples of one size.

    Notes: D5.2-9.
    """
    first = float_tensor(first, "first", second)
    second = float_tensor(second, "second", first)
    check_shapes("n d, m d", first=first, second=second)
    check_same_dtype(first, second)
    means, factors = [], []
    for name, sample in (("first", first), ("second", second)):
        check_floating(sample, name)
        check_finite(sample, name)
        if len(sample) < 2:
            raise UserError(
                f"expected at least two examples to fit a distribution to, got {len(sample)} in {name}; give more"
            )
        means.append(sample.double().mean(dim=0))
        away = sample.double() - means[-1]
        # R = QᵀX with a fixed Q: to first order the singular values do not feel that Q turns, and for a singular R they
        # could not.
        factors.append(torch.linalg.qr(away.detach()).Q.mT @ away / (len(sample) - 1) ** 0.5)
    shared = torch.linalg.svdvals(factors[0] @ factors[1].mT).sum()
    variances = factors[0].square().sum() + factors[1].square().sum() - 2 * shared
    return ((means[0] - means[1]).square().sum() + variances.clamp(min=0)).to(first.dtype)
