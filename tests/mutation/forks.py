"""Run pytest in a child of this process, which has imported what tests need but nothing of the project: a start then
costs no second. What a child leaves behind, processes and files, goes with it."""

import contextlib
import importlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from mutation.importing import VARIABLE, install
from mutation.project import Project

PRELOADED = "numpy scipy.stats torch torch._dynamo sklearn matplotlib.pyplot networkx"
SITE = Path(__file__).parent / "site"


def preload(names: str, package: str) -> None:
    """Import once what every child needs, where it is installed."""
    for name in ("pytest", "_pytest.doctest", *names.split()):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    assert package not in sys.modules, "children must import the changed code themselves"


def run_tests(project: Project, asked: dict[str, Any], files: list[str], plugins: Any, seconds: float) -> int | None:
    """The exit code of pytest over `files`, with what `asked` says done at import; None if it had to be killed.

    `plugins` is called in the child, after the hook of the import is in place.
    """
    scratch = Path(tempfile.mkdtemp(prefix="quoin-mutants-"))
    told = scratch / "asked.json"
    told.write_text(json.dumps(asked | {"source": str(project.source), "package": project.package}))
    child = os.fork()
    if not child:
        _in_child(project, scratch, told, files, plugins)
    try:
        return _wait(child, seconds)
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)  # of its own session: what it started and left
        shutil.rmtree(scratch, ignore_errors=True)


def _in_child(project: Project, scratch: Path, told: Path, files: list[str], plugins: Any) -> None:
    code = 70
    try:
        os.setsid()
        log = os.open(scratch / "log", os.O_WRONLY | os.O_CREAT)
        for stream in (1, 2):
            os.dup2(log, stream)
        source = str(project.source.parent)
        os.environ |= {VARIABLE: str(told), "PYTHONPATH": f"{source}{os.pathsep}{SITE}", "CI": "true"}
        os.environ |= {"QUOIN_CACHE": str(scratch / "cache"), "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": ""}
        os.environ["TMPDIR"] = tempfile.tempdir = str(scratch)
        os.chdir(project.copy)
        sys.path[0] = source
        install(str(told))
        import pytest

        from mutation.plugin import ImportsFirst

        words = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--rootdir", str(project.copy)]
        code = int(
            pytest.main([*words, "--basetemp", str(scratch / "base"), *files], plugins=[ImportsFirst(), *plugins()])
        )
        sys.stdout.flush()
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        keep = os.environ.get("QUOIN_MUTATION_LOG")
        if keep:
            shutil.copy(scratch / "log", keep)
        os._exit(code)


def _wait(child: int, seconds: float) -> int | None:
    end = time.monotonic() + seconds
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > end:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return None
        time.sleep(0.02)
