"""Additive attention: the score is a small network, so queries and keys may differ in dimension.

A decoder that attends to the same encoder outputs at every step (Bahdanau's) lets the layer `project_memory` them once
and `attend_memory` by its hidden state at each step; the recurrent decoder itself is a model's matter.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from quoin.display import shown
from quoin.errors import UserError
from quoin.layers.attention.cache import KeyValueCache
from quoin.layers.attention.exact import repeat_kv
from quoin.layers.attention.inner_attention import AttentionCache, AttentionStepOutput, CacheSpec
from quoin.layers.attention.pooling import Pooled, pool_values, softmax_weights
from quoin.layers.attention.scores import AdditiveScore, additive_score_definition
from quoin.layers.attention.seen import each_query_alone, hidden_from_some
from quoin.tensor import attention_mask, causal_mask, check_mask, check_shapes, masked_softmax, zero_masked

__all__ = ["AdditiveAttention", "AdditiveMemory", "additive_attention_definition"]


def additive_attention_definition(
    query: Float[Tensor, "*batch query query_dim"],
    key: Float[Tensor, "*batch key key_dim"],
    value: Float[Tensor, "*batch key value_dim"],
    query_weight: Float[Tensor, "hidden query_dim"],
    key_weight: Float[Tensor, "hidden key_dim"],
    output_weight: Float[Tensor, "hidden"],
    mask: Bool[Tensor, "*#batch #query #key"] | Bool[Tensor, "#key"] | None = None,
) -> Pooled:
    """sum_i softmax_i(w_v^T tanh(W_q q + W_k k_i)) v_i over the keys that the query may see.

    Args:
        output_weight: w_v.
        mask: True where a query may attend to a key; None lets it attend to all.

    Notes: Z11.21.
    """
    check_shapes("... n d, ... m e, ... m v", query=query, key=key, value=value)
    if mask is not None:
        check_mask(mask, (*query.shape[:-1], key.shape[-2]))
        if hidden_from_some(mask, key, value):
            attend, shared = additive_attention_definition, (query_weight, key_weight, output_weight)
            return Pooled(
                *each_query_alone(lambda q, k, v, seen: attend(q, k, v, *shared, seen), query, (key, value), mask)
            )
        key, value = zero_masked(key, mask), zero_masked(value, mask)
    weights = masked_softmax(additive_score_definition(query, key, query_weight, key_weight, output_weight), mask)
    return Pooled(weights @ value, weights)


@shown
class AdditiveMemory(NamedTuple):
    """Keys projected once, their values, and which of them any query may see: what the steps of a decoder share."""

    projected_key: Float[Tensor, "*batch key hidden"]
    value: Float[Tensor, "*batch key value_dim"]
    mask: Bool[Tensor, "*#batch query #key"] | Bool[Tensor, "#key"] | None = None


class AdditiveAttention(nn.Module):
    """`additive_attention_definition` with weights to learn; keys are projected once, however many queries come.

    The layer is an `InnerAttention`, and serves other leading axes too, the same for queries and keys. All heads share
    its weights, and heads of queries may share heads of keys. Positions that no query may see are never used.
    `generator` samples the weights.

    >>> attend = AdditiveAttention(20, 2, 8, generator=torch.Generator().manual_seed(0))
    >>> memory = attend.project_memory(torch.ones(2, 10, 2), torch.ones(2, 10, 4), lengths=torch.tensor([2, 6]))
    >>> attend.attend_memory(memory, torch.randn(2, 1, 20)).output.shape
    torch.Size([2, 1, 4])

    Notes: Z11.21.
    """

    def __init__(self, query_dim: int, key_dim: int, hidden_dim: int, *, generator: torch.Generator | None = None):
        super().__init__()
        self.score = AdditiveScore(query_dim, key_dim, hidden_dim, generator=generator)

    def forward(
        self,
        query: Float[Tensor, "*batch query query_dim"],
        key: Float[Tensor, "... key key_dim"],
        value: Float[Tensor, "... key value_dim"],
        *,
        mask: Bool[Tensor, "*#batch #query #key"] | Bool[Tensor, "#key"] | None = None,
        causal: bool = False,
    ) -> Float[Tensor, "*batch query value_dim"]:
        key, value = _for_each_head(key, query), _for_each_head(value, query)
        check_shapes("... n d, ... m e, ... m v", query=query, key=key, value=value)
        return self.attend_memory(self._projected(key, value, _seen(query, key, mask, causal)), query).output

    def weights(
        self,
        query: Float[Tensor, "*batch query query_dim"],
        key: Float[Tensor, "... key key_dim"],
        *,
        mask: Bool[Tensor, "*#batch #query #key"] | Bool[Tensor, "#key"] | None = None,
        causal: bool = False,
    ) -> Float[Tensor, "*batch query key"]:
        """The weights that `forward` uses."""
        key = _for_each_head(key, query)
        check_shapes("... n d, ... m e", query=query, key=key)
        return self.attend_memory(self._projected(key, key, _seen(query, key, mask, causal)), query).weights

    def project_memory(
        self,
        key: Float[Tensor, "*batch key key_dim"],
        value: Float[Tensor, "*batch key value_dim"],
        *,
        lengths: Int[Tensor, "..."] | None = None,
    ) -> AdditiveMemory:
        """Project the keys, of which the first `lengths` (one for each sequence) are real."""
        check_shapes("... m e, ... m v", key=key, value=value)
        return self._projected(key, value, attention_mask((*key.shape[:-2], 1, key.shape[-2]), lengths=lengths))

    def attend_memory(self, memory: AdditiveMemory, query: Float[Tensor, "*batch query query_dim"]) -> Pooled:
        """Attend to the projected memory with one or more queries."""
        scores = self.score.score(self.score.project_query(query), memory.projected_key)
        weights = softmax_weights(scores, memory.mask)
        return Pooled(pool_values(weights, memory.value), weights)

    def init_cache(self, spec: CacheSpec) -> KeyValueCache:
        """An empty cache of projected keys and of values."""
        return KeyValueCache.empty(spec._replace(key_dim=len(self.score.output_weight)))

    def decode_step(
        self,
        cache: AttentionCache,
        query: Float[Tensor, "batch heads new query_dim"],
        key: Float[Tensor, "batch kv_heads new key_dim"],
        value: Float[Tensor, "batch kv_heads new value_dim"],
    ) -> AttentionStepOutput:
        """Attend from the new positions to themselves and all before; only the new keys are projected."""
        if not isinstance(cache, KeyValueCache):
            raise UserError(
                f"expected the cache that init_cache gave, got {type(cache).__name__}; each attention keeps its "
                "own kind"
            )
        check_shapes("b h n d, b g n e, b g n v", query=query, key=key, value=value)
        cache = cache.append(self.score.project_key(key), value)
        keys, values = _for_each_head(cache.keys, query), _for_each_head(cache.values, query)
        mask = causal_mask(query.shape[-2], cache.seq_len, device=query.device)
        return AttentionStepOutput(self.attend_memory(AdditiveMemory(keys, values, mask), query).output, cache)

    def _projected(self, key: Tensor, value: Tensor, mask: Tensor | None) -> AdditiveMemory:
        if mask is not None:
            key, value = zero_masked(key, mask), zero_masked(value, mask)
        return AdditiveMemory(self.score.project_key(key), value, mask)


def _for_each_head(x: Tensor, query: Tensor) -> Tensor:  # (b, g, m, e), (b, h, n, d) -> (b, h, m, e)
    """Keys or values repeated for the heads of queries that share them; of any other shape as they are."""
    shared = x.ndim == query.ndim == 4 and x.shape[1] and query.shape[1] % x.shape[1] == 0
    return repeat_kv(x, query.shape[1]) if shared and x.shape[1] != query.shape[1] else x


def _seen(query: Tensor, key: Tensor, mask: Tensor | None, causal: bool) -> Tensor | None:
    queries, keys = query.shape[-2], key.shape[-2]
    if causal and queries != keys:
        raise UserError(
            f"expected as many keys as queries where attention is causal, got {keys} keys for {queries} queries; "
            "cross attention sees all keys: leave causal out, or give a mask"
        )
    return attention_mask((*query.shape[:-1], keys), mask, causal=causal, device=query.device)
