"""The run folder: all that a run leaves behind, and all that the command line, the report and the lab read.

    config.json        recipe, options, settings, what the data is
    environment.json   versions, device, threads, seed
    metrics.jsonl      one line an epoch, written as training goes
    checkpoints/       see checkpoint.py
    result.json        the final metrics, the target, whether it was met
    report.html        the run as a page
    lock               held with flock while a process trains; a killed process leaves no stale lock

What each JSON file must hold is said, and checked when it is read, in run_files.py.
"""

import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from quoin.data.remembered import RememberedData
from quoin.errors import Mistake, nearest
from quoin.train import durable, run_files
from quoin.train.checkpoint import checkpoint_steps, prune, read_checkpoint, write_checkpoint
from quoin.train.run_files import Environment, RunConfig, RunResult, StudyConfig, StudyResult

__all__ = ["RunFolder"]

FORMAT = 1
Facts = TypeVar("Facts", bound=RememberedData)
KEPT = 2  # checkpoints: the newest, and one before it in case a disk goes bad


class RunFolder:
    """One run on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoints = path / "checkpoints"
        self._metrics = path / "metrics.jsonl"

    @classmethod
    def create(cls, root: Path, recipe: str, config: dict[str, Any], environment: dict[str, Any]) -> "RunFolder":
        """Make `root/<recipe>-<n>` with the next free number."""
        try:
            root.mkdir(parents=True, exist_ok=True)
            taken = [int(found[1]) for each in root.iterdir() if (found := re.fullmatch(re.escape(recipe) + r"-(\d+)", each.name))]
            number = max(taken, default=0) + 1
            while True:
                path = root / f"{recipe}-{number}"
                try:
                    path.mkdir()
                    break
                except FileExistsError:  # another run started in the same moment
                    number += 1
        except OSError as error:
            raise Mistake(
                f"the run folder cannot be made in {root} ({error.strerror or error}): choose a folder with --runs FOLDER"
            ) from error
        try:
            return cls.create_at(path, recipe, config, environment)
        except (Mistake, OSError):
            shutil.rmtree(path, ignore_errors=True)  # a run that could not begin leaves nothing behind
            raise

    @classmethod
    def create_at(cls, path: Path, recipe: str, config: dict[str, Any], environment: dict[str, Any]) -> "RunFolder":
        """Make the run folder `path`, as a part of a study or by its full name."""
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Mistake(f"the run folder {path} cannot be made ({error.strerror or error}): choose another") from error
        folder = cls(path)
        folder._write_json("environment.json", environment)
        # Written last: a folder with a config is a run, one without is debris of a kill.
        folder._write_json("config.json", {"format": FORMAT, "recipe": recipe, **config})
        return folder

    @classmethod
    def open(cls, path: Path) -> "RunFolder":
        """The run that already is at `path`."""
        if not os.path.isdir(path):  # unlike Path.is_dir, also for a name too long to be one
            raise Mistake(f"no run folder at {path}: {_runs_nearby(path)}")
        folder = cls(path)
        _ = folder.config
        return folder

    @property
    def config(self) -> RunConfig:
        return run_files.read_config(*self._content("config.json"), newest=FORMAT)

    @property
    def recipe(self) -> str:
        return self.config["recipe"]

    @property
    def study(self) -> StudyConfig | None:
        """Over what the runs inside go, or None for a run."""
        return self.config.get("study")

    @property
    def environment(self) -> Environment:
        return run_files.read_environment(*self._content("environment.json"))

    @property
    def result(self) -> RunResult | StudyResult | None:
        """The final metrics, or None while the run is not finished."""
        if not (self.path / "result.json").exists():
            return None
        return run_files.read_result(*self._content("result.json"), of_study=self.study is not None)

    def facts(self, kind: type[Facts]) -> Facts:
        """What the run remembers of its data."""
        return kind.from_json(self.config["data"], f"{self.path / 'config.json'}, data")

    def save_result(self, result: RunResult | StudyResult) -> None:
        self._write_json("result.json", result)

    def forget_result(self) -> None:
        """Drop the result of a run that goes on from an older step: until it ends again it has none."""
        (self.path / "result.json").unlink(missing_ok=True)

    def save_report(self, page: str) -> Path:
        path = self.path / "report.html"
        durable.replace_file(path, page.encode(errors="backslashreplace"))  # a file's name need not be text
        return path

    # metrics

    def append_metrics(self, line: dict[str, Any]) -> None:
        """Add one line; a kill can tear only the last one, and a resumed run cuts it off."""
        try:
            with open(self._metrics, "a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        except OSError as error:
            raise durable.told(error, self._metrics) from error

    def metrics(self) -> list[dict[str, Any]]:
        """Every whole line written so far."""
        return run_files.read_metrics(*self._content("metrics.jsonl")) if self._metrics.exists() else []

    def cut_metrics(self, num_lines: int) -> None:
        """Forget the lines that were written after the checkpoint a run resumes from."""
        kept = self.metrics()[:num_lines]
        durable.replace_file(self._metrics, "".join(json.dumps(line) + "\n" for line in kept).encode())

    # checkpoints

    def save_checkpoint(self, state: Any, step: int) -> None:
        if self._metrics.exists():  # the state counts on its lines, so they must outlive a power cut as it does
            durable.sync(self._metrics)
        write_checkpoint(self.checkpoints, state, recipe=self.recipe, step=step)
        prune(self.checkpoints, checkpoint_steps(self.checkpoints)[-KEPT:])

    def load_checkpoint(self, step: int | None = None) -> tuple[Any, int] | None:
        """The state of `step`, or the newest; None when the run was killed before its first checkpoint."""
        steps = checkpoint_steps(self.checkpoints)
        if step is not None and step not in steps:
            raise Mistake(f"{self.path} has no checkpoint of step {step}: it has {', '.join(map(str, steps)) or 'none'}")
        if not steps:
            return None
        chosen = steps[-1] if step is None else step
        return read_checkpoint(self.checkpoints / f"{chosen:08d}", recipe=self.recipe), chosen

    def forget_after(self, step: int) -> None:
        """Drop checkpoints later than `step`, and debris: the run goes on from there and will write its own."""
        prune(self.checkpoints, [each for each in checkpoint_steps(self.checkpoints) if each <= step])

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the run for this process; the kernel lets go when the process ends, however it ends."""
        try:
            handle = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise durable.told(error, self.path / "lock") from error
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.read(handle, 32).decode(errors="replace").strip() or "another process"
                raise Mistake(f"{self.path} is being trained by process {holder}: wait for it or stop it first") from None
            os.ftruncate(handle, 0)
            os.pwrite(handle, str(os.getpid()).encode(), 0)
            yield
        finally:
            os.close(handle)

    def _content(self, name: str) -> tuple[bytes, Path]:
        """The bytes of a file of the run, and where they lay."""
        path = self.path / name
        try:
            return path.read_bytes(), path
        except FileNotFoundError:
            raise Mistake(f"{self.path} is not a run folder: it has no {name}") from None
        except OSError as error:
            raise Mistake(f"{path} cannot be read ({error.strerror}): restore it or train again") from None

    def _write_json(self, name: str, value: Mapping[str, Any]) -> None:
        durable.replace_file(self.path / name, (json.dumps(value, indent=2) + "\n").encode())


def _runs_nearby(path: Path) -> str:
    """A hint for a run that is not there: what is beside it."""
    beside = [each.name for each in path.parent.iterdir() if (each / "config.json").exists()] if os.path.isdir(path.parent) else []
    if not beside:
        return "`quoin train RECIPE` makes one under runs/"
    return f"in {path.parent}/, {nearest(path.name, beside)}"
