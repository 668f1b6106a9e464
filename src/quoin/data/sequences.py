"""Sequences of symbols or of numbers for Markov models: read from lines or from an event log, encoded and split.

`sequences:PATH` has one sequence in each line: symbols separated by blanks, or by commas where there is one, or a JSON
list. `csv:PATH`, `tsv:PATH` and `jsonl:PATH` are event logs: a row for each event, with its symbol, the sequence it
belongs to and its time, where there are such columns.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Int, Shaped
from torch import Tensor

from quoin.data.csv_text import finite_number
from quoin.data.data_info import DataInfo
from quoin.data.files import quoted
from quoin.data.padding import pad_sequences
from quoin.data.seeds import keyed_generator
from quoin.data.text import split_sizes, text_pieces
from quoin.data.text_columns import FORMS, TextColumn, read_columns
from quoin.display import shown
from quoin.documents import Count
from quoin.errors import UserError, format_value

__all__ = [
    "NamedSequence",
    "SequenceInfo",
    "SequenceSplits",
    "Sequences",
    "encode_sequences",
    "read_sequences",
    "sequence_info",
    "split_sequences",
]

ID_COLUMN = TextColumn(
    "sequence",
    "--id-column",
    ("sequence", "sequence_id", "case", "case_id", "session", "session_id", "user", "user_id", "id"),
    required=False,
)
TIME_COLUMN = TextColumn("time", "--time-column", ("time", "timestamp", "step", "position", "date"), required=False)
SYMBOL_COLUMN = TextColumn("symbol", "--symbol-column", ("symbol", "event", "activity", "action", "state"))
COLUMNS = (ID_COLUMN, TIME_COLUMN, SYMBOL_COLUMN)
MOST_SYMBOLS = 1000
FEW_OBSERVATIONS = 2**17  # of a bucket, padding counted: fewer calls are then quicker than less padding
LEAST_SEQUENCES = 10  # from so many on, whole sequences are held out; of fewer, the end of each
LEAST_OBSERVATIONS = 10  # so that no split is empty


@shown
class NamedSequence(NamedTuple):
    """A sequence as its file has it."""

    name: str  # its number, or its id in an event log
    words: list[str]


@shown
class Bucket(NamedTuple):
    """Sequences of like length, padded."""

    rows: Int[Tensor, "some"]  # their numbers among all
    observations: Shaped[Tensor, "some longest ..."]
    lengths: Int[Tensor, "some"] | None  # None where all are as long as the longest


@shown
@dataclass(frozen=True, eq=False)
class Sequences:
    """Sequences one after the other: symbols by their numbers, or numbers with an axis of their own."""

    name: str
    values: Shaped[Tensor, "total ..."]
    lengths: Int[Tensor, "sequences"]
    symbols: tuple[str, ...] | None  # None for numbers
    names: tuple[str, ...]
    column_names: tuple[str | None, ...] = (None, None, None)  # of id, time and symbol in an event log

    def __len__(self) -> int:
        return len(self.lengths)

    @cached_property
    def rows(self) -> tuple[Shaped[Tensor, "_length ..."], ...]:
        return self.values.split(self.lengths.tolist())

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the content: a resumed run sees that its sequences changed, not that they moved."""
        digest = hashlib.sha256(repr((self.symbols, self.lengths.tolist())).encode("utf-8", "surrogatepass"))
        digest.update(self.values.contiguous().numpy().data)
        return digest.hexdigest()

    def take(self, rows: Sequence[int]) -> "Sequences":
        """The sequences of these numbers, in this order."""
        chosen = [self.rows[row] for row in rows]
        names = tuple(self.names[row] for row in rows)
        lengths = self.lengths[torch.tensor(rows, dtype=torch.int64)]
        return replace(self, values=torch.cat(chosen), lengths=lengths, names=names)

    @cached_property
    def buckets(self) -> tuple[Bucket, ...]:
        """All sequences together if that is small; else those that differ in length by less than a factor of two: a
        long one then does not widen the others."""
        few = len(self) * int(self.lengths.max()) <= FEW_OBSERVATIONS
        found, order = [], torch.arange(len(self)) if few else self.lengths.argsort(stable=True)
        while len(order):
            shortest = int(self.lengths[order[0]])
            count = len(order) if few else int((self.lengths[order] < 2 * shortest).sum())
            rows, order = order[:count], order[count:]
            padded = pad_sequences([self.rows[row] for row in rows.tolist()])
            same = bool((padded.lengths == padded.lengths[0]).all())
            found.append(Bucket(rows, padded.tokens, None if same else padded.lengths))
        return tuple(found)


@shown
class SequenceSplits(NamedTuple):
    """Sequences to learn from, to validate and to test on; generated ones may have none to validate on."""

    train: Sequences
    validation: Sequences | None
    test: Sequences


