"""A decoding step on tensors that never move: read a token, choose the next, write it down, all on the device.

The step asks Python for nothing but the length that attention works on, so that on CUDA it is captured as a graph, one
for each such length, and replayed: one call for a token instead of one for each kernel of each layer. On the CPU the
same step runs as it is written, which is how the tests hold it against the ordinary one.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from quoin.generate.choosing import TokenSampler, greedy_token

__all__ = ["StaticDecoder", "TokenSteps", "can_capture", "round_up_limit"]

FIRST_LIMIT = 256  # positions that attention works on at first; doubled when they are full
STEPS_AT_ONCE = 16  # tokens between two looks at whether all sequences have ended


class TokenSteps(NamedTuple):
    """Some more tokens of each sequence; what each step gives is in `decoding.TokenStep`."""

    tokens: Int[Tensor, "batch steps"]
    log_probs: Float[Tensor, "batch steps"]
    ended: Bool[Tensor, "batch steps"]


def round_up_limit(seq_len: int, first: int = FIRST_LIMIT) -> int:
    """The least of first, 2 first, 4 first ... that is no less.

    >>> round_up_limit(3), round_up_limit(256), round_up_limit(700)
    (256, 256, 1024)
    """
    return first << max(0, (seq_len - 1) // first).bit_length()


def can_capture(choose: Callable[[Tensor], Tensor]) -> bool:
    """Whether a way to choose can be part of a graph: of another than ours nobody knows what it does in Python."""
    return choose is greedy_token or type(choose) is TokenSampler


class StaticDecoder:
    """The buffers of a model's static steps, and on CUDA the graphs that run on them.

    `begin` takes over an ordinary cache, `advance` takes steps, `collect` gives the tokens since the last time. The
    model is handed to each of them, not kept: a decoder is kept beside its model and must not keep it alive.

    Args:
        logits: The model's logits, (batch, positions, vocab): for their sizes, dtype and device.
        capacity: The most tokens that will be read, those before the first step counted.
        choose: Takes logits (batch, vocab) to tokens (batch,).
        first_limit: Positions that attention works on at first.
    """

    def __init__(
        self,
        model: Any,
        logits: Float[Tensor, "batch seq vocab"],
        capacity: int,
        choose: Callable[[Tensor], Tensor],
        eos_token_id: int | None = None,
        *,
        first_limit: int = FIRST_LIMIT,
    ):
        batch_size, device = len(logits), logits.device
        self.capacity, self.first_limit = -(-capacity // first_limit) * first_limit, first_limit
        self.cache = model.init_static_cache(batch_size, self.capacity)
        self.eos_token_id, self.position = eos_token_id, 0  # the tokens read, as Python counts them
        # A generator of its own, which the graphs know: callers come with theirs, whose state it takes over.
        self.generator = torch.Generator(device) if isinstance(choose, TokenSampler) else None
        sampled = isinstance(choose, TokenSampler)
        self.choose = dataclasses.replace(choose, generator=self.generator) if sampled else choose
        self.last_logits = torch.zeros_like(logits[:, -1])
        self.token = torch.zeros(batch_size, 1, dtype=torch.long, device=device)
        self.ended = torch.zeros(batch_size, dtype=torch.bool, device=device)
        self.slot = torch.zeros(1, dtype=torch.long, device=device)  # where the next step writes
        self.slots_used = 0
        self.steps = TokenSteps(
            torch.zeros(STEPS_AT_ONCE, batch_size, dtype=torch.long, device=device),
            torch.zeros(STEPS_AT_ONCE, batch_size, dtype=logits.dtype, device=device),
            torch.zeros(STEPS_AT_ONCE, batch_size, dtype=torch.bool, device=device),
        )
        self.graphs: dict[int, torch.cuda.CUDAGraph] = {}
        self._read: list[Any] = []  # what the graphs read besides the buffers and the model's own tensors
        self._pool: Any = None

    @property
    def supported(self) -> bool:
        """Whether the model has static caches at all."""
        return self.cache is not None

    def limits(self, first: int, last: int) -> list[int]:
        """The lengths that attention works on in steps that read tokens at the positions `first` to `last`."""
        if not self.cache.grows:
            return [self.capacity]
        limit, found = round_up_limit(first + 1, self.first_limit), []
        while not found or found[-1] <= last:
            found.append(min(limit, self.capacity))
            limit *= 2
        return found

    def read(self, model: Any, limit: int) -> Any:
        """Read the last token: its logits and the cache after it. Gives back the cache that the model was shown."""
        before = self.cache.at(limit)
        logits, after = model.decode_step(before, self.token)
        self.cache.keep(after)
        self.last_logits.copy_(logits[:, -1])
        return before

    def write(self) -> None:
        """Choose the next token and write it down."""
        chosen = self.choose(self.last_logits)
        log_probs = self.last_logits.log_softmax(dim=-1).gather(-1, chosen.unsqueeze(-1)).squeeze(-1)
        if self.eos_token_id is not None:
            chosen = chosen.masked_fill(self.ended, self.eos_token_id)
            log_probs = log_probs.masked_fill(self.ended, 0)
            self.ended.logical_or_(chosen == self.eos_token_id)
        self.token.copy_(chosen.unsqueeze(-1))
        for kept, new in zip(self.steps, (chosen, log_probs, self.ended), strict=True):
            kept.index_copy_(0, self.slot, new.unsqueeze(0))
        self.slot.add_(1)

    @torch.inference_mode()
    def capture(self, model: Any, limits: list[int]) -> None:
        """Make the graphs that lack. The steps that warm up write into the buffers: `begin` comes after."""
        with torch.cuda.device(self.token.device):
            for limit in limits:
                if limit not in self.graphs:
                    self._capture(model, limit)

    def _capture(self, model: Any, limit: int) -> None:
        self.cache.reset()
        self.slot.zero_()
        self.token.zero_()
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):  # kernels are chosen and tables computed before, not within
            self._captured(model, limit)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        if self.generator is not None and can_capture(self.choose):
            graph.register_generator_state(self.generator)
        # Other threads, such as one that copies batches ahead, may allocate meanwhile.
        with torch.cuda.graph(graph, pool=self._pool, stream=stream, capture_error_mode="thread_local"):
            self._read.append(self._captured(model, limit))
        self._pool, self.graphs[limit] = graph.pool(), graph

    @torch.inference_mode()
    def begin(self, cache: Any, seq_len: int, logits: Float[Tensor, "batch seq vocab"], *, fresh: bool = True) -> None:
        """Take over the cache of tokens read, and choose the token behind them.

        Args:
            fresh: Whether no sequence has ended yet, and nothing is to be collected; False goes on with all but the
                cache.
        """
        self.cache.load(cache)
        self.position = seq_len
        if fresh:
            self.ended.zero_()
            self.slot.zero_()
            self.slots_used = 0
        self.last_logits.copy_(logits[:, -1])
        self.write()
        self.slots_used += 1

    @torch.inference_mode()
    def advance(self, model: Any, steps: int) -> None:
        """Take so many steps: as graphs where they were captured, else as they are written."""
        for _ in range(steps):
            limit = self.limits(self.position, self.position)[0]
            graph = self.graphs.get(limit)
            if graph is None:
                self.read(model, limit)
            else:
                graph.replay()
            if graph is None or not can_capture(self.choose):
                self.write()
            self.position += 1
            self.slots_used += 1

    @property
    def free_slots(self) -> int:
        """Steps that can be taken before `collect`."""
        return STEPS_AT_ONCE - self.slots_used

    def collect(self) -> TokenSteps:
        """The tokens since the last time, in tensors of their own."""
        found = TokenSteps(*(each[: self.slots_used].T.clone() for each in self.steps))
        self.slot.zero_()
        self.slots_used = 0
        return found

    def _captured(self, model: Any, limit: int) -> Any:
        before = self.read(model, limit)
        if can_capture(self.choose):
            self.write()
        return before
