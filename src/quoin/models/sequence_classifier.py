"""Classifiers of token sequences of different lengths: an encoder gives a vector a position, and their mean is
classified.

The readers differ in what a position knows of the others: nothing (a bag of words), its surroundings in order (a
recurrent network from both ends), or whatever it attends to (a Transformer's encoder).
"""

import math
from collections.abc import Callable, Iterable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from quoin.errors import UserError
from quoin.layers import TransformerBlock
from quoin.models.embedding import embed, make_embedding
from quoin.models.recurrent_parts import CellKind, lengths_fit, make_cell, make_linear, read_sequences
from quoin.models.transformer import PositionEmbedding, TransformerEncoder
from quoin.tensor import masked_mean, sequence_mask

__all__ = [
    "BagOfWordsEncoder",
    "RecurrentTextEncoder",
    "SequenceClassifier",
    "TransformerTextEncoder",
    "sequence_classifier_definition",
]


def sequence_classifier_definition(
    encode: Callable[[Tensor], Tensor],
    tokens: Int[Tensor, "batch seq"],
    lengths: Int[Tensor, "batch"],
    weight: Float[Tensor, "classes features"],
    bias: Float[Tensor, "classes"],
) -> Float[Tensor, "batch classes"]:
    """W · (1/l sum_{t < l} r_t) + b, with r_1, ..., r_l what the encoder makes of the l real tokens alone: no padding
    is ever read.
    """
    means = [encode(sequence[None, :length])[0].mean(dim=0) for sequence, length in zip(tokens, lengths.tolist())]
    return torch.stack(means) @ weight.mT + bias


class BagOfWordsEncoder(nn.Module):
    """An embedding for each token, whatever its context: the mean of a sequence's embeddings forgets their order."""

    def __init__(self, vocab_size: int, embed_dim: int, *, generator: torch.Generator | None = None):
        super().__init__()
        self.token_embedding = make_embedding(vocab_size, embed_dim, generator=generator)
        self.output_dim = embed_dim

    def forward(
        self, tokens: Int[Tensor, "batch seq"], lengths: Int[Tensor, "batch"] | None = None
    ) -> Float[Tensor, "batch seq features"]:
        return embed(self.token_embedding, tokens)


class RecurrentTextEncoder(nn.Module):
    """Layers of a recurrent cell from both ends: each hidden state knows what comes before it and what comes after.

    >>> encoder = RecurrentTextEncoder(nn.GRU, 11, 8, hidden_dim=16)
    >>> encoder(torch.zeros(4, 7, dtype=torch.long), torch.tensor([7, 1, 2, 3])).shape
    torch.Size([4, 7, 32])

    Notes: Z10.
    """

    def __init__(
        self,
        cell: CellKind,
        vocab_size: int,
        embed_dim: int,
        hidden_dim: int,
        *,
        num_layers: int = 1,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        self.token_embedding = make_embedding(vocab_size, embed_dim, generator=generator)
        self.cell = make_cell(cell, embed_dim, hidden_dim, num_layers, dropout, True, generator)
        self.dropout = nn.Dropout(dropout)
        self.output_dim = 2 * hidden_dim

    def forward(
        self, tokens: Int[Tensor, "batch seq"], lengths: Int[Tensor, "batch"] | None = None
    ) -> Float[Tensor, "batch seq features"]:
        return read_sequences(self.cell, self.dropout(embed(self.token_embedding, tokens)), lengths=lengths)[0]


class TransformerTextEncoder(nn.Module):
    """Token embeddings, and blocks in which every real position attends to all real ones.

    `position_embedding` adds its position to each embedding; blocks with rotary embeddings need none. Without either it
    is a bag.

    >>> from quoin.layers import transformer_block
    >>> encoder = TransformerTextEncoder(11, [transformer_block(8, num_heads=2)])
    >>> encoder(torch.zeros(4, 7, dtype=torch.long), torch.tensor([7, 1, 2, 3])).shape
    torch.Size([4, 7, 8])

    Notes: Z11.T.
    """

    def __init__(
        self,
        vocab_size: int,
        blocks: Iterable[TransformerBlock],
        *,
        position_embedding: PositionEmbedding | None = None,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        self.encoder = TransformerEncoder(blocks)
        self.output_dim = self.encoder.embed_dim
        self.token_embedding = make_embedding(
            vocab_size, self.output_dim, std=self.output_dim**-0.5, generator=generator
        )
        self.position_embedding = position_embedding
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, tokens: Int[Tensor, "batch seq"], lengths: Int[Tensor, "batch"] | None = None
    ) -> Float[Tensor, "batch seq features"]:
        x = embed(self.token_embedding, tokens) * math.sqrt(self.output_dim)
        x = x if self.position_embedding is None else self.position_embedding(x, 0)
        return self.encoder(self.dropout(x), lengths=lengths)


class SequenceClassifier(nn.Module):
    """`sequence_classifier_definition` of padded batches; the outputs are logits.

    >>> model = SequenceClassifier(BagOfWordsEncoder(11, 8), 3)
    >>> model(torch.zeros(4, 7, dtype=torch.long), torch.tensor([7, 1, 2, 3])).shape
    torch.Size([4, 3])
    """

    def __init__(
        self,
        encoder: BagOfWordsEncoder | RecurrentTextEncoder | TransformerTextEncoder,
        num_classes: int,
        *,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        if num_classes < 1:
            raise UserError(f"expected at least one class, got {num_classes}; give the number of different ones")
        self.encoder = encoder
        self.head = make_linear(encoder.output_dim, num_classes, generator)

    def forward(
        self, tokens: Int[Tensor, "batch seq"], lengths: Int[Tensor, "batch"] | None = None
    ) -> Float[Tensor, "batch classes"]:
        """Lengths count the tokens of each sequence that are not padding."""
        if tokens.ndim != 2 or 0 in tokens.shape:
            raise UserError(
                f"expected sequences of a token or more each, got shape {tuple(tokens.shape)}; leave out the empty ones"
            )
        if lengths is None:
            return self.head(self.encoder(tokens).mean(dim=1))
        if lengths.shape != tokens.shape[:1] or not lengths_fit(lengths, tokens.shape[1]):
            raise UserError(
                f"expected {tokens.shape[0]} lengths from 1 to {tokens.shape[1]}, got {lengths.tolist()}; leave out "
                "empty sequences"
            )
        encoded = self.encoder(tokens, lengths)
        return self.head(masked_mean(encoded, sequence_mask(lengths, tokens.shape[1])[..., None], dim=1))
