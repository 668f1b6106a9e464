"""Archives: any bytes in, the same bytes out, or an error. Nothing is decoded before the whole archive
has been checked.

An archive is a header (mark, format, method, sizes), the fingerprint of the model that it needs, a digest of the
content, the code, and a digest of all before it. The second digest shows damage before a single byte is decoded, and
the first that what was decoded is what was given. Which bytes a code has is up to the codecs: `ContextMixingCodec` is
the default, `ModelCodec` takes any `CodingModel`.
"""

import hashlib
import os
import struct
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

from quoin.callbacks import ProgressCallback
from quoin.display import shown
from quoin.errors import UserError, format_value
from quoin.info.arithmetic import CodingModel, arithmetic_decode, arithmetic_encode
from quoin.info.rans import context_mixing_decode, context_mixing_encode

__all__ = [
    "ArchiveHeader",
    "Codec",
    "ContextMixingCodec",
    "ModelCodec",
    "StoreCodec",
    "compress",
    "decompress",
    "read_header",
    "write_atomic",
]

MARK = b"\x8eQuoin\r\n"  # not text, and a transfer that changes line ends changes it
FORMAT = 2  # 1 mixed contexts differently

_HEADER = struct.Struct("<8sBBHQQ")  # mark, format, method, bytes of fingerprint, of content, of code
_DIGEST = 16


def _no_progress(done: int, total: int) -> None:
    pass


@runtime_checkable
class Codec(Protocol):
    """Content to code and back. `method` is its number in the archive; `fingerprint` is empty where every
    machine decodes alike.
    """

    method: int
    fingerprint: str

    def encode(self, content: bytes, on_progress: ProgressCallback) -> bytes: ...

    def decode(self, code: bytes, length: int, on_progress: ProgressCallback) -> bytes: ...


@shown
class StoreCodec:
    """The content as it is, for what no model makes smaller."""

    method, fingerprint = 0, ""

    def encode(self, content: bytes, on_progress: ProgressCallback = _no_progress) -> bytes:
        return content

    def decode(self, code: bytes, length: int, on_progress: ProgressCallback = _no_progress) -> bytes:
        return code


@shown
class ContextMixingCodec:
    """Context mixing: integers only, so the same on every machine."""

    method, fingerprint = 1, ""

    def encode(self, content: bytes, on_progress: ProgressCallback = _no_progress) -> bytes:
        return context_mixing_encode(content, on_progress)

    def decode(self, code: bytes, length: int, on_progress: ProgressCallback = _no_progress) -> bytes:
        return context_mixing_decode(code, length, on_progress)


@shown
class ModelCodec:
    """Arithmetic coding of bytes under a model of one's own; both sides begin with a new one and step it byte by byte.

    A model with floats may differ from machine to machine: its `fingerprint` names all that must be
    the same (model_fingerprint).

    Args:
        new_model: Makes a `CodingModel` of bytes, the same at every call.
        fingerprint: What must be the same to decode, as `model_fingerprint` gives it.
    """

    method = 2

    def __init__(self, new_model: Callable[[], CodingModel], fingerprint: str) -> None:
        if not fingerprint:
            raise UserError("expected the model's fingerprint, got an empty one; model_fingerprint gives it")
        self._new_model, self.fingerprint = new_model, fingerprint

    def encode(self, content: bytes, on_progress: ProgressCallback = _no_progress) -> bytes:
        return arithmetic_encode(content, self._new_model())

    def decode(self, code: bytes, length: int, on_progress: ProgressCallback = _no_progress) -> bytes:
        return bytes(arithmetic_decode(code, self._new_model(), length))


@shown
class ArchiveHeader(NamedTuple):
    """The header of a valid archive, and the code that it carries."""

    method: int
    fingerprint: str
    length: int
    digest: bytes
    code: bytes


