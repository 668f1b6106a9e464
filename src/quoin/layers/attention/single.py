"""Attention with learned maps of queries, keys and values, one head: the layer of the notes, and self-attention.

Many heads side by side are in multi_head.py.   k is the head_dim, that of queries and keys after the maps
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from quoin.layers.attention.checks import beside_heads, check_sequences, check_sizes
from quoin.layers.attention.exact import AttentionOutput, ExactAttention, scaled_dot_product_attention_definition
from quoin.layers.attention.seen import show
from quoin.layers.init import init_weights, keeps_global_rng, xavier_normal
from quoin.tensor import check_mask, check_shapes, zero_masked

__all__ = ["Attention", "SelfAttention", "attention_layer_definition"]


def attention_layer_definition(
    query: Float[Tensor, "*batch query query_dim"],
    key: Float[Tensor, "*batch key key_dim"],
    value: Float[Tensor, "*batch key value_dim"],
    query_matrix: Float[Tensor, "query_dim head_dim"],
    key_matrix: Float[Tensor, "key_dim head_dim"],
    value_matrix: Float[Tensor, "value_dim out_features"],
    *,
    mask: Bool[Tensor, "*#batch #query #key"] | Bool[Tensor, "#key"] | None = None,
    scale: float | None = None,
) -> AttentionOutput:
    """softmax(s (Q W^Q)(K W^K)ᵀ) V W^V over the keys, with s = 1/√k unless given.

    Scores of independent entries of variance 1 have variance k, which the scale makes 1 again; without it, s = 1, the
    softmax of a wide layer is nearly hard and passes little gradient.

    Args:
        mask: True where a query may attend to a key; None lets it attend to all.

    Notes: D2.2-4, DE27.
    """
    check_shapes("... n d_q, ... m d_k, ... m d_v", query=query, key=key, value=value)
    check_shapes("d_q k, d_k k, d_v v", query_matrix=query_matrix, key_matrix=key_matrix, value_matrix=value_matrix)
    if mask is not None:  # before the maps, for these have gradients too
        check_mask(mask, (*query.shape[:-1], key.shape[-2]))
        key, value = zero_masked(key, mask), zero_masked(value, mask)
    return scaled_dot_product_attention_definition(
        query @ query_matrix, key @ key_matrix, value @ value_matrix, mask, scale
    )


class Attention(nn.Module):
    """`attention_layer_definition` with its weights: the maps f_q(x) = x W^Q, f_k, f_v, and the fused kernel.

    Inputs are those of one sequence, or with a batch axis before each.

    `scale` is 1/√k unless given; `scale=1` leaves the scores as they are. `lengths` (b,) count the keys that are not
    padding, where queries, keys and values are one input the queries too; padding is zeros before it is mapped,
    whatever it holds. So are keys and values that a mask, (n, m) or (b, n, m), hides from all queries.

    >>> layer = Attention(6, 5, 4, head_dim=3, out_features=2, generator=torch.Generator().manual_seed(0))
    >>> layer(torch.zeros(7, 6), torch.zeros(9, 5), torch.zeros(9, 4)).shape
    torch.Size([7, 2])

    Notes: D2.2-4, D3-4.
    """

    @keeps_global_rng
    def __init__(
        self,
        query_dim: int,
        key_dim: int,
        value_dim: int,
        head_dim: int,
        out_features: int,
        scale: float | None = None,
        *,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        check_sizes(
            {
                "query_dim": query_dim,
                "key_dim": key_dim,
                "value_dim": value_dim,
                "head_dim": head_dim,
                "out_features": out_features,
            }
        )
        self.q_proj = nn.Linear(query_dim, head_dim, bias=False)
        self.k_proj = nn.Linear(key_dim, head_dim, bias=False)
        self.v_proj = nn.Linear(value_dim, out_features, bias=False)
        self.inner_attention = ExactAttention(scale=scale)
        init_weights(self, xavier_normal, generator=generator)

    def forward(
        self,
        query: Float[Tensor, "*batch query query_dim"],
        key: Float[Tensor, "*batch key key_dim"],
        value: Float[Tensor, "*batch key value_dim"],
        *,
        lengths: Int[Tensor, "*batch"] | None = None,
        mask: Bool[Tensor, "*#batch #query #key"] | Bool[Tensor, "#key"] | None = None,
        causal: bool = False,
    ) -> Float[Tensor, "*batch query out_features"]:
        for name, x, f in (("query", query, self.q_proj), ("key", key, self.k_proj), ("value", value, self.v_proj)):
            check_sequences(name, x, f.in_features, batched=query.ndim == 3)
        query, key, value, mask = show(query, key, value, mask, lengths)
        mapped = (self.q_proj(query), self.k_proj(key), self.v_proj(value))
        one_head = [x.unsqueeze(-3) if x.ndim == 3 else x[None, None] for x in mapped]
        output = self.inner_attention(*one_head, mask=beside_heads(mask), causal=causal)
        return output.squeeze(1) if query.ndim == 3 else output[0, 0]


class SelfAttention(nn.Module):
    """Attention with Q = K = V = X: every position attends to all of them, of one sequence or of a batch.

    Args:
        scale: Factor of the scores; 1/√head_dim unless given.

    >>> layer = SelfAttention(6, head_dim=3, out_features=2, generator=torch.Generator().manual_seed(0))
    >>> layer(torch.zeros(7, 6)).shape
    torch.Size([7, 2])

    Notes: D2.2-5.
    """

    def __init__(
        self,
        embed_dim: int,
        head_dim: int,
        out_features: int,
        scale: float | None = None,
        *,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        self.attention = Attention(embed_dim, embed_dim, embed_dim, head_dim, out_features, scale, generator=generator)

    def forward(
        self,
        x: Float[Tensor, "*batch seq embed"],
        *,
        lengths: Int[Tensor, "*batch"] | None = None,
        mask: Bool[Tensor, "*#batch #seq #seq"] | Bool[Tensor, "#seq"] | None = None,
        causal: bool = False,
    ) -> Float[Tensor, "*batch seq out_features"]:
        return self.attention(x, x, x, lengths=lengths, mask=mask, causal=causal)