@shown
@dataclass(frozen=True)
class SequenceInfo(DataInfo):
    """Where sequences came from, and what their numbers stand for."""

    num_sequences: Count
    num_observations: Count
    symbols: tuple[str, ...] | None  # None for numbers
    column_names: tuple[str | None, ...]  # of id, time and symbol in an event log
    mean: float = 0.0  # of training numbers
    std: float = 1.0


def sequence_info(splits: SequenceSplits) -> SequenceInfo:
    """The data info of sequences that are at hand."""
    all_splits = [split for split in splits if split is not None]
    train = splits.train
    numbers = train.values if train.symbols is None else torch.zeros(1)
    digest = hashlib.sha256("".join(split.fingerprint for split in all_splits).encode())
    return SequenceInfo(
        source=train.name,
        fingerprint=digest.hexdigest(),
        num_sequences=sum(map(len, all_splits)),
        num_observations=sum(len(split.values) for split in all_splits),
        symbols=train.symbols,
        column_names=train.column_names,
        mean=float(numbers.mean()),
        std=float(numbers.std(correction=0)) or 1.0,
    )


def read_sequences(
    source: str, columns: Sequence[TextColumn] = COLUMNS
) -> tuple[list[NamedSequence], tuple[str | None, ...]]:
    """The sequences of sequences:PATH, csv:PATH, tsv:PATH or jsonl:PATH, and what the columns of an event log are
    called.

    Args:
        columns: How the columns of the id, the time and the symbol are found.
    """
    form, _, path = source.partition(":")
    if form in FORMS and path:
        return _events(form, path, columns)
    if named := next((column for column in columns if column.name is not None), None):
        raise UserError(
            f"{named.flag} {format_value(named.name)} names a column of csv:PATH, tsv:PATH or jsonl:PATH, but the "
            f"data are {format_value(source)}: leave it out"
        )
    if form == "sequences" and path:
        return _lines(path), (None, None, None)
    raise UserError(
        f"expected sequences, got the data source {format_value(source)}: give sequences:PATH, csv:PATH, tsv:PATH or "
        "jsonl:PATH"
    )


def source_of(path: str | Path) -> str:
    """A file to predict for as a source: by its form where it has one, by its ending, else as lines."""
    form, colon, _ = str(path).partition(":")
    if colon and form in (*FORMS, "sequences"):
        return str(path)
    ending = Path(path).suffix.lower().removeprefix(".")
    return f"{ending if ending in FORMS else 'sequences'}:{path}"


def _lines(path: str) -> list[NamedSequence]:
    found = []
    for number, line in enumerate("".join(text_pieces(path)).split("\n"), 1):
        if not line.strip():
            continue
        where = f"line {number} of {quoted(path)}"
        words = _listed(line, where) if line.lstrip().startswith("[") else _separated(line)
        if not words:
            raise UserError(f"expected a symbol or more in {where}, got none: fill it in or remove the line")
        if "" in words:
            raise UserError(
                f"expected symbols in {where}, but number {words.index('') + 1} of them is empty: fill it in or remove "
                "its comma"
            )
        found.append(NamedSequence(str(len(found) + 1), words))
    if not found:
        raise UserError(f"expected sequences in {quoted(path)}, but all its lines are blank: give another file")
    return found


def _separated(line: str) -> list[str]:
    return [word.strip() for word in line.split(",")] if "," in line else line.split()


def _listed(line: str, where: str) -> list[str]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UserError(
            f"expected a JSON list in {where}, got {format_value(line)} ({error}): mend that line"
        ) from None
    if strange := [each for each in found if each is None or isinstance(each, (list, dict))]:
        raise UserError(f"expected symbols or numbers in {where}, got {format_value(strange[0])}: mend that line")
    return [each.strip() if isinstance(each, str) else json.dumps(each) for each in found]


def _events(form: str, path: str, columns: Sequence[TextColumn]) -> tuple[list[NamedSequence], tuple[str | None, ...]]:
    cells = read_columns(form, path, columns, headed=True)
    groups: dict[str, list[tuple[float, str]]] = {}
    dated = cells.names[1] is not None
    times = _times([str(row[1]) for row in cells.rows], cells.lines, path) if dated else [0.0] * len(cells.rows)
    for (name, _, symbol), time in zip(cells.rows, times):
        groups.setdefault("1" if name is None else name, []).append((time, str(symbol)))
    ordered = {name: sorted(events, key=lambda event: event[0]) for name, events in groups.items()}  # stable
    return [NamedSequence(name, [symbol for _, symbol in events]) for name, events in ordered.items()], cells.names


