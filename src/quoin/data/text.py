"""Text to model: the corpus that every Python brings along, or a file of one's own; split into training, validation and
test text.

What the characters become is in tokenizers.py, and text and tokenizer together in corpus.py.
"""

import codecs
import gzip
import hashlib
import os
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from quoin.callbacks import ProgressCallback
from quoin.data.files import existing_file, quoted
from quoin.data.memory import explain_out_of_memory
from quoin.display import fields_table, shown
from quoin.errors import UserError, format_value

__all__ = ["Text", "TextSplits", "load_text", "split_sizes", "text_pieces"]

_PIECE = 1 << 22  # bytes read at a time


@shown
class TextSplits(NamedTuple):
    """One text in three pieces, in their order."""

    train: str
    validation: str
    test: str


@shown
@dataclass(frozen=True)
class Text:
    """A text with the name that `--data` gave it."""

    name: str
    content: str

    def _repr_html_(self) -> str:
        begin = {"characters": len(self.content), "begins": self.content[:200]}
        return fields_table(f"Text {self.name}", begin)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the content: a resumed run sees that its text changed, not that it moved."""
        return hashlib.sha256(self.content.encode("utf-8", "surrogatepass")).hexdigest()

    def splits(self) -> TextSplits:
        """The last tenth of the characters to test on, the tenth before it to validate on, the rest to learn from.

        >>> [len(split) for split in Text("poem", "x" * 105).splits()]
        [85, 10, 10]
        """
        train, validation, _ = split_sizes(len(self.content))
        middle = train + validation
        return TextSplits(self.content[:train], self.content[train:middle], self.content[middle:])


def split_sizes(num_characters: int) -> tuple[int, int, int]:
    """How many characters of a text are to learn from, to validate and to test on."""
    tenth = num_characters // 10
    return num_characters - 2 * tenth, tenth, tenth


@explain_out_of_memory(
    "the text does not fit in memory: write its tokens to a file with `quoin tokenize` and give tokens:PATH, or "
    "give less"
)
def load_text(source: str) -> Text:
    """The text that `source` names: `topics`, `tiny-shakespeare` once fetched, or `text:PATH`, a file in UTF-8 (gzipped
    where its name ends in .gz).

    Of a folder, its .txt files and those of the folders inside, in the order of their paths, an empty line between two.

    >>> load_text("topics").content[:22]
    'The "assert" statement'
    """
    form, _, source_path = source.partition(":")
    if source == "topics":
        return Text(source, _topics())
    if source == "tiny-shakespeare":
        from quoin.data.fetched import existing_fetched

        return Text(source, "".join(text_pieces(existing_fetched(source) / "input.txt")))
    if form == "text" and source_path:
        files = _text_files(source_path)
        content = (
            "\n\n".join("".join(text_pieces(file)).strip("\n") for file in files)
            if files
            else "".join(text_pieces(source_path))
        )
        if not content:
            raise UserError(f"expected text in {quoted(source_path)}, but there is none: give another file")
        return Text(source, content)
    raise UserError(
        f"expected a text, got the data source {format_value(source)}: give topics, tiny-shakespeare or text:PATH"
    )


def _text_files(source_path: str) -> list[Path]:
    """The files of a folder; none where it is a file itself."""
    folder = Path(source_path).expanduser()
    if not os.path.isdir(folder):  # os.path: a name too long to be a file's is refused where it is read
        return []
    files = sorted(each for each in folder.rglob("*.txt") if each.is_file() and not each.name.startswith("."))
    if not files:
        raise UserError(f"expected .txt files in the folder {quoted(source_path)}, but there are none: give another")
    return files


def text_pieces(source_path: str | Path, on_progress: ProgressCallback | None = None) -> Iterator[str]:
    """The text of a file, some megabytes at a time; `on_progress` hears how many bytes of how many are read.

    A mark of the byte order at the beginning does not belong to the text.
    """
    path = existing_file(source_path)
    total, begins_at, rest = path.stat().st_size, 0, b""
    try:
        with open(path, "rb") as raw, gzip.open(raw) if path.suffix == ".gz" else raw as file:
            while True:
                read = file.read(_PIECE)
                text, used = codecs.utf_8_decode(
                    rest + read, "strict", not read
                )  # a character cut in two waits for its other half
                if text := text.removeprefix("\ufeff") if begins_at == 0 else text:
                    yield text
                if not read:
                    return
                begins_at, rest = begins_at + used, (rest + read)[used:]
                if on_progress is not None:
                    on_progress(raw.tell(), total)
    except UnicodeDecodeError as error:
        byte, at = error.object[error.start], begins_at + error.start
        raise UserError(
            f"expected text in UTF-8 in {quoted(source_path)}, got the byte 0x{byte:02x} at position {at}: "
            "save it as UTF-8, as `iconv -t utf-8` does"
        ) from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UserError(
            f"expected gzipped text in {quoted(source_path)}, but it is cut short or damaged ({error}): fetch it again"
        ) from None
    except OSError as error:
        raise UserError(f"{quoted(source_path)} cannot be read ({error.strerror}): check its permissions") from None


def _topics() -> str:
    """The help texts of the installed Python, in the order of their names; a repeated paragraph is left out.

    Many topics quote each other at length; a model that memorises would be tested on its training text.
    """
    try:
        from pydoc_data.topics import topics
    except ImportError:  # some systems pack Python's help apart from Python
        raise UserError(
            "topics are the help texts of Python, but this Python came without (pydoc_data): give text:PATH"
        ) from None

    paragraphs: dict[str, None] = {}  # keeps the order
    for name in sorted(topics):
        paragraphs |= {
            found: None for each in re.split(r"\n[ \t]*\n", topics[name]) if (found := each.strip("\n")).strip()
        }
    return "\n\n".join(paragraphs) + "\n"
