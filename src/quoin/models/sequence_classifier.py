"""Classifiers of token sequences of different lengths: a reader gives a code to each position, and the mean of the codes is judged.

The readers differ in what a position knows of the others: nothing (a bag of words), its surroundings in order (a recurrent network from
both ends), or whatever it looks at (a Transformer's encoder).

    b sequences, n positions of the longest, w width of a code, q classes
"""

import math
from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from quoin.errors import Mistake
from quoin.layers import TransformerBlock
from quoin.models.recurrent_parts import CellKind, make_cell, make_codes, make_linear
from quoin.models.transformer import Positions, TransformerEncoder, codes, look_up
from quoin.tensor import masked_mean, valid_mask

__all__ = ["BagReader", "RecurrentReader", "SequenceClassifier", "TransformerReader", "sequence_classifier_definition"]


def sequence_classifier_definition(
    read: Callable[[Tensor], Tensor], tokens: Tensor, lengths: Tensor, weight: Tensor, bias: Tensor
) -> Tensor:  # (b, n), (b,), (q, w), (q,) -> (b, q)
    """W · (1/l sum_{t < l} r_t) + b, with r_1, ..., r_l what the reader makes of the l real tokens alone: no padding is ever read."""
    means = [read(sequence[None, :length])[0].mean(dim=0) for sequence, length in zip(tokens, lengths.tolist())]
    return torch.stack(means) @ weight.mT + bias


class BagReader(nn.Module):
    """A code for each token, whatever stands around it: the mean of a sequence's codes forgets their order."""

    def __init__(self, vocabulary_size: int, width: int, *, generator: torch.Generator | None = None):
        super().__init__()
        self.codes = make_codes(vocabulary_size, width, generator)
        self.width = width

    def forward(self, tokens: Tensor, lengths: Tensor | None = None) -> Tensor:  # (b, n), (b,) -> (b, n, w)
        return look_up(self.codes, tokens)


class RecurrentReader(nn.Module):
    """Layers of a recurrent cell from both ends: each code knows what comes before it and what comes after.

    >>> RecurrentReader(nn.GRU, 11, 8, hidden=16)(torch.zeros(4, 7, dtype=torch.long), torch.tensor([7, 1, 2, 3])).shape
    torch.Size([4, 7, 32])

    Notes: Z10.
    """

    def __init__(
        self,
        cell: CellKind,
        vocabulary_size: int,
        width: int,
        hidden: int,
        *,
        layers: int = 1,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        self.codes = make_codes(vocabulary_size, width, generator)
        self.cell = make_cell(cell, width, hidden, layers, dropout, True, generator)
        self.dropout = nn.Dropout(dropout)
        self.width = 2 * hidden

    def forward(self, tokens: Tensor, lengths: Tensor | None = None) -> Tensor:  # (b, n), (b,) -> (b, n, w)
        x = self.dropout(look_up(self.codes, tokens))
        if lengths is None:
            return self.cell(x)[0]
        # Packed, so that the way back starts at the last real token; torch wants the lengths on the CPU.
        packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
        return pad_packed_sequence(self.cell(packed)[0], batch_first=True, total_length=tokens.shape[1])[0]


class TransformerReader(nn.Module):
    """Codes of tokens, and blocks in which every real position looks at all real ones.

    `positions` add to each code where it stands; blocks that turn their queries and keys need none. Without either it is a bag.

    >>> from quoin.layers import transformer_block
    >>> reader = TransformerReader(11, [transformer_block(8, heads=2)])
    >>> reader(torch.zeros(4, 7, dtype=torch.long), torch.tensor([7, 1, 2, 3])).shape
    torch.Size([4, 7, 8])

    Notes: Z11.T.
    """

    def __init__(
        self,
        vocabulary_size: int,
        blocks: Iterable[TransformerBlock],
        *,
        positions: Positions | None = None,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        self.encoder = TransformerEncoder(blocks)
        self.width = self.encoder.width
        self.codes = codes(vocabulary_size, self.width, generator)
        self.positions = positions
        self.dropout = nn.Dropout(dropout)

    def forward(self, tokens: Tensor, lengths: Tensor | None = None) -> Tensor:  # (b, n), (b,) -> (b, n, w)
        x = look_up(self.codes, tokens) * math.sqrt(self.width)
        x = x if self.positions is None else self.positions(x, 0)
        return self.encoder(self.dropout(x), lengths=lengths)


class SequenceClassifier(nn.Module):
    """`sequence_classifier_definition` of padded batches; the outputs are logits.

    >>> model = SequenceClassifier(BagReader(11, 8), 3)
    >>> model(torch.zeros(4, 7, dtype=torch.long), torch.tensor([7, 1, 2, 3])).shape
    torch.Size([4, 3])
    """

    def __init__(
        self, reader: BagReader | RecurrentReader | TransformerReader, num_classes: int, *, generator: torch.Generator | None = None
    ):
        super().__init__()
        if num_classes < 1:
            raise Mistake(f"expected at least one class, came {num_classes}; give the number of different ones")
        self.reader = reader
        self.judge = make_linear(reader.width, num_classes, generator)

    def forward(self, tokens: Tensor, lengths: Tensor | None = None) -> Tensor:  # (b, n), (b,) -> (b, q)
        """Lengths count the tokens of each sequence that are not padding."""
        if tokens.ndim != 2 or 0 in tokens.shape:
            raise Mistake(f"expected sequences of a token or more each, came shape {tuple(tokens.shape)}; leave out the empty ones")
        if lengths is None:
            return self.judge(self.reader(tokens).mean(dim=1))
        if lengths.shape != tokens.shape[:1] or not 1 <= int(lengths.min()) <= int(lengths.max()) <= tokens.shape[1]:
            raise Mistake(f"expected {len(tokens)} lengths from 1 to {tokens.shape[1]}, came {lengths.tolist()}; leave out empty sequences")
        codes = self.reader(tokens, lengths)
        return self.judge(masked_mean(codes, valid_mask(lengths, tokens.shape[1])[..., None], axis=1))
