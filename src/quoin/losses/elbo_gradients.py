"""Estimates of the evidence lower bound whose gradients are estimates too: four approaches, one signature.

The draws Z ~ q depend on the parameters of q, so that differentiating a mean over draws must say how. Each function here takes the
noise from which draws are made, (m, ..., k), and returns (...): an unbiased estimate of the bound whose gradient, in the parameters
of the model and of q alike, is unbiased as well. They differ in how much the gradient scatters.   m draws, k latent coordinates
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from quoin.errors import Mistake
from quoin.prob import LatentModel, NormalDistribution, ReparametrisedLaw

__all__ = [
    "NormalGradients",
    "elbo_by_analytic_kl",
    "elbo_by_baseline",
    "elbo_by_paths",
    "elbo_by_score",
    "elbo_by_stochastic_backprop",
    "normal_gradients",
    "score_gradient_definition",
]


def score_gradient_definition(values: Tensor, log_q: Tensor, parameter: Tensor) -> Tensor:  # (m,), (m,) -> as parameter
    """∇_φ E f(Z) as (1/m) Σ_i f(z_i) ∇_φ ln q(z_i), draw by draw: f is only evaluated, never differentiated.

    Notes: D6-24.
    """
    slopes = [torch.autograd.grad(each, parameter, retain_graph=True)[0] for each in log_q]
    return torch.stack([value * slope for value, slope in zip(values.detach(), slopes, strict=True)]).mean(dim=0)


def elbo_by_score(model: LatentModel, q: ReparametrisedLaw, x: Tensor, noise: Tensor) -> Tensor:
    """Approach 0: (1/m) Σ_i [ln p(x, z_i) - ln q(z_i)], its gradient in φ by f ∇_φ ln q with f = ln p(x, z) - ln q(z).

    It asks nothing of the model but its values, z may be discrete, and the gradient scatters most.

    Notes: D6-24, DE55.
    """
    log_joint, log_q = _at_fixed_draws(model, q, x, noise)
    seen = (log_joint - log_q).detach()
    return _score_surrogate(log_joint, log_q, seen).mean(dim=0)


def elbo_by_baseline(model: LatentModel, q: ReparametrisedLaw, x: Tensor, noise: Tensor) -> Tensor:
    """Approach 0 with a baseline: from each f(z_i) the mean of the other draws is taken, which E ∇_φ ln q = 0 allows.

    Notes: D6-24.
    """
    m = len(noise)
    if m < 2:
        raise Mistake(f"expected at least two draws, so that each has others for a baseline, came {m}; use elbo_by_score for one")
    log_joint, log_q = _at_fixed_draws(model, q, x, noise)
    seen = (log_joint - log_q).detach()
    others = (seen.sum(dim=0) - seen) / (m - 1)
    return _score_surrogate(log_joint, log_q, seen - others).mean(dim=0)


def elbo_by_paths(model: LatentModel, q: ReparametrisedLaw, x: Tensor, noise: Tensor) -> Tensor:
    """Approach 1, the reparametrisation trick: z_i = g(ε_i) moves with φ, and ∇_φ E f(Z) = E ∇_φ f(g(ε)) for differentiable f and g.

    Notes: D6-25.
    """
    _check_noise(noise)
    z = q.place(noise)
    return (model.log_joint(x, z) - q.log_prob(z)).mean(dim=0)


def elbo_by_analytic_kl(model: LatentModel, q: ReparametrisedLaw, x: Tensor, noise: Tensor, *, kl: Tensor) -> Tensor:
    """Approach 2: -D(q‖p_Z) + (1/m) Σ_i ln p(x | g(ε_i)), with the divergence `kl` (...) in closed form, such as `kl_standard_normal`.

    Notes: D6-26, DE56.
    """
    _check_noise(noise)
    found = model.log_likelihood(x, q.place(noise)).mean(dim=0)
    if kl.shape != found.shape:
        raise Mistake(f"expected one divergence for each example, {tuple(found.shape)}, came {tuple(kl.shape)}; sum over coordinates only")
    return found - kl


class NormalGradients(NamedTuple):
    """∇_μ E f(Z) and ∇_Σ E f(Z) for Z ~ N(μ, Σ)."""

    mean: Tensor  # (..., k)
    covariance: Tensor  # (..., k, k), symmetric


def normal_gradients(f: Callable[[Tensor], Tensor], z: Tensor) -> NormalGradients:  # f: (m, ..., k) -> (m, ...)
    """∇_μ E f = E ∇f (Bonnet) and ∇_Σ E f = ½ E ∇²f (Price), as means over draws z of the normal law.

    f must treat its rows apart and be twice differentiable: a ReLU network has no curvature to show, and needs another approach.

    >>> found = normal_gradients(lambda z: z[..., 0] ** 2, torch.tensor([[1.0], [-1.0]]))  # E Z² = μ² + Σ
    >>> found.mean.item(), found.covariance.item()
    (0.0, 1.0)

    Notes: D6-27.
    """
    _check_noise(z)
    with torch.enable_grad():
        z = z.detach().requires_grad_()
        (slopes,) = torch.autograd.grad(f(z).sum(), z, create_graph=True)
        rows = [_slope(slopes[..., place].sum(), z) for place in range(z.shape[-1])]
    return NormalGradients(slopes.detach().mean(dim=0), torch.stack(rows, dim=-2).mean(dim=0) / 2)


def elbo_by_stochastic_backprop(model: LatentModel, q: NormalDistribution, x: Tensor, noise: Tensor) -> Tensor:
    """Approach 3: (1/m) Σ_i ln p(x, z_i) + H(q), its gradient in μ and Σ by the slopes and curvatures of ln p(x, ·): `normal_gradients`.

    Costs k backward passes; the curvature scatters less than slope times noise, and not at all where ln p(x, z) is quadratic in z.

    Notes: D6-27.
    """
    _check_noise(noise)
    z = q.place(noise).detach()
    found = normal_gradients(lambda at: model.log_joint(x, at), z)
    moved = ((q.mean - q.mean.detach()) * found.mean).sum(dim=-1)
    turned = ((q.covariance - q.covariance.detach()) * found.covariance).sum(dim=(-2, -1))
    return model.log_joint(x, z).mean(dim=0) + moved + turned + q.entropy()  # moved and turned are 0, and bring the gradients


def _at_fixed_draws(model: LatentModel, q: ReparametrisedLaw, x: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    _check_noise(noise)
    z = q.place(noise).detach()
    return model.log_joint(x, z), q.log_prob(z)


def _score_surrogate(log_joint: Tensor, log_q: Tensor, signal: Tensor) -> Tensor:
    """In value ln p - ln q; its gradient is that of ln p in θ, and signal · ∇ ln q in φ (that of -ln q itself is 0 on average)."""
    return log_joint - log_q.detach() + signal * (log_q - log_q.detach())


def _slope(total: Tensor, z: Tensor) -> Tensor:
    if not total.requires_grad:  # slopes that are constant have no curvature
        return torch.zeros_like(z)
    (found,) = torch.autograd.grad(total, z, retain_graph=True, allow_unused=True)
    return torch.zeros_like(z) if found is None else found.detach()


def _check_noise(noise: Tensor) -> None:
    if noise.ndim == 0 or len(noise) == 0:
        raise Mistake(f"expected at least one draw on the first axis, came shape {tuple(noise.shape)}; give q.noise((m,), generator=...)")
