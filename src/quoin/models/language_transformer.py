"""Transformer language models: next-token prediction by causal blocks, all positions at once or token by token.

`GPT` is the usual one, by its sizes; `TransformerLanguageModel` takes any blocks and positions. Both decode with the
cache of their attention: keys and values for exact attention, sums of constant size for the linear forms.   b
sequences, n positions, w embed_dim, v tokens
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from quoin.display import shown
from quoin.errors import UserError
from quoin.layers import (
    AttentionCache,
    ExactAttention,
    InnerAttention,
    KeyValueCache,
    LearnedPositionalEmbedding,
    TransformerBlock,
    keeps_global_rng,
    linear_cross_entropy,
    transformer_block,
)
from quoin.layers.device_position import DevicePosition, accepts_device_position
from quoin.layers.dropout import check_probability
from quoin.layers.fast_call import fast_call, submodules
from quoin.models.embedding import embed, make_embedding
from quoin.models.language_model import DecodingCache, NextTokenOutput
from quoin.models.static_cache import StaticStart, StaticTransformerBlocks
from quoin.models.transformer import PositionEmbedding, TransformerEncoder

__all__ = ["GPT", "TransformerCache", "TransformerLanguageModel", "init_language_weights"]


@shown
@dataclass(frozen=True, eq=False)
class TransformerCache:
    """The cache of each block."""

    blocks: tuple[AttentionCache, ...]

    @property
    def seq_len(self) -> Any:  # an int; in a step that is captured a position on the device
        return self.blocks[0].seq_len

    @property
    def tokens_left(self) -> int | None:
        """How many tokens more there is memory for; None where no block keeps each of them."""
        bounds = [block.max_seq_len - block.seq_len for block in self.blocks if isinstance(block, KeyValueCache)]
        return min(bounds, default=None)

    def select(self, indices: Int[Tensor, "selected"]) -> "TransformerCache":
        """The cache of these sequences, in this order."""
        return TransformerCache(tuple(block.select(indices) for block in self.blocks))


class TransformerLanguageModel(nn.Module):
    """Logits of each next token from those up to it: logits = W_e N(blocks(W_e[tokens] + positions)), with one table
    W_e if tied.

    Weights are initialised by `init_language_weights`.

    Args:
        position_embedding: Adds where a token stands; without it the blocks must know by themselves, by rotary
            embeddings or biases.
        context_length: The most tokens that can be read at all; None sets no bound.
        tie_embeddings: Whether W_e gives the logits too; else they have a matrix of their own.
        dropout: Of the embeddings; the blocks have their own.

    >>> from quoin.layers import SinusoidalPositionalEncoding
    >>> blocks = [transformer_block(8, num_heads=2)]
    >>> model = TransformerLanguageModel(5, blocks, position_embedding=SinusoidalPositionalEncoding(8))
    >>> model(torch.tensor([[0, 3, 1, 4]])).shape
    torch.Size([1, 4, 5])

    Notes: Z11.T.
    """

    @keeps_global_rng
    def __init__(
        self,
        vocab_size: int,
        blocks: Iterable[TransformerBlock],
        *,
        position_embedding: PositionEmbedding | None = None,
        context_length: int | None = None,
        tie_embeddings: bool = True,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        check_probability(dropout)
        self.transformer = TransformerEncoder(blocks)
        self.vocab_size, self.embed_dim, self.context_length = vocab_size, self.transformer.embed_dim, context_length
        self.token_embedding = make_embedding(vocab_size, self.embed_dim, std=self.embed_dim**-0.5, generator=generator)
        self.position_embedding = position_embedding
        self.dropout = nn.Dropout(dropout)
        self.lm_head = None if tie_embeddings else nn.Linear(self.embed_dim, vocab_size, bias=False)
        init_language_weights(self, generator)

    def forward(
        self, tokens: Int[Tensor, "batch seq"], targets: Int[Tensor, "batch seq"] | None = None
    ) -> Float[Tensor, "batch seq vocab"] | Float[Tensor, ""]:
        """Logits; or, given the token that comes next at each position, the sum of -ln P of these, for which the logits
        are never all in memory."""
        hidden = self.transformer(self.dropout(self._embed(tokens, 0)), causal=True)
        if targets is None:
            return self._logits(hidden)
        head = self.token_embedding if self.lm_head is None else self.lm_head
        return linear_cross_entropy(hidden.flatten(0, 1), head.weight, targets.flatten(), reduction="sum")

    def init_cache(self, batch_size: int, max_seq_len: int) -> TransformerCache:
        """An empty cache for at most `max_seq_len` tokens."""
        if self.context_length is not None and max_seq_len > self.context_length:
            raise UserError(
                f"expected at most {self.context_length} tokens, all that the model has positions for, got "
                f"{max_seq_len}; ask for fewer"
            )
        return TransformerCache(tuple(block.init_cache(batch_size, max_seq_len) for block in self.transformer.blocks))

    def init_static_cache(self, batch_size: int, max_seq_len: int) -> StaticTransformerBlocks | None:
        """Memory for a `decode_step` that can be captured, of at least `max_seq_len` tokens; None where a block or the
        positions have no such form."""
        if not accepts_device_position(self.position_embedding):
            return None
        blocks = [block.init_static_cache(batch_size, max_seq_len) for block in self.transformer.blocks]
        index = torch.zeros(1, dtype=torch.long, device=self.token_embedding.weight.device)
        found = tuple(block for block in blocks if block is not None)
        return StaticTransformerBlocks(found, index, TransformerCache) if len(found) == len(blocks) else None

    def static_start(self, cache: DecodingCache) -> StaticStart | None:
        """Where static steps may go on from `cache`."""
        if not isinstance(cache, TransformerCache) or not isinstance(cache.seq_len, int):
            return None
        known = None if self.context_length is None else self.context_length - cache.seq_len
        bounds = [bound for bound in (cache.tokens_left, known) if bound is not None]
        return StaticStart(self, cache, cache.seq_len, min(bounds, default=None))

    def decode_step(self, cache: DecodingCache, tokens: Int[Tensor, "batch new"]) -> NextTokenOutput:
        """Read one or more new tokens; equal to `forward` on all tokens read so far, at the new positions."""
        if not isinstance(cache, TransformerCache):
            raise UserError(
                f"expected the cache that init_cache gave, got {type(cache).__name__}; each model keeps its own kind"
            )
        transformer, dropout = submodules(self, "transformer", "dropout")
        blocks, norm = submodules(transformer, "blocks", "norm")
        x, after = fast_call(dropout, self._embed(tokens, cache.seq_len)), []
        for block, before in zip(blocks, cache.blocks, strict=True):
            x, its = block.decode_step(before, x)
            after.append(its)
        return NextTokenOutput(self._logits(fast_call(norm, x)), TransformerCache(tuple(after)))

    def _embed(self, tokens: Tensor, offset: int | DevicePosition) -> Tensor:
        token_embedding, position_embedding = submodules(self, "token_embedding", "position_embedding")
        x = embed(token_embedding, tokens)
        return x if position_embedding is None else position_embedding(x, offset)

    def _logits(self, x: Tensor) -> Tensor:  # (b, n, w) -> (b, n, v)
        return nn.functional.linear(x, self.token_embedding.weight) if self.lm_head is None else self.lm_head(x)


class GPT(TransformerLanguageModel):
    """The Transformer of GPT-2: learned positional embeddings, pre-norm, GELU, tied embeddings.

    Args:
        context_length: The most tokens that can be read, each at a learned position.
        dropout: Of the embeddings, of the weights of exact attention, and of the output of each sublayer.
        make_attention: Called once for each block, gives it another attention than exact.

    >>> rng = torch.Generator().manual_seed(0)
    >>> model = GPT(65, embed_dim=16, num_heads=2, num_layers=2, context_length=32, generator=rng)
    >>> model(torch.zeros(3, 7, dtype=torch.long)).shape
    torch.Size([3, 7, 65])

    Notes: Z11.T.
    """

    @keeps_global_rng
    def __init__(
        self,
        vocab_size: int,
        embed_dim: int,
        num_heads: int,
        num_layers: int,
        context_length: int,
        *,
        dropout: float = 0.0,
        make_attention: Callable[[], InnerAttention] | None = None,
        generator: torch.Generator | None = None,
    ):
        def block() -> TransformerBlock:
            inner_attention = ExactAttention(dropout=dropout) if make_attention is None else make_attention()
            return transformer_block(
                embed_dim, num_heads, activation=tanh_gelu, inner_attention=inner_attention, dropout=dropout
            )

        super().__init__(
            vocab_size,
            [block() for _ in range(num_layers)],
            position_embedding=LearnedPositionalEmbedding(context_length, embed_dim, generator=generator),
            context_length=context_length,
            dropout=dropout,
            generator=generator,
        )


def tanh_gelu(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """GELU by the formula with tanh that GPT-2 was trained with; within a thousandth of the exact one."""
    return nn.functional.gelu(x, approximate="tanh")


@torch.no_grad()
def init_language_weights(model: TransformerLanguageModel, generator: torch.Generator | None = None) -> None:
    """New weights as GPT-2's: normal of standard deviation 0.02, biases zero, output projections scaled by 1/√(2 l).

    With l blocks 2 l sublayers add to the residual stream, so that its variance at the end does not grow with l. What
    an inner attention has to learn is left as it made it.
    """
    model.token_embedding.weight.normal_(0, 0.02, generator=generator)
    if model.lm_head is not None:
        model.lm_head.weight.normal_(0, 0.02, generator=generator)
    adding = 0.02 / math.sqrt(2 * len(model.transformer.blocks))
    for block in model.transformer.blocks:
        for name, parameter in block.named_parameters():
            if name.startswith("attention.inner_attention."):
                continue
            if name.endswith("bias"):
                parameter.zero_()
            elif parameter.ndim > 1:
                last = name in ("attention.out_proj.weight", "feed_forward.down_proj.weight")
                parameter.normal_(0, adding if last else 0.02, generator=generator)
