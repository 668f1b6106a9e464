"""A second process that puts a link in the place of a part of a run while it is trained: nothing outside changes,
whatever the moment.

No race is run: a link takes the place right before one system call of durable.py, or of the removal of a folder; each
call has its turn.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from commands import KEPT, seen
from quoin.errors import UserError
from quoin.train import RunFolder, durable
from quoin.train.checkpoint import checkpoint_steps
from tasks import TwoWeights, new_folder, run_loop

CALLS = {"open", "rename", "unlink", "mkdir", "stat", "lstat", "listdir", "scandir", "rmdir", "fsync"}


ACTS = {"open", "rename", "unlink", "mkdir", "rmdir", "scandir"}  # the rest only looks


def _inside(pattern: str) -> Callable[[Path], Path | None]:
    return lambda run: next(iter(sorted((run / "checkpoints").glob(pattern), reverse=True)), None)


ENTRIES: dict[str, Callable[[Path], Path | None]] = {
    "run": lambda run: run,
    "checkpoints": lambda run: run / "checkpoints",
    "step": _inside("0*"),
    "draft": _inside(".*"),  # being written or being removed
    "metrics": lambda run: run / "metrics.jsonl",
    "result": lambda run: run / "result.json",
    "lock": lambda run: run / "lock",
    "inspect": lambda run: run / "inspect",
    "page": lambda run: run / "samples.png",
}


class Swap:
    """Stands in the place of `os`, and makes its move right before the call number `moment`."""

    def __init__(self, run: Path, entry: str, moment: int) -> None:
        self.run, self.entry, self.moment, self.calls = run, entry, moment, list[tuple[str, tuple[Any, ...]]]()
        self.outside, self.before = run.parent.parent / "outside", None

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        if name not in CALLS:
            return real

        def call(*args, **how):
            self.calls.append((name, args))
            if len(self.calls) - 1 == self.moment:
                self.move()
            return None if name == "fsync" else real(*args, **how)  # no true syncs, for speed

        return call

    def move(self) -> None:
        """The entry goes aside, and a link leads to a copy of it, with more in it; what is there by then is to stay."""
        path = ENTRIES[self.entry](self.run)
        if path is None:
            return
        victim = self.outside / "victim"
        self.outside.mkdir()
        if path.is_dir():
            shutil.copytree(path, victim)
            for name in KEPT:
                (victim / name).parent.mkdir(exist_ok=True)
                (victim / name).write_text(name)
        else:
            victim.write_bytes(path.read_bytes() if path.exists() else b"1")
        if path.exists():
            path.rename(self.outside.with_name("aside"))
        path.symlink_to(victim)
        self.before = seen(self.outside)


def life(run: RunFolder) -> None:
    """All that is written into a run, one after another."""
    run_loop(TwoWeights(), run, resume=True, epochs=2)
    run.delete_result()
    run.save_result({"metrics": {}})
    run.save_report("page")
    run.save_output("inspect/a.svg", b"picture")
    run.save_output("samples.png", b"picture")


def lived(base: Path, place: Path, entry: str, moment: int, monkeypatch) -> Swap:
    """One life of a copy of the run `base`, with a link put somewhere at a moment."""
    shutil.copytree(base, place / "runs" / "small-1")
    run = RunFolder.open(place / "runs" / "small-1")
    swap = Swap(run.path, entry, moment)
    told = ""
    with monkeypatch.context() as patch:
        patch.setattr(durable, "os", swap)
        patch.setattr(shutil, "os", swap)
        try:
            life(run)
        except UserError as mistake:
            told = str(mistake)
    assert swap.before is not None or not told, "refused, and nothing was swapped"
    assert len(told.splitlines()) <= 1
    assert len(told) <= 300
    if swap.before is not None:
        assert seen(swap.outside) == swap.before, f"{entry} swapped at call {moment}"
    return swap


@pytest.fixture
def base(tmp_path) -> Path:
    """A run that was stopped before its end, with one checkpoint too many and what a kill leaves."""
    run = new_folder(tmp_path / "base")
    run_loop(TwoWeights(), run, epochs=2)
    older, newest = checkpoint_steps(run.checkpoints)
    (run.checkpoints / f"{newest:08d}").rename(run.checkpoints / "00000001")
    shutil.copytree(run.checkpoints / f"{older:08d}", run.checkpoints / "00000002")
    run.save_result({"metrics": {}})
    for name in (".00000001.0123456789abcdef.doomed", ".00000003.0123456789abcdef.draft"):
        (run.checkpoints / name).mkdir()
        (run.checkpoints / name / "state.json").write_text("{")
    return run.path


def swaps(base: Path, tmp_path: Path, entry: str, monkeypatch, *, every: bool) -> int:
    """How many swaps there were: one at each call, or only at those that act on the entry by its name."""
    calls = lived(base, tmp_path / "whole", entry, -1, monkeypatch).calls
    assert {name for name, _ in calls} >= {"open", "rename", "unlink", "mkdir", "rmdir"}
    path, made = ENTRIES[entry](base), 0
    for moment, (call, names) in enumerate(calls):
        if every or (call in ACTS and (entry in ("run", "draft") or (path is not None and path.name in names))):
            made += lived(base, tmp_path / f"at-{moment}", entry, moment, monkeypatch).before is not None
    return made


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_swap_in_between_leads_nowhere(entry, base, tmp_path, monkeypatch):
    assert swaps(base, tmp_path, entry, monkeypatch, every=False)


@pytest.mark.deep
@pytest.mark.parametrize("entry", ENTRIES)
def test_a_swap_at_any_call_leads_nowhere(entry, base, tmp_path, monkeypatch):
    assert swaps(base, tmp_path, entry, monkeypatch, every=True) > 20
