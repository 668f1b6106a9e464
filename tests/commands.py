"""Commands run in this process, with what they print; shared by the tests of the command line."""

import contextlib
import hashlib
import io
from pathlib import Path

from quoin.cli import main

# What stands in a folder outside a run: names that a careless hand would take for its own.
KEPT = [".ssh/id", ".git/HEAD", ".00000001.0123456789abcdef.doomed/kept", ".00000009.draft/kept", "00000001/kept", "kept.txt"]


def tried(*words: object) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of one command."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(word) for word in words])
    return code, out.getvalue(), err.getvalue()


def refused(*words: object) -> str:
    """The one line with which a command was refused."""
    code, out, err = tried(*words)
    assert (code, out) == (2, ""), (code, out, err)
    assert err.startswith("quoin: ")
    assert len(err.splitlines()) == 1, err
    assert "Traceback" not in err
    assert len(err) < 600
    return err


def contents(folder: Path) -> dict[str, str]:
    """Every file with the hash of its bytes, and every folder; the lock, which is taken and let go, aside."""
    paths = [path for path in sorted(folder.rglob("*")) if path.name != "lock"]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "" for path in paths}


def seen(folder: Path) -> dict[str, tuple[int, int, str]]:
    """A folder and all under it: kind and permissions, time of the last change, hash."""
    found = {}
    for path in [folder, *sorted(folder.rglob("*"))]:
        about = path.lstat()
        found[str(path)] = about.st_mode, about.st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
    return found
