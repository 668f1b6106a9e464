"""Batches whose content somebody else fetches: the workers of a DataLoader, or a DataLoader in an order of its own."""

from collections.abc import Iterator, Mapping

import torch
from jaxtyping import Int
from torch import Tensor

from quoin.data.batches import BatchSampler
from quoin.data.examples import CollatedExamples, ExampleBatch, StreamExamples
from quoin.errors import UserError

__all__ = ["FetchedBatches", "StreamBatches", "WorkerBatches"]


class FetchedBatches(BatchSampler):
    """A sampler that has fetched the batch whose row numbers it handed out last."""

    current: ExampleBatch


class WorkerBatches(FetchedBatches):
    """The order of `BatchSampler`, the examples fetched ahead by the workers of a DataLoader."""

    def __init__(
        self, examples: CollatedExamples, batch_size: int, *, seed: int, shuffle: bool, drop_last: bool
    ) -> None:
        super().__init__(len(examples), batch_size, seed=seed, shuffle=shuffle, drop_last=drop_last)
        self.examples = examples

    def __iter__(self) -> Iterator[Int[Tensor, "batch"]]:
        epoch, position = self.epoch, self.position
        planned = list(super().__iter__())  # the rest of this epoch; the position goes on as they are handed out
        self.epoch, self.position = epoch, position
        for rows, batch in zip(planned, self.examples.fetch(planned, self.seed, epoch, position)):
            self.position += 1
            self.current = batch
            yield rows
        self.epoch, self.position = epoch + 1, 0


class StreamBatches(FetchedBatches):
    """The batches of a DataLoader as they come: an epoch is as many as its first pass had, over as many passes as that
    takes."""

    def __init__(self, examples: StreamExamples, *, seed: int) -> None:
        super().__init__(len(examples), examples.batch_rows, seed=seed)
        self.examples = examples

    @property
    def num_batches(self) -> int:
        return self.examples.num_batches

    def __iter__(self) -> Iterator[Int[Tensor, "batch"]]:
        stream = iter(self.examples)
        while self.position < self.num_batches:
            batch = next(stream, None)
            if batch is None:
                stream = iter(self.examples)
                batch = next(stream, None)
            if batch is None:
                raise UserError(
                    "expected batches, got a DataLoader that gives none in a second pass: give one that does"
                )
            self.position += 1
            self.current = batch
            yield torch.arange(batch.num_rows)
        self.epoch, self.position = self.epoch + 1, 0

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Go on from where the count stands; which examples come is the loader's affair."""
        super().load_state_dict({**state, **self._counted_in()})
