"""The one cache folder that all runs share: `QUOIN_CACHE`, or the platform's place for such.

    images/KEY/      decoded pictures of a folder, made by image_cache.py; the longest unused go when all are too large
    fetched/NAME/    data sets of `quoin fetch`; only `quoin cache rm` removes them
    models/KEY/      small models that pages of `quoin lab` trained; only `quoin cache rm` removes them

An entry is a folder. One that a process reads is locked by it, shared, and is neither evicted nor removed meanwhile.
A name that begins with a dot is that of a draft, which its maker locks, or of what is being removed.
"""

import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from quoin.display import shown
from quoin.errors import UserError, format_value

__all__ = [
    "CacheEntry",
    "cache_entries",
    "cache_folder",
    "cache_size_limit",
    "evict_images",
    "lock_shared",
    "remove_entry",
]

KINDS = ("images", "fetched", "models", "stills")
DRAFT = ".draft"  # the ending of the name of an entry that is being made
LOCK = "lock"  # the file in an entry that its readers lock, and whose time says when it was last used
DEFAULT_LIMIT = 50 * 10**9
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


@shown
class CacheEntry(NamedTuple):
    """A folder of the cache."""

    name: str  # kind/folder, as `quoin cache rm` takes it
    path: Path
    num_bytes: int
    last_used: float  # seconds since 1970


def cache_folder() -> Path:
    """Where Quoin keeps what it can make or fetch again; it need not exist yet."""
    if named := os.environ.get("QUOIN_CACHE"):
        return Path(named).expanduser()
    from platformdirs import user_cache_path

    return user_cache_path("quoin", appauthor=False)


def cache_size_limit() -> int:
    """The most bytes that decoded images may take together: `QUOIN_CACHE_SIZE`, such as 20G, else 50 GB."""
    text = os.environ.get("QUOIN_CACHE_SIZE", "").strip().lower()
    if not text:
        return DEFAULT_LIMIT
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?) ?([kmgt]?)b?", text)
    if not found or not (limit := int(float(found[1]) * _UNITS[found[2]])):
        raise UserError(
            f"expected a size such as 20G in QUOIN_CACHE_SIZE, got {format_value(text)}: set another or none"
        )
    return limit


def cache_entries(kind: str | None = None) -> list[CacheEntry]:
    """What is in the cache, of one kind or all, the longest unused first."""
    found = []
    for each in [kind] if kind else KINDS:
        folder = cache_folder() / each
        paths = [path for path in folder.iterdir() if path.is_dir()] if folder.is_dir() else []
        found += [_entry(each, path) for path in paths if not path.name.startswith(".") or path.suffix == DRAFT]
    return sorted(found, key=lambda entry: (entry.last_used, entry.name))


def _entry(kind: str, path: Path) -> CacheEntry:
    num_bytes, last_used = 0, 0.0
    with suppress(FileNotFoundError):  # another process may remove it meanwhile
        last_used = ((path / LOCK) if (path / LOCK).exists() else path).stat().st_mtime
        num_bytes = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return CacheEntry(f"{kind}/{path.name}", path, num_bytes, last_used)


@contextmanager
def _alone(path: Path) -> Iterator[bool]:
    """Whether nobody reads or makes the entry at `path`, and nobody may begin to."""
    lock = path.with_suffix(".lock") if path.suffix == DRAFT else path / LOCK
    if not lock.exists():
        yield True
        return
    with open(lock, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def lock_shared(path: Path) -> int | None:
    """A descriptor that holds the entry at `path` as long as it is open, and marks it as used now; None if it is
    gone."""
    try:
        handle = os.open(path / LOCK, os.O_RDONLY)
    except FileNotFoundError:
        return None
    fcntl.flock(handle, fcntl.LOCK_SH)
    try:
        if os.path.samestat(os.fstat(handle), os.stat(path / LOCK)):  # not removed between the two lines
            os.utime(handle)
            return handle
    except FileNotFoundError:
        pass
    except PermissionError:  # a cache that another user owns: its time stays
        return handle
    os.close(handle)
    return None


def remove_entry(entry: CacheEntry) -> bool:
    """Remove an entry, unless a process reads it; whether it is gone. A kill half-way leaves a dot-name that nobody
    reads."""
    with _alone(entry.path) as alone:
        if alone:
            doomed = entry.path.with_name(f".{entry.path.name}.{secrets.token_hex(8)}.doomed")
            with suppress(FileNotFoundError):
                entry.path.rename(doomed)
            shutil.rmtree(doomed, ignore_errors=True)
        return alone


def evict_images(num_bytes: int) -> None:
    """Make room for so many bytes of decoded images: of the others those longest unused are removed, as far as the
    limit demands it, and none that is in use."""
    entries = cache_entries("images")
    excess = sum(entry.num_bytes for entry in entries) + num_bytes - cache_size_limit()
    for entry in entries:
        if excess <= 0:
            return
        if remove_entry(entry):
            excess -= entry.num_bytes
