"""The loss of a variational autoencoder: minus the evidence lower bound, and its Gaussian case written out.

An encoder gives q(z | x) = N(μ(x), diag σ(x)²), the prior is N(0, I), a decoder gives p(x | z); both learn from one
number. What encoders and decoders are made of is in quoin.models.   n examples, m samples of z for each, k latent
coordinates
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float, Real
from torch import Tensor
from torch.nn import functional

from quoin.display import shown
from quoin.errors import UserError
from quoin.losses.elbo_gradients import elbo_analytic_kl
from quoin.prob import DiagonalNormal, LatentModel, kl_standard_normal, kl_standard_normal_definition

__all__ = ["GaussianVAELoss", "gaussian_vae_loss", "gaussian_vae_loss_definition", "kl_warmup", "vae_losses"]


@shown
class GaussianVAELoss(NamedTuple):
    """The loss, and the two terms that it weighs against each other."""

    output: Float[Tensor, ""]
    kl: Float[Tensor, "n"]  # how far q(z | x_n) is from the prior
    reconstruction: Float[Tensor, "n"]  # squared errors over 2 s²


def gaussian_vae_loss_definition(
    x: Float[Tensor, "n *shape"],
    mean: Float[Tensor, "n k"],
    std: Float[Tensor, "n k"],
    noise: Float[Tensor, "m n k"],
    decode: Callable[[Tensor], Tensor],
    decoder_std: float,
) -> GaussianVAELoss:
    """(1/N) Σ_n [D(q(z | x_n)‖N(0, I)) + (1/M) Σ_m ‖x_n - μ_θ(μ_φ(x_n) + σ_φ(x_n) ε_nm)‖² / (2s²)], sample by sample.

    It is minus the bound of a decoder N(μ_θ(z), s² I) without the constant (d/2) ln 2πs² of an example of d numbers.

    Args:
        mean: μ_φ(x).
        std: σ_φ(x).
        noise: ε ~ N(0, I).
        decode: μ_θ, from (n, k) to the shape of x.
        decoder_std: s.

    Notes: D6-28, DE59, DE60.
    """
    _check_decoder_std(decoder_std)
    kl = kl_standard_normal_definition(mean, std)
    errors = [(x - decode(mean + std * each)).flatten(1).square().sum(dim=1) for each in noise]
    reconstruction = torch.stack(errors).mean(dim=0) / (2 * decoder_std**2)
    return GaussianVAELoss((kl + reconstruction).mean(), kl, reconstruction)


def gaussian_vae_loss(
    x: Float[Tensor, "n *shape"],
    mean: Float[Tensor, "n k"],
    log_std: Float[Tensor, "n k"],
    noise: Float[Tensor, "m n k"],
    decode: Callable[[Tensor], Tensor],
    decoder_std: float,
) -> Float[Tensor, ""]:
    """`gaussian_vae_loss_definition(...).output` from ln σ_φ, all samples decoded at once.

    >>> x, noise = torch.ones(4, 3), torch.zeros(1, 4, 2)
    >>> mean = log_std = torch.zeros(4, 2)
    >>> gaussian_vae_loss(x, mean, log_std, noise, lambda z: torch.zeros(len(z), 3), 1.0)  # 3 / 2
    tensor(1.5000)

    Notes: D6-28, DE59, DE60.
    """
    _check_decoder_std(decoder_std)
    if noise.ndim != 3 or noise.shape[1:] != mean.shape or len(noise) == 0:
        got = f"{tuple(noise.shape)} for means {tuple(mean.shape)}"
        raise UserError(
            f"expected noise (m, n, k) with a row for each sample and example, got {got}; "
            "give q.sample_noise((m,), generator=...)"
        )
    z = DiagonalNormal(mean, log_std).transform(noise)
    decoded = decode(z.flatten(0, 1)).reshape(len(noise), *x.shape)
    error = functional.mse_loss(decoded, x.expand_as(decoded), reduction="sum") / (len(noise) * len(x))
    return kl_standard_normal(mean, log_std).mean() + error / (2 * decoder_std**2)


def vae_losses(
    model: LatentModel,
    q: DiagonalNormal,
    x: Real[Tensor, "n *shape"],
    noise: Float[Tensor, "m n k"],
    *,
    kl_weight: float | Float[Tensor, ""] = 1.0,
) -> Float[Tensor, "n"]:
    """β D(q(z | x)‖N(0, I)) - (1/M) Σ_m ln p(x | z_m), for each x: minus the bound if β = 1, for any decoder.

    To minimise its sum over the examples in the parameters of encoder and decoder alike is the algorithm.

    Args:
        noise: ε_m of the M samples z_m = q.transform(ε_m).
        kl_weight: β; another than 1 makes it a β-VAE.

    Notes: D6-23, DE59.
    """
    kl = kl_standard_normal(q.mean, q.log_std)
    counts_once = not isinstance(kl_weight, Tensor) and kl_weight == 1
    return -elbo_analytic_kl(model, q, x, noise, kl=kl if counts_once else kl_weight * kl)


def kl_warmup(progress: float, ratio: float) -> float:
    """β = min(1, progress / ratio): the divergence counts for nothing at first and in full after `ratio` of the run.

    Under its full weight from the start the posterior may collapse to the prior before the decoder has learnt to use z.

    Args:
        progress: The fraction of the run that is done, from 0 to 1.
        ratio: The fraction of the run after which β is 1; 0 for no warm-up.

    >>> [kl_warmup(progress, 0.2) for progress in (0.0, 0.1, 0.5)]
    [0.0, 0.5, 1.0]
    """
    if not 0 <= ratio <= 1:
        raise UserError(
            f"expected a warm-up of a fraction of the run, from 0 to 1, got {ratio}; give e.g. 0.2, or 0 for none"
        )
    return 1.0 if progress >= ratio else progress / ratio


def _check_decoder_std(std: float) -> None:
    if not 0 < std < float("inf"):
        raise UserError(f"expected a standard deviation above 0 for the decoder, got {std}; give e.g. 0.1")
