"""Token files: a corpus larger than memory as numbers on the disk, written whole or not at all, of which windows are
read one by one.

A prelude of 64 bytes, the tokens as uint16 or uint32 (little-endian), and a footer in JSON: the tokenizer, the splits,
and a checksum for each block of tokens. The prelude holds the footer's digest; a block is compared with its checksum
when it is first read, so that opening costs no reading and a damaged token is never learnt from.
"""

import hashlib
import json
import os
import struct
import tempfile
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from quoin.data.corpus import Corpus, CorpusSplit, last_token
from quoin.data.files import existing_file, quoted
from quoin.data.tokenizers import Tokenizer, tokenizer_fingerprint, tokenizer_from_json
from quoin.display import shown
from quoin.errors import UserError, format_value

__all__ = ["TokenFile", "TokenFileSplit", "TokenWriter", "open_tokens"]

MARK = b"\x8fQuoin\n\x00"  # not text, and a transfer that changes line ends changes it
FORMAT = 1
BLOCK = 1 << 20  # bytes under one checksum

_PRELUDE = struct.Struct(
    "<8sIIQQ32s"
)  # magic bytes, format, bytes per token, offset and length of the footer, its SHA-256
_DTYPES = {2: "<u2", 4: "<u4"}
_SPLITS = ("train", "validation", "test")


class SplitSize(NamedTuple):
    """How much of the file one split is."""

    num_tokens: int
    num_characters: int


@shown
class TokenWriter:
    """Writes a token file at `path`: append tokens, end each of the three splits, and leave the `with`. Whatever fails
    leaves no file.

    `mode` are the permissions of the file; a corpus that only its owner may read stays so.
    """

    def __init__(self, path: Path, tokenizer: Tokenizer, *, mode: int = 0o644) -> None:
        self.path, self.tokenizer = path, tokenizer
        self._mode = mode
        self._dtype = np.dtype(_DTYPES[2 if tokenizer.vocab_size <= 1 << 16 else 4])
        self._splits: list[SplitSize] = []
        self._checks: list[int] = []
        self._block = bytearray()  # the last block, not yet full
        self._in_split = 0

    def __enter__(self) -> "TokenWriter":
        handle, self._draft = tempfile.mkstemp(
            prefix=f".{self.path.name[:100]}.", suffix=".draft", dir=self.path.parent
        )
        self._file = os.fdopen(handle, "wb")
        self._file.write(bytes(_PRELUDE.size))
        return self

    def append(self, tokens: Int[Tensor, "seq"]) -> None:
        """More tokens of the current split."""
        if len(tokens) and not (int(tokens.min()) >= 0 and int(tokens.max()) < self.tokenizer.vocab_size):
            raise ValueError(f"tokens must be from 0 to {self.tokenizer.vocab_size - 1}")
        self._in_split += len(tokens)
        self._block += tokens.numpy().astype(self._dtype).tobytes()
        while len(self._block) >= BLOCK:
            self._write_block(BLOCK)

    def end_split(self, num_characters: int) -> None:
        """The current split is complete and has so many characters."""
        self._splits.append(SplitSize(self._in_split, num_characters))
        self._in_split = 0

    def __exit__(self, kind: type[BaseException] | None, *raised: object) -> None:
        try:
            with self._file:
                if kind is None:
                    self._finish()
            if kind is None:
                os.replace(self._draft, self.path)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(self._draft)
        if kind is None:
            folder = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)  # the name too
            finally:
                os.close(folder)

    def _write_block(self, size: int) -> None:
        block = bytes(self._block[:size])
        del self._block[:size]
        self._file.write(block)
        self._checks.append(zlib.crc32(block))

    def _finish(self) -> None:
        assert len(self._splits) == len(_SPLITS), "each split must be ended"
        assert not self._in_split, "no token is in no split"
        if self._block:
            self._write_block(len(self._block))
        described = {
            "tokenizer": self.tokenizer.as_json(),
            "tokenizer_fingerprint": tokenizer_fingerprint(self.tokenizer),
            "splits": dict(zip(_SPLITS, self._splits)),
            "checks": "".join(f"{check:08x}" for check in self._checks),
        }
        footer = json.dumps(described, sort_keys=True).encode()
        begin = self._file.tell()
        self._file.write(footer)
        self._file.seek(0)
        self._file.write(
            _PRELUDE.pack(MARK, FORMAT, self._dtype.itemsize, begin, len(footer), hashlib.sha256(footer).digest())
        )
        self._file.flush()
        os.chmod(self._draft, self._mode)
        os.fsync(self._file.fileno())


