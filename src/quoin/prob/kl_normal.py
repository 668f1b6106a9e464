"""The Kullback-Leibler divergence between normal distributions in closed form, in nats.

First by inverse and determinant, then by Cholesky factors, for singular distributions too; and the case that
variational inference needs most, from independent coordinates to the standard normal distribution.   d coordinates
"""

import math

import torch
from jaxtyping import Float, Real
from torch import Tensor

from quoin.errors import UserError
from quoin.prob.covariance import Support, check_covariance, slack_of, support
from quoin.tensor import as_floating, check_floating, check_shapes
from quoin.tensor.array_like import ArrayLike, float_tensor, number_tensor

__all__ = ["kl_normal", "kl_normal_definition", "kl_standard_normal", "kl_standard_normal_definition"]


def kl_normal_definition(
    mean_p: Float[Tensor, "*batch d"] | ArrayLike,
    covariance_p: Float[Tensor, "*batch d d"] | ArrayLike,
    mean_q: Float[Tensor, "*batch d"] | ArrayLike,
    covariance_q: Float[Tensor, "*batch d d"] | ArrayLike,
) -> Float[Tensor, "*batch"]:
    """D(P‖Q) = ½ [tr(Σ_q^-1 Σ_p) + (μ_q - μ_p)^T Σ_q^-1 (μ_q - μ_p) - d + ln(det Σ_q / det Σ_p)].

    A singular distribution lives on μ + the image of Σ. D is infinite unless P and Q have the same such space, for
    otherwise P gives probability one to a set to which Q gives none; if they have it, D is the formula in coordinates
    of that space, and 0 for two equal points.

    Notes: D6-29.
    """
    mean_p = float_tensor(mean_p, "mean_p", covariance_p, mean_q, covariance_q)
    covariance_p = float_tensor(covariance_p, "covariance_p", mean_p, mean_q, covariance_q)
    mean_q = float_tensor(mean_q, "mean_q", mean_p, covariance_p, covariance_q)
    covariance_q = float_tensor(covariance_q, "covariance_q", mean_p, covariance_p, mean_q)
    check_shapes(
        "... d, ... d d, ... d, ... d d",
        mean_p=mean_p,
        covariance_p=covariance_p,
        mean_q=mean_q,
        covariance_q=covariance_q,
    )
    if support(covariance_p).basis is None and support(covariance_q).basis is None:
        return _formula(mean_p, covariance_p, mean_q, covariance_q)
    d = mean_p.shape[-1]
    means = (mean.reshape(-1, d) for mean in (mean_p, mean_q))
    covariances = (covariance.reshape(-1, d, d) for covariance in (covariance_p, covariance_q))
    return torch.stack([_on_the_image(*parameters) for parameters in zip(*means, *covariances)]).reshape(
        mean_p.shape[:-1]
    )


def _formula(mean_p: Tensor, covariance_p: Tensor, mean_q: Tensor, covariance_q: Tensor) -> Tensor:
    inverse = torch.linalg.inv(covariance_q)
    away = (mean_q - mean_p).unsqueeze(-1)
    trace = (inverse @ covariance_p).diagonal(dim1=-2, dim2=-1).sum(dim=-1)
    square = (away.mT @ inverse @ away).squeeze((-2, -1))
    volumes = torch.log(torch.linalg.det(covariance_q) / torch.linalg.det(covariance_p))
    return (trace + square - mean_p.shape[-1] + volumes) / 2


def _on_the_image(
    mean_p: Tensor, mean_q: Tensor, covariance_p: Tensor, covariance_q: Tensor
) -> Tensor:  # (d,), (d, d) -> ()
    of_p, of_q = support(covariance_p), support(covariance_q)
    if not bool(_same_space(mean_p, covariance_p, of_p, mean_q, of_q)):
        return mean_p.new_tensor(math.inf)
    if of_q.basis is None:
        return _formula(mean_p, covariance_p, mean_q, covariance_q)
    V = of_q.basis[:, of_q.basis.abs().sum(dim=0) > 0]  # (d, r)
    return _formula(mean_p @ V, V.mT @ covariance_p @ V, mean_q @ V, V.mT @ covariance_q @ V)


