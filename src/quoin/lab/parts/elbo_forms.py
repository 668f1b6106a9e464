"""Ways to estimate the bound's gradient, and the VAE's loss by the right and the printed form, for the page on latent
variables."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from quoin import losses, prob
from quoin.lab.parts.claim_forms import form_of
from quoin.lab.parts.em_states import encoded_digits
from quoin.models import PPCA
from quoin.notes.claims.elbo import bound_is_a_mean_over_samples
from quoin.notes.claims.vae import loss_falls_as_the_decoder_improves, noise_is_placed_by_the_deviation
from quoin.runs import Run

__all__ = ["LINE", "SEEN", "DecoderLosses", "decoder_losses", "gradient_cloud", "gradient_forms"]

LINE = PPCA(torch.ones(1, 1).double(), torch.zeros(1).double(), 0.7).requires_grad_(False)
SEEN = torch.tensor([1.5], dtype=torch.float64)
_NUM_ESTIMATES = 200

Estimate = Callable[[PPCA, prob.DiagonalNormal, Tensor, Tensor], Tensor]


def gradient_forms(printed: str) -> dict[str, Estimate]:
    """The bound's estimates by name, each of model, q, x and noise; `printed` is the id of the form shown, if any."""
    forms: dict[str, Estimate] = {
        "score": losses.elbo_reinforce,
        "score less the others' mean": losses.elbo_reinforce_baseline,
        "reparametrised": losses.elbo_reparameterized,
        "KL in closed form": _analytic,
        "Bonnet and Price": losses.elbo_bonnet_price,
    }
    if printed == "DE60":
        return {name: _placed if name == "reparametrised" else form for name, form in forms.items()}
    if printed == "DE55":
        return {name: _by_points(form) for name, form in forms.items()}
    return forms


def _analytic(model: PPCA, q: prob.DiagonalNormal, x: Tensor, noise: Tensor) -> Tensor:
    return losses.elbo_analytic_kl(model, q, x, noise, kl=prob.kl_standard_normal(q.mean, q.log_std))


def _placed(model: PPCA, q: prob.DiagonalNormal, x: Tensor, noise: Tensor) -> Tensor:
    z = form_of(noise_is_placed_by_the_deviation, True)(q, noise)
    return losses.elbo_definition(model.log_joint(x, z), q.log_prob(z), torch.full_like(z[..., 0], 1 / len(z)))


def _by_points(form: Estimate) -> Estimate:
    """The sum over the samples divided by the number of data points, which is one here."""

    def estimate(model: PPCA, q: prob.DiagonalNormal, x: Tensor, noise: Tensor) -> Tensor:
        return form_of(bound_is_a_mean_over_samples, True)(form(model, q, x, noise), len(noise), 1)

    return estimate


def gradient_cloud(form: Estimate, sigma: float, noise: Float[Tensor, "m n 1"]) -> Float[Tensor, "n"]:
    """A gradient in the mean of q = N(0, σ²) for each column of noise."""
    mean = torch.zeros(noise.shape[1], 1, dtype=torch.float64, requires_grad=True)
    q = prob.DiagonalNormal(mean, torch.full_like(mean, math.log(sigma)))
    return torch.autograd.grad(form(LINE, q, SEEN, noise).sum(), mean)[0].squeeze(-1)


class DecoderLosses(NamedTuple):
    """A loss of the trained decoder, and of one that shows the mean of all images whatever the latents are."""

    trained: float
    mean_image: float


class _Flat:
    """A decoder of a VAE as the claim takes it: rows of pixels, and the deviation of its noise."""

    def __init__(self, decode: Callable[[Tensor], Tensor], noise: Tensor):
        self._decode, self.noise = decode, noise

    def __call__(self, z: Float[Tensor, "*batch latent"]) -> Float[Tensor, "*batch pixels"]:
        return self._decode(z).flatten(-3).double()


@torch.no_grad()
def decoder_losses(run: Run, printed: bool) -> DecoderLosses:
    """The loss of the notes' Example 6.8 on a run's test digits, as it is right or as printed."""
    digits, model = encoded_digits(run), run.model
    decoder: Any = model.decoder  # pyright: ignore[reportAttributeAccessIssue]
    x = digits.images.flatten(1).double()
    q = prob.DiagonalNormal(digits.means.double(), digits.stds.double().log())
    noise = q.sample_noise((4,), generator=torch.Generator().manual_seed(0))
    mean = digits.images.mean(dim=0)
    deviation = decoder.log_std_like(x).exp()
    decoders = (
        _Flat(lambda z: decoder(z.float()), deviation),
        _Flat(lambda z: mean.expand(*z.shape[:-1], *mean.shape), deviation),
    )
    form = form_of(loss_falls_as_the_decoder_improves, printed)
    return DecoderLosses(*(float(form(x, q, noise, each)) for each in decoders))
