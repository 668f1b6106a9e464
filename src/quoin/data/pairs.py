"""Sentences and their translations: pairs that are generated, or read from a file; split so that no source is in two
splits.

What the characters become is in pair_tokens.py; the generated pairs are written in written_dates.py and
spoken_numbers.py.
"""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch

from quoin.data.memory import explain_out_of_memory
from quoin.data.seeds import keyed_generator
from quoin.data.spoken_numbers import sample_number
from quoin.data.text_columns import FORMS, TextColumn, read_columns
from quoin.data.written_dates import sample_date
from quoin.display import shown, table
from quoin.errors import UserError, format_value

__all__ = ["PairSplits", "Pairs", "load_pairs", "split_pairs"]

MAX_GENERATED = 100_000  # generated pairs; there are few more different ones of some kinds
LEAST_SOURCES = 10  # so that no split is empty

SOURCE_COLUMN = TextColumn("source", "--source-column", ("source", "src"))
TARGET_COLUMN = TextColumn("target", "--target-column", ("target", "tgt"))

SamplePair = Callable[[torch.Generator], tuple[str, str]]


@shown
@dataclass(frozen=True)
class Pairs:
    """Sources and what each becomes, under the name that `--data` gave them."""

    name: str
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    column_names: tuple[str | None, str | None] = (None, None)  # of sources and targets, where the file names them
    splits: tuple[str, ...] | None = None  # "train", "validation" or "test" of each, where the source has its own

    def __len__(self) -> int:
        return len(self.sources)

    def __repr__(self) -> str:
        return f"Pairs({format_value(self.name)}, {len(self)} pairs)"

    def _repr_html_(self) -> str:
        names = [name or default for name, default in zip(self.column_names, ("source", "target"))]
        rows = zip(self.sources[:5], self.targets[:5])
        return table(names, rows, caption=f"{self.name}: {len(self)} pairs")

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of all pairs: a resumed run sees that its data changed, not that they moved."""
        digest = hashlib.sha256()
        for source, target in zip(self.sources, self.targets, strict=True):
            digest.update(f"{source}\t{target}\n".encode("utf-8", "surrogatepass"))
        if self.splits is not None:
            digest.update(repr(self.splits).encode())
        return digest.hexdigest()

    def chosen(self, rows: Iterable[int]) -> "Pairs":
        """The pairs of these numbers, in this order."""
        rows = list(rows)
        sources, targets = tuple(self.sources[row] for row in rows), tuple(self.targets[row] for row in rows)
        return Pairs(self.name, sources, targets, self.column_names)


@shown
class PairSplits(NamedTuple):
    """Pairs to learn from, to validate and to test on; no source is in two of them."""

    train: Pairs
    validation: Pairs
    test: Pairs


@explain_out_of_memory("the pairs do not fit in memory: give fewer lines, or fewer --num-pairs")
def load_pairs(
    source: str,
    *,
    num_pairs: int = 10_000,
    seed: int = 0,
    source_column: TextColumn = SOURCE_COLUMN,
    target_column: TextColumn = TARGET_COLUMN,
) -> Pairs:
    """The pairs that `source` names: `dates`, `numbers`, `tsv:PATH`, `csv:PATH` or `jsonl:PATH`.

    Args:
        num_pairs: How many different pairs are generated; a file is read as a whole.
        seed: Decides which pairs are generated.
        source_column: How the column of the sources is found in a file.
        target_column: The same for the targets.

    >>> pairs = load_pairs("numbers", num_pairs=1000)
    >>> next(pair for pair in zip(pairs.sources, pairs.targets) if len(pair[0]) == 4)
    ('4143', 'four thousand one hundred and forty-three')
    """
    form, _, path = source.partition(":")
    named = next((column for column in (source_column, target_column) if column.name is not None), None)
    if named is not None and form not in FORMS:
        raise UserError(
            f"{named.flag} {format_value(named.name)} names a column of csv:PATH, tsv:PATH or jsonl:PATH, but the data "
            f"are {format_value(source)}: leave it out"
        )
    match source:
        case "dates":
            return _generated(source, sample_date, num_pairs, seed)
        case "numbers":
            return _generated(source, sample_number, num_pairs, seed)
    if form in FORMS and path:
        cells = read_columns(form, path, (source_column, target_column))
        rows = dict.fromkeys(cells.rows)  # a pair that comes twice is one
        return Pairs(source, *zip(*rows), column_names=cells.names)  # pyright: ignore[reportArgumentType]
    raise UserError(
        f"expected pairs of sentences, got the data source {format_value(source)}: give dates, numbers, tsv:PATH, "
        "csv:PATH or jsonl:PATH"
    )


def split_pairs(pairs: Pairs, seed: int) -> PairSplits:
    """A tenth of the different sources to test on, a tenth to validate on, the rest to learn from; which is a function
    of `seed`.

    A source with several translations stays together. Splits that the pairs bring along stay as they are; one that is
    missing is a tenth of the training sources.
    """
    own = pairs.splits or ("train",) * len(pairs)
    groups: dict[str, list[int]] = {}
    for row, source in enumerate(pairs.sources):
        if own[row] == "train":
            groups.setdefault(source, []).append(row)
    if len(groups) < LEAST_SOURCES:
        raise UserError(
            f"expected pairs with {LEAST_SOURCES} different sources or more, got {len(groups)} in {pairs.name}: "
            "give more"
        )
    shuffled = torch.randperm(len(groups), generator=keyed_generator("pairs", seed)).tolist()
    rows = list(groups.values())
    tenth = len(groups) // 10
    found = {}
    for name in ("test", "validation"):
        if name in own:
            found[name] = [row for row, split in enumerate(own) if split == name]
        else:
            found[name] = [row for index in shuffled[:tenth] for row in rows[index]]
            shuffled = shuffled[tenth:]
    train = pairs.chosen(row for index in shuffled for row in rows[index])
    return PairSplits(train, pairs.chosen(found["validation"]), pairs.chosen(found["test"]))


def _generated(name: str, sample: SamplePair, num_pairs: int, seed: int) -> Pairs:
    if not 1 <= num_pairs <= MAX_GENERATED:
        raise UserError(
            f"expected from 1 to {MAX_GENERATED} generated pairs, got {num_pairs}: choose a number in between"
        )
    generator = keyed_generator("pairs", name, seed)
    found: dict[str, str] = {}
    while len(found) < num_pairs:
        source, target = sample(generator)
        found[source] = target
    return Pairs(name, tuple(found), tuple(found.values()))
