"""The loss of padded sequences of tokens."""

import torch
from jaxtyping import Float, Int64, Integer
from torch import Tensor
from torch.nn import functional

from quoin.losses.cross_entropy import cross_entropy_definition
from quoin.tensor import check_shapes, sequence_mask

__all__ = ["sequence_cross_entropy", "sequence_cross_entropy_definition"]


def sequence_cross_entropy_definition(
    logits: Float[Tensor, "batch seq vocab"], target: Integer[Tensor, "batch seq"], lengths: Integer[Tensor, "batch"]
) -> Float[Tensor, "batch seq"]:
    """-ln P(y_i) at each of the first l positions of a sequence of length l, and 0 at its padding.

    Notes: M14.
    """
    check_shapes("b t v, b t, b", logits=logits, target=target, lengths=lengths)
    rows = []
    for scores, tokens, length in zip(logits, target, lengths.tolist()):
        losses = cross_entropy_definition(scores[:length], tokens[:length])
        rows.append(torch.cat([losses, losses.new_zeros(len(tokens) - length)]))
    return torch.stack(rows)


def sequence_cross_entropy(
    logits: Float[Tensor, "batch seq vocab"], target: Int64[Tensor, "batch seq"], lengths: Integer[Tensor, "batch"]
) -> Float[Tensor, "batch seq"]:
    """`sequence_cross_entropy_definition` on torch's kernel; what stands at padding, be it NaN, changes neither value
    nor gradient.

    Notes: M14.
    """
    check_shapes("b t v, b t, b", logits=logits, target=target, lengths=lengths)
    real = sequence_mask(lengths, target.shape[1])
    logits = logits.masked_fill(~real.unsqueeze(-1), 0)
    losses = functional.cross_entropy(logits.flatten(0, 1), target.masked_fill(~real, 0).flatten(), reduction="none")
    return losses.view_as(target).masked_fill(~real, 0)
