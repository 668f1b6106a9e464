"""`quoin compress` and `quoin decompress`: a file in, another file out, whole or not at all."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from quoin.cli.arguments import add_code, add_whole_file, code_access
from quoin.cli.flags import Parser
from quoin.cli.output import print_json
from quoin.cli.progress import Work, check_target, unwritable
from quoin.errors import UserError, format_value

if TYPE_CHECKING:
    from quoin.info import Codec

__all__ = ["add_compress", "add_decompress", "compress", "decompress"]

SUFFIX = ".quoin"


def add_compress(parser: Parser, words: Sequence[str]) -> None:
    """The words of `quoin compress`."""
    add_whole_file(parser, "the file to compress", "FILE.quoin", "compressing.compress")
    parser.description = (
        "Compress a file losslessly; `quoin decompress` restores it byte for byte on any machine.\n\n"
        "Context models of order 0 to 6 and of words each predict the next bit from what followed the same context "
        "before; a mixer\n"
        "with learned weights combines the predictions, and an entropy coder spends -log2 p bits on a bit of "
        "probability p. Data\n"
        "that do not compress are stored as they are. The archive has checksums, and is written whole or not at all."
    )
    parser.epilog = """\
examples:
  quoin compress notes.txt                    writes notes.txt.quoin; notes.txt is kept
  quoin decompress notes.txt.quoin -o same.txt
  quoin compress notes.txt -o n.quoin --force --json
  quoin compress notes.txt --model runs/lstm-lm-1   with your own language model; needed again to decompress
  quoin compress digits.npy --model runs/pixelcnn-1   with an image model, for images of its size and grey levels"""
    _add_coder(parser)


def add_decompress(parser: Parser, words: Sequence[str]) -> None:
    """The words of `quoin decompress`."""
    add_whole_file(
        parser, "an archive of `quoin compress`", "the archive's name without .quoin", "compressing.decompress"
    )
    parser.description = (
        "Restore a file compressed by `quoin compress`.\n\n"
        "The archive's checksum is compared before anything is decoded, and that of the content before anything is "
        "written:\n"
        "a damaged or truncated archive is refused, and no file is touched."
    )
    parser.epilog = """\
examples:
  quoin decompress notes.txt.quoin            writes notes.txt, if there is none
  quoin decompress notes.txt.quoin -o same.txt
  quoin decompress notes.txt.quoin --model runs/lstm-lm-1"""
    _add_coder(parser)


def _add_coder(parser: Parser) -> None:
    parser.add_flag(
        "--model",
        "code with this run's model, on one thread: a language model for any file, pixelcnn for images",
        "RUN",
        type=Path,
    )
    add_code(parser)


def compress(parsed: argparse.Namespace) -> int:
    content = _read(parsed.file)
    target = parsed.out or parsed.file.with_name(parsed.file.name + SUFFIX)
    check_target(parsed.file, target, parsed.force)  # before the work, not after it
    from quoin.info import compress

    codec = _codec(parsed)
    with Work("compressing", show_progress=not parsed.json) as work:
        archive = compress(content, codec, on_progress=work.update)
    _write(target, archive, parsed.file)
    fraction = f", {len(archive) / len(content):.1%} of its size" if content else ""
    return _report(parsed, target, content, archive, work, f"{len(content):,} bytes became {len(archive):,}{fraction}")


def decompress(parsed: argparse.Namespace) -> int:
    if parsed.out is None and (parsed.file.suffix != SUFFIX or parsed.file.name == SUFFIX):
        raise UserError(
            f"expected a file name ending in {SUFFIX}, got {format_value(parsed.file.name)}; say with -o where its "
            "content goes"
        )
    archive = _read(parsed.file)
    target = parsed.out or parsed.file.with_suffix("")
    check_target(parsed.file, target, parsed.force)
    from quoin.info import decompress, read_header

    codec = _codec(parsed)
    try:
        if codec is None and (name := read_header(archive).fingerprint):
            raise UserError(
                f"it was made by the model {format_value(name, 200)}: give the run that holds it as --model RUN"
            )
        with Work("decompressing", show_progress=not parsed.json) as work:
            content = decompress(archive, codec, on_progress=work.update)
    except UserError as mistake:
        raise UserError(f"{format_value(str(parsed.file))}: {mistake}") from None
    _write(target, content, parsed.file)
    return _report(parsed, target, content, archive, work, f"{len(content):,} bytes restored, checksum verified")


def _codec(parsed: argparse.Namespace) -> "Codec | None":
    """That of a run's model, of a language or of images pixel by pixel; without one, the mix of context models."""
    if parsed.model is None:
        return None
    from quoin.runs import Run

    return Run.open(parsed.model, code=code_access(parsed)).expect("codec").codec()  # type: ignore[attr-defined]


def _report(parsed: argparse.Namespace, target: Path, content: bytes, archive: bytes, work: Work, said: str) -> int:
    if parsed.json:
        print_json(
            {"file": str(target), "content_bytes": len(content), "archive_bytes": len(archive), "seconds": work.seconds}
        )
    else:
        print(f"{target}: {said} ({work.seconds:.1f} s, {len(content) / work.seconds / 1000:,.0f} kB/s)")
    return 0


def _read(path: Path) -> bytes:
    try:
        if path.is_dir():
            raise UserError(
                f"expected a file, got the folder {format_value(str(path))}: make one file of it first, as tar does"
            )
        if path.exists() and not path.is_file():  # a pipe would wait for ever, a device may never end
            raise UserError(
                f"expected a file, got {format_value(str(path))}, which is no plain file: copy its content into one"
            )
        return path.read_bytes()
    except FileNotFoundError:
        raise UserError(f"there is no file {format_value(str(path))}: check the name") from None
    except OSError as error:
        raise UserError(
            f"{format_value(str(path))} cannot be read ({error.strerror}): check its name and permissions"
        ) from None
    except UserError:
        raise
    except ValueError:  # a name with a null character
        raise UserError(f"{format_value(str(path))} cannot be a file's name: check it") from None


def _write(target: Path, content: bytes, source: Path) -> None:
    """As readable as the source, not more: an archive of a private file is private."""
    from quoin.info import write_atomic

    try:
        write_atomic(target, content, mode=os.stat(source).st_mode & 0o777)
    except OSError as error:
        raise unwritable(target, error) from None