def kl_normal(
    mean_p: Float[Tensor, "*#batch d"] | ArrayLike,
    covariance_p: Float[Tensor, "*#batch d d"] | ArrayLike,
    mean_q: Float[Tensor, "*#batch d"] | ArrayLike,
    covariance_q: Float[Tensor, "*#batch d d"] | ArrayLike,
) -> Float[Tensor, "*#batch"]:
    """`kl_normal_definition` by Cholesky factors Σ = L L^T, which neither under- nor overflow as determinants do;
    leading axes broadcast.

    Gradients in singular covariances are right for changes that keep the space on which both live, and 0 where
    D is infinite.

    >>> one, wide = torch.eye(1), 4 * torch.eye(1)
    >>> float(kl_normal(torch.zeros(1), one, torch.zeros(1), wide))  # ½ (1/4 - 1 + ln 4)
    0.318147...
    >>> line = torch.tensor([[1.0, 1.0], [1.0, 1.0]])  # on the diagonal, as Q is; but not the shifted one
    >>> kl_normal(torch.tensor([[1.0, 1.0], [1.0, 0.0]]), line, torch.zeros(2), line)
    tensor([0.5000,    inf])

    Notes: D6-29.
    """
    mean_p = float_tensor(mean_p, "mean_p", covariance_p, mean_q, covariance_q)
    covariance_p = float_tensor(covariance_p, "covariance_p", mean_p, mean_q, covariance_q)
    mean_q = float_tensor(mean_q, "mean_q", mean_p, covariance_p, covariance_q)
    covariance_q = float_tensor(covariance_q, "covariance_q", mean_p, covariance_p, mean_q)
    for mean, covariance, name in ((mean_p, covariance_p, "p"), (mean_q, covariance_q, "q")):
        check_covariance(covariance)
        check_floating(mean, f"mean_{name}")
        if mean.ndim == 0 or mean.shape[-1] != covariance.shape[-1]:
            got = f"{tuple(mean.shape)} with a covariance {tuple(covariance.shape)}"
            raise UserError(
                f"expected a mean (..., d) of {name} to its covariance (..., d, d), got {got}; make the sizes equal"
            )
    if mean_p.shape[-1] != mean_q.shape[-1]:
        raise UserError(
            f"expected two distributions on as many coordinates, got {mean_p.shape[-1]} and {mean_q.shape[-1]}; "
            "give equal ones"
        )
    of_p, of_q = support(covariance_p), support(covariance_q)
    factor_p, factor_q, away, same = of_p.factor, of_q.factor, mean_q - mean_p, None
    if of_p.basis is not None or of_q.basis is not None:
        same = _same_space(mean_p, covariance_p, of_p, mean_q, of_q)
        # P in the coordinates of Q, with a one, as Q's factor has, in the directions without variance: they add
        # nothing.
        own = torch.eye(away.shape[-1], dtype=away.dtype, device=away.device)
        basis = own if of_q.basis is None else of_q.basis
        inside = basis.mT @ covariance_p @ basis + torch.diag_embed(1 - basis.square().sum(dim=-2))
        factor_p = torch.linalg.cholesky(torch.where(same[..., None, None], inside, own))
        away = (basis.mT @ torch.where(same.unsqueeze(-1), away, 0).unsqueeze(-1)).squeeze(-1)
    batch = torch.broadcast_shapes(factor_p.shape[:-2], factor_q.shape[:-2])
    scaled = torch.linalg.solve_triangular(
        factor_q.expand(*batch, -1, -1), factor_p.expand(*batch, -1, -1), upper=False
    )
    away = torch.linalg.solve_triangular(factor_q, away.unsqueeze(-1), upper=False).squeeze(-1)
    volumes = _half_log_det(factor_q) - _half_log_det(factor_p)
    found = (scaled.square().sum(dim=(-2, -1)) + away.square().sum(dim=-1) - mean_p.shape[-1]) / 2 + volumes
    return found if same is None else torch.where(same, found, math.inf)


def _same_space(
    mean_p: Tensor, covariance_p: Tensor, of_p: Support, mean_q: Tensor, of_q: Support
) -> Tensor:  # -> (...)
    """Whether μ + the image of Σ is the same for both distributions: as many directions, none of P's variance and no
    shift off Q's.
    """
    with torch.no_grad():
        same = torch.as_tensor(of_p.rank() == of_q.rank(), device=mean_p.device)
        if of_q.null is None:
            return same & torch.ones(mean_p.shape[:-1], dtype=torch.bool, device=mean_p.device)
        off = (of_q.null.mT @ covariance_p @ of_q.null).diagonal(dim1=-2, dim2=-1).amax(dim=-1)
        rounding = slack_of(covariance_p) * covariance_p.diagonal(dim1=-2, dim2=-1).sum(dim=-1)
        held = of_q.holds(mean_p, mean_q)
        return same & (off <= rounding) & (True if held is None else held)


def kl_standard_normal_definition(
    mean: Real[Tensor, "*batch d"] | ArrayLike, std: Real[Tensor, "*batch d"] | ArrayLike
) -> Float[Tensor, "*batch"]:
    """D(N(μ, diag σ²)‖N(0, I)) = ½ Σ_j (σ_j² + μ_j² - 1 - ln σ_j²).

    Notes: D6-29, DE61.
    """
    mean = number_tensor(mean, "mean", std)
    std = number_tensor(std, "std", mean)
    check_shapes("... d, ... d", mean=mean, std=std)
    mean, std = as_floating(mean), as_floating(std)
    return (std**2 + mean**2 - 1 - torch.log(std**2)).sum(dim=-1) / 2


def kl_standard_normal(
    mean: Float[Tensor, "*batch d"] | ArrayLike, log_std: Float[Tensor, "*batch d"] | ArrayLike
) -> Float[Tensor, "*batch"]:
    """`kl_standard_normal_definition` at σ = e^log_std, which is positive for every output of a network.

    σ² - 1 is taken as expm1(2 log_std): near σ = 1, where encoders whose latents carry no information end, e^(2
    log_std) - 1 would be all rounding.

    >>> f"{kl_standard_normal(torch.zeros(3), torch.full((3,), 1e-4)):.1e}"  # 3 · (1e-4)² to first order
    '3.0e-08'

    Notes: D6-29, DE61.
    """
    mean = float_tensor(mean, "mean", log_std)
    log_std = float_tensor(log_std, "log_std", mean)
    check_shapes("... d, ... d", mean=mean, log_std=log_std)
    check_floating(mean, "mean")
    check_floating(log_std, "log_std")
    log_variance = 2 * log_std
    return (torch.expm1(log_variance) - log_variance + mean.square()).sum(dim=-1) / 2


def _half_log_det(factor: Tensor) -> Tensor:
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(dim=-1)
