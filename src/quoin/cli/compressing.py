"""`quoin compress` and `quoin decompress`: a file in, another file out, whole or not at all."""

import argparse
import os
import sys
import time
from pathlib import Path

from quoin.cli.show import print_json
from quoin.errors import Mistake, shown

__all__ = ["compress", "decompress"]

SUFFIX = ".quoin"
PATIENCE = 1.0  # seconds before a bar is drawn: what ends sooner needs none


def compress(parsed: argparse.Namespace) -> int:
    content = _read(parsed.file)
    target = parsed.out or parsed.file.with_name(parsed.file.name + SUFFIX)
    _check_target(parsed.file, target, parsed.force)  # before the work, not after it
    from quoin.info import pack

    with _Work("compressing", visible=not parsed.json) as work:
        archive = pack(content, tell=work.tell)
    _write(target, archive, parsed.file)
    share = f", {len(archive) / len(content):.1%} of its size" if content else ""
    return _report(parsed, target, content, archive, work, f"{len(content):,} bytes became {len(archive):,}{share}")


def decompress(parsed: argparse.Namespace) -> int:
    if parsed.out is None and (parsed.file.suffix != SUFFIX or parsed.file.name == SUFFIX):
        raise Mistake(f"expected a file name ending in {SUFFIX}, came {shown(parsed.file.name)}; say with -o where its content goes")
    archive = _read(parsed.file)
    target = parsed.out or parsed.file.with_suffix("")
    _check_target(parsed.file, target, parsed.force)
    from quoin.info import unpack

    try:
        with _Work("decompressing", visible=not parsed.json) as work:
            content = unpack(archive, tell=work.tell)
    except Mistake as mistake:
        raise Mistake(f"{shown(str(parsed.file))}: {mistake}") from None
    _write(target, content, parsed.file)
    return _report(parsed, target, content, archive, work, f"{len(content):,} bytes came back, checked")


def _report(parsed: argparse.Namespace, target: Path, content: bytes, archive: bytes, work: "_Work", said: str) -> int:
    if parsed.json:
        print_json({"file": str(target), "content_bytes": len(content), "archive_bytes": len(archive), "seconds": work.seconds})
    else:
        print(f"{target}: {said} ({work.seconds:.1f} s, {len(content) / work.seconds / 1000:,.0f} kB/s)")
    return 0


def _check_target(source: Path, target: Path, force: bool) -> None:
    try:
        if target.is_dir():
            raise Mistake(f"expected a file to write to, came the folder {shown(str(target))}; give -o a file name")
        if target.exists() and target.samefile(source):
            raise Mistake(f"-o {shown(str(target))} is the file to read: choose another, or it would be lost")
        if target.exists() and not target.is_file():  # a file renamed over a device such as /dev/null would take its place
            raise Mistake(f"expected a plain file to write to, came {shown(str(target))}, which is none: choose another with -o")
        if (target.exists() or target.is_symlink()) and not force:
            raise Mistake(f"{shown(str(target))} is there already: choose another with -o, or write over it with --force")
        os.stat(f"{target.parent}/")  # a folder that is missing, or is a file, is told now too
    except OSError as error:
        raise _unwritable(target, error) from None


def _read(path: Path) -> bytes:
    try:
        if path.is_dir():
            raise Mistake(f"expected a file, came the folder {shown(str(path))}: make one file of it first, as tar does")
        if path.exists() and not path.is_file():  # a pipe would wait for ever, a device may never end
            raise Mistake(f"expected a file, came {shown(str(path))}, which is no plain file: copy its content into one")
        return path.read_bytes()
    except FileNotFoundError:
        raise Mistake(f"there is no file {shown(str(path))}: check the name") from None
    except OSError as error:
        raise Mistake(f"{shown(str(path))} cannot be read ({error.strerror}): check its name and permissions") from None
    except Mistake:
        raise
    except ValueError:  # a name with a null character
        raise Mistake(f"{shown(str(path))} cannot be a file's name: check it") from None


def _unwritable(target: Path, error: OSError) -> Mistake:
    return Mistake(f"{shown(str(target))} cannot be written ({error.strerror}): choose another place with -o")


def _write(target: Path, content: bytes, source: Path) -> None:
    """As readable as the source, not more: an archive of a private file is private."""
    from quoin.info import write_whole

    try:
        write_whole(target, content, mode=os.stat(source).st_mode & 0o777)
    except OSError as error:
        raise _unwritable(target, error) from None


class _Work:
    """The clock of one piece of work, and a bar that appears on a terminal when it takes its time."""

    def __init__(self, label: str, *, visible: bool) -> None:
        self._label, self._visible = label, visible and sys.stderr.isatty()
        self._bar = None
        self.seconds = 0.0

    def __enter__(self) -> "_Work":
        self._began = time.perf_counter()
        return self

    def __exit__(self, *raised: object) -> None:
        self.seconds = time.perf_counter() - self._began
        if self._bar is not None:
            self._bar.stop()

    def tell(self, done: int, total: int) -> None:
        """So many bytes are done, of so many."""
        if self._bar is None and self._visible and time.perf_counter() - self._began > PATIENCE:
            from rich.console import Console
            from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

            columns = (BarColumn(bar_width=24), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
            self._bar = Progress(TextColumn("{task.description}"), *columns, console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task(self._label)
            self._bar.start()
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=total)
