"""Attention of linear cost as an inner attention: any feature map, padding masks, causal or not, and a cache of
constant size.

The formulas are in linear_forms.py. Features are made chunk by chunk, beside their use, and sums are taken in float32
or wider whatever the
dtype of the input.   b sequences, h query heads, g key and value heads, n queries, m keys, d key_dim, v value_dim, f
features
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from quoin.display import shown
from quoin.errors import UserError
from quoin.layers.attention.checks import check_attention, check_batch_indices, check_sizes
from quoin.layers.attention.exact import AttentionOutput
from quoin.layers.attention.features import EluPlusOne, Features, Redrawn
from quoin.layers.attention.gpu_forms import attend_on_gpu
from quoin.layers.attention.inner_attention import AttentionCache, AttentionStepOutput, CacheSpec
from quoin.layers.attention.linear_forms import (
    CHUNK,
    KeyValueSums,
    batched_causal_feature_attention,
    causal_feature_step,
    check_chunk_size,
    feature_attention,
    feature_attention_definition,
    init_sums,
    mask_keys,
    query_sums,
    update_sums,
)
from quoin.layers.device_position import DevicePosition
from quoin.tensor import check_floating, check_same_dtype
from quoin.tensor.blocks import in_blocks

__all__ = ["FeatureMapAttention", "LinearAttention", "LinearAttentionCache", "StaticSums"]


# Devices on which a chunk after the other is quick: elsewhere Python's calls take longer than the work of a chunk.
CHUNK_BY_CHUNK = ("cpu",)


@shown
@dataclass(frozen=True, eq=False)
class LinearAttentionCache:
    """The cache of linear attention after `seq_len` positions: sums over them, of constant size."""

    sums: KeyValueSums  # with leading axes batch, kv_heads, 1
    seq_len: Any = 0  # an int; a `DevicePosition` in a step that is captured

    def select(self, indices: Int[Tensor, "selected"]) -> "LinearAttentionCache":
        """The cache of these sequences, in this order."""
        moments, log_scale = self.sums
        check_batch_indices(indices, moments.shape[0])
        return LinearAttentionCache(
            KeyValueSums(moments[indices], None if log_scale is None else log_scale[indices]), self.seq_len
        )


@dataclass(frozen=True, eq=False)
class StaticSums:
    """The memory of a `LinearAttentionCache`, at addresses that stay."""

    sums: KeyValueSums
    grows = False

    def load(self, cache: LinearAttentionCache) -> None:
        self.keep(cache)

    def at(self, position: DevicePosition) -> LinearAttentionCache:
        return LinearAttentionCache(self.sums, position)

    def keep(self, after: LinearAttentionCache) -> None:
        self.sums.moments.copy_(after.sums.moments)
        if self.sums.log_scale is not None and after.sums.log_scale is not None:
            self.sums.log_scale.copy_(after.sums.log_scale)


class FeatureMapAttention(nn.Module):
    """Σ_j φ(q_i)·φ(k_j) v_j / Σ_j φ(q_i)·φ(k_j) for any feature map φ, in time and memory linear in the number of
    positions.

    `causal` keeps j ≤ i. A mask that is the same for all queries, as padding is, costs nothing; any other needs the
    scores of all pairs, and the quadratic definition gives them. Query heads may share key and value heads.

    Args:
        feature_map: φ, a module that is called as a `FeatureMap` is, such as `EluPlusOne()`.
        chunk_size: Positions worked on at a time; it changes time and memory, and the result by rounding alone.

    >>> attend = FeatureMapAttention(EluPlusOne())
    >>> attend(torch.randn(2, 8, 5, 16), torch.randn(2, 4, 7, 16), torch.randn(2, 4, 7, 16)).shape
    torch.Size([2, 8, 5, 16])

    Notes: D4.1-1, D4.1-11.
    """

    def __init__(self, feature_map: nn.Module, *, chunk_size: int = CHUNK):
        super().__init__()
        check_chunk_size(chunk_size)
        self.feature_map = feature_map
        self.chunk_size = chunk_size

    def forward(
        self,
        query: Float[Tensor, "batch heads query head_dim"],
        key: Float[Tensor, "batch kv_heads key head_dim"],
        value: Float[Tensor, "batch kv_heads key value_dim"],
        *,
        mask: Bool[Tensor, "... #query #key"] | Bool[Tensor, "#key"] | None = None,
        causal: bool = False,
    ) -> Float[Tensor, "batch heads query value_dim"]:
        check_attention(query, key, value, mask, causal=causal)
        check_same_dtype(query, key, value)
        check_floating(query, "query")
        if isinstance(self.feature_map, Redrawn):
            self.feature_map.begin_pass()
        groups = key.shape[1]
        with torch.autocast(query.device.type, enabled=False):
            if (found := attend_on_gpu(self.feature_map, query, key, value, mask, causal)) is not None:
                return found
            q, k, v = _grouped(query, groups), _grouped(key, groups), _grouped(value, groups)
            mask = _grouped_mask(mask, groups)
            if mask is not None and (mask.shape[2] > 1 or mask.shape[3] > 1):  # not the same for all queries
                return _ungrouped(self._defined(q, k, v, mask, causal).output, query)
            if query.device.type not in CHUNK_BY_CHUNK and k.shape[-2]:
                return _ungrouped(self._at_once(q, k, v, mask, causal), query)
            sums = self._init_sums(k, v)
            if causal:
                return _ungrouped(self._follow(sums, q, k, v, mask)[0], query)
            for features, values in self._keys(k, v, mask):
                sums = update_sums(sums, features, values)
            return _ungrouped(torch.cat([query_sums(sums, features) for features in self._queries(q)], dim=-2), query)

    def weights(
        self,
        query: Float[Tensor, "batch heads query head_dim"],
        key: Float[Tensor, "batch kv_heads key head_dim"],
        *,
        mask: Bool[Tensor, "... #query #key"] | Bool[Tensor, "#key"] | None = None,
        causal: bool = False,
    ) -> Float[Tensor, "batch heads query key"]:
        """The weights of the definition, n m numbers a head, which `forward` never writes out."""
        check_attention(query, key, None, mask, causal=causal)
        check_same_dtype(query, key)
        check_floating(query, "query")
        groups = key.shape[1]
        with torch.autocast(query.device.type, enabled=False):
            q, k = _grouped(query, groups), _grouped(key, groups)
            return _ungrouped(self._defined(q, k, k, _grouped_mask(mask, groups), causal).weights, query)

    def init_cache(self, spec: CacheSpec) -> LinearAttentionCache:
        """A cache of sums over no position; it needs no `spec.max_seq_len`."""
        check_sizes({name: getattr(spec, name) for name in ("batch_size", "num_heads", "key_dim", "value_dim")})
        dtype = torch.promote_types(spec.dtype, torch.float32)
        lead = (spec.batch_size, spec.num_heads, 1, 0)
        key, value = (
            torch.empty(*lead, head_dim, dtype=dtype, device=spec.device) for head_dim in (spec.key_dim, spec.value_dim)
        )
        return LinearAttentionCache(self._init_sums(key, value))

    def init_static_cache(self, spec: CacheSpec) -> StaticSums:
        """Memory for a decode step that can be captured."""
        return StaticSums(self.init_cache(spec).sums)

    def decode_step(
        self,
        cache: AttentionCache,
        query: Float[Tensor, "batch heads new head_dim"],
        key: Float[Tensor, "batch kv_heads new head_dim"],
        value: Float[Tensor, "batch kv_heads new value_dim"],
    ) -> AttentionStepOutput:
        """Attend from the new positions to themselves and all before: what `forward` gives there on the whole,
        causal."""
        if not isinstance(cache, LinearAttentionCache):
            raise UserError(
                f"expected the cache that init_cache gave, got {type(cache).__name__}; each attention keeps its "
                "own kind"
            )
        check_attention(query, key, value, causal=True)
        check_floating(query, "query")
        check_same_dtype(query, key, value)
        (batch_size, groups, new, head_dim), moments = value.shape, cache.sums.moments
        if (batch_size, groups, head_dim) != (*moments.shape[:2], moments.shape[-1] - 1):
            started = (
                f"{moments.shape[0]} sequences, {moments.shape[1]} key heads and values of width "
                f"{moments.shape[-1] - 1}"
            )
            raise UserError(
                f"expected {started} as at the start, got value of shape {tuple(value.shape)}; init a cache of "
                "that size"
            )
        with torch.autocast(query.device.type, enabled=False):
            q, k, v = _grouped(query, groups), _grouped(key, groups), _grouped(value, groups)
            output, sums = self._follow(cache.sums, q, k, v, None)
        # A position on the device is moved on by whoever owns it, once for all layers.
        after = cache.seq_len if isinstance(cache.seq_len, DevicePosition) else cache.seq_len + new
        return AttentionStepOutput(_ungrouped(output, query), LinearAttentionCache(sums, after))

    def _follow(
        self, sums: KeyValueSums, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, KeyValueSums]:
        outputs = []
        for queries, (keys, values) in zip(self._queries(query), self._keys(key, value, mask), strict=True):
            output, sums = causal_feature_step(sums, queries, keys, values)
            outputs.append(output)
        return torch.cat(outputs, dim=-2), sums

    def _at_once(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        queries, (keys, values) = self.feature_map(query, is_query=True), self._visible(key, value, mask)
        if causal:
            return batched_causal_feature_attention(queries, keys, values, chunk_size=self.chunk_size)
        return feature_attention(queries, keys, values)

    def _defined(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool) -> AttentionOutput:
        seen = (
            None if mask is None else mask.any(dim=2, keepdim=True).any(dim=3, keepdim=True)
        )  # what nobody sees may be NaN
        queries = self.feature_map(query, is_query=True)
        keys, values = self._visible(key, value, seen)
        return feature_attention_definition(queries, keys, values, mask, causal=causal)

    def _queries(self, query: Tensor) -> Iterator[Features]:
        return (self.feature_map(piece, is_query=True) for piece in in_blocks(query, self.chunk_size, dim=-2))

    def _keys(self, key: Tensor, value: Tensor, mask: Tensor | None) -> Iterator[tuple[Features, Tensor]]:
        pieces = in_blocks(key, self.chunk_size, dim=-2)
        seen = (
            [None] * len(pieces)
            if mask is None
            else in_blocks(mask.expand(*mask.shape[:-1], key.shape[-2]), self.chunk_size, dim=-1)
        )
        for each in zip(pieces, in_blocks(value, self.chunk_size, dim=-2), seen, strict=True):
            yield self._visible(*each)

    def _visible(self, key: Tensor, value: Tensor, mask: Tensor | None) -> tuple[Features, Tensor]:
        """Features of the keys, and the values; nothing of what the mask (b, g, 1, 1, m) hides, not even a NaN, is left
        in either."""
        if mask is None:
            return self.feature_map(key, is_query=False), value
        hidden = ~mask.mT
        keys = self.feature_map(key.masked_fill(hidden, 0), is_query=False)
        return mask_keys(keys, hidden), value.masked_fill(hidden, 0)

    def _init_sums(self, key: Tensor, value: Tensor) -> KeyValueSums:
        return init_sums(self.feature_map(key[..., :0, :], is_query=False), value)


class LinearAttention(FeatureMapAttention):
    """Linear attention of "Transformers are RNNs": φ(q_i)ᵀ Σ_j φ(k_j) v_jᵀ / φ(q_i)ᵀ Σ_j φ(k_j) with φ = elu + 1.

    It is an attention of its own and does not approximate softmax attention.

    Args:
        chunk_size: Positions worked on at a time; it changes time and memory, and the result by rounding alone.

    Notes: D4.1-3, D4.1-4, D4.1-5.
    """

    def __init__(self, *, chunk_size: int = CHUNK):
        super().__init__(EluPlusOne(), chunk_size=chunk_size)


def _grouped(x: Tensor, groups: int) -> Tensor:  # (b, h, n, d) -> (b, g, h / g, n, d), in float32 or wider
    return x.to(torch.promote_types(x.dtype, torch.float32)).unflatten(1, (groups, -1))


def _ungrouped(x: Tensor, like: Tensor) -> Tensor:  # (b, g, h / g, n, v) -> (b, h, n, v)
    return x.flatten(1, 2).to(like.dtype)


def _grouped_mask(
    mask: Tensor | None, groups: int
) -> Tensor | None:  # broadcasts to (b, h, n, m) -> (b, g, h / g, n, m)
    if mask is None:
        return None
    mask = mask[(None,) * (4 - mask.ndim)]
    return mask.unflatten(1, (groups, -1)) if mask.shape[1] > 1 else mask.unsqueeze(2)
