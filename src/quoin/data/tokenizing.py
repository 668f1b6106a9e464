"""From a text of any size to a token file, some megabytes at a time: what `quoin tokenize` does.

The tokens are those that `load_corpus` would give for the whole text in memory, bit for bit.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from quoin.callbacks import ProgressCallback
from quoin.data.corpus import check_length, fit_tokenizer
from quoin.data.files import existing_file
from quoin.data.memory import explain_out_of_memory
from quoin.data.sources import TokenizerName
from quoin.data.text import load_text, split_sizes, text_pieces
from quoin.data.token_file import TokenWriter
from quoin.data.tokenizers import Tokenizer
from quoin.display import shown

__all__ = ["Tokenized", "tokenize_file"]


@shown
class Tokenized(NamedTuple):
    """What was written."""

    tokenizer: Tokenizer
    num_characters: int
    num_tokens: int


@explain_out_of_memory(
    "the text's vocabulary does not fit in memory: choose byte or char with --tokenizer, or a smaller --vocab-size"
)
def tokenize_file(
    source: str, target: Path, tokenizer: TokenizerName, vocab_size: int, *, on_progress: ProgressCallback | None = None
) -> Tokenized:
    """Write the tokens of `source` (`topics` or `text:PATH`) to `target`.

    The text is read two or three times: to count its characters, to learn its words or byte pairs, and to encode it.

    Args:
        vocab_size: Most tokens of a word or byte-pair tokenizer; the other two ignore it.
        on_progress: Called with how much is done and of how much.
    """
    learns = tokenizer in ("word", "bpe")
    reading = _Reading(source, 3 if learns else 2, on_progress)
    letters = np.zeros(0x110000, dtype=bool)
    num_characters = 0
    for piece in reading.pieces():
        num_characters += len(piece)
        letters[np.frombuffer(piece.encode("utf-32-le"), dtype="<u4")] = True
    check_length(source, num_characters)
    sizes = split_sizes(num_characters)

    def pieces_by_split() -> Iterator[tuple[int, str]]:
        return _by_split(reading.pieces(), sizes, keep_words=learns)

    characters = map(chr, np.flatnonzero(letters).tolist())
    known = fit_tokenizer(
        tokenizer,
        vocab_size,
        characters=characters,
        training=(piece for split, piece in pieces_by_split() if split == 0),
    )
    num_tokens = 0
    with TokenWriter(target, known, mode=reading.mode) as writer:
        current = 0
        for split, piece in pieces_by_split():
            while current < split:
                writer.end_split(sizes[current])
                current += 1
            tokens = known.encode(piece)
            num_tokens += len(tokens)
            writer.append(tokens)
        writer.end_split(sizes[current])
    return Tokenized(known, num_characters, num_tokens)


class _Reading:
    """A text to be read several times, and how far through all of them we are."""

    def __init__(self, source: str, times: int, on_progress: ProgressCallback | None) -> None:
        form, _, path = source.partition(":")
        self._path = existing_file(path) if form == "text" and path else None
        self._text = load_text(source).content if self._path is None else ""
        self._times, self._time, self._on_progress = times, 0, on_progress
        self.mode = stat.S_IMODE(os.stat(self._path).st_mode) & 0o666 if self._path else 0o644

    def pieces(self) -> Iterator[str]:
        if self._path is None:
            yield self._text
            return
        time, self._time = self._time, self._time + 1

        def report(done: int, total: int) -> None:
            if self._on_progress is not None:
                self._on_progress(time * total + done, self._times * total)

        yield from text_pieces(self._path, report)


def _by_split(pieces: Iterable[str], sizes: tuple[int, ...], *, keep_words: bool) -> Iterator[tuple[int, str]]:
    """(split, text) after text: one ends where its split does or, with `keep_words`, where a word does."""
    held, split, left = "", 0, sizes[0]
    for piece in pieces:
        held += piece
        while split < len(sizes) and len(held) >= left:
            yield split, held[:left]
            held, split = held[left:], split + 1
            left = sizes[split] if split < len(sizes) else 0
        cut = _last_word_end(held) if keep_words else len(held)
        if cut:
            yield split, held[:cut]
            held, left = held[cut:], left - cut


def _last_word_end(text: str) -> int:
    """Where the last word with white space after it ends, or 0: neither words nor byte pairs reach over such a
    position."""
    end = len(text)
    while (at := max(text.rfind(" ", 0, end), text.rfind("\n", 0, end))) > 0:
        if not text[at - 1].isspace():
            return at
        end = at
    return 0
