"""Entropy and KL divergence of `torch.distributions` in closed form, or `NoClosedFormError` where torch has none."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.distributions import Categorical, Distribution, OneHotCategorical, kl_divergence

from quoin.errors import UserError
from quoin.prob.checks import check_parameters

__all__ = ["NoClosedFormError", "closed_form_entropy", "closed_form_kl"]


class NoClosedFormError(UserError):
    """Torch has no formula here; a continuous distribution can still be integrated."""


def closed_form_entropy(distribution: Distribution) -> Float[Tensor, "*batch"]:
    """The entropy torch has for this family, in nats, one for each distribution of the batch."""
    check_parameters(distribution)
    try:
        return distribution.entropy()
    except NotImplementedError:
        got = f"{type(distribution).__name__}; give a table of its probabilities, or for a density differential_entropy"
        raise NoClosedFormError(f"expected a distribution whose entropy has a closed form, got {got}") from None


def closed_form_kl(p: Distribution, q: Distribution) -> Float[Tensor, "*batch"]:
    """The divergence torch has registered for this pair of families, in nats, one for each pair of the batch."""
    check_parameters(p)
    check_parameters(q)
    _check_supports(p, q)
    try:
        return kl_divergence(p, q)
    except NotImplementedError:
        got = f"{type(p).__name__} and {type(q).__name__}; give tables of their probabilities, or a Density"
        raise NoClosedFormError(f"expected a pair of distributions whose KL has a closed form, got {got}") from None


def _check_supports(p: Distribution, q: Distribution) -> None:
    """Raise an error where torch would broadcast without a word, or fail deep in a kernel."""
    if p.event_shape != q.event_shape:
        got = f"{tuple(p.event_shape)} and {tuple(q.event_shape)}"
        raise UserError(f"expected two distributions on one space, got outcomes of shapes {got}; give both the same")
    if isinstance(p, Categorical | OneHotCategorical) and isinstance(q, Categorical | OneHotCategorical):
        n, m = p.probs.shape[-1], q.probs.shape[-1]
        if n != m:
            raise UserError(
                f"expected two distributions on the same outcomes, got {n} and {m} of them; give what one lacks "
                "probability zero"
            )
    try:
        torch.broadcast_shapes(p.batch_shape, q.batch_shape)
    except RuntimeError:
        got = f"{tuple(p.batch_shape)} and {tuple(q.batch_shape)}"
        raise UserError(
            f"expected batches of distributions that go together, got shapes {got}; make them equal"
        ) from None