def compress(content: bytes, codec: Codec | None = None, on_progress: ProgressCallback = _no_progress) -> bytes:
    """`content` as an archive, by context mixing unless another codec is given; stored as it is where the code
    is no shorter.

    Args:
        on_progress: Called with how much is done and of how much.

    >>> archive = compress(b"to be or not to be" * 40)
    >>> len(archive) < 200, decompress(archive) == b"to be or not to be" * 40
    (True, True)
    """
    codec = codec or ContextMixingCodec()
    code = codec.encode(content, on_progress)
    if len(code) >= len(content):
        codec, code = StoreCodec(), content
    name = codec.fingerprint.encode()
    if len(name) > 0xFFFF:
        raise UserError(f"expected a fingerprint of at most 65535 bytes, got {len(name)}; give a digest of it")
    header = _HEADER.pack(MARK, FORMAT, codec.method, len(name), len(content), len(code))
    body = header + name + _digest(content) + code
    return body + _digest(body)


def decompress(archive: bytes, codec: Codec | None = None, on_progress: ProgressCallback = _no_progress) -> bytes:
    """The content of an archive, checked.

    Args:
        codec: Needed for archives that one of its kind wrote, and for no others.
        on_progress: Called with how much is done and of how much.
    """
    header = read_header(archive)
    known: dict[int, Codec] = {each.method: each for each in (StoreCodec(), ContextMixingCodec())} | (
        {codec.method: codec} if codec else {}
    )
    if header.method not in known:
        got = (
            f"coded by {format_value(header.fingerprint, 200)}" if header.fingerprint else f"of method {header.method}"
        )
        raise UserError(f"expected an archive that needs no model, got one {got}; give its codec")
    chosen = known[header.method]
    if header.fingerprint != chosen.fingerprint:
        wrote, here = format_value(header.fingerprint, 200), format_value(chosen.fingerprint, 200)
        raise UserError(
            f"expected the model that coded the archive, {wrote}, got {here}; decode where all of this is the same"
        )
    content = chosen.decode(header.code, header.length, on_progress)
    if len(content) != header.length or _digest(content) != header.digest:
        raise UserError(
            "the archive is whole, but its content does not come out as it was given; the Quoin that wrote it "
            "coded differently"
        )
    return content


def read_header(archive: bytes) -> ArchiveHeader:
    """The header of an archive, after its digest has been checked."""
    if archive[: len(MARK)] != MARK:
        raise UserError(f"expected an archive of `quoin compress`, got {_opening(archive)}; is it the right file?")
    if len(archive) < _HEADER.size + 2 * _DIGEST:
        raise UserError(
            f"the archive is cut: expected {_HEADER.size + 2 * _DIGEST} bytes or more, got {len(archive)}; fetch "
            "it again"
        )
    _, version, method, name_size, length, code_size = _HEADER.unpack_from(archive)
    if version != FORMAT:
        age = "a newer" if version > FORMAT else "an older"
        raise UserError(
            f"expected an archive of format {FORMAT}, got format {version}; {age} Quoin wrote it (or it is damaged)"
        )
    start = _HEADER.size + name_size + _DIGEST
    if len(archive) != start + code_size + _DIGEST:
        raise UserError(
            f"the archive is cut or damaged: expected {start + code_size + _DIGEST} bytes, got {len(archive)}; "
            "fetch it again"
        )
    if _digest(archive[:-_DIGEST]) != archive[-_DIGEST:]:
        raise UserError("the archive is damaged: its checksum is not the one that was written; fetch it again")
    name = archive[_HEADER.size : start - _DIGEST].decode(errors="backslashreplace")
    return ArchiveHeader(method, name, length, archive[start - _DIGEST : start], archive[start:-_DIGEST])


def write_atomic(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    """Put `content` at `path` so that whatever happens there is the old file or the new one, never a part.

    It is written under another name in the same folder, brought to the disk, and renamed; that name is removed
    if anything fails.

    Args:
        mode: Permissions of the new file.
    """
    handle, draft = tempfile.mkstemp(prefix=f".{path.name[:100]}.", suffix=".draft", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.chmod(draft, mode)
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # the name too
    finally:
        os.close(folder)


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_DIGEST).digest()


def _opening(data: bytes) -> str:
    return f"bytes that begin with {format_value(data[:8])}" if data else "an empty file"
