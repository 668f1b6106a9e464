"""The evidence lower bound L = E_{Z~q} [ln p(x, Z) - ln q(Z)] <= ln p(x): its definition, and six ways to group its
terms.

Estimates of it that can be differentiated in the parameters of q are in elbo_gradients.py.   n values of z, or m
samples of it
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Real
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.prob import check_probs, kl_divergence
from quoin.tensor import as_floating, check_shapes

__all__ = ["ElboGroupings", "elbo_definition", "elbo_groupings"]


def elbo_definition(
    log_joint: Real[Tensor, "n *batch"], log_q: Real[Tensor, "n *batch"], weights: Real[Tensor, "n *batch"]
) -> Float[Tensor, "*batch"]:
    """Σ_i w_i (ln p(x, z_i) - ln q(z_i)): the bound itself if w_i is how much of q lies at z_i, an estimate of it if
    w_i = 1/m.

    What has probability 0 under q (w_i = 0) costs nothing, what has it under the model alone costs infinity.

    >>> even = torch.full((2,), 0.5)
    >>> elbo_definition(torch.tensor([0.1, 0.3]).log(), even.log(), even)  # ½ ln 0.2 + ½ ln 0.6, at most ln 0.4
    tensor(-1.0601)

    Notes: D6-17, D6-20, D6-24, DE55.
    """
    if log_joint.ndim == 0 or not log_joint.shape == log_q.shape == weights.shape:
        got = f"{tuple(log_joint.shape)}, {tuple(log_q.shape)} and {tuple(weights.shape)}"
        raise UserError(
            f"expected log_joint, log_q and weights of one shape, samples first, got {got}; expand them to (n, ...)"
        )
    log_joint, log_q = as_floating(log_joint, log_q, weights), as_floating(log_q, log_joint, weights)
    return torch.where(weights == 0, 0, weights * (log_joint - log_q)).sum(dim=0)


@shown
class ElboGroupings(NamedTuple):
    """One number, six times: Y is what was observed, q the distribution of z that stands for the posterior."""

    reconstruction: Float[Tensor, ""]  # -D(q‖p(z)) + E ln p(y | z)
    ratio: Float[Tensor, ""]  # E ln [p(y | z) / q(z)] + E ln p(z)
    joint: Float[Tensor, ""]  # E ln p(z, y) + H(q)
    kl_to_posterior: Float[Tensor, ""]  # ln p(y) - D(q‖p(z | y))
    posterior_ratio: Float[Tensor, ""]  # E ln [p(y) / q(z)] + E ln p(z | y)
    posterior_joint: Float[Tensor, ""]  # E ln [p(y) p(z | y)] + H(q)


def elbo_groupings(prior: Float[Tensor, "n"], likelihood: Float[Tensor, "n"], q: Float[Tensor, "n"]) -> ElboGroupings:
    """The bound of a finite z by each of its six groupings: two ways to split p(z, y), and three to pair the factors
    with q.

    `prior` is p(z) and `likelihood` p(y | z) for one y, both above 0 wherever q is; the third and the sixth differ in
    name only.

    Notes: M29.
    """
    check_shapes("n, n, n", prior=prior, likelihood=likelihood, q=q)
    check_probs(prior, "prior")
    check_probs(q, "q")
    if not bool((likelihood >= 0).all()) or not bool(((prior * likelihood > 0) | (q == 0)).all()):  # NaN fails too
        raise UserError(
            "expected p(z) and p(y | z) above 0 wherever q is, got 0, a negative number or NaN; there the bound is "
            "-infinity"
        )
    joint = prior * likelihood
    evidence = joint.sum()
    posterior = joint / evidence

    def mean(values: Tensor) -> Tensor:  # E_q, where what q never does is not looked at
        return torch.where(q == 0, 0, q * values).sum()

    surprise = mean(-q.log())  # H(q)
    return ElboGroupings(
        -kl_divergence(q, prior) + mean(likelihood.log()),
        mean((likelihood / q).log()) + mean(prior.log()),
        mean(joint.log()) + surprise,
        evidence.log() - kl_divergence(q, posterior),
        mean((evidence / q).log()) + mean(posterior.log()),
        mean((evidence * posterior).log()) + surprise,
    )
