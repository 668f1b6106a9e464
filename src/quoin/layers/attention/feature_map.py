"""Attention of linear cost as a core: any feature map, masks of padding, causal or not, and a state of constant size to decode with.

The formulas are in linear_forms.py. Features are made chunk by chunk, beside their use, and sums are taken in float32 or wider whatever the
dtype of the input.   b sequences, h query heads, g key and value heads, n queries, m keys, d width, v value width, f features
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from quoin.errors import Mistake
from quoin.layers.attention.checks import check_attention, check_rows, check_sizes
from quoin.layers.attention.exact import Attended
from quoin.layers.attention.features import EluPlusOne, Features, Redrawn
from quoin.layers.attention.interface import AttentionState, Room, Stepped
from quoin.layers.attention.linear_forms import (
    CHUNK,
    KeySums,
    add_keys,
    causal_feature_step,
    check_chunk,
    feature_attention_definition,
    hide,
    no_keys,
    read_sums,
)
from quoin.tensor import check_floating, check_same_dtype

__all__ = ["FeatureMapAttention", "LinearAttention", "LinearState"]


@dataclass(frozen=True, eq=False)
class LinearState:
    """What attention by features remembers of `seen` positions: sums over them, as large after a million as after one."""

    sums: KeySums  # (b, g, 1, ...)
    seen: int = 0

    def select(self, rows: Tensor) -> "LinearState":  # (r,)
        """The state of these sequences, in this order."""
        moments, log_scale = self.sums
        check_rows(rows, len(moments))
        return LinearState(KeySums(moments[rows], None if log_scale is None else log_scale[rows]), self.seen)


class FeatureMapAttention(nn.Module):
    """Σ_j φ(q_i)·φ(k_j) v_j / Σ_j φ(q_i)·φ(k_j) for any feature map φ, in time and memory linear in the number of positions.

    `causal` keeps j ≤ i, `chunk` positions at a time. A mask that is the same for all queries, as padding is, costs nothing; any
    other needs the scores of all pairs, and the quadratic definition gives them. Query heads may share key and value heads.

    >>> attend = FeatureMapAttention(EluPlusOne())
    >>> attend(torch.randn(2, 8, 5, 16), torch.randn(2, 4, 7, 16), torch.randn(2, 4, 7, 16)).shape
    torch.Size([2, 8, 5, 16])

    Notes: D4.1-1, D4.1-11.
    """

    def __init__(self, feature_map: nn.Module, *, chunk: int = CHUNK):
        super().__init__()
        check_chunk(chunk)
        self.feature_map = feature_map
        self.chunk = chunk

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, *, mask: Tensor | None = None, causal: bool = False
    ) -> Tensor:  # (b, h, n, d), (b, g, m, d), (b, g, m, v) -> (b, h, n, v)
        check_attention(query, key, value, mask, causal=causal)
        check_same_dtype(query, key, value)
        check_floating(query, "query")
        if isinstance(self.feature_map, Redrawn):
            self.feature_map.begin_pass()
        groups = key.shape[1]
        with torch.autocast(query.device.type, enabled=False):
            q, k, v = _grouped(query, groups), _grouped(key, groups), _grouped(value, groups)
            mask = _grouped_mask(mask, groups)
            if mask is not None and (mask.shape[2] > 1 or mask.shape[3] > 1):  # not the same for all queries
                return _ungrouped(self._defined(q, k, v, mask, causal).output, query)
            sums = self._no_sums(k, v)
            if causal:
                return _ungrouped(self._follow(sums, q, k, v, mask)[0], query)
            for features, values in self._keys(k, v, mask):
                sums = add_keys(sums, features, values)
            return _ungrouped(torch.cat([read_sums(sums, features) for features in self._queries(q)], dim=-2), query)

    def weights(
        self, query: Tensor, key: Tensor, *, mask: Tensor | None = None, causal: bool = False
    ) -> Tensor:  # (b, h, n, d), (b, g, m, d) -> (b, h, n, m)
        """The weights of the definition, n m numbers a head, which `forward` never writes out."""
        check_attention(query, key, None, mask, causal=causal)
        check_same_dtype(query, key)
        check_floating(query, "query")
        groups = key.shape[1]
        with torch.autocast(query.device.type, enabled=False):
            q, k = _grouped(query, groups), _grouped(key, groups)
            return _ungrouped(self._defined(q, k, k, _grouped_mask(mask, groups), causal).weights, query)

    def start(self, room: Room) -> LinearState:
        """Sums over no position; they need no `room.capacity`."""
        check_sizes({name: getattr(room, name) for name in ("batch", "heads", "key_width", "value_width")})
        dtype = torch.promote_types(room.dtype, torch.float32)
        lead = (room.batch, room.heads, 1, 0)
        key, value = (torch.empty(*lead, width, dtype=dtype, device=room.device) for width in (room.key_width, room.value_width))
        return LinearState(self._no_sums(key, value))

    def step(self, state: AttentionState, query: Tensor, key: Tensor, value: Tensor) -> Stepped:
        """Attend from the new positions to themselves and all before: what `forward` gives there on the whole, causal."""
        if not isinstance(state, LinearState):
            raise Mistake(f"expected the state that start gave, came {type(state).__name__}; each attention keeps its own kind")
        check_attention(query, key, value, causal=True)
        check_floating(query, "query")
        check_same_dtype(query, key, value)
        (batch, groups, new, width), moments = value.shape, state.sums.moments
        if (batch, groups, width) != (*moments.shape[:2], moments.shape[-1] - 1):
            started = f"{moments.shape[0]} sequences, {moments.shape[1]} key heads and values of width {moments.shape[-1] - 1}"
            raise Mistake(f"expected {started} as at the start, came value of shape {tuple(value.shape)}; start a state of that size")
        with torch.autocast(query.device.type, enabled=False):
            q, k, v = _grouped(query, groups), _grouped(key, groups), _grouped(value, groups)
            output, sums = self._follow(state.sums, q, k, v, None)
        return Stepped(_ungrouped(output, query), LinearState(sums, state.seen + new))

    def _follow(self, sums: KeySums, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> tuple[Tensor, KeySums]:
        outputs = []
        for queries, (keys, values) in zip(self._queries(query), self._keys(key, value, mask), strict=True):
            output, sums = causal_feature_step(sums, queries, keys, values)
            outputs.append(output)
        return torch.cat(outputs, dim=-2), sums

    def _defined(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool) -> Attended:
        seen = None if mask is None else mask.any(dim=2, keepdim=True).any(dim=3, keepdim=True)  # what nobody sees may be NaN
        queries = self.feature_map(query, is_query=True)
        keys, values = self._visible(key, value, seen)
        return feature_attention_definition(queries, keys, values, mask, causal=causal)

    def _queries(self, query: Tensor) -> Iterator[Features]:
        return (self.feature_map(piece, is_query=True) for piece in query.split(self.chunk, dim=-2))

    def _keys(self, key: Tensor, value: Tensor, mask: Tensor | None) -> Iterator[tuple[Features, Tensor]]:
        pieces = key.split(self.chunk, dim=-2)
        seen = [None] * len(pieces) if mask is None else mask.expand(*mask.shape[:-1], key.shape[-2]).split(self.chunk, dim=-1)
        for each in zip(pieces, value.split(self.chunk, dim=-2), seen, strict=True):
            yield self._visible(*each)

    def _visible(self, key: Tensor, value: Tensor, mask: Tensor | None) -> tuple[Features, Tensor]:
        """Features of the keys, and the values; nothing of what the mask (b, g, 1, 1, m) hides, not even a NaN, is left in either."""
        if mask is None:
            return self.feature_map(key, is_query=False), value
        hidden = ~mask.mT
        keys = self.feature_map(key.masked_fill(hidden, 0), is_query=False)
        return hide(keys, hidden), value.masked_fill(hidden, 0)

    def _no_sums(self, key: Tensor, value: Tensor) -> KeySums:
        return no_keys(self.feature_map(key[..., :0, :], is_query=False), value)


class LinearAttention(FeatureMapAttention):
    """Linear attention of "Transformers are RNNs": φ(q_i)ᵀ Σ_j φ(k_j) v_jᵀ / φ(q_i)ᵀ Σ_j φ(k_j) with φ = elu + 1.

    It is an attention of its own and does not approximate softmax attention.

    Notes: D4.1-3, D4.1-4, D4.1-5.
    """

    def __init__(self, *, chunk: int = CHUNK):
        super().__init__(EluPlusOne(), chunk=chunk)


def _grouped(x: Tensor, groups: int) -> Tensor:  # (b, h, n, d) -> (b, g, h / g, n, d), in float32 or wider
    return x.to(torch.promote_types(x.dtype, torch.float32)).unflatten(1, (groups, -1))


def _ungrouped(x: Tensor, like: Tensor) -> Tensor:  # (b, g, h / g, n, v) -> (b, h, n, v)
    return x.flatten(1, 2).to(like.dtype)


def _grouped_mask(mask: Tensor | None, groups: int) -> Tensor | None:  # broadcasts to (b, h, n, m) -> (b, g, h / g, n, m)
    if mask is None:
        return None
    mask = mask[(None,) * (4 - mask.ndim)]
    return mask.unflatten(1, (groups, -1)) if mask.shape[1] > 1 else mask.unsqueeze(2)
