"""Reach a user's file, or say in one line why not: missing, a folder, empty, not allowed, damaged."""

import gzip
import zlib
from pathlib import Path

from quoin.errors import UserError, format_value

__all__ = ["existing_file", "existing_folder", "quoted", "read_bytes"]


def quoted(path: str | Path) -> str:
    """A path as a message shows it: on one line, whatever characters it has."""
    return format_value(str(path), limit=200)


def existing_file(path: str | Path) -> Path:
    """`path` with `~` resolved, known to be a regular file that is not empty."""
    found = _found(path, "file")
    if found.is_dir():
        raise UserError(f"expected a file, but {quoted(path)} is a folder: give the path of a file inside it")
    if not found.is_file():
        raise UserError(
            f"expected a regular file, but {quoted(path)} is a device or a pipe: save the data to a file first"
        )
    if found.stat().st_size == 0:
        raise UserError(f"expected data in {quoted(path)}, but the file is empty: fetch or write it again")
    return found


def existing_folder(path: str | Path) -> Path:
    """`path` with `~` resolved, known to be a folder."""
    found = _found(path, "folder")
    if not found.is_dir():
        raise UserError(f"expected a folder, but {quoted(path)} is a file: give the folder that holds the data files")
    return found


def _found(path: str | Path, what: str) -> Path:
    try:
        found = Path(path).expanduser()
        found.stat()
    except (OSError, ValueError, RuntimeError) as error:  # ValueError: a NUL in the name; RuntimeError: ~nobody
        reason = getattr(error, "strerror", None) or str(error)
        raise UserError(
            f"expected a {what} at {quoted(path)}, but it cannot be reached ({reason}): check the path"
        ) from None
    return found


def read_bytes(path: Path) -> bytes:
    """All of an existing file, unpacked when its name ends in .gz."""
    try:
        content = existing_file(path).read_bytes()
        return gzip.decompress(content) if path.suffix == ".gz" else content
    except (EOFError, zlib.error, gzip.BadGzipFile, MemoryError) as error:
        raise UserError(
            f"expected gzipped data in {quoted(path)}, but it is cut short or damaged ({error}): fetch it again"
        ) from None
    except OSError as error:
        raise UserError(f"{quoted(path)} cannot be read ({error.strerror}): check its permissions") from None
