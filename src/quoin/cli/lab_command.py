"""`quoin lab`: the notes and your runs in the browser."""

import argparse
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from quoin.cli.arguments import run_later
from quoin.cli.flags import Parser, whole_number
from quoin.errors import UserError, did_you_mean, format_value
from quoin.lab.catalog import PAGES, page_path

__all__ = ["add_lab", "lab"]


def add_lab(parser: Parser, words: Sequence[str]) -> None:
    """The words of `quoin lab`."""
    parser.description = (
        "Play with the notes and with your runs in the browser: pages with sliders, drawings and texts, computed live "
        "by Quoin.\n\nIt serves on this machine alone, with a token in its address, and sends nothing anywhere."
    )
    names = list(PAGES)
    listed = "\n".join(
        "  " + "  ".join(f"{name:<18}" for name in names[at : at + 4]).rstrip() for at in range(0, 20, 4)
    )
    parser.epilog = f"""\
pages:
{listed}
  errata              gallery

examples:
  quoin lab                          all pages
  quoin lab attention                one page
  quoin lab DE56                     the exhibit of an item of the notes
  quoin lab runs/vae-1 runs/vae-2    your runs, side by side
  quoin lab --copy attention         a page as a marimo notebook of your own: attention.py
  quoin lab --edit attention         the same, opened in marimo's editor"""
    parser.add_argument("words", nargs="*", metavar="WORD", help="a page, an id of the notes, run folders, or a word")
    parser.add_switch("--no-open", "print the address and open no browser")
    parser.add_flag("--port", "port to serve on (default: 2718, or any free one)", "INT", type=whole_number, default=0)
    parser.add_flag("--host", "address to serve on, for others to reach (default: 127.0.0.1)", "HOST", default="")
    parser.add_flag("--copy", "copy a page into this folder, to change it", "PAGE", default="")
    parser.add_flag("--edit", "open such a copy in marimo's editor", "PAGE", default="")
    parser.set_defaults(run=run_later("lab_command.lab"))


def lab(parsed: argparse.Namespace) -> int:
    if parsed.port > 65535:
        raise UserError(f"expected a port up to 65535, got {parsed.port}; choose another")
    if parsed.copy or parsed.edit:
        if parsed.words or (parsed.copy and parsed.edit):
            raise UserError("--copy and --edit take one page and nothing else; leave the other words out")
        path = _copied(parsed.copy or parsed.edit, keep=bool(parsed.edit))
        return _edit(path, parsed) if parsed.edit else 0
    from quoin.lab.server import LOOPBACK, find_address, serve

    _check_installed()
    address, runs = find_address(parsed.words)
    for path in runs:
        _check_run(path)
    serve(address, runs, host=parsed.host or LOOPBACK, port=parsed.port, open_browser=not parsed.no_open)
    return 0


def _edit(path: Path, parsed: argparse.Namespace) -> int:
    """marimo's editor on the copy, behind marimo's own token, until Ctrl-C."""
    _check_installed()
    words = [sys.executable, "-m", "marimo", "edit", str(path)]
    words += ["--headless"] if parsed.no_open else []
    words += ["--port", str(parsed.port)] if parsed.port else []
    words += ["--host", parsed.host] if parsed.host else []
    try:
        return subprocess.call(words)
    except KeyboardInterrupt:
        return 0  # it was told so too, and has ended


def _copied(name: str, *, keep: bool) -> Path:
    """The page in the current folder; one that is there already is kept, or is an error."""
    if name not in PAGES:
        raise UserError(f"expected a page, got {format_value(name)}; {did_you_mean(name, PAGES)}")
    path = Path(page_path(name).name)
    if path.exists():
        if keep:
            return path
        raise UserError(f"expected no file {str(path)!r} here, got one; rename it, or open it with --edit {name}")
    try:
        shutil.copyfile(page_path(name), path)
    except OSError as error:
        raise UserError(f"expected to write {str(path)!r} here, got {error.strerror}; change the folder") from error
    print(f"{path}: a marimo notebook; open it with `quoin lab --edit {name}` or run it with `marimo run {path}`")
    return path


def _check_installed() -> None:
    try:
        import anywidget  # noqa: F401
        import marimo  # noqa: F401
    except ModuleNotFoundError as error:
        raise UserError(f"the lab needs {error.name}, which is not installed: pip install 'quoin[lab]'") from None


def _check_run(path: Path) -> None:
    from quoin.train.folder import RunFolder

    RunFolder.open(path)
