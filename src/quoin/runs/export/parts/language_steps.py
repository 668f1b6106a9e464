"""One step of each kind of language model, its state as plain tensors: in with the tokens, out with the logits."""

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn

from quoin.layers.attention.feature_map import LinearAttentionCache
from quoin.layers.attention.growing_cache import GrowingKeyValueCache
from quoin.layers.attention.linear_forms import KeyValueSums
from quoin.layers.device_position import DevicePosition
from quoin.models import (
    NextTokenOutput,
    NgramCache,
    NgramModel,
    RecurrentLanguageModel,
    RecurrentState,
    TransformerLanguageModel,
)
from quoin.models.language_transformer import TransformerCache
from quoin.runs.export.exportable import BATCH, Axis

__all__ = ["NgramStep", "RecurrentStep", "State", "SumsStep", "TransformerStep"]


Step = Callable[..., tuple[Tensor, ...]]  # tokens and a state to logits and the state after them


@dataclass(frozen=True)
class State:
    """One tensor of a state: its axes, what it is before the first token (one number, or one along the last axis), and
    how a random one is drawn."""

    name: str
    axes: tuple[Axis | int, ...]
    start: float | list[int]
    draw: Callable[[tuple[int, ...], torch.Generator], Tensor]
    dtype: str = "float32"

    def as_json(self) -> dict[str, Any]:
        """Before the first token, of one sequence: a free axis other than the batch is empty."""
        return {"name": self.name, "shape": self._shape(1), "start": self.start, "dtype": self.dtype}

    def before(self, batch_size: int) -> Shaped[Tensor, "..."]:
        """Before the first token of so many sequences."""
        start = torch.tensor(self.start, dtype=getattr(torch, self.dtype))
        return start.expand(self._shape(batch_size)).contiguous()

    def _shape(self, batch_size: int) -> list[int]:
        return [axis if isinstance(axis, int) else batch_size if axis == BATCH else 0 for axis in self.axes]


def normal(size: tuple[int, ...], generator: torch.Generator) -> Float[Tensor, "..."]:
    """A random state of keys, values or hidden units."""
    return torch.randn(size, generator=generator)


class TransformerStep(nn.Module):
    """New tokens after those whose keys and values are given; all keys and values come back."""

    def __init__(self, model: TransformerLanguageModel, seen: Axis) -> None:
        super().__init__()
        # The bound was for what is tried: fewer new tokens leave room for more.
        self.model, self.seen = model, dataclasses.replace(seen, at_most=None)

    def state(self) -> list[State]:
        """Keys and values of each block."""
        seen = self.seen
        return [
            State(
                f"{kind}_{number}", (BATCH, block.attention.num_kv_heads, seen, block.attention.head_dim), 0.0, normal
            )
            for number, block in enumerate(self.model.transformer.blocks)
            for kind in ("keys", "values")
        ]

    def forward(
        self, tokens: Int[Tensor, "batch new"], *past: Float[Tensor, "..."]
    ) -> tuple[Float[Tensor, "..."], ...]:
        cache = TransformerCache(tuple(GrowingKeyValueCache(k, v) for k, v in zip(past[::2], past[1::2], strict=True)))
        logits, after = self.model.decode_step(cache, tokens)
        assert isinstance(after, TransformerCache)
        return logits, *(each for block in after.blocks for each in (block.keys, block.values))  # type: ignore[attr-defined]

    def by_its_own_code(
        self, tokens: Int[Tensor, "batch new"], *past: Float[Tensor, "..."]
    ) -> tuple[Float[Tensor, "..."], ...]:
        """The same with the cache that the run itself decodes with."""
        empty: Any = self.model.init_cache(tokens.shape[0], past[0].shape[2] + tokens.shape[1])
        filled = [block.append(*past[at : at + 2]) for at, block in zip(range(0, len(past), 2), empty.blocks)]
        logits, after = self.model.decode_step(TransformerCache(tuple(filled)), tokens)
        return logits, *(each for block in after.blocks for each in (block.keys, block.values))  # type: ignore[attr-defined]


class SumsStep(nn.Module):
    """One token of a Transformer with linear attention, whose state is sums of constant size."""

    def __init__(self, model: TransformerLanguageModel, window: int | None) -> None:
        super().__init__()
        self.model, self.limit = model, window or 4096
        with torch.no_grad():
            blocks = model.init_cache(1, self.limit).blocks
        self.sums = [block.sums for block in blocks]  # type: ignore[attr-defined]

    def state(self) -> list[State]:
        """Moments of each block, and their scale where it has one."""
        found = []
        for number, sums in enumerate(self.sums):
            axes = (BATCH, *sums.moments.shape[1:])
            found.append(State(f"moments_{number}", axes, 0.0, lambda size, rng: torch.rand(size, generator=rng)))
            if sums.log_scale is not None:
                start = float(sums.log_scale.flatten()[0])
                found.append(State(f"log_scale_{number}", (BATCH, *sums.log_scale.shape[1:]), start, normal))
        return found

    def forward(
        self, tokens: Int[Tensor, "batch 1"], position: Int[Tensor, "1"], *past: Float[Tensor, "..."]
    ) -> tuple[Float[Tensor, "..."], ...]:
        return self._read(tokens, DevicePosition(position, self.limit), past)

    def by_its_own_code(
        self, tokens: Int[Tensor, "batch 1"], position: Int[Tensor, "1"], *past: Float[Tensor, "..."]
    ) -> tuple[Float[Tensor, "..."], ...]:
        """The same at a position that Python knows, as the run itself decodes."""
        return self._read(tokens, int(position), past)

    def _read(
        self, tokens: Tensor, at: int | DevicePosition, past: tuple[Tensor, ...]
    ) -> tuple[Float[Tensor, "..."], ...]:
        given, caches = iter(past), []
        for sums in self.sums:
            found = KeyValueSums(next(given), None if sums.log_scale is None else next(given))
            caches.append(LinearAttentionCache(found, at))
        logits, after = self.model.decode_step(TransformerCache(tuple(caches)), tokens)
        blocks: Any = after.blocks  # type: ignore[attr-defined]
        return logits, *(each for block in blocks for each in block.sums if each is not None)


