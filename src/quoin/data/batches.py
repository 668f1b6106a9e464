"""Batches as row numbers into tensors already in memory: the order is a function of (seed, epoch), the position is
state."""

from collections.abc import Iterator, Mapping

import torch
from jaxtyping import Int
from torch import Tensor

from quoin.data.seeds import keyed_generator
from quoin.display import shown
from quoin.errors import UserError

__all__ = ["BatchSampler", "epoch_permutation"]


def epoch_permutation(seed: int, epoch: int, num_rows: int) -> Int[Tensor, "{num_rows}"]:
    """The rows' order in one epoch: a permutation that depends on its arguments and nothing else."""
    return torch.randperm(num_rows, generator=keyed_generator("order", seed, epoch))


@shown
class BatchSampler:
    """Row numbers of one batch after another, the last of an epoch as short as it falls.

    Iterating hands out the rest of the current epoch and then moves to the start of the next. The position counts
    batches handed out, so a state saved after the step on batch k resumes at batch k + 1; saved after an epoch's last
    step, it resumes with no batch left and the epoch's end still to come, as in a run that was never stopped.

    With `world_size` ranks each gets a contiguous fraction of the global batch: the fractions together are the batch,
    without padding, and differ by at most one row. One is empty only where the batch has fewer rows than there are
    ranks.

    Args:
        batch_size: Rows of the global batch, over all ranks.
        shuffle: A new order in each epoch, a function of `seed` and the epoch; else the rows as they are numbered.
        drop_last: Leave out the last batch of an epoch where it would be short.
        device: Where the row numbers go; they stay on the CPU unless given.
    """

    def __init__(
        self,
        num_rows: int,
        batch_size: int,
        *,
        seed: int,
        rank: int = 0,
        world_size: int = 1,
        shuffle: bool = True,
        drop_last: bool = False,
        device: torch.device | str | None = None,
    ) -> None:
        if num_rows < 1:
            raise UserError(f"expected rows to make batches of, got {num_rows}: give more data")
        if batch_size < 1:
            raise UserError(f"expected a batch size of 1 or more, got {batch_size}")
        if drop_last and num_rows < batch_size:
            raise UserError(f"expected a whole batch of {batch_size} rows, got {num_rows}: choose a smaller batch size")
        if not 0 <= rank < world_size:
            raise ValueError(f"rank must be from 0 to {world_size - 1}, got {rank}")
        self.num_rows, self.batch_size, self.seed, self.shuffle = num_rows, batch_size, seed, shuffle
        self.drop_last = drop_last
        self.rank, self.world_size, self.device = rank, world_size, device
        self.epoch = 0
        self.position = 0
        self.batch_rows = torch.empty(0, dtype=torch.int64)  # those of the global batch handed out last, of all ranks

    @property
    def num_batches(self) -> int:
        """Batches in an epoch."""
        if self.drop_last:
            return self.num_rows // self.batch_size
        return -(-self.num_rows // self.batch_size)

    @property
    def num_rows_seen(self) -> int:
        """Rows of the global batch handed out last, over all ranks: what a mean over the batch divides by."""
        return min(self.batch_size, self.num_rows - (self.position - 1) * self.batch_size)

    @property
    def first_row(self) -> int:
        """Which row of the global batch handed out last is the first of this rank's."""
        return self.num_rows_seen * self.rank // self.world_size

    def __iter__(self) -> Iterator[Int[Tensor, "batch"]]:
        rows = epoch_permutation(self.seed, self.epoch, self.num_rows) if self.shuffle else torch.arange(self.num_rows)
        rows = rows.to(self.device)
        while self.position < self.num_batches:
            start = self.position * self.batch_size
            size = min(self.batch_size, self.num_rows - start)
            self.position += 1
            self.batch_rows = rows[start : start + size]
            yield self.batch_rows[size * self.rank // self.world_size : size * (self.rank + 1) // self.world_size]
        self.epoch, self.position = self.epoch + 1, 0

    def state_dict(self) -> dict[str, int]:
        """Where we are, and what that position is counted in; the number of ranks may change between runs."""
        return {"epoch": self.epoch, "position": self.position} | self._counted_in()

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Go on from `state`, which must come from batches of the same rows, size, seed and order."""
        expected = self._counted_in()
        if set(state) != {"epoch", "position", *expected}:
            raise UserError(
                f"expected a batches' state with epoch, position, {', '.join(expected)}, got "
                f"{', '.join(state) or 'nothing'}"
            )
        for name, value in expected.items():
            if state[name] != value:
                raise UserError(
                    f"expected {name} {state[name]} as in the saved run, got {value}: resume with the same data "
                    "and options"
                )
        if not (state["epoch"] >= 0 and 0 <= state["position"] <= self.num_batches):
            raise UserError(
                f"expected a position up to {self.num_batches}, got epoch {state['epoch']}, position "
                f"{state['position']}"
            )
        self.epoch, self.position = int(state["epoch"]), int(state["position"])

    def _counted_in(self) -> dict[str, int]:
        return {
            "num_rows": self.num_rows,
            "batch_size": self.batch_size,
            "seed": self.seed,
            "shuffle": int(self.shuffle),
        }
