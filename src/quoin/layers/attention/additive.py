"""Additive attention: the score is a small network, so queries and keys may differ in width.

A decoder that looks at the same encoder states at every step (Bahdanau's) lets the layer `remember` them once and `recall` by its
state at each step; the recurrent decoder itself is a model's matter.   n queries of width d, m keys of width e with values of width v
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from quoin.errors import Mistake
from quoin.layers.attention.cache import KeyValueCache
from quoin.layers.attention.exact import spread_heads
from quoin.layers.attention.interface import AttentionState, Room, Stepped
from quoin.layers.attention.pooling import Pooled, attention_weights, pool_values
from quoin.layers.attention.scores import AdditiveScore, additive_score_definition
from quoin.layers.attention.seen import each_query_alone, hidden_from_some
from quoin.tensor import attention_mask, causal_mask, check_mask, check_shapes, masked_softmax, zero_unseen

__all__ = ["AdditiveAttention", "AdditiveMemory", "additive_attention_definition"]


def additive_attention_definition(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    query_weight: Tensor,
    key_weight: Tensor,
    output_weight: Tensor,
    mask: Tensor | None = None,
) -> Pooled:  # (..., n, d), (..., m, e), (..., m, v), (h, d), (h, e), (h,)
    """sum_i softmax_i(w_v^T tanh(W_q q + W_k k_i)) v_i over the keys that the query may see.

    Notes: Z11.21.
    """
    check_shapes("... n d, ... m e, ... m v", query=query, key=key, value=value)
    if mask is not None:
        check_mask(mask, (*query.shape[:-1], key.shape[-2]))
        if hidden_from_some(mask, key, value):
            attend, shared = additive_attention_definition, (query_weight, key_weight, output_weight)
            return Pooled(*each_query_alone(lambda q, k, v, seen: attend(q, k, v, *shared, seen), query, (key, value), mask))
        key, value = zero_unseen(key, mask), zero_unseen(value, mask)
    weights = masked_softmax(additive_score_definition(query, key, query_weight, key_weight, output_weight), mask)
    return Pooled(weights @ value, weights)


class AdditiveMemory(NamedTuple):
    """Keys projected once, their values, and which of them any query may see: what the steps of a decoder share."""

    projected_key: Tensor  # (..., m, h)
    value: Tensor  # (..., m, v)
    mask: Tensor | None = None  # broadcasts to (..., n, m)


class AdditiveAttention(nn.Module):
    """`additive_attention_definition` with weights to learn; keys are projected once, however many queries come.

    The layer is an `AttentionCore`, and serves other leading axes too, the same for queries and keys. All heads share its weights, and
    heads of queries may share heads of keys. What is at positions that no query may see is never used. `generator` draws the weights.

    >>> attend = AdditiveAttention(20, 2, 8, generator=torch.Generator().manual_seed(0))
    >>> states = attend.remember(torch.ones(2, 10, 2), torch.ones(2, 10, 4), valid_lengths=torch.tensor([2, 6]))
    >>> attend.recall(states, torch.randn(2, 1, 20)).output.shape
    torch.Size([2, 1, 4])

    Notes: Z11.21.
    """

    def __init__(self, query_width: int, key_width: int, hidden: int, *, generator: torch.Generator | None = None):
        super().__init__()
        self.score = AdditiveScore(query_width, key_width, hidden, generator=generator)

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, *, mask: Tensor | None = None, causal: bool = False
    ) -> Tensor:  # (..., n, d), (..., m, e), (..., m, v) -> (..., n, v)
        key, value = _for_each_head(key, query), _for_each_head(value, query)
        check_shapes("... n d, ... m e, ... m v", query=query, key=key, value=value)
        return self.recall(self._projected(key, value, _seen(query, key, mask, causal)), query).output

    def weights(
        self, query: Tensor, key: Tensor, *, mask: Tensor | None = None, causal: bool = False
    ) -> Tensor:  # (..., n, d), (..., m, e) -> (..., n, m)
        """The weights that `forward` uses."""
        key = _for_each_head(key, query)
        check_shapes("... n d, ... m e", query=query, key=key)
        return self.recall(self._projected(key, key, _seen(query, key, mask, causal)), query).weights

    def remember(self, key: Tensor, value: Tensor, *, valid_lengths: Tensor | None = None) -> AdditiveMemory:  # (..., m, e), (..., m, v)
        """Project the keys, of which the first `valid_lengths` (one for each sequence) are real."""
        check_shapes("... m e, ... m v", key=key, value=value)
        return self._projected(key, value, attention_mask((*key.shape[:-2], 1, key.shape[-2]), valid_lengths=valid_lengths))

    def recall(self, memory: AdditiveMemory, query: Tensor) -> Pooled:  # (..., n, d) -> (..., n, v), (..., n, m)
        """Look at what is remembered with one or more queries."""
        scores = self.score.score(self.score.project_query(query), memory.projected_key)
        weights = attention_weights(scores, memory.mask)
        return Pooled(pool_values(weights, memory.value), weights)

    def start(self, room: Room) -> KeyValueCache:
        """A cache of projected keys and of values."""
        return KeyValueCache.empty(room._replace(key_width=len(self.score.output_weight)))

    def step(self, state: AttentionState, query: Tensor, key: Tensor, value: Tensor) -> Stepped:
        """Attend from the new positions to themselves and all before; only the new keys are projected."""
        if not isinstance(state, KeyValueCache):
            raise Mistake(f"expected the state that start gave, came {type(state).__name__}; each attention keeps its own kind")
        check_shapes("b h n d, b g n e, b g n v", query=query, key=key, value=value)
        state = state.append(self.score.project_key(key), value)
        keys, values = _for_each_head(state.keys, query), _for_each_head(state.values, query)
        mask = causal_mask(query.shape[-2], state.seen, device=query.device)
        return Stepped(self.recall(AdditiveMemory(keys, values, mask), query).output, state)

    def _projected(self, key: Tensor, value: Tensor, mask: Tensor | None) -> AdditiveMemory:
        if mask is not None:
            key, value = zero_unseen(key, mask), zero_unseen(value, mask)
        return AdditiveMemory(self.score.project_key(key), value, mask)


def _for_each_head(x: Tensor, query: Tensor) -> Tensor:  # (b, g, m, e), (b, h, n, d) -> (b, h, m, e)
    """Keys or values repeated for the heads of queries that share them; of any other shape as they are, for the checks to judge."""
    shared = x.ndim == query.ndim == 4 and x.shape[1] and query.shape[1] % x.shape[1] == 0
    return spread_heads(x, query.shape[1]) if shared and x.shape[1] != query.shape[1] else x


def _seen(query: Tensor, key: Tensor, mask: Tensor | None, causal: bool) -> Tensor | None:
    queries, keys = query.shape[-2], key.shape[-2]
    if causal and queries != keys:
        raise Mistake(
            f"expected as many keys as queries where attention is causal, came {keys} keys for {queries} queries; "
            "cross attention sees all keys: leave causal out, or give a mask"
        )
    return attention_mask((*query.shape[:-1], keys), mask, causal=causal, device=query.device)
