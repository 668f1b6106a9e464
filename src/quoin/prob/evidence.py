"""The evidence ln p(x) of a latent-variable model by sampling: from the prior, and by importance sampling.

Both are logs of means, and so too low on average (Jensen); they close in on ln p(x) as samples are added.   m samples
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Real, Shaped
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.prob.latent import LatentModel
from quoin.prob.reparameterized_normal import Proposal
from quoin.tensor import as_floating
from quoin.tensor.array_like import ArrayLike, float_tensor, number_tensor

__all__ = [
    "EvidenceEstimate",
    "effective_sample_size",
    "effective_sample_size_definition",
    "importance_log_evidence",
    "importance_log_evidence_definition",
    "iwae_bound",
    "mc_log_evidence",
    "mc_log_evidence_definition",
]


@shown
class EvidenceEstimate(NamedTuple):
    """An estimate of ln p(x), and the effective sample size."""

    output: Float[Tensor, "*batch"]
    effective_sample_size: Float[Tensor, "*batch"]  # from 1 to m
    log_weights: Float[Tensor, "m *batch"]


def mc_log_evidence_definition(
    model: LatentModel, x: Shaped[Tensor, "..."] | ArrayLike, z: Shaped[Tensor, "m ..."] | ArrayLike
) -> Float[Tensor, "*batch"]:
    """ln (1/m) Σ_i p(x | z_i) for z_1, ..., z_m sampled from the prior; where all likelihoods underflow it is -inf.

    Notes: D6-12.
    """
    x = number_tensor(x, "x", z)
    z = number_tensor(z, "z", x)
    return model.log_likelihood(x, z).exp().mean(dim=0).log()


def mc_log_evidence(
    model: LatentModel, x: Shaped[Tensor, "..."] | ArrayLike, *, num_samples: int, generator: torch.Generator
) -> EvidenceEstimate:
    """`mc_log_evidence_definition` with m fresh samples, the same for all examples, in logs throughout.

    Consistent, and biased low. Most samples of the prior explain x badly, so that few of them count: see the
    effective sample size.

    Notes: D6-12.
    """
    x = number_tensor(x, "x")
    _check_count(num_samples)
    sampled = model.sample_prior((num_samples,), generator=generator)
    examples = model.log_likelihood(x, sampled[0]).ndim
    z = sampled.reshape(
        num_samples, *[1] * examples, *sampled.shape[1:]
    )  # the axes of one sample stay last, behind those of the examples
    return _estimate(model.log_likelihood(x, z))


def importance_log_evidence_definition(
    model: LatentModel, q: Proposal, x: Shaped[Tensor, "..."] | ArrayLike, z: Shaped[Tensor, "m ..."] | ArrayLike
) -> Float[Tensor, "*batch"]:
    """ln (1/m) Σ_i p(x | z_i) p(z_i) / q(z_i) for z_1, ..., z_m sampled from q, which must be positive wherever
    the prior is.

    Notes: D6-14.
    """
    x = number_tensor(x, "x", z)
    z = number_tensor(z, "z", x)
    return (model.log_likelihood(x, z).exp() * model.log_prior(z).exp() / q.log_prob(z).exp()).mean(dim=0).log()


def importance_log_evidence(
    model: LatentModel,
    q: Proposal,
    x: Shaped[Tensor, "..."] | ArrayLike,
    *,
    num_samples: int,
    generator: torch.Generator,
) -> EvidenceEstimate:
    """`importance_log_evidence_definition` with m fresh samples for each example, in logs throughout.

    With the posterior as q every weight is p(x): one sample is exact. The mean of `output` over samples is the
    bound of `iwae_bound`.

    Notes: D6-14.
    """
    x = number_tensor(x, "x")
    _check_count(num_samples)
    z = q.sample((num_samples,), generator=generator)
    return _estimate(model.log_joint(x, z) - q.log_prob(z))


def iwae_bound(log_weights: Float[Tensor, "m *batch"] | ArrayLike) -> Float[Tensor, "*batch"]:
    """ln (1/m) Σ_i w_i from ln w_i = ln p(x, z_i) - ln q(z_i): on average a lower bound of ln p(x), the ELBO for m = 1,
    rising with m.

    >>> round(float(iwae_bound(torch.tensor([-1000.0, -1000.0]))), 4)
    -1000.0

    Notes: D6-14.
    """
    log_weights = float_tensor(log_weights, "log_weights")
    if log_weights.ndim == 0 or len(log_weights) == 0:
        raise UserError(
            f"expected at least one sample on the first axis, got shape {tuple(log_weights.shape)}; give (m, ...)"
        )
    return torch.logsumexp(log_weights, dim=0) - math.log(len(log_weights))


def effective_sample_size_definition(weights: Real[Tensor, "m *batch"] | ArrayLike) -> Float[Tensor, "*batch"]:
    """(Σ_i w_i)² / Σ_i w_i²: m for equal weights, 1 if a single one counts."""
    weights = number_tensor(weights, "weights")
    weights = as_floating(weights)
    return weights.sum(dim=0) ** 2 / (weights**2).sum(dim=0)


def effective_sample_size(log_weights: Float[Tensor, "m *batch"] | ArrayLike) -> Float[Tensor, "*batch"]:
    """`effective_sample_size_definition` from ln w_i, where no weight may be too small to write down.

    >>> effective_sample_size(torch.tensor([-900.0, -900.0, -2000.0]))
    tensor(2.)
    """
    log_weights = float_tensor(log_weights, "log_weights")
    return 1 / log_weights.softmax(dim=0).square().sum(dim=0)


def _estimate(log_weights: Tensor) -> EvidenceEstimate:
    return EvidenceEstimate(iwae_bound(log_weights), effective_sample_size(log_weights.detach()), log_weights)


def _check_count(num_samples: int) -> None:
    if num_samples < 1:
        raise UserError(f"expected at least one sample, got num_samples={num_samples}; give e.g. 100")
