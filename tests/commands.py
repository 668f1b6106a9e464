"""Commands run in this process, with what they print; shared by the tests of the command line."""

import contextlib
import hashlib
import io
import re
import sys
from pathlib import Path

from quoin.cli import main

# What stands in a folder outside a run: names that a careless hand would take for its own.
KEPT = [
    ".ssh/id",
    ".git/HEAD",
    ".00000001.0123456789abcdef.doomed/kept",
    ".00000009.draft/kept",
    "00000001/kept",
    "kept.txt",
]


def tried(*words: object) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of one command."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(word) for word in words])
    return code, out.getvalue(), err.getvalue()


STOPPING = """
import os, signal, sys
from quoin.cli import main
from quoin.train import Trainer
step = Trainer._step
def stopped(trainer, rows):
    if len(list(trainer.folder.path.glob("checkpoints/0*"))) >= 2:
        os.kill(os.getpid(), int(sys.argv[1]))
    return step(trainer, rows)
Trainer._step = stopped
sys.exit(main(sys.argv[2:]))
"""


def stopping(number: int, *words: object) -> list[str]:
    """`quoin` with these words as a process of its own that sends itself this signal at the step after its second
    checkpoint.

    A test that sent it from outside would have to be quick enough.
    """
    return [sys.executable, "-c", STOPPING, str(int(number)), *map(str, words)]


def without_progress(told: str) -> str:
    """What a process printed, less the lines that a long run logs now and then: how long it took is the machine's
    matter."""
    return re.sub(r"^\S+  epoch \d+/\d+  batch \d+/\d+ .*\n", "", told, flags=re.MULTILINE)


def refused(*words: object) -> str:
    """The one line with which a command was refused."""
    code, out, err = tried(*words)
    assert (code, out) == (2, ""), (code, out, err)
    assert err.startswith("quoin: ")
    assert len(err.splitlines()) == 1, err
    assert "Traceback" not in err
    assert len(err) <= 301, err
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
        found[str(path)] = (
            about.st_mode,
            about.st_mtime_ns,
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
        )
    return found
