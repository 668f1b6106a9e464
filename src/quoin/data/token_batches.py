"""Batches of token windows for language models: no token twice an epoch, in an order that is a function of (seed,
epoch).

Both kinds are `BatchSampler` whose rows are the indices where windows begin; `read(starts)` gives the tokens there and
the ones that come next.
"""

from collections.abc import Iterator
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Int
from torch import Tensor

from quoin.data.batches import BatchSampler
from quoin.data.seeds import keyed_generator
from quoin.data.transfer import to_device
from quoin.display import shown
from quoin.errors import UserError

__all__ = ["BPTTWindows", "RandomWindows", "StoredTokens", "TokenBatch", "TokenWindows", "read_windows"]


@runtime_checkable
class StoredTokens(Protocol):
    """Tokens that need not be in memory."""

    def __len__(self) -> int: ...

    def windows(self, starts: Int[Tensor, "batch"], length: int) -> Int[Tensor, "batch {length}"]:
        """The tokens from each of `starts` on."""
        ...


@shown
class TokenBatch(NamedTuple):
    """What is read, and what comes next at each position."""

    inputs: Int[Tensor, "batch seq"]
    targets: Int[Tensor, "batch seq"]


def read_windows(
    tokens: Int[Tensor, "num_tokens"] | StoredTokens, starts: Int[Tensor, "batch"], length: int
) -> Int[Tensor, "batch {length}"]:
    """tokens[s], ..., tokens[s + length - 1] for each start s."""
    if isinstance(tokens, Tensor):
        return tokens[to_device(starts, tokens.device)[:, None] + torch.arange(length, device=tokens.device)].long()
    return tokens.windows(starts, length)


class TokenWindows(BatchSampler):
    """What both kinds share: windows of `length` tokens which begin at indices that each epoch shifts by a new
    offset."""

    def __init__(
        self,
        tokens: Int[Tensor, "num_tokens"] | StoredTokens,
        length: int,
        num_rows: int,
        batch_size: int,
        *,
        seed: int,
        shuffle: bool,
        rank: int = 0,
        world_size: int = 1,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__(num_rows, batch_size, seed=seed, rank=rank, world_size=world_size, shuffle=shuffle)
        self.length, self.num_tokens, self.target_device = length, len(tokens), device
        self.tokens = tokens.to(device) if isinstance(tokens, Tensor) else tokens

    def __iter__(self) -> Iterator[Int[Tensor, "batch"]]:
        for rows in super().__iter__():
            yield self.window_starts(rows)

    def window_starts(self, rows: Int[Tensor, "batch"]) -> Int[Tensor, "batch"]:
        """Where the windows of these numbers begin in the current epoch."""
        raise NotImplementedError

    def read(self, starts: Int[Tensor, "batch"]) -> TokenBatch:
        """The windows that begin at `starts`."""
        seen = to_device(read_windows(self.tokens, starts, self.length + 1), self.target_device)
        return TokenBatch(seen[:, :-1], seen[:, 1:])

    def offset(self) -> int:
        """Where the first window of this epoch begins, anywhere that leaves space for all: over the epochs every token
        is read, and what one epoch cut in two another does not."""
        spare = self.num_tokens - 1 - self.num_rows * self.length
        return int(torch.randint(spare + 1, (), generator=keyed_generator("offset", self.seed, self.epoch)))

    def _counted_in(self) -> dict[str, int]:
        return super()._counted_in() | {"length": self.length, "num_tokens": self.num_tokens}


class RandomWindows(TokenWindows):
    """Windows side by side, in random order: each token is read at most once an epoch, and all but the first and last
    few are.

    Args:
        context_length: Tokens of a window.
        batch_size: Windows of the global batch, over all ranks.
        rank: Which contiguous fraction of each batch to give, of `world_size`.

    >>> batches = RandomWindows(torch.arange(100), 10, 4, seed=0)
    >>> inputs, targets = batches.read(next(iter(batches)))
    >>> inputs.shape, bool((targets == inputs + 1).all())
    (torch.Size([4, 10]), True)
    """

    def __init__(
        self,
        tokens: Int[Tensor, "num_tokens"] | StoredTokens,
        context_length: int,
        batch_size: int,
        *,
        seed: int,
        rank: int = 0,
        world_size: int = 1,
        device: torch.device | str | None = None,
    ) -> None:
        _check_enough(len(tokens), context_length, 1)
        num_rows = max(
            1, len(tokens) // context_length - 1
        )  # one less than could fit: space to shift them by up to a window
        super().__init__(
            tokens,
            context_length,
            num_rows,
            batch_size,
            seed=seed,
            shuffle=True,
            rank=rank,
            world_size=world_size,
            device=device,
        )

    def window_starts(self, rows: Int[Tensor, "batch"]) -> Int[Tensor, "batch"]:
        return self.offset() + rows * self.length


class BPTTWindows(TokenWindows):
    """The text cut into `batch_size` equal pieces that are read side by side, `bptt_len` tokens at a time, each batch
    where the last one ended.

    So a recurrent model can carry its state from batch to batch and cut only its gradient (truncated back-propagation
    through time); `resets_state` says when it must not.

    Args:
        batch_size: Pieces of the text, over all ranks.
        rank: Which contiguous fraction of each batch to give, of `world_size`.

    >>> batches = BPTTWindows(torch.arange(101), 2, 10, seed=0)
    >>> first, second, *_ = [batches.read(starts).inputs for starts in batches]
    >>> bool((second == first + 10).all())
    True
    """

    def __init__(
        self,
        tokens: Int[Tensor, "num_tokens"] | StoredTokens,
        batch_size: int,
        bptt_len: int,
        *,
        seed: int,
        rank: int = 0,
        world_size: int = 1,
        device: torch.device | str | None = None,
    ) -> None:
        _check_enough(len(tokens), bptt_len, batch_size)
        self.stream_steps = max(
            1, (len(tokens) - bptt_len) // (batch_size * bptt_len)
        )  # leaves space to shift them by up to a window
        num_rows = batch_size * self.stream_steps
        super().__init__(
            tokens,
            bptt_len,
            num_rows,
            batch_size,
            seed=seed,
            shuffle=False,
            rank=rank,
            world_size=world_size,
            device=device,
        )

    @property
    def resets_state(self) -> bool:
        """Whether the batch handed out last is the first of its epoch, after which nothing is carried."""
        return self.position <= 1

    def window_starts(self, rows: Int[Tensor, "batch"]) -> Int[Tensor, "batch"]:
        stream, step = rows % self.batch_size, rows // self.batch_size
        return self.offset() + (stream * self.stream_steps + step) * self.length


def _check_enough(num_tokens: int, length: int, batch_size: int) -> None:
    if length < 1 or batch_size < 1:
        raise UserError(
            f"expected windows of 1 token or more and 1 stream or more, got {length} and {batch_size}: raise them"
        )
    if num_tokens < batch_size * length + 1:
        wanted = f"{batch_size} streams of {length}" if batch_size > 1 else f"a window of {length}"
        raise UserError(
            f"expected at least {batch_size * length + 1} tokens of training text for {wanted} and what comes "
            f"next, got {num_tokens}: "
            "give a longer text, or shorten the context or the batch"
        )
