"""Samples of one class, and more of that class than the data are: guidance without a classifier, as a wrapper of the
network."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float, Int, Real
from torch import Tensor

from quoin.errors import UserError, format_value
from quoin.tensor import as_floating
from quoin.tensor.labels import as_indices

__all__ = ["LabeledNetwork", "classifier_free_guidance", "classifier_free_guidance_definition"]

LabeledNetwork = Callable[[Tensor, Tensor, Tensor], Tensor]  # x_t (batch, ...), t and labels (batch,) -> (batch, ...)


def classifier_free_guidance_definition(
    conditional: Real[Tensor, "*shape"], unconditional: Real[Tensor, "*shape"], guidance_scale: float
) -> Float[Tensor, "*shape"]:
    """u + w (c - u): away from the unconditional prediction.

    The weights w and 1 - w add up to one, so that it does not matter whether noise, data or velocity is predicted.

    Args:
        guidance_scale: w: 0 forgets the label, 1 obeys it, more exaggerates it.

    Notes: D0-T.
    """
    conditional, unconditional = as_floating(conditional, unconditional), as_floating(unconditional, conditional)
    return unconditional + guidance_scale * (conditional - unconditional)


def classifier_free_guidance(
    network: LabeledNetwork, labels: Int[Tensor, "batch"] | None, *, guidance_scale: float, null_label: int
) -> Callable[[Tensor, Tensor], Tensor]:
    """A network of (x_t, t) that evaluates the conditional one twice, in one pass: with `labels`, and with
    `null_label`.

    Args:
        guidance_scale: w of `classifier_free_guidance_definition`, at least 0; 1 is no guidance, 2 to 5 are usual.
        null_label: The label that stands for none, as in training.

    Notes: D0-T.
    """
    if labels is None:
        raise UserError(
            "expected labels to guide by, got none; give a class for each sample, or sample without guidance"
        )
    if labels.ndim != 1 or labels.is_floating_point():
        raise UserError(
            f"expected one class for each sample, integers (b,), got {tuple(labels.shape)} of {labels.dtype}; give "
            "labels (b,)"
        )
    if not 0 <= guidance_scale < math.inf:
        raise UserError(
            f"expected a guidance scale of at least 0, and finite, got {format_value(guidance_scale)}; 1 is none, "
            "2 to 5 are usual"
        )
    labels = as_indices(labels, "labels")
    none = torch.full_like(labels, null_label)

    def network_of_both(noisy: Tensor, t: Tensor) -> Tensor:
        if len(noisy) != len(labels):
            raise UserError(f"expected a label for each sample, got {len(labels)} for {len(noisy)}; give as many")
        if guidance_scale in (0, 1):  # one of the two predictions has no weight
            return network(noisy, t, labels if guidance_scale else none)
        predictions = network(torch.cat([noisy, noisy]), torch.cat([t, t]), torch.cat([labels, none]))
        conditional, unconditional = predictions.chunk(2)
        return classifier_free_guidance_definition(conditional, unconditional, guidance_scale)

    return network_of_both
