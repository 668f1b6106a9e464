"""Pictures decoded once into a memory-mapped file of bytes, which all runs share.

    cache_folder()/images/KEY/
        pixels           uint8 (images, channels, height, width)
        statistics.npy   int64 (images, channels, 4): of each channel the sum of its bytes and of their squares, the
                         least and the largest; by these, rows can be standardised without reading them
        info.json        what they are, a hash of all pixels, which files are broken
        lock             held by readers; its time is that of the last use

KEY is a hash of the files' names, sizes and times and of the settings: whatever changes, other pixels are made. They
are made in a draft, a folder `.KEY.draft` whose maker holds a lock beside it; others who want the same wait for it. An
interrupted maker leaves its draft, and the next goes on with the rows that are whole by their digests. A finished draft
is synced and renamed, so that no half cache is ever read.
"""

import fcntl
import hashlib
import json
import os
import shutil
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from quoin.callbacks import current_listener
from quoin.data.cache import DRAFT, LOCK, cache_folder, cache_size_limit, evict_images, lock_shared
from quoin.data.files import quoted
from quoin.data.image_workers import CHUNK, ImageWorkers, num_workers
from quoin.errors import UserError

__all__ = ["DecodedImages", "ImageFile", "ImageSettings", "decode_images"]

VERSION = 1  # of the files above and of what decoding does: another makes all anew
JOURNAL = "shape.json", "done.jsonl"  # what was planned, and the rows that are done


class ImageFile(NamedTuple):
    """A picture on the disk."""

    path: str
    name: str  # its path inside the folder of all
    num_bytes: int
    modified: int  # nanoseconds since 1970
    readable: bool


class ImageSettings(NamedTuple):
    """What is wanted of pictures; None is left to them."""

    size: tuple[int, int] | None = None  # height and width
    channels: int | None = None


class DecodedImages:
    """An entry of the cache, held until this is garbage."""

    def __init__(self, folder: Path, handle: int) -> None:
        weakref.finalize(self, os.close, handle)
        info = json.loads((folder / "info.json").read_bytes())
        self.shape: tuple[int, int, int] = tuple(info["shape"])
        self.content_hash: str = info["content_hash"]  # of all pixels, in their order
        self.broken: dict[int, str] = {int(row): reason for row, reason in info["broken"].items()}
        self.statistics = np.load(folder / "statistics.npy")
        self.pixels = np.memmap(folder / "pixels", np.uint8, "r", shape=(len(self.statistics), *self.shape))


def decode_images(
    folder: Path, files: Sequence[ImageFile], settings: ImageSettings, place: Path | None = None
) -> DecodedImages:
    """The pictures `files` of `folder` as `settings` say, from the cache; made there unless they are already.

    Args:
        place: Another folder than the cache's, for pictures that are read once.
    """
    key = _key(files, settings)
    place = place or cache_folder() / "images"
    entry = place / key
    if (found := _opened(entry)) is not None:
        return found
    try:
        place.mkdir(parents=True, exist_ok=True)
        with _locked(place / f".{key}.lock"):
            if (found := _opened(entry)) is not None:  # made while we waited
                return found
            _make(place / f".{key}{DRAFT}", folder, files, settings)
            shutil.rmtree(entry, ignore_errors=True)  # damaged, or it would have been opened
            (place / f".{key}{DRAFT}").rename(entry)
            _sync(place)
            for name in JOURNAL:  # of use only to a draft that a kill left
                (entry / name).unlink()
    except OSError as error:
        raise UserError(
            f"decoded pictures cannot be written to {quoted(place)} ({error.strerror or error}): free some space, or "
            "name another folder in QUOIN_CACHE"
        ) from None
    found = _opened(entry)
    assert found is not None, "an entry that was just made"
    return found


def _key(files: Sequence[ImageFile], settings: ImageSettings) -> str:
    from PIL import __version__ as pillow

    digest = hashlib.sha256(json.dumps([VERSION, pillow, settings]).encode())
    for file in files:
        digest.update(json.dumps(file[1:]).encode())
    return digest.hexdigest()[:24]


