"""Multi-head attention: several attentions side by side, each with maps of its own, their outputs joined by one more map.

How one head attends is its core: exact.py unless another is given.

    b sequences, n queries, m keys, h heads, g key and value heads, w width, d = w / h width of a head
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from quoin.errors import Mistake
from quoin.layers.attention.checks import beside_heads, check_rows, check_sequences, check_sizes
from quoin.layers.attention.exact import ExactAttention, scaled_dot_product_attention_definition
from quoin.layers.attention.interface import AttentionCore, AttentionState, Room, Stepped
from quoin.layers.attention.pooling import Pooled
from quoin.layers.attention.projections import JointProjections, SeparateProjections
from quoin.layers.attention.seen import Shown, show, zero_padding
from quoin.layers.direct import direct, part
from quoin.layers.init import keeps_global_rng
from quoin.tensor import attention_mask, check_mask, check_shapes, zero_unseen

__all__ = [
    "HeadMaps",
    "MultiHeadAttended",
    "MultiHeadAttention",
    "Remembered",
    "Turn",
    "from_torch_multihead",
    "multi_head_attention_definition",
]

Turn = Callable[[Tensor, int], Tensor]  # (b, h, n, d) and the position of the first -> the same shape, turned by position
Map = Callable[[Tensor], Tensor]


class HeadMaps(NamedTuple):
    """What one head makes of a position before it attends."""

    f_q: Map
    f_k: Map
    f_v: Map


class MultiHeadAttended(NamedTuple):
    """Multi-head attention taken apart: the output, what each head gathered, and by which weights."""

    output: Tensor  # (..., n, w)
    heads: Tensor  # (h, ..., n, v)
    weights: Tensor  # (h, ..., n, m)


class Remembered(NamedTuple):
    """Keys and values of every head, and which of them a query may see: what the steps of a decoder share."""

    keys: Tensor  # (b, g, m, d)
    values: Tensor  # (b, g, m, d)
    mask: Tensor | None  # (b, 1, 1, m)

    def select(self, rows: Tensor) -> "Remembered":  # (r,)
        """The memory of these sequences, in this order."""
        check_rows(rows, len(self.keys))
        return Remembered(self.keys[rows], self.values[rows], None if self.mask is None else self.mask[rows])


def multi_head_attention_definition(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    heads: Sequence[HeadMaps],
    output_matrix: Tensor,  # (h v, w)
    output_bias: Tensor | None = None,
    *,
    mask: Tensor | None = None,
    scale: float | None = None,
) -> MultiHeadAttended:
    """Concat(head_1, ..., head_h) W^O + b with head_i the attention of f_q(Q), f_k(K), f_v(V), joined along the features.

    Rows are positions, so W^O multiplies from the right: from the left it would mix positions, and fit one length only.

    Notes: D2.2-9, DE28.
    """
    if mask is not None:  # before the maps, for these have gradients too
        check_mask(mask, (*query.shape[:-1], key.shape[-2]))
        key, value = zero_unseen(key, mask), zero_unseen(value, mask)
    attended = [scaled_dot_product_attention_definition(f_q(query), f_k(key), f_v(value), mask, scale) for f_q, f_k, f_v in heads]
    joined = torch.cat([head.output for head in attended], dim=-1)
    check_shapes("... n c, c w, w", joined=joined, output_matrix=output_matrix, output_bias=output_bias)
    output = joined @ output_matrix
    output = output if output_bias is None else output + output_bias
    return MultiHeadAttended(output, torch.stack([head.output for head in attended]), torch.stack([head.weights for head in attended]))


class MultiHeadAttention(nn.Module):
    """`multi_head_attention_definition` with its weights: all heads in one product each, and any core between them.

    Keys and values may have fewer heads than queries, and come from inputs of other widths. `turn` turns queries and keys by
    their position before they meet. `lengths` (b,) count the keys that are not padding, and in self-attention the queries too; a mask
    is (n, m), (b, n, m) or (b, h, n, m), True where a query may look. Padding is zeros before it is projected, whatever it holds, so that
    neither an output nor a gradient, not even of the weights, hangs on it; so are keys and values that a mask hides from all queries.
    In self-attention with a mask alone a hidden position is still a query, and NaN there is a query's own NaN: give `lengths` instead.

    >>> layer = MultiHeadAttention(8, heads=2, generator=torch.Generator().manual_seed(0))
    >>> layer(torch.zeros(3, 5, 8), lengths=torch.tensor([5, 2, 1]), causal=True).shape
    torch.Size([3, 5, 8])
    >>> layer(torch.zeros(3, 5, 8), torch.zeros(3, 7, 8)).shape
    torch.Size([3, 5, 8])

    Notes: D2.2-9, D3-4.
    """

    project: JointProjections | SeparateProjections = part()
    core: AttentionCore = part()
    f_o: nn.Linear = part()

    @keeps_global_rng
    def __init__(
        self,
        width: int,
        heads: int,
        *,
        key_value_heads: int | None = None,
        core: AttentionCore | None = None,
        turn: Turn | None = None,
        bias: bool = True,
        key_width: int | None = None,
        value_width: int | None = None,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        groups = heads if key_value_heads is None else key_value_heads
        widths = (width, width if key_width is None else key_width, width if value_width is None else value_width)
        check_sizes({"width": width, "heads": heads, "key_value_heads": groups, "key_width": widths[1], "value_width": widths[2]})
        if width % heads:
            raise Mistake(f"expected heads that divide the width {width}, came {heads}; choose a divisor")
        if heads % groups:
            raise Mistake(f"expected key_value_heads that divide the {heads} heads, came {groups}; choose a divisor")
        self.width, self.heads, self.key_value_heads, self.head_width = width, heads, groups, width // heads
        self.shares = (heads, groups, groups)  # heads of queries, of keys and of values
        features = (width, groups * self.head_width, groups * self.head_width)
        if widths == (width, width, width):
            self.project = JointProjections(width, features, bias=bias, generator=generator)
        else:
            self.project = SeparateProjections(widths, features, bias=bias, generator=generator)
        self.widths = widths
        self.core = ExactAttention() if core is None else core
        self.turn = turn
        self.f_o = nn.Linear(width, width, bias=bias)
        nn.init.xavier_uniform_(self.f_o.weight, generator=generator)
        if bias:
            nn.init.zeros_(self.f_o.bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        *,
        lengths: Tensor | None = None,
        mask: Tensor | None = None,
        causal: bool = False,
    ) -> Tensor:  # (b, n, w), (b, m, key width), (b, m, value width) -> (b, n, w)
        """Keys default to the queries, values to the keys: one input is self-attention, two are cross attention."""
        query, key, value, mask = self._shown(query, key, value, lengths, mask)
        q, k, v = self._heads(query, key, value)
        return self._joined(self.core(q, k, v, mask=mask, causal=causal))

    def attend_with_weights(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        *,
        lengths: Tensor | None = None,
        mask: Tensor | None = None,
        causal: bool = False,
    ) -> Pooled:
        """What `forward` gives, and beside it the weights (b, h, n, m), which are computed apart and change nothing."""
        query, key, value, mask = self._shown(query, key, value, lengths, mask)
        q, k, v = self._heads(query, key, value)
        output = self._joined(self.core(q, k, v, mask=mask, causal=causal))
        return Pooled(output, self.core.weights(q, k, mask=mask, causal=causal))

    def start(self, batch: int, capacity: int) -> AttentionState:
        """The state before the first position of `batch` sequences of at most `capacity` positions."""
        weight = self.f_o.weight
        return self.core.start(Room(batch, self.key_value_heads, self.head_width, self.head_width, capacity, weight.dtype, weight.device))

    def step(self, state: AttentionState, x: Tensor) -> Stepped:  # (b, new, w) -> (b, new, w)
        """Causal self-attention from the new positions to themselves and all that the state has seen."""
        q, k, v = self._heads(x, None, None, offset=state.seen)
        output, state = self.core.step(state, q, k, v)
        return Stepped(self._joined(output), state)

    def remember(self, key: Tensor, value: Tensor | None = None, *, lengths: Tensor | None = None) -> Remembered:
        """Keys and values of all heads, projected once for the queries of many calls, of which the first `lengths` are real."""
        value = key if value is None else value
        for name, x, width in zip(("key", "value"), (key, value), self.widths[1:], strict=True):
            check_sequences(name, x, width)
        check_shapes("b, b m w", lengths=lengths, key=key)
        mask = attention_mask((len(key), 1, 1, key.shape[1]), valid_lengths=lengths)
        key, value = zero_padding(key, lengths), zero_padding(value, lengths)
        keys, values = (self._split(x) for x in (self.project.f_k(key), self.project.f_v(value)))
        keys = keys if self.turn is None else self.turn(keys, 0)
        return Remembered(keys, values, mask)

    def recall(self, memory: Remembered, query: Tensor, offset: int = 0) -> Tensor:  # (b, n, w) -> (b, n, w)
        """Attend from queries at positions from `offset` on to what is remembered: what `forward` gives there."""
        check_sequences("query", query, self.widths[0])
        q = self._split(self.project.f_q(query))
        q = q if self.turn is None else self.turn(q, offset)
        return self._joined(self.core(q, memory.keys, memory.values, mask=memory.mask))

    def head_maps(self) -> list[HeadMaps]:
        """f_q, f_k and f_v of each head: one head's columns of this layer's maps."""
        shared = self.heads // self.key_value_heads

        def columns(f: Map, head: int) -> Map:
            return lambda x: f(x).unflatten(-1, (-1, self.head_width))[..., head, :]

        maps = self.project.f_q, self.project.f_k, self.project.f_v
        return [HeadMaps(*(columns(f, h if i == 0 else h // shared) for i, f in enumerate(maps))) for h in range(self.heads)]

    def _shown(self, query: Tensor, key: Tensor | None, value: Tensor | None, lengths: Tensor | None, mask: Tensor | None) -> Shown:
        """What queries may see of the inputs, and the whole mask beside the heads."""
        key = query if key is None else key
        value = key if value is None else value
        if lengths is None and mask is None:
            return Shown(query, key, value, None)
        for name, x, width in zip(("query", "key", "value"), (query, key, value), self.widths, strict=True):
            check_sequences(name, x, width)
        mask = beside_heads(mask)
        if mask is not None:
            check_mask(mask, (len(query), self.heads, query.shape[1], key.shape[1]))
        shown = show(query, key, value, mask, lengths)
        return shown._replace(mask=beside_heads(shown.mask))

    def _heads(self, query: Tensor, key: Tensor | None, value: Tensor | None, offset: int = 0) -> tuple[Tensor, Tensor, Tensor]:
        key = query if key is None else key
        value = key if value is None else value
        if query is key is value and isinstance(self.project, JointProjections):
            check_sequences("query", query, self.width)
            batch, positions, _ = query.shape
            heads = self.project.together(query).view(batch, positions, sum(self.shares), self.head_width)
            q, k, v = heads.split_with_sizes(self.shares, dim=2)
            q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
        else:
            for name, x, width in zip(("query", "key", "value"), (query, key, value), self.widths, strict=True):
                check_sequences(name, x, width)
            q, k, v = (self._split(x) for x in self.project(query, key, value))
        if self.turn is not None:
            q, k = self.turn(q, offset), self.turn(k, offset)
        return q, k, v

    def _split(self, x: Tensor) -> Tensor:  # (b, n, h d) -> (b, h, n, d)
        return x.unflatten(-1, (-1, self.head_width)).transpose(1, 2)

    def _joined(self, heads: Tensor) -> Tensor:  # (b, h, n, d) -> (b, n, w)
        return direct(self.f_o, heads.transpose(1, 2).flatten(2))


def from_torch_multihead(layer: nn.MultiheadAttention) -> MultiHeadAttention:
    """A copy of a `torch.nn.MultiheadAttention`; inputs come batch first, and in masks True lets look where torch's hides.

    >>> torch_layer = nn.MultiheadAttention(8, 2, batch_first=True)
    >>> x = torch.randn(3, 5, 8)
    >>> torch.allclose(from_torch_multihead(torch_layer)(x), torch_layer(x, x, x)[0], atol=1e-6)
    True
    """
    if layer.bias_k is not None or layer.add_zero_attn:
        raise Mistake("expected a layer without add_bias_kv and add_zero_attn, came one with; these add keys that no input has")
    width, weight, bias = layer.embed_dim, layer.out_proj.weight, layer.in_proj_bias
    copy = MultiHeadAttention(
        width,
        layer.num_heads,
        core=ExactAttention(dropout=layer.dropout),
        bias=bias is not None,
        key_width=layer.kdim,
        value_width=layer.vdim,
    ).to(weight)
    state = {"f_o.weight": weight} | ({} if bias is None else {"f_o.bias": layer.out_proj.bias})
    if isinstance(copy.project, JointProjections):
        state |= {"project.linear.weight": layer.in_proj_weight} | ({} if bias is None else {"project.linear.bias": bias})
    else:
        weights = (layer.q_proj_weight, layer.k_proj_weight, layer.v_proj_weight)
        state |= {f"project.f_{letter}.weight": weight for letter, weight in zip("qkv", weights, strict=True)}
        if bias is not None:
            state |= {f"project.f_{letter}.bias": part for letter, part in zip("qkv", bias.chunk(3), strict=True)}
    copy.load_state_dict(state)
    return copy.train(layer.training)
