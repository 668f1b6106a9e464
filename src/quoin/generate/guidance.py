"""Samples of one class, and more of that class than the data are: guidance without a classifier, as a wrapper of the network."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from quoin.errors import Mistake, shown
from quoin.tensor import as_floating
from quoin.tensor.labels import as_indices

__all__ = ["LabelledNetwork", "guided", "guided_definition"]

LabelledNetwork = Callable[[Tensor, Tensor, Tensor], Tensor]  # x_t (b, ...), t (b,), labels (b,) -> (b, ...)


def guided_definition(with_label: Tensor, without: Tensor, strength: float) -> Tensor:
    """u + w (c - u): away from what is said without a label; w = 0 forgets the label, w = 1 obeys it, more exaggerates it.

    The weights w and 1 - w add up to one, so that it does not matter whether noise, data or velocity is said.

    Notes: D0-T.
    """
    with_label, without = as_floating(with_label, without), as_floating(without, with_label)
    return without + strength * (with_label - without)


def guided(
    network: LabelledNetwork, labels: Tensor | None, *, strength: float, unlabelled: int
) -> Callable[[Tensor, Tensor], Tensor]:  # labels (b,)
    """A network of (x_t, t) that asks the labelled one twice, in one pass: with `labels`, and with the label that stands for none.

    Notes: D0-T.
    """
    if labels is None:
        raise Mistake("expected labels to guide by, came none; give a class for each sample, or sample without guidance")
    if labels.ndim != 1 or labels.is_floating_point():
        raise Mistake(f"expected one class for each sample, integers (b,), came {tuple(labels.shape)} of {labels.dtype}; give labels (b,)")
    if not 0 <= strength < math.inf:
        raise Mistake(f"expected a guidance strength of at least 0, and finite, got {shown(strength)}; 1 is none, 2 to 5 are usual")
    labels = as_indices(labels, "labels")
    none = torch.full_like(labels, unlabelled)

    def network_of_both(noisy: Tensor, t: Tensor) -> Tensor:
        if len(noisy) != len(labels):
            raise Mistake(f"expected a label for each sample, came {len(labels)} for {len(noisy)}; give as many")
        if strength in (0, 1):  # one of the two answers has no weight
            return network(noisy, t, labels if strength else none)
        answers = network(torch.cat([noisy, noisy]), torch.cat([t, t]), torch.cat([labels, none]))
        with_label, without = answers.chunk(2)
        return guided_definition(with_label, without, strength)

    return network_of_both
