"""Estimates of the evidence lower bound whose gradients are estimates too: four approaches, one signature.

The samples Z ~ q depend on the parameters of q, so that a mean over samples can be differentiated in several ways. Each
function here takes the noise from which samples are made, (m, ..., k), and returns (...): an unbiased estimate of the
bound whose gradient, in the parameters of the model and of q alike, is unbiased as well. They differ in the variance of
the gradient.   m samples, k latent coordinates
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.prob import LatentModel, NormalDistribution, ReparameterizedDistribution

__all__ = [
    "BonnetPriceGradients",
    "bonnet_price_gradients",
    "elbo_analytic_kl",
    "elbo_bonnet_price",
    "elbo_reinforce",
    "elbo_reinforce_baseline",
    "elbo_reparameterized",
    "score_function_gradient_definition",
]


def score_function_gradient_definition(
    values: Float[Tensor, "m"], log_q: Float[Tensor, "m"], parameter: Float[Tensor, "*shape"]
) -> Float[Tensor, "*shape"]:
    """∇_φ E f(Z) as (1/m) Σ_i f(z_i) ∇_φ ln q(z_i), sample by sample: f is only evaluated, never differentiated.

    Args:
        values: f(z_i).
        log_q: ln q(z_i), differentiable in `parameter`.
        parameter: φ.

    Notes: D6-24.
    """
    scores = [torch.autograd.grad(each, parameter, retain_graph=True)[0] for each in log_q]
    return torch.stack([value * score for value, score in zip(values.detach(), scores, strict=True)]).mean(dim=0)


def elbo_reinforce(
    model: LatentModel, q: ReparameterizedDistribution, x: Shaped[Tensor, "..."], noise: Float[Tensor, "m *batch k"]
) -> Float[Tensor, "*batch"]:
    """Approach 0: (1/m) Σ_i [ln p(x, z_i) - ln q(z_i)], its gradient in φ by f ∇_φ ln q with f = ln p(x, z) - ln q(z).

    It asks nothing of the model but its values, z may be discrete, and the gradient has the largest variance.

    Args:
        noise: ε_i of the m samples z_i = q.transform(ε_i), as `q.sample_noise` gives them.

    Notes: D6-24, DE55.
    """
    log_joint, log_q = _at_fixed_samples(model, q, x, noise)
    seen = (log_joint - log_q).detach()
    return _score_surrogate(log_joint, log_q, seen).mean(dim=0)


def elbo_reinforce_baseline(
    model: LatentModel, q: ReparameterizedDistribution, x: Shaped[Tensor, "..."], noise: Float[Tensor, "m *batch k"]
) -> Float[Tensor, "*batch"]:
    """Approach 0 with a baseline: from each f(z_i) the mean of the other samples is subtracted, which E ∇_φ ln q = 0
    allows.

    Args:
        noise: As in `elbo_reinforce`, of at least two samples.

    Notes: D6-24.
    """
    m = len(noise)
    if m < 2:
        raise UserError(
            f"expected at least two samples, so that each has others for a baseline, got {m}; "
            "use elbo_reinforce for one"
        )
    log_joint, log_q = _at_fixed_samples(model, q, x, noise)
    seen = (log_joint - log_q).detach()
    others = (seen.sum(dim=0) - seen) / (m - 1)
    return _score_surrogate(log_joint, log_q, seen - others).mean(dim=0)


def elbo_reparameterized(
    model: LatentModel, q: ReparameterizedDistribution, x: Shaped[Tensor, "..."], noise: Float[Tensor, "m *batch k"]
) -> Float[Tensor, "*batch"]:
    """Approach 1, the reparametrisation trick: z_i = g(ε_i) moves with φ, and ∇_φ E f(Z) = E ∇_φ f(g(ε)) for
    differentiable f and g.

    Args:
        noise: ε_i of the m samples z_i = q.transform(ε_i), as `q.sample_noise` gives them.

    Notes: D6-25.
    """
    _check_noise(noise)
    z = q.transform(noise)
    return (model.log_joint(x, z) - q.log_prob(z)).mean(dim=0)


def elbo_analytic_kl(
    model: LatentModel,
    q: ReparameterizedDistribution,
    x: Shaped[Tensor, "..."],
    noise: Float[Tensor, "m *batch k"],
    *,
    kl: Float[Tensor, "*batch"],
) -> Float[Tensor, "*batch"]:
    """Approach 2: -D(q‖p_Z) + (1/m) Σ_i ln p(x | g(ε_i)), with the divergence `kl` (...) in closed form, such as
    `kl_standard_normal`.

    Args:
        noise: ε_i of the m samples z_i = q.transform(ε_i), as `q.sample_noise` gives them.

    Notes: D6-26, DE56.
    """
    _check_noise(noise)
    found = model.log_likelihood(x, q.transform(noise)).mean(dim=0)
    if kl.shape != found.shape:
        raise UserError(
            f"expected one divergence for each example, {tuple(found.shape)}, got {tuple(kl.shape)}; sum over "
            "coordinates only"
        )
    return found - kl


@shown
class BonnetPriceGradients(NamedTuple):
    """∇_μ E f(Z) and ∇_Σ E f(Z) for Z ~ N(μ, Σ)."""

    mean: Float[Tensor, "*batch k"]
    covariance: Float[Tensor, "*batch k k"]  # symmetric


def bonnet_price_gradients(f: Callable[[Tensor], Tensor], z: Float[Tensor, "m *batch k"]) -> BonnetPriceGradients:
    """∇_μ E f = E ∇f (Bonnet) and ∇_Σ E f = ½ E ∇²f (Price), as means over samples z of the normal distribution.

    f takes (m, ..., k) to (m, ...). It must treat its rows independently and be twice differentiable: a ReLU network
    has no curvature to show, and needs another approach.

    >>> found = bonnet_price_gradients(lambda z: z[..., 0] ** 2, torch.tensor([[1.0], [-1.0]]))  # E Z² = μ² + Σ
    >>> found.mean.item(), found.covariance.item()
    (0.0, 1.0)

    Notes: D6-27.
    """
    _check_noise(z)
    with torch.enable_grad():
        z = z.detach().requires_grad_()
        (gradients,) = torch.autograd.grad(f(z).sum(), z, create_graph=True)
        rows = [_derivative(gradients[..., index].sum(), z) for index in range(z.shape[-1])]
    return BonnetPriceGradients(gradients.detach().mean(dim=0), torch.stack(rows, dim=-2).mean(dim=0) / 2)


def elbo_bonnet_price(
    model: LatentModel, q: NormalDistribution, x: Shaped[Tensor, "..."], noise: Float[Tensor, "m *batch k"]
) -> Float[Tensor, "*batch"]:
    """Approach 3: (1/m) Σ_i ln p(x, z_i) + H(q), its gradient in μ and Σ by the gradient and the Hessian of ln p(x, ·):
    `bonnet_price_gradients`.

    Costs k backward passes; the Hessian has less variance than gradient times noise, and none where ln p(x, z) is
    quadratic in z.

    Args:
        noise: ε_i of the m samples z_i = q.transform(ε_i), as `q.sample_noise` gives them.

    Notes: D6-27.
    """
    _check_noise(noise)
    z = q.transform(noise).detach()
    found = bonnet_price_gradients(lambda at: model.log_joint(x, at), z)
    moved = ((q.mean - q.mean.detach()) * found.mean).sum(dim=-1)
    scaled = ((q.covariance - q.covariance.detach()) * found.covariance).sum(dim=(-2, -1))
    # moved and scaled are 0, and bring the gradients
    return model.log_joint(x, z).mean(dim=0) + moved + scaled + q.entropy()


def _at_fixed_samples(
    model: LatentModel, q: ReparameterizedDistribution, x: Tensor, noise: Tensor
) -> tuple[Tensor, Tensor]:
    _check_noise(noise)
    z = q.transform(noise).detach()
    return model.log_joint(x, z), q.log_prob(z)


def _score_surrogate(log_joint: Tensor, log_q: Tensor, signal: Tensor) -> Tensor:
    """In value ln p - ln q; its gradient is that of ln p in θ, and signal · ∇ ln q in φ (that of -ln q itself is 0 on
    average)."""
    return log_joint - log_q.detach() + signal * (log_q - log_q.detach())


def _derivative(total: Tensor, z: Tensor) -> Tensor:
    if not total.requires_grad:  # a constant gradient has no curvature
        return torch.zeros_like(z)
    (found,) = torch.autograd.grad(total, z, retain_graph=True, allow_unused=True)
    return torch.zeros_like(z) if found is None else found.detach()


def _check_noise(noise: Tensor) -> None:
    if noise.ndim == 0 or len(noise) == 0:
        raise UserError(
            f"expected at least one sample on the first axis, got shape {tuple(noise.shape)}; "
            "give q.sample_noise((m,), generator=...)"
        )
