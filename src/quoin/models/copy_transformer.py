"""A small causal Transformer of symbols: embeddings with positions, blocks of attention and a feed-forward network,
logits of the next symbol.

How it attends is given from outside, one inner attention a block, so that attentions can be compared in one and the
same network.
"""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from quoin.errors import UserError
from quoin.layers import (
    AttentionCache,
    ExactAttention,
    InnerAttention,
    MultiHeadAttention,
    SinusoidalPositionalEncoding,
    keeps_global_rng,
)

__all__ = ["CopyTransformer", "CopyTransformerBlock"]


class CopyTransformerBlock(nn.Module):
    """x + Attention(norm(x)), then x + W₂ relu(W₁ norm(x)): each sublayer adds to the residual stream, and attends only
    to what came before.

    >>> CopyTransformerBlock(8, num_heads=2, inner_attention=ExactAttention())(torch.zeros(3, 5, 8)).shape
    torch.Size([3, 5, 8])
    """

    @keeps_global_rng
    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        *,
        inner_attention: InnerAttention,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(embed_dim) for _ in range(2))
        self.attention = MultiHeadAttention(embed_dim, num_heads, inner_attention=inner_attention, generator=generator)
        self.feed_forward = nn.Sequential(
            nn.Linear(embed_dim, 4 * embed_dim), nn.ReLU(), nn.Linear(4 * embed_dim, embed_dim)
        )
        _draw(self.feed_forward, generator)

    def forward(self, x: Float[Tensor, "batch seq embed"]) -> Float[Tensor, "batch seq embed"]:
        x = x + self.attention(self.norms[0](x), causal=True)
        return x + self.feed_forward(self.norms[1](x))

    def decode_step(
        self, cache: AttentionCache, x: Float[Tensor, "batch new embed"]
    ) -> tuple[Float[Tensor, "batch new embed"], AttentionCache]:
        """The same for new positions, where the cache holds all before them."""
        attended, cache = self.attention.decode_step(cache, self.norms[0](x))
        x = x + attended
        return x + self.feed_forward(self.norms[1](x)), cache


class CopyTransformer(nn.Module):
    """Scores of the symbol that comes next, at every position, from those up to it; `make_attention()` gives each block
    its attention.

    >>> model = CopyTransformer(5, 8, num_heads=2, num_layers=2)
    >>> model(torch.tensor([[0, 3, 1, 4]])).shape
    torch.Size([1, 4, 5])
    """

    @keeps_global_rng
    def __init__(
        self,
        num_symbols: int,
        embed_dim: int,
        *,
        num_heads: int,
        num_layers: int,
        make_attention: Callable[[], InnerAttention] = ExactAttention,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        if min(num_symbols, num_layers) < 1:
            raise UserError(
                f"expected at least one symbol and one block, got {num_symbols} and {num_layers}; raise the least"
            )
        self.token_embedding = nn.Embedding(num_symbols, embed_dim)
        self.position_embedding = SinusoidalPositionalEncoding(embed_dim)
        self.blocks = nn.ModuleList(
            CopyTransformerBlock(embed_dim, num_heads, inner_attention=make_attention(), generator=generator)
            for _ in range(num_layers)
        )
        self.norm = nn.LayerNorm(embed_dim)
        self.lm_head = nn.Linear(embed_dim, num_symbols)
        nn.init.normal_(self.token_embedding.weight, generator=generator)
        _draw(self.lm_head, generator)

    def forward(self, symbols: Int[Tensor, "batch seq"]) -> Float[Tensor, "batch seq vocab"]:
        x = self.position_embedding(self.token_embedding(symbols))
        for block in self.blocks:
            x = block(x)
        return self.lm_head(self.norm(x))

    def init_cache(self, batch_size: int, max_seq_len: int) -> list[AttentionCache]:
        """Empty caches for at most `max_seq_len` positions, one for each block."""
        return [block.attention.init_cache(batch_size, max_seq_len) for block in self._blocks()]

    def decode_step(
        self, caches: Sequence[AttentionCache], symbols: Int[Tensor, "batch new"]
    ) -> tuple[Float[Tensor, "batch new vocab"], list[AttentionCache]]:
        """Read the next symbols: what `forward` gives there, and the caches after them."""
        x = self.position_embedding(self.token_embedding(symbols), offset=caches[0].seq_len)
        after = []
        for block, cache in zip(self._blocks(), caches, strict=True):
            x, cache = block.decode_step(cache, x)
            after.append(cache)
        return self.lm_head(self.norm(x)), after

    def _blocks(self) -> list[CopyTransformerBlock]:
        return [block for block in self.blocks if isinstance(block, CopyTransformerBlock)]


def _draw(part: nn.Module, generator: torch.Generator | None) -> None:
    """Weights of a variance that keeps activations' size, biases zero."""
    for layer in part.modules():
        if isinstance(layer, nn.Linear):
            nn.init.xavier_uniform_(layer.weight, generator=generator)
            nn.init.zeros_(layer.bias)