def _opened(entry: Path) -> DecodedImages | None:
    """The entry, or None where there is none that is whole."""
    if (handle := lock_shared(entry)) is None:
        return None
    try:
        return DecodedImages(entry, handle)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # damaged by someone else: made anew
        return None


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock at `path` alone, waiting for it if need be."""
    while True:
        with open(path, "wb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                current_listener().say("another process decodes the same pictures: waiting for it")
                fcntl.flock(file, fcntl.LOCK_EX)
            try:
                current = os.path.samestat(os.fstat(file.fileno()), os.stat(path))
            except FileNotFoundError:
                current = False
            if current:  # and not one that its holder removed when done
                try:
                    yield
                finally:
                    path.unlink(missing_ok=True)
                return


def _make(draft: Path, folder: Path, files: Sequence[ImageFile], settings: ImageSettings) -> None:
    """Decode into `draft`, going on with what an interrupted process left there."""
    with ImageWorkers(num_workers(len(files))) as workers:
        shape, found = _planned(draft, folder, files, settings, workers)
        jobs = [
            {
                "do": "decode",
                "files": [file.path for file in files[start : start + CHUNK]],
                "shape": shape,
                "out": str(draft / "pixels"),
                "start": start,
            }
            for start in range(0, len(files), CHUNK)
            if start not in found
        ]
        done = sum(map(len, found.values()))
        with current_listener().progress("decoding images") as update, open(draft / "done.jsonl", "a") as journal:
            for number, answer in workers.map(jobs):
                start = jobs[number]["start"]
                found[start] = answer
                print(json.dumps([start, answer]), file=journal, flush=True)
                done += len(answer)
                update(done, len(files))
    _finish(draft, folder, shape, [each for start in sorted(found) for each in found[start]])


def _planned(
    draft: Path, folder: Path, files: Sequence[ImageFile], settings: ImageSettings, workers: ImageWorkers
) -> tuple[tuple[int, int, int], dict[int, list[Any]]]:
    """The shape of an image, and the rows by their start that the draft has already; it is ready for the others."""
    try:
        shape = tuple(json.loads((draft / "shape.json").read_bytes()))
        return shape, _whole(draft, shape, workers)
    except (OSError, ValueError):
        shutil.rmtree(draft, ignore_errors=True)
    shape = _shape(folder, files, settings, workers)
    num_bytes = len(files) * int(np.prod(shape))
    if num_bytes > cache_size_limit():
        raise UserError(
            f"expected at most {cache_size_limit() / 1e9:.3g} GB of pixels, but {len(files):,} images of "
            f"{' x '.join(map(str, shape))} take {num_bytes / 1e9:.3g} GB: set QUOIN_CACHE_SIZE, or a smaller "
            "--image-size"
        )
    evict_images(num_bytes)
    draft.mkdir()
    with open(draft / "pixels", "wb") as file:
        if num_bytes and hasattr(os, "posix_fallocate"):  # a full disk is told now
            os.posix_fallocate(file.fileno(), 0, num_bytes)
        file.truncate(num_bytes)
    (draft / "shape.json").write_text(json.dumps(shape))
    return shape, {}


def _whole(draft: Path, shape: tuple[int, ...], workers: ImageWorkers) -> dict[int, list[Any]]:
    """The chunks of rows that the journal of an interrupted process names, and that are in the file."""
    lines = (draft / "done.jsonl").read_text().splitlines() if (draft / "done.jsonl").exists() else []
    named: dict[int, list[Any]] = {}
    for line in lines:
        if line.endswith("]]"):  # not one that was cut short
            start, answer = json.loads(line)
            named[start] = answer
    jobs = [
        {
            "do": "check",
            "out": str(draft / "pixels"),
            "shape": shape,
            "start": start,
            "digests": [None if isinstance(each, str) else each[0] for each in answer],
        }
        for start, answer in named.items()
    ]
    return {jobs[number]["start"]: named[jobs[number]["start"]] for number, good in workers.map(jobs) if all(good)}


def _shape(
    folder: Path, files: Sequence[ImageFile], settings: ImageSettings, workers: ImageWorkers
) -> tuple[int, int, int]:
    """What the settings say, and where they do not, what the pictures have in common."""
    if settings.size is not None and settings.channels is not None:
        return settings.channels, *settings.size
    jobs = [
        {"do": "probe", "files": [file.path for file in files[start : start + CHUNK]]}
        for start in range(0, len(files), CHUNK)
    ]
    found, reasons = [], []
    with current_listener().progress("looking at images") as update:
        for _, answer in workers.map(jobs):
            found += [each for each in answer if not isinstance(each, str)]
            reasons += [each for each in answer if isinstance(each, str)]
            update(len(found) + len(reasons), len(files))
    if not found:
        raise UserError(f"expected pictures in {quoted(folder)}, but none can be read ({reasons[0]}): give others")
    channels = settings.channels or (1 if all(grey for _, _, grey in found) else 3)
    sizes = sorted({(height, width) for height, width, _ in found})
    if settings.size is None and len(sizes) > 1:
        sides = sorted(min(height, width) for height, width, _ in found)
        (h0, w0), (h1, w1) = sizes[0], sizes[-1]
        raise UserError(
            f"expected images of one size in {quoted(folder)}, got {len(sizes):,} sizes, {h0} x {w0} to {h1} x {w1} "
            f"(height x width): resize them with --image-size, such as --image-size {sides[len(sides) // 2]}"
        )
    height, width = settings.size or sizes[0]
    return channels, height, width


def _finish(draft: Path, folder: Path, shape: tuple[int, int, int], found: Sequence[Any]) -> None:
    """Write what is known of the rows, and wait until the disk has all."""
    broken = {row: each for row, each in enumerate(found) if isinstance(each, str)}
    if len(broken) == len(found):
        raise UserError(f"expected pictures in {quoted(folder)}, but none can be decoded ({broken[0]}): give others")
    statistics = np.zeros((len(found), shape[0], 4), np.int64)
    content = hashlib.sha256(json.dumps(shape).encode())
    for row, each in enumerate(found):
        if not isinstance(each, str):
            content.update(each[0].encode())
            statistics[row] = each[1]
    np.save(draft / "statistics.npy", statistics)
    info = {
        "source": str(folder),
        "num_images": len(found) - len(broken),
        "shape": shape,
        "content_hash": content.hexdigest(),
        "broken": broken,
    }
    (draft / "info.json").write_text(json.dumps(info))
    (draft / LOCK).touch()
    for path in (*draft.iterdir(), draft):
        _sync(path)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
