"""Small trained models for the pages: made by recipes at first use, in a process of their own, kept in the cache.

Nothing trained is shipped and nothing is downloaded. A model that is half trained is a draft, which the next start
throws away; one that is whole has its name.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quoin.data import cache_folder
from quoin.errors import UserError
from quoin.lab.parts.open_runs import open_paths

if TYPE_CHECKING:
    from quoin.runs import Run

__all__ = ["OpenOrTrained", "TrainedModel", "Training"]

_VERSION = 2  # of what is kept: raised where a recipe's defaults change what a page says
_lock = threading.Lock()
_trainings: dict[str, Training] = {}  # by key, of all pages of this process


@dataclass(frozen=True)
class TrainedModel:
    """A recipe with these options, as a page needs it.

    Args:
        seconds: About how long it takes on two cores, told before it is started.
    """

    recipe: str
    options: Mapping[str, Any] = field(default_factory=dict)
    seconds: int = 20

    @property
    def key(self) -> str:
        """Its name in the cache: the recipe, and a hash of all that it depends on."""
        given = json.dumps([_VERSION, self.recipe, dict(self.options)], sort_keys=True)
        return f"{self.recipe}-{hashlib.sha256(given.encode()).hexdigest()[:12]}"

    @property
    def folder(self) -> Path:
        return cache_folder() / "models" / self.key

    @property
    def is_ready(self) -> bool:
        return (self.folder / "run" / "result.json").is_file()

    def open(self) -> Run:
        """The trained run. One that is not there is an error: a page trains it, by `train`."""
        if not self.is_ready:
            raise UserError(f"expected a trained {self.recipe} in the cache, got none; train it on this page first")
        return _opened(self.folder / "run", (self.folder / "run" / "result.json").stat().st_mtime_ns)

    def train(self) -> Training:
        """Begin to train it, or join the training that is under way in this process."""
        with _lock:
            if self.key not in _trainings or not _trainings[self.key].is_running:
                _trainings[self.key] = Training(self)
            return _trainings[self.key]

    @property
    def training(self) -> Training | None:
        """The training that was begun in this process, if there was one."""
        return _trainings.get(self.key)


@dataclass(frozen=True)
class OpenOrTrained(TrainedModel):
    """The first run of this recipe among those that the command opened; where there is none, the trained model."""

    @property
    def opened(self) -> Path | None:
        """The reader's own run, if one is open."""
        return next((path for path in open_paths() if _recipe_of(path) == self.recipe), None)

    @property
    def is_ready(self) -> bool:
        return self.opened is not None or super().is_ready

    def open(self) -> Run:
        if (path := self.opened) is None:
            return super().open()
        return _opened(path, max(each.stat().st_mtime_ns for each in path.iterdir()))


def _recipe_of(path: Path) -> str:
    """The recipe that a run folder names; of one that is damaged or gone, none."""
    try:
        return str(json.loads((path / "config.json").read_text(encoding="utf-8"))["recipe"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


@functools.lru_cache(maxsize=16)
def _opened(path: Path, written: int) -> Run:
    from quoin.runs import Run

    return Run.open(path)


class Training:
    """A model that trains in a process of its own."""

    def __init__(self, model: TrainedModel):
        self.draft = model.folder.with_name(f".{model.key}.{os.getpid()}.draft")
        shutil.rmtree(self.draft, ignore_errors=True)
        self.draft.mkdir(parents=True)
        self._stopped = False
        given = json.dumps({"recipe": model.recipe, "options": dict(model.options), "out": str(model.folder)})
        with (self.draft / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "quoin.lab.parts.train_model", str(self.draft), given],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")},
            )

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    @property
    def fraction(self) -> float:
        """How much is done, from 0 to 1; the rest after the last epoch is its evaluation."""
        try:
            return min(1.0, float((self.draft / "progress").read_text()))
        except (OSError, ValueError):
            return 0.0

    @property
    def error(self) -> str:
        """Why it ended without a model, in one line; empty while it trains and where all went well."""
        if self._stopped or self.is_running or self._process.returncode == 0:
            return ""
        try:
            lines = (self.draft / "log").read_text(errors="replace").strip().splitlines()
        except OSError:
            lines = []
        return lines[-1] if lines else f"training ended with exit code {self._process.returncode}"

    def stop(self) -> None:
        """End it and throw the draft away."""
        self._stopped = True
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self.draft, ignore_errors=True)


def stop_all() -> None:
    """End every training of this process; for a server that stops."""
    for training in _trainings.values():
        if training.is_running:
            training.stop()
