"""Exact attention: softmax(Q Kᵀ / √d) V from its definition, and on torch's fused kernel.

Feature maps of linear cost are in feature_map.py, learned projections in single.py and multi_head.py.

    h heads, g key and value heads, n queries, m keys, d head_dim
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor, nn

from quoin.display import shown
from quoin.errors import UserError
from quoin.layers.attention.cache import KeyValueCache
from quoin.layers.attention.checks import check_attention
from quoin.layers.attention.growing_cache import GrowingKeyValueCache
from quoin.layers.attention.inner_attention import AttentionCache, AttentionStepOutput, CacheSpec
from quoin.layers.attention.seen import each_query_alone, hidden_from_some, seen_by_group
from quoin.layers.attention.static_cache import StaticKeyValueCache, StaticKeyValues
from quoin.layers.device_position import DevicePosition, accepts_device_position
from quoin.tensor import attention_mask, causal_mask, check_mask, check_shapes, masked_softmax, zero_masked

__all__ = ["AttentionOutput", "ExactAttention", "ScoreBias", "repeat_kv", "scaled_dot_product_attention_definition"]

# (queries, keys, position of the first query) -> (heads, queries, keys)
ScoreBias = Callable[[int, int, Any], Tensor]


@shown
class AttentionOutput(NamedTuple):
    """Attention taken apart: the output, the attention weights, and the scores they come from."""

    output: Float[Tensor, "*batch query value_dim"]
    weights: Float[Tensor, "*batch query key"]
    scores: Float[Tensor, "*batch query key"]  # before the mask; a key that no query may see counts as zero


def scaled_dot_product_attention_definition(
    query: Float[Tensor, "*batch query head_dim"],
    key: Float[Tensor, "*batch key head_dim"],
    value: Float[Tensor, "*batch key value_dim"],
    mask: Bool[Tensor, "*#batch #query #key"] | Bool[Tensor, "#key"] | None = None,
    scale: float | None = None,
    bias: Float[Tensor, "*#batch #query #key"] | None = None,
) -> AttentionOutput:
    """softmax(s Q Kᵀ + B) V with s = 1/√d unless given and B = 0 unless given; a masked score counts as minus infinity.

    A query that may attend to nothing gets zeros. What a query may not see never reaches its output or its gradient, be
    it NaN: v_i = 0 beyond the length, and k_i too.

    Args:
        mask: True where a query may attend to a key; None lets it attend to all.

    >>> query, key = torch.zeros(1, 2), torch.randn(4, 2)
    >>> scaled_dot_product_attention_definition(query, key, torch.arange(4.0).unsqueeze(-1)).output
    tensor([[1.5000]])

    Notes: Z11.17, Z11.18.
    """
    check_shapes("... n d, ... m d, ... m v", query=query, key=key, value=value)
    if mask is not None:
        check_mask(mask, (*query.shape[:-1], key.shape[-2]))
        if hidden_from_some(mask, key, value):
            attend = scaled_dot_product_attention_definition
            return AttentionOutput(
                *each_query_alone(
                    lambda q, k, v, seen, b: attend(q, k, v, seen, scale, b), query, (key, value), mask, bias
                )
            )
        key, value = zero_masked(key, mask), zero_masked(value, mask)
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = scale * (query @ key.mT)
    if bias is not None:
        scores = scores + bias
    weights = masked_softmax(scores, mask)
    return AttentionOutput(weights @ value, weights, scores)


def repeat_kv(
    grouped: Shaped[Tensor, "batch kv_heads key dim"], num_heads: int
) -> Shaped[Tensor, "batch {num_heads} key dim"]:
    """Each of g key or value heads repeated for the heads / g query heads that share it; definitions need it, kernels
    do not."""
    return grouped.repeat_interleave(num_heads // grouped.shape[1], dim=1)


class ExactAttention(nn.Module):
    """`scaled_dot_product_attention_definition` on torch's fused kernel, which never stores the weights.

    Query heads may share key and value heads: g of these serve h queries, h / g each. The weights it gives are those
    before dropout.

    Keys and values that a mask hides from all queries are never used, whatever they hold. One that only some queries
    may see must be finite: the kernel forms all products, so that its NaN would reach the others as well, which in the
    definition it does not.

    Args:
        scale: Factor of the scores; 1/√d unless given.
        bias: Added to the scores, such as an `ALiBi`: called with the number of queries, that of keys and the position
            of the first query, it gives (h, n, m).
        dropout: Probability with which a weight is dropped in training.

    >>> attend = ExactAttention()
    >>> attend(torch.randn(2, 8, 5, 16), torch.randn(2, 4, 7, 16), torch.randn(2, 4, 7, 16)).shape
    torch.Size([2, 8, 5, 16])

    Notes: Z11.17.
    """

    def __init__(self, *, scale: float | None = None, bias: ScoreBias | None = None, dropout: float = 0.0):
        super().__init__()
        if not 0 <= dropout < 1:
            raise UserError(f"expected a dropout probability of at least 0 and below 1, got {dropout}; give e.g. 0.1")
        self.scale = scale
        self.bias = bias
        self.dropout = nn.Dropout(dropout)

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
        if mask is not None:
            mask = mask if mask.ndim > 1 else mask[..., None, :]  # the kernel wants an axis for the queries
            mask = mask & causal_mask(query.shape[2], device=query.device) if causal else mask
            causal, seen = False, seen_by_group(mask, key.shape[1])
            key, value = zero_masked(key, seen), zero_masked(value, seen)
        return self._attend(query, key, value, mask, causal, offset=0)

    def weights(
        self,
        query: Float[Tensor, "batch heads query head_dim"],
        key: Float[Tensor, "batch kv_heads key head_dim"],
        *,
        mask: Bool[Tensor, "... #query #key"] | Bool[Tensor, "#key"] | None = None,
        causal: bool = False,
    ) -> Float[Tensor, "batch heads query key"]:
        """The weights of the definition, n m numbers a head."""
        check_attention(query, key, None, mask, causal=causal)
        mask = attention_mask((*query.shape[:3], key.shape[2]), mask, causal=causal, device=query.device)
        key = repeat_kv(key, query.shape[1])
        return scaled_dot_product_attention_definition(
            query, key, key, mask, self.scale, self._bias(query, key, 0)
        ).weights

    def init_cache(self, spec: CacheSpec) -> KeyValueCache:
        """An empty cache with memory for `spec.max_seq_len` positions."""
        return KeyValueCache.empty(spec)

    def init_static_cache(self, spec: CacheSpec) -> StaticKeyValues | None:
        """Memory for a decode step that can be captured; None where the bias must know its position in Python."""
        return StaticKeyValues.empty(spec) if accepts_device_position(self.bias) else None

    def decode_step(
        self,
        cache: AttentionCache,
        query: Float[Tensor, "batch heads new head_dim"],
        key: Float[Tensor, "batch kv_heads new head_dim"],
        value: Float[Tensor, "batch kv_heads new value_dim"],
    ) -> AttentionStepOutput:
        """Attend from the new positions to themselves and all before: what `forward` gives there on the whole,
        causal."""
        if isinstance(cache, GrowingKeyValueCache):
            before, cache = cache.seq_len, cache.append(key, value)
            mask = causal_mask(query.shape[2], cache.seq_len, device=query.device)
            output = self._attend(query, cache.keys, cache.values, mask, causal=False, offset=before)
            return AttentionStepOutput(output, cache)
        if isinstance(cache, StaticKeyValueCache):
            check_attention(query, key, value, causal=True)
            return AttentionStepOutput(self._attend_static(cache, query, key, value), cache)
        if not isinstance(cache, KeyValueCache):
            raise UserError(
                f"expected the cache that init_cache gave, got {type(cache).__name__}; each attention keeps its "
                "own kind"
            )
        check_attention(query, key, value, causal=True)
        before, cache = cache.seq_len, cache.append(key, value)
        keys, values = cache.keys, cache.values
        new = query.shape[2]
        if new == 1 and self.bias is None:
            return AttentionStepOutput(self._attend_one(query, keys, values), cache)
        mask = causal_mask(new, cache.seq_len, device=query.device) if before else None
        return AttentionStepOutput(self._attend(query, keys, values, mask, causal=not before, offset=before), cache)

    def _attend_one(self, query: Tensor, keys: Tensor, values: Tensor, added: Tensor | None = None) -> Tensor:
        """Attend from one position of each head, whatever it may see; `added` is the same for all heads."""
        (batch_size, num_heads, _, head_dim), groups = query.shape, keys.shape[1]
        if num_heads == groups:
            return self._fused(query, keys, values, added)
        # The heads of a group are so many queries of its one key head, which need not be read once for each of them.
        grouped = self._fused(query.reshape(batch_size, groups, -1, head_dim), keys, values, added)
        return grouped.reshape(batch_size, num_heads, 1, -1)

    def _attend_static(self, cache: StaticKeyValueCache, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        keys, values = cache.write(key, value)
        added = cache.position.score_mask(query.dtype)
        if self.bias is None:
            return self._attend_one(query, keys, values, added)
        bias = self._bias(query, keys, cache.position)
        assert bias is not None
        return self._fused(query, keys, values, added + bias, grouped=query.shape[1] != key.shape[1])

    def _attend(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool, offset: int
    ) -> Tensor:
        bias = self._bias(query, key, offset)
        if causal and (mask is not None or bias is not None):  # the kernel's own causal form takes no mask beside it
            mask = attention_mask((*query.shape[:3], key.shape[2]), mask, causal=True, device=query.device)
            causal = False
        added = mask
        if bias is not None:
            added = bias if mask is None else bias.masked_fill(~mask, -math.inf)
        output = self._fused(query, key, value, added, causal, query.shape[1] != key.shape[1])
        # in half precision a CUDA kernel gives a query that sees nothing the mean of all values
        if mask is not None and not query.is_cpu:
            output = output.masked_fill(~mask.any(dim=-1, keepdim=True), 0)
        return output

    def _fused(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        added: Tensor | None = None,
        causal: bool = False,
        grouped: bool = False,
    ) -> Tensor:
        dropout = self.dropout.p if self.training else 0.0
        if dropout and query.is_cpu and not torch.compiler.is_compiling():
            return self._attend_with_dropout(query, key, value, added, causal, grouped)
        return torch.nn.functional.scaled_dot_product_attention(
            query, key, value, added, dropout, causal, scale=self.scale, enable_gqa=grouped
        )

    def _attend_with_dropout(
        self, query: Tensor, key: Tensor, value: Tensor, added: Tensor | None, causal: bool, grouped: bool
    ) -> Tensor:
        """What torch's kernel does on the CPU when it drops weights, with a dropout layer that can be seen from
        outside."""
        if grouped:
            key, value = repeat_kv(key, query.shape[1]), repeat_kv(value, query.shape[1])
        scores = query @ key.mT * (query.shape[-1] ** -0.5 if self.scale is None else self.scale)
        if added is not None and added.dtype != torch.bool:
            scores = scores + added
            added = scores > -math.inf
        return self.dropout(masked_softmax(scores, added, causal=causal)) @ value

    def _bias(self, query: Tensor, key: Tensor, offset: int | DevicePosition) -> Tensor | None:
        if self.bias is None:
            return None
        bias = self.bias(query.shape[2], key.shape[2], offset)
        if bias.shape[0] not in (1, query.shape[1]):
            raise UserError(
                f"expected a bias of num_heads {query.shape[1]}, got one of {bias.shape[0]}; make it with as many"
            )
        return bias.to(query.dtype)
