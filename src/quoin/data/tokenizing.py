"""From a text of any size to a token file, some megabytes at a time: what `quoin tokenize` does.

The tokens are those that `load_corpus` would give for the whole text in memory, bit for bit.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from quoin.data.corpus import check_length, fit_vocabulary
from quoin.data.files import existing_file
from quoin.data.memory import memory_told
from quoin.data.sources import VocabularyName
from quoin.data.text import Tell, load_text, part_sizes, text_pieces
from quoin.data.token_file import TokenWriter
from quoin.data.vocabulary import Vocabulary

__all__ = ["Tokenized", "tokenize_file"]


class Tokenized(NamedTuple):
    """What was written."""

    vocabulary: Vocabulary
    num_characters: int
    num_tokens: int


@memory_told("the text's vocabulary does not fit in memory: choose bytes or characters with --vocabulary, or a smaller --size")
def tokenize_file(source: str, target: Path, vocabulary: VocabularyName, size: int, *, tell: Tell | None = None) -> Tokenized:
    """Write the tokens of `source` (`topics` or `text:PATH`) to `target`; `tell` hears how much is done, of how much.

    The text is read two or three times: to count its characters, to learn its words or byte pairs, and to encode it.
    """
    learns = vocabulary in ("words", "bpe")
    reading = _Reading(source, 3 if learns else 2, tell)
    letters = np.zeros(0x110000, dtype=bool)
    num_characters = 0
    for piece in reading.pieces():
        num_characters += len(piece)
        letters[np.frombuffer(piece.encode("utf-32-le"), dtype="<u4")] = True
    check_length(source, num_characters)
    sizes = part_sizes(num_characters)

    def parts() -> Iterator[tuple[int, str]]:
        return _parted(reading.pieces(), sizes, keep_words=learns)

    characters = map(chr, np.flatnonzero(letters).tolist())
    known = fit_vocabulary(vocabulary, size, characters=characters, training=(piece for part, piece in parts() if part == 0))
    num_tokens = 0
    with TokenWriter(target, known, mode=reading.mode) as writer:
        current = 0
        for part, piece in parts():
            while current < part:
                writer.end_part(sizes[current])
                current += 1
            tokens = known.encode(piece)
            num_tokens += len(tokens)
            writer.append(tokens)
        writer.end_part(sizes[current])
    return Tokenized(known, num_characters, num_tokens)


class _Reading:
    """A text to be read several times, and how far through all of them we are."""

    def __init__(self, source: str, times: int, tell: Tell | None) -> None:
        form, _, place = source.partition(":")
        self._path = existing_file(place) if form == "text" and place else None
        self._text = load_text(source).content if self._path is None else ""
        self._times, self._time, self._tell = times, 0, tell
        self.mode = stat.S_IMODE(os.stat(self._path).st_mode) & 0o666 if self._path else 0o644

    def pieces(self) -> Iterator[str]:
        if self._path is None:
            yield self._text
            return
        time, self._time = self._time, self._time + 1

        def told(done: int, total: int) -> None:
            if self._tell is not None:
                self._tell(time * total + done, self._times * total)

        yield from text_pieces(self._path, told)


def _parted(pieces: Iterable[str], sizes: tuple[int, ...], *, keep_words: bool) -> Iterator[tuple[int, str]]:
    """(part, text) after text: one ends where its part does or, with `keep_words`, where a word does."""
    held, part, left = "", 0, sizes[0]
    for piece in pieces:
        held += piece
        while part < len(sizes) and len(held) >= left:
            yield part, held[:left]
            held, part = held[left:], part + 1
            left = sizes[part] if part < len(sizes) else 0
        cut = _last_word_end(held) if keep_words else len(held)
        if cut:
            yield part, held[:cut]
            held, left = held[cut:], left - cut


def _last_word_end(text: str) -> int:
    """Where the last word with white space after it ends, or 0: neither words nor byte pairs reach over such a place."""
    end = len(text)
    while (at := max(text.rfind(" ", 0, end), text.rfind("\n", 0, end))) > 0:
        if not text[at - 1].isspace():
            return at
        end = at
    return 0
