"""Sequences of different lengths in one batch: padded to the longest, with the lengths kept.

What is to be ignored at the padding is a mask's matter: `quoin.tensor.sequence_mask(lengths, longest)`, and with it
`masked_softmax`
for attention and `masked_mean` for losses and metrics.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Int, Shaped
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from quoin.display import shown
from quoin.errors import UserError, format_value

__all__ = ["SEQUENCES_PER_BATCH", "Padded", "batches_by_length", "pad_sequences"]

SEQUENCES_PER_BATCH = 512  # that go through a model together when no gradient is wanted


@shown
class Padded(NamedTuple):
    """A batch of sequences of one length, and how much of each is real."""

    tokens: Shaped[Tensor, "batch seq ..."]
    lengths: Int[Tensor, "batch"]


def pad_sequences(sequences: Sequence[Shaped[Tensor, "_seq ..."] | Sequence], padding: float = 0) -> Padded:
    """Each sequence followed by as many paddings as the longest needs: tokens_bi = sequence_b[i] for i < l_b, else
    `padding`.

    A sequence is a list of numbers or a tensor whose first axis is that of the positions.

    >>> pad_sequences([[5, 6, 7], [8]]).tokens
    tensor([[5, 6, 7],
            [8, 0, 0]])

    Notes: Z11.18p.
    """
    if not len(sequences):
        raise UserError("expected at least one sequence, got none; leave out empty batches")
    rows = [_as_tensor(sequence, index) for index, sequence in enumerate(sequences)]
    filled = [row for row in rows if len(row)] or rows  # an empty list has neither a dtype nor a width of its own
    first = filled[0]
    for row in filled:
        if row.dtype != first.dtype or row.shape[1:] != first.shape[1:]:
            raise UserError(
                f"expected sequences of one dtype and width, got {first.dtype} {tuple(first.shape[1:])} and "
                f"{row.dtype} {tuple(row.shape[1:])}; convert them to one"
            )
    if not first.is_floating_point() and torch.full((), padding, dtype=torch.float64).to(first.dtype) != padding:
        raise UserError(
            f"expected a padding that {first.dtype} can hold, got {format_value(padding)}; choose one among the "
            "tokens' values"
        )
    lengths = torch.tensor([len(row) for row in rows], device=first.device)
    rows = [row if len(row) else first[:0] for row in rows]
    return Padded(pad_sequence(rows, batch_first=True, padding_value=padding), lengths)


def batches_by_length(lengths: Int[Tensor, "samples"] | Sequence[int]) -> tuple[Int[Tensor, "_batch"], ...]:
    """The numbers of the sequences in batches of like length, shortest first, so that little is padded.

    >>> batches_by_length([3, 1, 2, 1])
    (tensor([1, 3, 2, 0]),)
    """
    return torch.as_tensor(lengths).argsort(stable=True).split(SEQUENCES_PER_BATCH)


def _as_tensor(sequence: Tensor | Sequence, index: int) -> Tensor:
    try:
        row = torch.as_tensor(sequence)
    except (TypeError, ValueError, RuntimeError) as error:
        raise UserError(
            f"expected numbers in sequence {index}, got {format_value(sequence)}; encode its tokens first"
        ) from error
    if row.ndim < 1:
        raise UserError(
            f"expected sequences, got the single number {format_value(sequence)} at {index}; put it into a list"
        )
    return row