class RecurrentStep(nn.Module):
    """One token of a recurrent model: the hidden state goes in and comes out."""

    def __init__(self, model: RecurrentLanguageModel) -> None:
        super().__init__()
        self.model = model

    def state(self) -> list[State]:
        """The hidden state, and an LSTM's cell state."""
        cell = self.model.cell
        names = ("hidden", "cell") if isinstance(cell, nn.LSTM) else ("hidden",)
        return [State(name, (cell.num_layers, BATCH, cell.hidden_size), 0.0, normal) for name in names]

    def forward(self, tokens: Int[Tensor, "batch 1"], *state: Float[Tensor, "..."]) -> tuple[Float[Tensor, "..."], ...]:
        logits, after = self.model.read(RecurrentState(state), tokens)
        return logits, *after.tensors

    def by_its_own_code(
        self, tokens: Int[Tensor, "batch 1"], *state: Float[Tensor, "..."]
    ) -> tuple[Float[Tensor, "..."], ...]:
        """As the run itself decodes."""
        logits, after = self.model.decode_step(RecurrentState(state), tokens)
        return logits, *after.tensors  # type: ignore[attr-defined]


class NgramStep(nn.Module):
    """One token of an n-gram model: the nodes of the last tokens go in and come out, and each node's children are found
    by bisection, of all tokens at once."""

    keys: Int[Tensor, "nodes"]
    probs: Float[Tensor, "nodes"]
    weights: Float[Tensor, "nodes"]

    def __init__(self, model: NgramModel) -> None:
        super().__init__()
        self.order, self.vocab_size = model.order, model.vocab_size
        self.by_its_own_code: Step = lambda tokens, nodes: _as_tuple(model.decode_step(NgramCache(nodes), tokens))
        for name in ("keys", "probs", "weights"):
            self.register_buffer(name, getattr(model, name))
        self.num_halvings = max(1, math.ceil(math.log2(len(model.keys) + 1)))

    def state(self) -> list[State]:
        """The nodes of the last 0 .. N - 1 tokens, none but the root's before the first."""
        start = [0] + [-1] * (self.order - 1)

        def draw(size: tuple[int, ...], generator: torch.Generator) -> Tensor:
            return torch.tensor(start).expand(size).clone()

        return [State("nodes", (BATCH, self.order), start, draw, "int64")]

    def forward(
        self, tokens: Int[Tensor, "batch 1"], nodes: Int[Tensor, "batch order"]
    ) -> tuple[Shaped[Tensor, "..."], ...]:
        after = torch.cat([torch.zeros_like(tokens), self._child(nodes[:, :-1], tokens)], dim=1)
        every = torch.arange(self.vocab_size, device=tokens.device)
        added = self._at(self.probs, self._child(after[:, :, None], every), 0.0)  # (b, N, m)
        kept = self._at(self.weights, after, 1.0)
        probs = torch.full_like(tokens, 1, dtype=self.probs.dtype) / self.vocab_size
        for length in range(self.order):
            probs = probs * kept[:, length, None] + added[:, length]
        return probs.log().unsqueeze(1), after

    def _child(self, node: Tensor, token: Tensor) -> Tensor:
        """The node of a node's n-gram with a token behind it; -1 where it never occurred."""
        wanted = node * self.vocab_size + token
        low, high = torch.zeros_like(wanted), torch.full_like(wanted, self.keys.shape[0])
        for _ in range(self.num_halvings):
            middle = (low + high) // 2
            below = self.keys[middle.clamp(max=self.keys.shape[0] - 1)] < wanted
            low, high = torch.where(below & (low < high), middle + 1, low), torch.where(below, high, middle)
        at = low.clamp(max=self.keys.shape[0] - 1)
        return torch.where((self.keys[at] == wanted) & (node >= 0), at, -1)

    @staticmethod
    def _at(table: Tensor, node: Tensor, otherwise: float) -> Tensor:
        return torch.where(node >= 0, table[node.clamp(min=0)], otherwise)


def _as_tuple(found: NextTokenOutput) -> tuple[Float[Tensor, "..."], ...]:
    assert isinstance(found.cache, NgramCache)
    return found.logits, found.cache.nodes