def _times(cells: list[str], lines: list[int], path: str) -> list[float]:
    """Numbers, or dates as ISO 8601 writes them; one kind in a column."""
    numbers = [finite_number(cell) for cell in cells[:1]]
    found = []
    for cell, line in zip(cells, lines):
        time = finite_number(cell) if numbers[0] is not None else _date(cell)
        if time is None:
            wanted = "number" if numbers[0] is not None else "date such as 2024-05-31 or 2024-05-31T10:00"
            raise UserError(
                f"expected a {wanted} as the time in line {line} of {quoted(path)}, got {format_value(cell)}: mend it, "
                "or name another column with --time-column"
            )
        found.append(time)
    return found


def _date(cell: str) -> float | None:
    try:
        date = datetime.fromisoformat(cell)
    except ValueError:
        return None
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()


def encode_sequences(
    source: str,
    sequences: Sequence[NamedSequence],
    *,
    symbols: Sequence[str] | None = None,
    numbers: bool = False,
    column_names: tuple[str | None, ...] = (None, None, None),
) -> Sequences:
    """The sequences in numbers.

    Args:
        symbols: Those that a model knows; unless given, all there are, in the order of their numbers or the alphabet.
        numbers: Take the words for numbers, not for symbols.
    """
    names, lengths = tuple(each.name for each in sequences), torch.tensor([len(each.words) for each in sequences])
    if numbers:
        values = [_number(word, each.name, source) for each in sequences for word in each.words]
        return Sequences(source, torch.tensor(values, dtype=torch.float64)[:, None], lengths, None, names, column_names)
    known = tuple(symbols) if symbols is not None else _alphabet(source, sequences)
    index = {symbol: number for number, symbol in enumerate(known)}
    values = []
    for each in sequences:
        for place, word in enumerate(each.words, 1):
            if word not in index:
                raise UserError(
                    f"expected a symbol that the model knows, got {format_value(word)} at place {place} of sequence "
                    f"{format_value(each.name)} in {format_value(source, 200)}: replace it or leave it out"
                )
            values.append(index[word])
    return Sequences(source, torch.tensor(values), lengths, known, names, column_names)


def _number(word: str, name: str, source: str) -> float:
    if (number := finite_number(word)) is None or number != number:
        raise UserError(
            f"expected numbers in sequence {format_value(name)} of {format_value(source, 200)}, got "
            f"{format_value(word)}: mend it, or take --emission categorical for symbols"
        )
    return number


def _alphabet(source: str, sequences: Sequence[NamedSequence]) -> tuple[str, ...]:
    found = {word for each in sequences for word in each.words}
    if not 2 <= len(found) <= MOST_SYMBOLS:
        got = f"{len(found)} in {format_value(source, 200)}" + (f", {format_value(min(found))}" if found else "")
        remedy = "give other sequences" if len(found) < 2 else "group rare ones, or take hmm --emission gaussian"
        raise UserError(f"expected from 2 to {MOST_SYMBOLS} different symbols, got {got}: {remedy}")
    if all(word.removeprefix("-").isdecimal() for word in found):
        return tuple(sorted(found, key=lambda word: (int(word), word)))
    return tuple(sorted(found))


def split_sequences(sequences: Sequences, seed: int) -> SequenceSplits:
    """A tenth of the sequences to test on, a tenth to validate on, the rest to learn from; which is a function of
    `seed`. Of fewer than ten sequences, the last tenth of each and the tenth before it."""
    if int(sequences.lengths.max()) < 2:
        raise UserError(
            f"expected sequences of two symbols or more in {format_value(sequences.name, 200)}, but all have one: a "
            "model of what follows has nothing to learn from"
        )
    if len(sequences) >= LEAST_SEQUENCES:
        shuffled = torch.randperm(len(sequences), generator=keyed_generator("sequences", seed)).tolist()
        tenth = len(sequences) // 10
        parts = sorted(shuffled[2 * tenth :]), sorted(shuffled[tenth : 2 * tenth]), sorted(shuffled[:tenth])
        train, validation, test = (sequences.take(rows) for rows in parts)
        if int(train.lengths.max()) > 1:
            return SequenceSplits(train, validation, test)
    if int(sequences.lengths.max()) < LEAST_OBSERVATIONS:
        raise UserError(
            f"expected {LEAST_SEQUENCES} sequences or more, or one of {LEAST_OBSERVATIONS} symbols or more, in "
            f"{format_value(sequences.name, 200)}, got {len(sequences)} of at most {int(sequences.lengths.max())}: "
            "give more"
        )
    return SequenceSplits(*(_pieces(sequences, which) for which in range(3)))


def _pieces(sequences: Sequences, which: int) -> Sequences:
    """The piece of every sequence that is to learn from (0), to validate (1) or to test on (2)."""
    cut = [row.split(split_sizes(len(row)))[which] for row in sequences.rows]
    kept = [number for number, piece in enumerate(cut) if len(piece)]
    return replace(
        sequences,
        values=torch.cat([cut[number] for number in kept]),
        lengths=torch.tensor([len(cut[number]) for number in kept]),
        names=tuple(sequences.names[number] for number in kept),
    )
