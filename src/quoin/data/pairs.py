"""Sentences and their translations: pairs that are generated, or read from a file; split so that no source is in two
splits.

What the characters become is in pair_tokens.py; the generated pairs are written in written_dates.py and
spoken_numbers.py.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch

from quoin.data.files import quoted
from quoin.data.memory import explain_out_of_memory
from quoin.data.seeds import keyed_generator
from quoin.data.spoken_numbers import sample_number
from quoin.data.text import text_pieces
from quoin.data.written_dates import sample_date
from quoin.errors import UserError, format_value

__all__ = ["PairSplits", "Pairs", "load_pairs", "split_pairs"]

MAX_GENERATED = 100_000  # generated pairs; there are few more different ones of some kinds
LEAST_SOURCES = 10  # so that no split is empty

SamplePair = Callable[[torch.Generator], tuple[str, str]]


@dataclass(frozen=True)
class Pairs:
    """Sources and what each becomes, under the name that `--data` gave them."""

    name: str
    sources: tuple[str, ...]
    targets: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.sources)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of all pairs: a resumed run sees that its data changed, not that they moved."""
        digest = hashlib.sha256()
        for source, target in zip(self.sources, self.targets, strict=True):
            digest.update(f"{source}\t{target}\n".encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    def chosen(self, rows: Iterable[int]) -> "Pairs":
        """The pairs of these numbers, in this order."""
        rows = list(rows)
        return Pairs(self.name, tuple(self.sources[row] for row in rows), tuple(self.targets[row] for row in rows))


class PairSplits(NamedTuple):
    """Pairs to learn from, to validate and to test on; no source is in two of them."""

    train: Pairs
    validation: Pairs
    test: Pairs


@explain_out_of_memory("the pairs do not fit in memory: give fewer lines, or fewer --num-pairs")
def load_pairs(source: str, *, num_pairs: int = 10_000, seed: int = 0) -> Pairs:
    """The pairs that `source` names: `dates`, `numbers`, or `tsv:PATH`.

    Args:
        num_pairs: How many different pairs are generated; a file is read as a whole.
        seed: Decides which pairs are generated.

    >>> pairs = load_pairs("numbers", num_pairs=1000)
    >>> next(pair for pair in zip(pairs.sources, pairs.targets) if len(pair[0]) == 4)
    ('4143', 'four thousand one hundred and forty-three')
    """
    form, _, path = source.partition(":")
    match source:
        case "dates":
            return _generated(source, sample_date, num_pairs, seed)
        case "numbers":
            return _generated(source, sample_number, num_pairs, seed)
    if form == "tsv" and path:
        rows = dict.fromkeys(_lines(path))  # a pair that comes twice is one
        return Pairs(source, tuple(row[0] for row in rows), tuple(row[1] for row in rows))
    raise UserError(
        f"expected pairs of sentences, got the data source {format_value(source)}: give dates, numbers or tsv:PATH"
    )


def split_pairs(pairs: Pairs, seed: int) -> PairSplits:
    """A tenth of the different sources to test on, a tenth to validate on, the rest to learn from; which is a function
    of `seed`.

    A source with several translations stays together.
    """
    groups: dict[str, list[int]] = {}
    for row, source in enumerate(pairs.sources):
        groups.setdefault(source, []).append(row)
    if len(groups) < LEAST_SOURCES:
        raise UserError(
            f"expected pairs with {LEAST_SOURCES} different sources or more, got {len(groups)} in {pairs.name}: "
            "give more"
        )
    shuffled = torch.randperm(len(groups), generator=keyed_generator("pairs", seed)).tolist()
    rows = list(groups.values())
    tenth = len(groups) // 10

    def take(indices: list[int]) -> Pairs:
        return pairs.chosen(row for index in indices for row in rows[index])

    return PairSplits(take(shuffled[2 * tenth :]), take(shuffled[tenth : 2 * tenth]), take(shuffled[:tenth]))


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


def _lines(path: str) -> Iterator[tuple[str, str]]:
    """Source and target of each line that is not blank; what stands behind a second tab, such as who wrote it, is left
    out."""
    text = "".join(text_pieces(path))
    number = 0
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        cells = [cell.strip() for cell in line.split("\t")]
        where = f"line {number} of {quoted(path)}"
        if len(cells) < 2:
            raise UserError(
                f"expected a source, a tab and a target in {where}, got no tab in {format_value(line)}: separate "
                "the two by a tab"
            )
        if not (cells[0] and cells[1]):
            side = "source" if cells[1] else "target"
            raise UserError(
                f"expected a source and a target in {where}, but its {side} is empty: fill it in or remove the line"
            )
        yield cells[0], cells[1]
    if not text.strip():
        raise UserError(f"expected pairs in {quoted(path)}, but all its lines are blank: give another file")
