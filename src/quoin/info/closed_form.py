"""What torch knows of its own distributions in closed form, with a refusal in words where it knows nothing."""

import torch
from torch import Tensor
from torch.distributions import Categorical, Distribution, OneHotCategorical, kl_divergence

from quoin.errors import Mistake
from quoin.prob.law import check_parameters

__all__ = ["NoClosedForm", "closed_entropy", "closed_kl"]


class NoClosedForm(Mistake):
    """Torch has no formula here; whoever can integrate may go on."""


def closed_entropy(law: Distribution) -> Tensor:  # -> law.batch_shape
    """The entropy torch has for this family, in nats."""
    check_parameters(law)
    try:
        return law.entropy()
    except NotImplementedError:
        came = f"{type(law).__name__}; give a table of its probabilities, or for a density differential_entropy"
        raise NoClosedForm(f"expected a law whose entropy has a closed form, came {came}") from None


def closed_kl(p: Distribution, q: Distribution) -> Tensor:  # -> the batch shape of the pair
    """The divergence torch has registered for this pair of families, in nats."""
    check_parameters(p)
    check_parameters(q)
    _check_supports(p, q)
    try:
        return kl_divergence(p, q)
    except NotImplementedError:
        came = f"{type(p).__name__} and {type(q).__name__}; give tables of their probabilities, or for densities kl_of_densities"
        raise NoClosedForm(f"expected a pair of laws whose KL has a closed form, came {came}") from None


def _check_supports(p: Distribution, q: Distribution) -> None:
    """Refuse what torch would broadcast in silence, or explain in a kernel's words."""
    if p.event_shape != q.event_shape:
        came = f"{tuple(p.event_shape)} and {tuple(q.event_shape)}"
        raise Mistake(f"expected two laws on one space, came outcomes of shapes {came}; give both the same")
    if isinstance(p, Categorical | OneHotCategorical) and isinstance(q, Categorical | OneHotCategorical):
        n, m = p.probs.shape[-1], q.probs.shape[-1]
        if n != m:
            raise Mistake(f"expected two laws on the same outcomes, came {n} and {m} of them; give what one lacks probability zero")
    try:
        torch.broadcast_shapes(p.batch_shape, q.batch_shape)
    except RuntimeError:
        came = f"{tuple(p.batch_shape)} and {tuple(q.batch_shape)}"
        raise Mistake(f"expected batches of laws that go together, came shapes {came}; make them equal") from None