@shown
class TokenFile:
    """A token file, mapped into memory: what is read comes from the disk when it is needed and goes again when it is
    not."""

    def __init__(self, path: str | Path) -> None:
        self.path = existing_file(path)
        itemsize, end, footer = _footer(self.path)
        self.fingerprint = hashlib.sha256(footer).hexdigest()
        try:
            described: dict[str, Any] = json.loads(footer)
            self.tokenizer = tokenizer_from_json(described["tokenizer"])
            self.splits = {name: SplitSize(*map(int, described["splits"][name])) for name in _SPLITS}
            self._checks = [int(described["checks"][at : at + 8], 16) for at in range(0, len(described["checks"]), 8)]
            same = described["tokenizer_fingerprint"] == tokenizer_fingerprint(self.tokenizer)
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise _damaged(self.path, f"its description cannot be read, {format_value(error)}") from None
        num_bytes = end - _PRELUDE.size
        if not same or num_bytes != itemsize * sum(split.num_tokens for split in self.splits.values()):
            raise _damaged(self.path, "its description contradicts itself")
        if len(self._checks) != -(-num_bytes // BLOCK) or min(split.num_tokens for split in self.splits.values()) < 1:
            raise _damaged(self.path, "its description contradicts itself")
        mapped = np.memmap(self.path, dtype=np.uint8, mode="r", offset=_PRELUDE.size, shape=(num_bytes,))
        self._bytes = np.asarray(mapped)
        self._tokens = self._bytes.view(_DTYPES[itemsize])
        self._known_good = np.zeros(len(self._checks), dtype=bool)

    def split(self, name: str) -> "TokenFileSplit":
        """One of the three splits."""
        begin = sum(self.splits[before].num_tokens for before in _SPLITS[: _SPLITS.index(name)])
        return TokenFileSplit(self, begin, self.splits[name].num_tokens)

    def read(self, begin: int, end: int) -> np.ndarray:
        """The tokens from `begin` to before `end`, compared with their checksums."""
        size = self._tokens.itemsize
        for block in range(begin * size // BLOCK, -(-end * size // BLOCK)):
            if not self._known_good[block]:
                self._check(block)
        return self._tokens[begin:end]

    def _check(self, block: int) -> None:
        if zlib.crc32(self._bytes[block * BLOCK : (block + 1) * BLOCK].data) != self._checks[block]:
            raise _damaged(
                self.path, f"a token near byte {_PRELUDE.size + block * BLOCK} is not the one that was written"
            )
        size = self._tokens.itemsize
        if int(self._tokens[block * BLOCK // size : (block + 1) * BLOCK // size].max()) >= self.tokenizer.vocab_size:
            raise _damaged(self.path, f"a token near byte {_PRELUDE.size + block * BLOCK} is none of the vocabulary")
        self._known_good[block] = True


@shown
class TokenFileSplit:
    """The tokens of one split: `StoredTokens` for batches of windows.

    Args:
        begin: Index in the file of the split's first token.
        num_tokens: Of this split.
    """

    def __init__(self, file: TokenFile, begin: int, num_tokens: int) -> None:
        self.file, self._begin, self._num_tokens = file, begin, num_tokens

    def __len__(self) -> int:
        return self._num_tokens

    def windows(self, starts: Int[Tensor, "batch"], length: int) -> Int[Tensor, "batch {length}"]:
        """The tokens from each of `starts` on."""
        found = np.empty((len(starts), length), dtype=np.int64)
        for row, start in zip(found, starts.tolist()):
            if not 0 <= start <= self._num_tokens - length:
                raise IndexError(f"a window of {length} from {start} on is not inside {self._num_tokens} tokens")
            row[:] = self.file.read(self._begin + start, self._begin + start + length)
        return torch.from_numpy(found)


def open_tokens(path: str | Path) -> Corpus:
    """The corpus of a file that `quoin tokenize` wrote, for models that read windows of it."""
    file = TokenFile(path)
    found, before = [], None
    for name in _SPLITS:
        split = file.split(name)
        found.append(CorpusSplit(split, file.splits[name].num_characters, before))
        before = last_token(split)
    return Corpus(f"tokens:{path}", file.tokenizer, *found, fingerprint=file.fingerprint)


def _footer(path: Path) -> tuple[int, int, bytes]:
    """Bytes a token, where the tokens end, and the footer, known to be the one that was written."""
    try:
        with open(path, "rb") as file:
            prelude = file.read(_PRELUDE.size)
            if prelude[:8] != MARK[: len(prelude)]:
                began = format_value(prelude[:8])
                raise UserError(
                    f"expected a token file, but {quoted(path)} begins with {began}: make one with `quoin tokenize`"
                )
            if len(prelude) < _PRELUDE.size:
                raise _damaged(path, f"it has {len(prelude)} bytes")
            _, format, itemsize, begin, length, digest = _PRELUDE.unpack(prelude)
            if format != FORMAT:
                raise UserError(
                    f"expected a token file of format {FORMAT}, but {quoted(path)} has {format}: make it again "
                    "with this Quoin"
                )
            size = os.fstat(file.fileno()).st_size
            if size != begin + length or begin <= _PRELUDE.size:
                raise _damaged(path, f"it has {size} bytes, not {begin + length}")
            file.seek(begin)
            footer = file.read(length)
    except OSError as error:
        raise UserError(f"{quoted(path)} cannot be read ({error.strerror}): check its permissions") from None
    if hashlib.sha256(footer).digest() != digest or itemsize not in _DTYPES or (begin - _PRELUDE.size) % itemsize:
        raise _damaged(path, "its description is not the one that was written")
    return itemsize, begin, footer


def _damaged(path: Path, how: str) -> UserError:
    return UserError(
        f"expected a whole token file, but {quoted(path)} is cut short or damaged ({how}): make it again with "
        "`quoin tokenize`"
    )
