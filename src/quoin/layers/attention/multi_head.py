"""Multi-head attention: several attentions side by side, each with maps of its own, their outputs joined by one more
map.

How one head attends is the inner attention: exact.py unless another is given.

    b sequences, n queries, m keys, h heads, g key and value heads, w embed_dim, d = w / h head_dim
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from quoin.display import shown
from quoin.errors import UserError
from quoin.layers.attention.checks import beside_heads, check_batch_indices, check_sequences, check_sizes
from quoin.layers.attention.exact import ExactAttention, scaled_dot_product_attention_definition
from quoin.layers.attention.forward_only import as_inner_attention
from quoin.layers.attention.inner_attention import AttentionCache, AttentionStepOutput, CacheSpec, InnerAttention
from quoin.layers.attention.pooling import Pooled
from quoin.layers.attention.projections import PackedProjections, SeparateProjections
from quoin.layers.attention.seen import Shown, show, zero_padding
from quoin.layers.attention.static_cache import StaticAttentionCache
from quoin.layers.device_position import DevicePosition, accepts_device_position
from quoin.layers.fast_call import fast_call, submodules
from quoin.layers.init import keeps_global_rng
from quoin.layers.onednn import Linear
from quoin.tensor import attention_mask, check_mask, check_shapes, zero_masked

__all__ = [
    "HeadProjections",
    "MultiHeadAttention",
    "MultiHeadAttentionOutput",
    "ProjectedMemory",
    "RotaryFn",
    "from_torch_multihead",
    "multi_head_attention_definition",
]

Offset = int | DevicePosition
# (b, h, n, d) and the position of the first -> the same shape, with rotary embeddings applied
RotaryFn = Callable[[Tensor, Any], Tensor]
Map = Callable[[Tensor], Tensor]


@shown
class HeadProjections(NamedTuple):
    """What one head makes of a position before it attends."""

    q_proj: Map
    k_proj: Map
    v_proj: Map


@shown
class MultiHeadAttentionOutput(NamedTuple):
    """Multi-head attention taken apart: the output, what each head gathered, and by which weights."""

    output: Float[Tensor, "*batch query embed"]
    heads: Float[Tensor, "heads *batch query value_dim"]
    weights: Float[Tensor, "heads *batch query key"]


@shown
class ProjectedMemory(NamedTuple):
    """Keys and values of every head, and which of them a query may see: what the steps of a decoder share."""

    keys: Float[Tensor, "batch kv_heads key head_dim"]
    values: Float[Tensor, "batch kv_heads key head_dim"]
    mask: Bool[Tensor, "batch 1 1 key"] | None

    def select(self, indices: Int[Tensor, "selected"]) -> "ProjectedMemory":
        """The memory of these sequences, in this order."""
        check_batch_indices(indices, self.keys.shape[0])
        return ProjectedMemory(
            self.keys[indices], self.values[indices], None if self.mask is None else self.mask[indices]
        )


def multi_head_attention_definition(
    query: Float[Tensor, "*batch query query_dim"],
    key: Float[Tensor, "*batch key key_dim"],
    value: Float[Tensor, "*batch key value_dim"],
    heads: Sequence[HeadProjections],
    output_matrix: Float[Tensor, "joined embed"],
    output_bias: Float[Tensor, "embed"] | None = None,
    *,
    mask: Bool[Tensor, "*#batch #query #key"] | Bool[Tensor, "#key"] | None = None,
    scale: float | None = None,
) -> MultiHeadAttentionOutput:
    """Concat(head_1, ..., head_h) W^O + b with head_i the attention of f_q(Q), f_k(K), f_v(V), joined along the
    features.

    Rows are positions, so W^O multiplies from the right: from the left it would mix positions, and fit one length only.

    Args:
        heads: f_q, f_k and f_v of each head.
        output_matrix: W^O.
        mask: True where a query may attend to a key; None lets it attend to all.
        scale: Factor of the scores; one over the root of a head's features unless given.

    Notes: D2.2-9, DE28.
    """
    if mask is not None:  # before the maps, for these have gradients too
        check_mask(mask, (*query.shape[:-1], key.shape[-2]))
        key, value = zero_masked(key, mask), zero_masked(value, mask)
    attended = [
        scaled_dot_product_attention_definition(q_proj(query), k_proj(key), v_proj(value), mask, scale)
        for q_proj, k_proj, v_proj in heads
    ]
    joined = torch.cat([head.output for head in attended], dim=-1)
    check_shapes("... n c, c w, w", joined=joined, output_matrix=output_matrix, output_bias=output_bias)
    output = joined @ output_matrix
    output = output if output_bias is None else output + output_bias
    return MultiHeadAttentionOutput(
        output, torch.stack([head.output for head in attended]), torch.stack([head.weights for head in attended])
    )


class MultiHeadAttention(nn.Module):
    """`multi_head_attention_definition` with its weights: all heads in one product each, and any inner attention
    between them.

    `lengths` (b,) count the keys that are not padding, and in self-attention the queries too; a mask is (n, m), (b, n,
    m) or (b, h, n, m), True where a query may attend. Padding is zeros before it is projected, whatever it holds, so
    that neither an output nor a gradient, not even of the weights, depends on it; so are keys and values that a mask
    hides from all queries. In self-attention with a mask alone a hidden position is still a query, and NaN there is a
    query's own NaN: give `lengths` instead.

    Args:
        num_kv_heads: Heads of keys and values, fewer than `num_heads` for grouped-query attention; as many unless
            given.
        inner_attention: How the heads attend; `ExactAttention()` unless given. A module or function that has no more
            than a forward pass will do (forward_only.py).
        rotary: Rotates queries and keys by their position before they meet, such as a `RotaryEmbedding`.
        key_dim: Features of the input that keys are made of; `embed_dim` unless given.
        value_dim: The same for values.

    >>> layer = MultiHeadAttention(8, num_heads=2, generator=torch.Generator().manual_seed(0))
    >>> layer(torch.zeros(3, 5, 8), lengths=torch.tensor([5, 2, 1]), causal=True).shape
    torch.Size([3, 5, 8])
    >>> layer(torch.zeros(3, 5, 8), torch.zeros(3, 7, 8)).shape
    torch.Size([3, 5, 8])

    Notes: D2.2-9, D3-4.
    """

    @keeps_global_rng
    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        *,
        num_kv_heads: int | None = None,
        inner_attention: InnerAttention | None = None,
        rotary: RotaryFn | None = None,
        bias: bool = True,
        key_dim: int | None = None,
        value_dim: int | None = None,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        groups = num_heads if num_kv_heads is None else num_kv_heads
        input_dims = (
            embed_dim,
            embed_dim if key_dim is None else key_dim,
            embed_dim if value_dim is None else value_dim,
        )
        check_sizes(
            {
                "embed_dim": embed_dim,
                "num_heads": num_heads,
                "num_kv_heads": groups,
                "key_dim": input_dims[1],
                "value_dim": input_dims[2],
            }
        )
        if embed_dim % num_heads:
            raise UserError(f"expected num_heads that divide embed_dim {embed_dim}, got {num_heads}; choose a divisor")
        if num_heads % groups:
            raise UserError(f"expected num_kv_heads that divide num_heads {num_heads}, got {groups}; choose a divisor")
        self.embed_dim, self.num_heads, self.num_kv_heads, self.head_dim = (
            embed_dim,
            num_heads,
            groups,
            embed_dim // num_heads,
        )
        self.head_counts = (num_heads, groups, groups)  # heads of queries, of keys and of values
        features = (embed_dim, groups * self.head_dim, groups * self.head_dim)
        if input_dims == (embed_dim, embed_dim, embed_dim):
            self.in_proj = PackedProjections(embed_dim, features, bias=bias, generator=generator)
        else:
            self.in_proj = SeparateProjections(input_dims, features, bias=bias, generator=generator)
        self.input_dims = input_dims
        self.inner_attention = ExactAttention() if inner_attention is None else as_inner_attention(inner_attention)
        self.rotary = rotary
        self.out_proj = Linear(embed_dim, embed_dim, bias=bias)
        nn.init.xavier_uniform_(self.out_proj.weight, generator=generator)
        if bias:
            nn.init.zeros_(self.out_proj.bias)

    def forward(
        self,
        query: Float[Tensor, "batch query embed"],
        key: Float[Tensor, "batch key key_dim"] | None = None,
        value: Float[Tensor, "batch key value_dim"] | None = None,
        *,
        lengths: Int[Tensor, "batch"] | None = None,
        mask: Bool[Tensor, "... #query #key"] | Bool[Tensor, "#key"] | None = None,
        causal: bool = False,
    ) -> Float[Tensor, "batch query embed"]:
        """Keys default to the queries, values to the keys: one input is self-attention, two are cross attention."""
        query, key, value, mask = self._shown(query, key, value, lengths, mask)
        q, k, v = self._heads(query, key, value)
        return self._joined(self.inner_attention(q, k, v, mask=mask, causal=causal))

    def attend_with_weights(
        self,
        query: Float[Tensor, "batch query embed"],
        key: Float[Tensor, "batch key key_dim"] | None = None,
        value: Float[Tensor, "batch key value_dim"] | None = None,
        *,
        lengths: Int[Tensor, "batch"] | None = None,
        mask: Bool[Tensor, "... #query #key"] | Bool[Tensor, "#key"] | None = None,
        causal: bool = False,
    ) -> Pooled:
        """What `forward` gives, and beside it the weights (b, h, n, m), which are computed apart and change nothing."""
        query, key, value, mask = self._shown(query, key, value, lengths, mask)
        q, k, v = self._heads(query, key, value)
        output = self._joined(self.inner_attention(q, k, v, mask=mask, causal=causal))
        return Pooled(output, self.inner_attention.weights(q, k, mask=mask, causal=causal))

    def init_cache(self, batch_size: int, max_seq_len: int) -> AttentionCache:
        """The empty cache for `batch_size` sequences of at most `max_seq_len` positions."""
        return self.inner_attention.init_cache(self._cache_spec(batch_size, max_seq_len))

    def init_static_cache(self, batch_size: int, max_seq_len: int) -> StaticAttentionCache | None:
        """Memory for a `decode_step` that can be captured; None where the inner attention or the rotary embedding has
        no such form."""
        make = getattr(self.inner_attention, "init_static_cache", None)
        if make is None or not accepts_device_position(self.rotary):
            return None
        return make(self._cache_spec(batch_size, max_seq_len))

    def decode_step(self, cache: AttentionCache, x: Float[Tensor, "batch new embed"]) -> AttentionStepOutput:
        """Causal self-attention from the new positions to themselves and to all in the cache."""
        in_proj, inner_attention, out_proj = submodules(self, "in_proj", "inner_attention", "out_proj")
        if not isinstance(in_proj, PackedProjections):
            raise UserError(
                f"expected keys and values of embed_dim {self.embed_dim} to decode, got {self.input_dims[1:]}; use "
                "attend_memory"
            )
        check_sequences("query", x, self.embed_dim)
        q, k, v = self._packed_heads(fast_call(in_proj._modules["linear"], x), cache.seq_len)
        output, cache = inner_attention.decode_step(cache, q, k, v)
        return AttentionStepOutput(fast_call(out_proj, output.transpose(1, 2).flatten(2)), cache)

    def project_memory(
        self,
        key: Float[Tensor, "batch key key_dim"],
        value: Float[Tensor, "batch key value_dim"] | None = None,
        *,
        lengths: Int[Tensor, "batch"] | None = None,
    ) -> ProjectedMemory:
        """Keys and values of all heads, projected once for the queries of many calls, of which the first `lengths` are
        real."""
        value = key if value is None else value
        for name, x, embed_dim in zip(("key", "value"), (key, value), self.input_dims[1:], strict=True):
            check_sequences(name, x, embed_dim)
        check_shapes("b, b m w", lengths=lengths, key=key)
        mask = attention_mask((key.shape[0], 1, 1, key.shape[1]), lengths=lengths)
        key, value = zero_padding(key, lengths), zero_padding(value, lengths)
        keys, values = (self._split(x) for x in (self.in_proj.k_proj(key), self.in_proj.v_proj(value)))
        keys = keys if self.rotary is None else self.rotary(keys, 0)
        return ProjectedMemory(keys, values, mask)

    def attend_memory(
        self, memory: ProjectedMemory, query: Float[Tensor, "batch query embed"], offset: int = 0
    ) -> Float[Tensor, "batch query embed"]:
        """Attend from queries at positions from `offset` on to the projected memory: what `forward` gives there."""
        check_sequences("query", query, self.input_dims[0])
        q = self._split(self.in_proj.q_proj(query))
        q = q if self.rotary is None else self.rotary(q, offset)
        return self._joined(self.inner_attention(q, memory.keys, memory.values, mask=memory.mask))

    def head_projections(self) -> list[HeadProjections]:
        """f_q, f_k and f_v of each head: one head's columns of this layer's maps."""
        shared = self.num_heads // self.num_kv_heads

        def columns(f: Map, head: int) -> Map:
            return lambda x: f(x).unflatten(-1, (-1, self.head_dim))[..., head, :]

        maps = self.in_proj.q_proj, self.in_proj.k_proj, self.in_proj.v_proj
        return [
            HeadProjections(*(columns(f, h if i == 0 else h // shared) for i, f in enumerate(maps)))
            for h in range(self.num_heads)
        ]

    def _shown(
        self, query: Tensor, key: Tensor | None, value: Tensor | None, lengths: Tensor | None, mask: Tensor | None
    ) -> Shown:
        """What queries may see of the inputs, and the whole mask beside the heads."""
        key = query if key is None else key
        value = key if value is None else value
        if lengths is None and mask is None:
            return Shown(query, key, value, None)
        for name, x, embed_dim in zip(("query", "key", "value"), (query, key, value), self.input_dims, strict=True):
            check_sequences(name, x, embed_dim)
        mask = beside_heads(mask)
        if mask is not None:
            check_mask(mask, (query.shape[0], self.num_heads, query.shape[1], key.shape[1]))
        shown = show(query, key, value, mask, lengths)
        return shown._replace(mask=beside_heads(shown.mask))

    def _heads(self, query: Tensor, key: Tensor | None, value: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        key = query if key is None else key
        value = key if value is None else value
        if query is key is value and isinstance(self.in_proj, PackedProjections):
            check_sequences("query", query, self.embed_dim)
            return self._packed_heads(self.in_proj.packed(query))
        for name, x, embed_dim in zip(("query", "key", "value"), (query, key, value), self.input_dims, strict=True):
            check_sequences(name, x, embed_dim)
        q, k, v = (self._split(x) for x in self.in_proj(query, key, value))
        return self._apply_rotary(q, k, v)

    def _cache_spec(self, batch_size: int, max_seq_len: int) -> CacheSpec:
        weight, head_dim = self.out_proj.weight, self.head_dim
        return CacheSpec(batch_size, self.num_kv_heads, head_dim, head_dim, max_seq_len, weight.dtype, weight.device)

    def _packed_heads(self, packed: Tensor, offset: Offset = 0) -> tuple[Tensor, Tensor, Tensor]:  # (b, n, (h + 2 g) d)
        batch_size, positions, _ = packed.shape
        heads = packed.view(batch_size, positions, sum(self.head_counts), self.head_dim)
        q, k, v = heads.split_with_sizes(self.head_counts, dim=2)
        return self._apply_rotary(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), offset)

    def _apply_rotary(self, q: Tensor, k: Tensor, v: Tensor, offset: Offset = 0) -> tuple[Tensor, Tensor, Tensor]:
        return (q, k, v) if self.rotary is None else (self.rotary(q, offset), self.rotary(k, offset), v)

    def _split(self, x: Tensor) -> Tensor:  # (b, n, h d) -> (b, h, n, d)
        return x.unflatten(-1, (-1, self.head_dim)).transpose(1, 2)

    def _joined(self, heads: Tensor) -> Tensor:  # (b, h, n, d) -> (b, n, w)
        return self.out_proj(heads.transpose(1, 2).flatten(2))


def from_torch_multihead(layer: nn.MultiheadAttention) -> MultiHeadAttention:
    """A copy of a `torch.nn.MultiheadAttention`; inputs come batch first, and True in a mask lets attend, not hides.

    >>> torch_layer = nn.MultiheadAttention(8, 2, batch_first=True)
    >>> x = torch.randn(3, 5, 8)
    >>> torch.allclose(from_torch_multihead(torch_layer)(x), torch_layer(x, x, x)[0], atol=1e-6)
    True
    """
    if layer.bias_k is not None or layer.add_zero_attn:
        raise UserError(
            "expected a layer without add_bias_kv and add_zero_attn, got one with; these add keys that no input has"
        )
    embed_dim, weight, bias = layer.embed_dim, layer.out_proj.weight, layer.in_proj_bias
    copy = MultiHeadAttention(
        embed_dim,
        layer.num_heads,
        inner_attention=ExactAttention(dropout=layer.dropout),
        bias=bias is not None,
        key_dim=layer.kdim,
        value_dim=layer.vdim,
    ).to(weight)
    state = {"out_proj.weight": weight} | ({} if bias is None else {"out_proj.bias": layer.out_proj.bias})
    if isinstance(copy.in_proj, PackedProjections):
        state |= {"in_proj.linear.weight": layer.in_proj_weight} | (
            {} if bias is None else {"in_proj.linear.bias": bias}
        )
    else:
        weights = (layer.q_proj_weight, layer.k_proj_weight, layer.v_proj_weight)
        state |= {f"in_proj.{letter}_proj.weight": weight for letter, weight in zip("qkv", weights, strict=True)}
        if bias is not None:
            state |= {f"in_proj.{letter}_proj.bias": its for letter, its in zip("qkv", bias.chunk(3), strict=True)}
    copy.load_state_dict(state)
    return copy.train(layer.training)
