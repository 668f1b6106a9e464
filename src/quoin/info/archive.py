"""Archives: any bytes in, the same bytes out, or a refusal. Nothing is decoded before the whole archive has been checked.

An archive is a header (mark, format, method, sizes), the fingerprint of the model that it needs, a digest of the content, the code, and a
digest of all before it. The second digest tells damage before a single byte is decoded, and the first that what was decoded is what was
given. Which bytes a code has is the codecs' affair: `MixCodec` is the default, `ModelCodec` takes any `CodingModel`.
"""

import hashlib
import os
import struct
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol

from quoin.errors import Mistake, shown
from quoin.info.arithmetic import CodingModel, arithmetic_decode, arithmetic_encode
from quoin.info.lanes import Tell, mix_decode, mix_encode

__all__ = ["Codec", "Contents", "MixCodec", "ModelCodec", "StoreCodec", "pack", "read_header", "unpack", "write_whole"]

MARK = b"\x8eQuoin\r\n"  # not text, and a transfer that changes line ends changes it
FORMAT = 1

_HEADER = struct.Struct("<8sBBHQQ")  # mark, format, method, bytes of fingerprint, of content, of code
_DIGEST = 16


def _silent(done: int, total: int) -> None:
    pass


class Codec(Protocol):
    """Content to code and back. `method` is its number in the archive; `fingerprint` is empty where every machine decodes alike."""

    method: int
    fingerprint: str

    def encode(self, content: bytes, tell: Tell) -> bytes: ...

    def decode(self, code: bytes, length: int, tell: Tell) -> bytes: ...


class StoreCodec:
    """The content as it is, for what no model makes smaller."""

    method, fingerprint = 0, ""

    def encode(self, content: bytes, tell: Tell = _silent) -> bytes:
        return content

    def decode(self, code: bytes, length: int, tell: Tell = _silent) -> bytes:
        return code


class MixCodec:
    """The mix of context models: integers only, so the same on every machine."""

    method, fingerprint = 1, ""

    def encode(self, content: bytes, tell: Tell = _silent) -> bytes:
        return mix_encode(content, tell)

    def decode(self, code: bytes, length: int, tell: Tell = _silent) -> bytes:
        return mix_decode(code, length, tell)


class ModelCodec:
    """Arithmetic coding of bytes under a model of one's own; both sides begin with a new one and step it byte by byte.

    A model with floats may differ from machine to machine: its `fingerprint` names all that must be the same (model_fingerprint).
    """

    method = 2

    def __init__(self, new_model: Callable[[], CodingModel], fingerprint: str) -> None:
        if not fingerprint:
            raise Mistake("expected the model's fingerprint, came an empty one; model_fingerprint gives it")
        self._new_model, self.fingerprint = new_model, fingerprint

    def encode(self, content: bytes, tell: Tell = _silent) -> bytes:
        return arithmetic_encode(content, self._new_model())

    def decode(self, code: bytes, length: int, tell: Tell = _silent) -> bytes:
        return bytes(arithmetic_decode(code, self._new_model(), length))


class Contents(NamedTuple):
    """What the header of a sound archive says, and the code that it carries."""

    method: int
    fingerprint: str
    length: int
    digest: bytes
    code: bytes


def pack(content: bytes, codec: Codec | None = None, tell: Tell = _silent) -> bytes:
    """`content` as an archive, by the context mix unless another codec is given; stored as it is where the code is no shorter.

    >>> archive = pack(b"to be or not to be" * 40)
    >>> len(archive) < 200, unpack(archive) == b"to be or not to be" * 40
    (True, True)
    """
    codec = codec or MixCodec()
    code = codec.encode(content, tell)
    if len(code) >= len(content):
        codec, code = StoreCodec(), content
    name = codec.fingerprint.encode()
    if len(name) > 0xFFFF:
        raise Mistake(f"expected a fingerprint of at most 65535 bytes, came {len(name)}; give a digest of it")
    header = _HEADER.pack(MARK, FORMAT, codec.method, len(name), len(content), len(code))
    body = header + name + _digest(content) + code
    return body + _digest(body)


def unpack(archive: bytes, codec: Codec | None = None, tell: Tell = _silent) -> bytes:
    """The content of an archive, checked; `codec` is asked for by archives that one of its kind wrote."""
    contents = read_header(archive)
    known: dict[int, Codec] = {each.method: each for each in (StoreCodec(), MixCodec())} | ({codec.method: codec} if codec else {})
    if contents.method not in known:
        came = f"coded by {shown(contents.fingerprint, 200)}" if contents.fingerprint else f"of method {contents.method}"
        raise Mistake(f"expected an archive that needs no model, came one {came}; give its codec")
    chosen = known[contents.method]
    if contents.fingerprint != chosen.fingerprint:
        wrote, here = shown(contents.fingerprint, 200), shown(chosen.fingerprint, 200)
        raise Mistake(f"expected the model that coded the archive, {wrote}, came {here}; decode where all of this is the same")
    content = chosen.decode(contents.code, contents.length, tell)
    if len(content) != contents.length or _digest(content) != contents.digest:
        raise Mistake("the archive is whole, but its content does not come out as it was given; the Quoin that wrote it coded differently")
    return content


def read_header(archive: bytes) -> Contents:
    """What the archive says of itself, after its digest has been checked."""
    if archive[: len(MARK)] != MARK:
        raise Mistake(f"expected an archive of `quoin compress`, came {_opening(archive)}; is it the right file?")
    if len(archive) < _HEADER.size + 2 * _DIGEST:
        raise Mistake(f"the archive is cut: expected {_HEADER.size + 2 * _DIGEST} bytes or more, came {len(archive)}; fetch it again")
    _, version, method, name_size, length, code_size = _HEADER.unpack_from(archive)
    if version > FORMAT:
        raise Mistake(f"expected an archive of format {FORMAT} or older, came format {version}; a newer Quoin wrote it (or it is damaged)")
    start = _HEADER.size + name_size + _DIGEST
    if len(archive) != start + code_size + _DIGEST:
        raise Mistake(f"the archive is cut or damaged: expected {start + code_size + _DIGEST} bytes, came {len(archive)}; fetch it again")
    if _digest(archive[:-_DIGEST]) != archive[-_DIGEST:]:
        raise Mistake("the archive is damaged: its checksum is not the one that was written; fetch it again")
    name = archive[_HEADER.size : start - _DIGEST].decode(errors="backslashreplace")
    return Contents(method, name, length, archive[start - _DIGEST : start], archive[start:-_DIGEST])


def write_whole(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    """Put `content` at `path` so that whatever happens there is the old file or the new one, never a part.

    It is written under another name in the same folder, brought to the disk, and renamed; that name is removed if anything fails.
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
    return f"bytes that begin with {shown(data[:8])}" if data else "an empty file"
