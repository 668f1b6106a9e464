"""`quoin compress` and `quoin decompress`: a file in, another file out, whole or not at all."""

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from quoin.cli.show import print_json
from quoin.cli.working import Work, check_target, unwritable
from quoin.errors import Mistake, shown

if TYPE_CHECKING:
    from quoin.info import Codec

__all__ = ["compress", "decompress"]

SUFFIX = ".quoin"


def compress(parsed: argparse.Namespace) -> int:
    content = _read(parsed.file)
    target = parsed.out or parsed.file.with_name(parsed.file.name + SUFFIX)
    check_target(parsed.file, target, parsed.force)  # before the work, not after it
    from quoin.info import pack

    codec = _codec(parsed.model)
    with Work("compressing", visible=not parsed.json) as work:
        archive = pack(content, codec, tell=work.tell)
    _write(target, archive, parsed.file)
    share = f", {len(archive) / len(content):.1%} of its size" if content else ""
    return _report(parsed, target, content, archive, work, f"{len(content):,} bytes became {len(archive):,}{share}")


def decompress(parsed: argparse.Namespace) -> int:
    if parsed.out is None and (parsed.file.suffix != SUFFIX or parsed.file.name == SUFFIX):
        raise Mistake(f"expected a file name ending in {SUFFIX}, came {shown(parsed.file.name)}; say with -o where its content goes")
    archive = _read(parsed.file)
    target = parsed.out or parsed.file.with_suffix("")
    check_target(parsed.file, target, parsed.force)
    from quoin.info import read_header, unpack

    codec = _codec(parsed.model)
    try:
        if codec is None and (name := read_header(archive).fingerprint):
            raise Mistake(f"it was made by the model {shown(name, 200)}: give the run that holds it as --model RUN")
        with Work("decompressing", visible=not parsed.json) as work:
            content = unpack(archive, codec, tell=work.tell)
    except Mistake as mistake:
        raise Mistake(f"{shown(str(parsed.file))}: {mistake}") from None
    _write(target, content, parsed.file)
    return _report(parsed, target, content, archive, work, f"{len(content):,} bytes came back, checked")


def _codec(run: Path | None) -> "Codec | None":
    """That of a run's model, of a language or of images pixel by pixel; without one, the mix of context models."""
    if run is None:
        return None
    from quoin.runs import Run

    return Run.open(run).expect("codec").codec()  # type: ignore[attr-defined]


def _report(parsed: argparse.Namespace, target: Path, content: bytes, archive: bytes, work: Work, said: str) -> int:
    if parsed.json:
        print_json({"file": str(target), "content_bytes": len(content), "archive_bytes": len(archive), "seconds": work.seconds})
    else:
        print(f"{target}: {said} ({work.seconds:.1f} s, {len(content) / work.seconds / 1000:,.0f} kB/s)")
    return 0


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


def _write(target: Path, content: bytes, source: Path) -> None:
    """As readable as the source, not more: an archive of a private file is private."""
    from quoin.info import write_whole

    try:
        write_whole(target, content, mode=os.stat(source).st_mode & 0o777)
    except OSError as error:
        raise unwritable(target, error) from None
