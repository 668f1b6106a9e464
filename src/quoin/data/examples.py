"""Examples for a module of one's own, from whatever a program has them in: arrays and tensors, a data frame, a Quoin
`Dataset`, a torch `Dataset` or `DataLoader`.

Each is read into one of three: tensors in memory, of which a batch is rows; a map-style dataset, of which a batch is
items collated; or a stream of batches, whose order is its own. The first two have an order that is a function of (seed,
epoch), so a run over them resumes to the same bits.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor
from torch.utils.data import DataLoader, default_collate

from quoin.data.nested import describe_nested, map_tensors, move, num_rows, split_rows, take_rows, tensors_of
from quoin.data.seeds import keyed_generator
from quoin.errors import UserError, did_you_mean, format_value

__all__ = ["CollatedExamples", "ExampleBatch", "ExampleLayout", "ModuleExamples", "StreamExamples", "TensorExamples"]

_HASHED = 1 << 24  # bytes hashed at once
_ROWS, _NUMBERS = 4096, 1 << 20  # of one forward pass without gradients, the lesser of the two


class ExampleBatch(NamedTuple):
    """What the model is given, and what the loss compares its outputs with."""

    inputs: Any
    targets: Any

    @property
    def num_rows(self) -> int:
        return num_rows(self.inputs) or num_rows(self.targets) or 1

    def split(self, size: int) -> "list[ExampleBatch]":
        """Pieces of at most `size` rows."""
        return [ExampleBatch(*piece) for piece in split_rows(tuple(self), size)]

    def to(self, device: torch.device) -> "ExampleBatch":
        return ExampleBatch(move(self.inputs, device), move(self.targets, device))

    def __str__(self) -> str:
        shapes = [describe_nested(each, of_rows=False) for each in self]
        return f"inputs {shapes[0]}" + ("" if self.targets is None else f", targets {shapes[1]}")


@dataclass(frozen=True)
class ExampleLayout:
    """How an example is inputs and targets.

    Of a pair (or a longer tuple) the last is the target; of a dict, what `target` names; `whole` gives the model all of
    it, because it computes its loss itself.
    """

    target: str | None = None
    whole: bool = False

    def batch(self, example: Any) -> ExampleBatch:
        if self.whole:
            return ExampleBatch(tuple(example) if isinstance(example, list) else example, None)
        if isinstance(example, Mapping):
            if self.target is None:
                raise UserError(
                    f"expected to know which of {', '.join(map(str, example))} is the target: say target='...', or "
                    "loss=None for a model that computes its own loss"
                )
            if self.target not in example:
                raise UserError(
                    f"the examples have no {format_value(self.target)}: {did_you_mean(self.target, map(str, example))}"
                )
            rest = {name: each for name, each in example.items() if name != self.target}
            return ExampleBatch(rest, example[self.target])
        if isinstance(example, (tuple, list)) and len(example) >= 2:
            return ExampleBatch(example[0] if len(example) == 2 else tuple(example[:-1]), example[-1])
        raise UserError(
            f"expected examples with targets, such as pairs (inputs, targets), got {describe_nested(example)} alone: "
            "add the targets, or say loss=None for a model that computes its own loss"
        )


class ModuleExamples(ABC):
    """Examples of one split."""

    source: str  # what they were given as

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def fingerprint(self) -> str:
        """By which a resumed run sees that its data changed."""

    @abstractmethod
    def first(self, size: int) -> ExampleBatch:
        """A batch to try a model with."""

    @abstractmethod
    def in_order(self, size: int, fraction: Callable[[int], slice] | None = None) -> Iterator[ExampleBatch]:
        """All of them once, about `size` at a time; with `fraction`, which says of so many batches which to take, the
        examples of those."""

    def to(self, device: torch.device) -> "ModuleExamples":
        """On `device`, if they lie in memory; else each batch is moved as it comes."""
        return self


class TensorExamples(ModuleExamples):
    """Examples as rows of tensors."""

    def __init__(self, inputs: Any, targets: Any, source: str, *, content_hash: str = "") -> None:
        self.content, self.source, self._content_hash = ExampleBatch(inputs, targets), source, content_hash
        tensors = tensors_of(tuple(self.content))
        if any(each.ndim == 0 for each in tensors) or not tensors:
            raise UserError(f"expected data with a row for each example, got {self.content}")
        if len({len(each) for each in tensors}) > 1:
            lengths = ", ".join(str(len(each)) for each in tensors)
            raise UserError(f"expected as many rows in all inputs and targets, got {lengths}: give equally many")

    def __len__(self) -> int:
        return len(tensors_of(tuple(self.content))[0])

    def batch(self, rows: Int[Tensor, "rows"]) -> ExampleBatch:
        return ExampleBatch(*take_rows(tuple(self.content), rows))

    def take(self, rows: Int[Tensor, "rows"]) -> "TensorExamples":
        return TensorExamples(*self.batch(rows), self.source)

    def first(self, size: int) -> ExampleBatch:
        return self.batch(torch.arange(min(size, len(self)), device=tensors_of(tuple(self.content))[0].device))

    def in_order(self, size: int, fraction: Callable[[int], slice] | None = None) -> Iterator[ExampleBatch]:
        widest = max(each.shape[1:].numel() for each in tensors_of(self.content.inputs))
        batches = self.content.split(max(1, min(_ROWS, _NUMBERS // max(1, widest))))
        yield from batches[fraction(len(batches))] if fraction else batches

    def to(self, device: torch.device) -> "TensorExamples":
        moved = self.content.to(device)
        return TensorExamples(*moved, self.source, content_hash=self.fingerprint())

    def fingerprint(self) -> str:
        """SHA-256 of structure and content."""
        if not self._content_hash:
            self._content_hash = _content_hash(self.content)
        return self._content_hash


class CollatedExamples(ModuleExamples):
    """Items of a map-style dataset, collated into batches.

    Args:
        loader: Its way to collate is taken, and its workers fetch where many batches are wanted.
        rows: Those of a part of the dataset.
    """

    def __init__(
        self,
        dataset: Any,
        layout: ExampleLayout,
        loader: DataLoader | None = None,
        rows: Sequence[int] | None = None,
    ) -> None:
        self.dataset, self.layout, self.loader = dataset, layout, loader
        self.collate: Callable[[list[Any]], Any] = default_collate if loader is None else loader.collate_fn
        self.rows = range(len(dataset)) if rows is None else rows
        self.source = f"torch Dataset {type(dataset).__name__}"

    def __len__(self) -> int:
        return len(self.rows)

    def batch(self, rows: Int[Tensor, "rows"]) -> ExampleBatch:
        return self.layout.batch(self.collate([self.dataset[self.rows[row]] for row in rows.tolist()]))

    def take(self, rows: Int[Tensor, "rows"]) -> "CollatedExamples":
        chosen = [self.rows[row] for row in rows.tolist()]
        return CollatedExamples(self.dataset, self.layout, self.loader, chosen)

    def first(self, size: int) -> ExampleBatch:
        return self.batch(torch.arange(min(size, len(self))))

    @property
    def has_workers(self) -> bool:
        return self.loader is not None and self.loader.num_workers > 0

    def fetch(self, batches: Sequence[Int[Tensor, "rows"]], *key: int) -> Iterator[ExampleBatch]:
        """The batches of these rows one by one, fetched ahead where there are workers; what those sample is a function
        of `key`."""
        if self.loader is None or not self.has_workers:
            return map(self.batch, batches)
        fetched = DataLoader(
            self.dataset,
            batch_sampler=[[self.rows[row] for row in rows.tolist()] for rows in batches],
            num_workers=self.loader.num_workers,
            collate_fn=self.loader.collate_fn,
            pin_memory=self.loader.pin_memory,
            timeout=self.loader.timeout,
            worker_init_fn=self.loader.worker_init_fn,
            multiprocessing_context=self.loader.multiprocessing_context,
            prefetch_factor=self.loader.prefetch_factor,
            generator=keyed_generator("workers", *key),  # else it would sample a seed from torch's own
        )
        return map(self.layout.batch, fetched)

    def in_order(self, size: int, fraction: Callable[[int], slice] | None = None) -> Iterator[ExampleBatch]:
        batches = torch.arange(len(self)).split(size)
        return self.fetch(batches[fraction(len(batches))] if fraction else batches)

    def fingerprint(self) -> str:
        """Of the number of examples and the structure of the first: to read all may take an epoch, and transforms may
        be random."""
        kinds = map_tensors(
            lambda leaf: (str(leaf.dtype), leaf.ndim) if isinstance(leaf, Tensor) else "", self.first(1)
        )
        return _hashed(self.source, len(self.dataset), len(self), tuple(kinds))


class StreamExamples(ModuleExamples):
    """Batches that a DataLoader makes in an order of its own."""

    def __init__(self, loader: Any, layout: ExampleLayout) -> None:
        self.loader, self.layout, self.source = loader, layout, f"torch {type(loader).__name__}"
        try:
            self.num_batches, self.is_counted = len(loader), False
        except TypeError:  # of an IterableDataset without a length
            self.num_batches, self.is_counted = sum(1 for _ in loader), True
        if self.num_batches == 0:
            raise UserError("expected batches, got a DataLoader that gives none: give more data")
        self._batch_rows = self.first(0).num_rows

    def __len__(self) -> int:
        """Of as many examples as whole batches have."""
        return self.num_batches * self._batch_rows

    @property
    def batch_rows(self) -> int:
        """Rows of the first batch."""
        return self._batch_rows

    def first(self, size: int) -> ExampleBatch:
        batch = next(iter(self), None)
        if batch is None:
            raise UserError("expected batches, got a DataLoader that gives none: give more data")
        return batch

    def __iter__(self) -> Iterator[ExampleBatch]:
        return map(self.layout.batch, iter(self.loader))

    def in_order(self, size: int, fraction: Callable[[int], slice] | None = None) -> Iterator[ExampleBatch]:
        """Another process may get them in another order, so the one whose fraction a single batch would be reads
        all."""
        if fraction is None or fraction(1) == slice(0, 1):
            yield from self

    def fingerprint(self) -> str:
        """Of the number of batches: another pass may give other examples."""
        return _hashed(self.source, self.num_batches)


def _content_hash(content: ExampleBatch) -> str:
    structure = map_tensors(
        lambda leaf: (str(leaf.dtype), tuple(leaf.shape)) if isinstance(leaf, Tensor) else "", tuple(content)
    )
    digest = hashlib.sha256(repr(structure).encode())
    for tensor in tensors_of(tuple(content)):
        row_bytes = max(1, tensor.shape[1:].numel() * tensor.element_size())
        for rows in tensor.split(max(1, _HASHED // row_bytes)):  # a whole copy would take the size again
            digest.update(rows.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _hashed(*parts: Any) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()
