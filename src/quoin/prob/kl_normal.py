"""The Kullback-Leibler divergence between normal laws in closed form, in nats.

First by inverse and determinant, then by Cholesky factors; and the case that variational inference needs most, from independent
coordinates to the standard normal law.   d coordinates
"""

import torch
from torch import Tensor

from quoin.errors import Mistake
from quoin.prob.covariance import check_covariance
from quoin.tensor import as_floating, check_floating, check_shapes

__all__ = ["kl_normal", "kl_normal_definition", "kl_standard_normal", "kl_standard_normal_definition"]


def kl_normal_definition(mean_p: Tensor, covariance_p: Tensor, mean_q: Tensor, covariance_q: Tensor) -> Tensor:
    """D(P‖Q) = ½ [tr(Σ_q^-1 Σ_p) + (μ_q - μ_p)^T Σ_q^-1 (μ_q - μ_p) - d + ln(det Σ_q / det Σ_p)], means (..., d), covariances (..., d, d).

    Notes: D6-29.
    """
    check_shapes("... d, ... d d, ... d, ... d d", mean_p=mean_p, covariance_p=covariance_p, mean_q=mean_q, covariance_q=covariance_q)
    inverse = torch.linalg.inv(covariance_q)
    away = (mean_q - mean_p).unsqueeze(-1)
    trace = (inverse @ covariance_p).diagonal(dim1=-2, dim2=-1).sum(dim=-1)
    square = (away.mT @ inverse @ away).squeeze((-2, -1))
    volumes = torch.log(torch.linalg.det(covariance_q) / torch.linalg.det(covariance_p))
    return (trace + square - mean_p.shape[-1] + volumes) / 2


def kl_normal(mean_p: Tensor, covariance_p: Tensor, mean_q: Tensor, covariance_q: Tensor) -> Tensor:
    """`kl_normal_definition` by Cholesky factors Σ = L L^T, which neither under- nor overflow as determinants do; leading axes broadcast.

    >>> one, wide = torch.eye(1), 4 * torch.eye(1)
    >>> float(kl_normal(torch.zeros(1), one, torch.zeros(1), wide))  # ½ (1/4 - 1 + ln 4)
    0.318147...

    Notes: D6-29.
    """
    for mean, covariance, name in ((mean_p, covariance_p, "p"), (mean_q, covariance_q, "q")):
        check_covariance(covariance)
        check_floating(mean, f"mean_{name}")
        if mean.ndim == 0 or mean.shape[-1] != covariance.shape[-1]:
            came = f"{tuple(mean.shape)} with a covariance {tuple(covariance.shape)}"
            raise Mistake(f"expected a mean (..., d) of {name} to its covariance (..., d, d), came {came}; make the sizes equal")
    if mean_p.shape[-1] != mean_q.shape[-1]:
        raise Mistake(f"expected two laws on as many coordinates, came {mean_p.shape[-1]} and {mean_q.shape[-1]}; give equal ones")
    factor_p, factor_q = _factor(covariance_p, "p"), _factor(covariance_q, "q")
    batch = torch.broadcast_shapes(factor_p.shape[:-2], factor_q.shape[:-2])
    spread = torch.linalg.solve_triangular(factor_q.expand(*batch, -1, -1), factor_p.expand(*batch, -1, -1), upper=False)
    away = torch.linalg.solve_triangular(factor_q, (mean_q - mean_p).unsqueeze(-1), upper=False).squeeze(-1)
    volumes = _log_volume(factor_q) - _log_volume(factor_p)
    return (spread.square().sum(dim=(-2, -1)) + away.square().sum(dim=-1) - mean_p.shape[-1]) / 2 + volumes


def kl_standard_normal_definition(mean: Tensor, std: Tensor) -> Tensor:  # (..., d), (..., d) -> (...)
    """D(N(μ, diag σ²)‖N(0, I)) = ½ Σ_j (σ_j² + μ_j² - 1 - ln σ_j²).

    Notes: D6-29, DE61.
    """
    check_shapes("... d, ... d", mean=mean, std=std)
    mean, std = as_floating(mean), as_floating(std)
    return (std**2 + mean**2 - 1 - torch.log(std**2)).sum(dim=-1) / 2


def kl_standard_normal(mean: Tensor, log_std: Tensor) -> Tensor:  # (..., d), (..., d) -> (...)
    """`kl_standard_normal_definition` at σ = e^log_std, which is positive for every output of a network.

    σ² - 1 is taken as expm1(2 log_std): near σ = 1, where encoders that say nothing end, e^(2 log_std) - 1 would be all rounding.

    >>> f"{kl_standard_normal(torch.zeros(3), torch.full((3,), 1e-4)):.1e}"  # 3 · (1e-4)² to first order
    '3.0e-08'

    Notes: D6-29, DE61.
    """
    check_shapes("... d, ... d", mean=mean, log_std=log_std)
    check_floating(mean, "mean")
    check_floating(log_std, "log_std")
    log_variance = 2 * log_std
    return (torch.expm1(log_variance) - log_variance + mean.square()).sum(dim=-1) / 2


def _factor(covariance: Tensor, name: str) -> Tensor:
    factor, failed = torch.linalg.cholesky_ex(covariance)
    if not torch.compiler.is_compiling() and bool(failed.any()):
        raise Mistake(f"expected a covariance of {name} with variance in every direction, came a singular one; widen its diagonal")
    return factor


def _log_volume(factor: Tensor) -> Tensor:
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(dim=-1)
