"""The run folder: all that a run leaves behind, and all that the command line, the report and the lab read.

    config.json        format, recipe, kind of learning, options, settings, what the data is
    environment.json   when it was started, versions, device, threads, seed
    metrics.jsonl      one line an epoch, written as training goes
    checkpoints/       see checkpoint.py
    log/               for other tools, where `--log` asks for it; see loggers.py
    result.json        the final metrics, the target, whether it was met
    report.html        the run as a page
    lock               held with flock while a process trains; a killed process leaves no stale lock
    code/              copies of the user's own Python files: kept to be read, run only if the user says so
    seed-0/, fold-0/   the runs of a multirun, each a run folder
    trial-0/           the trials of a sweep, each a run or a multirun over seeds

The folder is opened once, by the path that the user gave: it may lead through links and be one. Inside, nothing is: a
link in the place of any entry is an error, and all that is read, written, renamed and removed goes through durable.py,
which follows none.

What each JSON file must hold is in run_files.py, which checks it when it is read.
"""

import functools
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from quoin.data.data_info import DataInfo
from quoin.display import shown
from quoin.errors import UserError
from quoin.train import durable, run_files
from quoin.train.checkpoint import STEP, checkpoint_steps, prune, read_checkpoint, set_aside, write_checkpoint
from quoin.train.durable import Directory
from quoin.train.run_files import (
    ConfigFile,
    Environment,
    MultirunConfig,
    MultirunResultFile,
    ResultFile,
    SweepConfig,
    SweepResultFile,
)
from quoin.train.run_lock import is_held, take_lock

__all__ = ["RunFolder"]

FORMAT = 2
FILES = ("config.json", "environment.json", "metrics.jsonl", "result.json", "report.html", "lock")
MEMBER = re.compile("(?:seed|fold|trial)-[0-9]+")  # what a run of a multirun or a sweep is called
Info = TypeVar("Info", bound=DataInfo)
KEPT = 2  # checkpoints: the newest, and one before it in case a disk goes bad


@shown
class RunFolder:
    """One run on disk.

    Args:
        directory: The folder at `path`, if it is open already.
    """

    def __init__(self, path: Path, directory: Directory | None = None) -> None:
        self.path = path
        self.directory = directory or Directory.at(path)
        self.checkpoints = path / "checkpoints"

    @classmethod
    def create(
        cls, root: Path, recipe: str, config: dict[str, Any], environment: dict[str, Any], *, name: str = ""
    ) -> "RunFolder":
        """Make `root/name`, which must be free, or `root/<recipe>-<n>` with the next free number."""
        try:
            root.mkdir(parents=True, exist_ok=True)
            inside = Directory.at(root)
            taken = [
                int(found[1]) for each in inside.names() if (found := re.fullmatch(re.escape(recipe) + r"-(\d+)", each))
            ]
            number = max(taken, default=0) + 1
            while True:
                chosen = name or f"{recipe}-{number}"
                try:
                    inside.make(chosen)
                    break
                except FileExistsError:
                    if name:
                        cls.check_free(root, name)
                    number += 1  # another run started in the same moment
        except OSError as error:
            raise UserError(
                f"the run folder cannot be made in {root} ({error.strerror or error}): choose a folder with --runs "
                "FOLDER"
            ) from error
        folder = cls(root / chosen, inside.enter(chosen))
        try:
            folder._begin(recipe, config, environment)
        except OSError as error:
            folder.remove()  # a run that could not begin leaves nothing behind
            raise durable.describe_os_error(error, folder.path, then="train again") from error
        return folder

    @staticmethod
    def check_free(root: Path, name: str) -> None:
        """Raise an error if `root` has something of this name."""
        if os.path.lexists(root / name):
            raise UserError(f"{root / name} is there already: choose another --name, or `quoin resume {root / name}`")

    @classmethod
    def create_member(
        cls, multirun: "RunFolder", name: str, recipe: str, config: dict[str, Any], environment: dict[str, Any]
    ) -> "RunFolder":
        """Make the run `name` of a multirun, in the multirun's folder."""
        try:
            folder = cls(multirun.path / name, multirun.directory.enter(name, make=True))
            folder._check_entries()  # a kill may have left some
            folder._begin(recipe, config, environment)
        except OSError as error:
            then = "`quoin resume` the multirun: its finished runs stay" if multirun.members() else "run it again"
            raise durable.describe_os_error(error, multirun.path / name, then=then) from error
        return folder

    def _begin(self, recipe: str, config: dict[str, Any], environment: dict[str, Any]) -> None:
        started = datetime.now(UTC).isoformat(timespec="seconds")  # in the file: its own time does not outlive a copy
        self._write_json("environment.json", {"started": started, **environment})
        # Written last: a folder with a config is a run, one without is debris of a kill.
        started_in = os.path.relpath(os.getcwd(), self.path)
        whole: Any = {"format": FORMAT, "recipe": recipe, "folder": started_in, **config}
        self._write_json("config.json", whole)
        self.config = whole  # as it would be read

    @classmethod
    def open(cls, path: Path) -> "RunFolder":
        """The run that already is at `path`, which the user named: it may be a link to one elsewhere."""
        if not os.path.isdir(path):  # unlike Path.is_dir, also for a name too long to be one
            raise UserError(f"no run folder at {path}: {run_files.runs_nearby(path)}")
        return cls(path)._opened()

    def member(self, name: str) -> "RunFolder | None":
        """The run `name` of this multirun, which may be no link; None where it has not begun."""
        if not MEMBER.fullmatch(name) or not self.has(name):
            return None
        folder = RunFolder(self.path / name, self.directory.enter(name))
        return folder._opened() if folder.has("config.json") else None

    def members(self) -> list[str]:
        """The runs of this multirun that have begun."""
        names = [name for name in self.directory.names() if MEMBER.fullmatch(name)]
        return [
            name
            for name in names
            if self.directory.kind(name) == "a folder" and self.directory.enter(name).kind("config.json")
        ]

    def _opened(self) -> "RunFolder":
        _ = self.config  # of a format that is known, and whole
        self._check_entries()
        return self

    def _check_entries(self) -> None:
        """Raise an error if an entry of the folder is a link, or anything else than it should be."""
        for name in FILES:
            self.directory.expect(name, "a file")
        for name in ("checkpoints", "code", "log", *filter(MEMBER.fullmatch, self.directory.names())):
            self.directory.expect(name, "a folder")
        if checkpoints := self._saved():
            for name in filter(STEP.fullmatch, checkpoints.names()):
                checkpoints.expect(name, "a folder")

    def _saved(self) -> Directory | None:
        """The folder of the checkpoints, if there is one."""
        return self.directory.enter("checkpoints") if self.has("checkpoints") else None

    def has(self, name: str) -> bool:
        """Whether the folder has an entry of that name."""
        return self.directory.kind(name) is not None

    def remove(self) -> None:
        """Remove the whole folder: what could not begin leaves nothing behind. Another one that took its place
        meanwhile stays."""
        beside = Directory.at(self.path.parent)
        with suppress(OSError):
            if self.directory.same_as(beside.about(self.path.name)):
                beside.clear(self.path.name)

    @functools.cached_property
    def config(self) -> ConfigFile:
        return run_files.read_config(*self._content("config.json"), format=FORMAT)

    @property
    def recipe(self) -> str:
        return self.config["recipe"]

    @property
    def multirun(self) -> MultirunConfig | None:
        """Over what the runs inside go, or None for a run."""
        return self.config.get("multirun")

    @property
    def sweep(self) -> SweepConfig | None:
        """What the trials inside search, or None for another folder."""
        return self.config.get("sweep")

    @functools.cached_property
    def environment(self) -> Environment:
        return run_files.read_environment(*self._content("environment.json"))

    @functools.cached_property
    def result(self) -> ResultFile | MultirunResultFile | SweepResultFile | None:
        """The final metrics, or None while the run is not finished."""
        if not self.has("result.json"):
            return None
        return run_files.read_result(
            *self._content("result.json"), of_multirun=self.multirun is not None, of_sweep=self.sweep is not None
        )

    def read_data_info(self, kind: type[Info]) -> Info:
        """What the run remembers of its data."""
        return kind.from_json(self.config["data"], f"{self.path / 'config.json'}, data")

    def save_result(self, result: ResultFile | MultirunResultFile | SweepResultFile) -> None:
        with self._explain_os_errors("result.json"):
            self._write_json("result.json", result)
        self.result = result

    def delete_result(self) -> None:
        """Drop the result of a run that goes on from an older step: until it ends again it has none."""
        with self._explain_os_errors("result.json"):
            self.directory.remove("result.json")
        self.result = None

    def save_report(self, page: str) -> Path:
        with self._explain_os_errors("report.html"):
            self.directory.replace(
                "report.html", page.encode(errors="backslashreplace")
            )  # a file's name need not be text
        return self.path / "report.html"

    def expect_output(self, name: str) -> None:
        """Raise, before the work, the error that `save_output` would raise after it; a file may be in a folder, as in
        inspect/a.svg."""
        folder, _, file = name.rpartition("/")
        if folder:
            self.directory.expect(folder, "a folder")
        if not folder or self.has(folder):
            (self.directory.enter(folder) if folder else self.directory).expect(file, "a file")

    def save_output(self, name: str, content: bytes) -> Path:
        """Write what a command makes of the run and puts beside it, such as a page or a plot."""
        self.expect_output(name)
        folder, _, file = name.rpartition("/")
        try:
            (self.directory.enter(folder, make=True) if folder else self.directory).replace(file, content)
        except OSError as error:
            raise durable.describe_os_error(
                error, self.path / name, then="try again", elsewhere="choose another place with --out"
            ) from error
        return self.path / name

    @contextmanager
    def _explain_os_errors(self, name: str) -> Iterator[None]:
        """A disk that cannot take a file of this run, in one line with what is left."""
        try:
            yield
        except OSError as error:
            saved = self._saved()
            whole = (
                "its last checkpoint is whole"
                if saved and checkpoint_steps(saved)
                else "it has no checkpoint yet and begins anew"
            )
            raise durable.describe_os_error(error, self.path / name, then=f"`quoin resume` the run: {whole}") from error

    def save_code(self, name: str, content: bytes) -> None:
        """Keep a copy of a file of the user's own code; it may be in a folder, as in layers/mine.py."""
        *folders, file = name.split("/")
        with self._explain_os_errors(f"code/{name}"):
            inside = self.directory.enter("code", make=True)
            for each in folders:
                inside = inside.enter(each, make=True)
            inside.replace(file, content)

    def read_code(self, name: str) -> bytes:
        """The copy of a file of the user's own code."""
        *folders, file = name.split("/")
        inside = self.directory.enter("code")
        for each in folders:
            inside = inside.enter(each)
        try:
            return inside.read(file)
        except FileNotFoundError:
            raise UserError(f"{self.path} has lost its copy code/{name}: name your file with --code") from None

    # metrics

    def append_metrics(self, line: dict[str, Any]) -> None:
        """Add one line; a kill can tear only the last one, and a resumed run cuts it off."""
        with self._explain_os_errors("metrics.jsonl"):
            self.directory.append("metrics.jsonl", (json.dumps(line) + "\n").encode())

    def metrics(self) -> list[dict[str, Any]]:
        """Every whole line written so far."""
        return run_files.read_metrics(*self._content("metrics.jsonl")) if self.has("metrics.jsonl") else []

    def truncate_metrics(self, num_lines: int) -> None:
        """Forget the lines that were written after the checkpoint a run resumes from."""
        kept = self.metrics()[:num_lines]
        with self._explain_os_errors("metrics.jsonl"):
            self.directory.replace("metrics.jsonl", "".join(json.dumps(line) + "\n" for line in kept).encode())

    # checkpoints

    def save_checkpoint(self, state: Any, step: int) -> None:
        with self._explain_os_errors(f"checkpoints/{step:08d}"):
            if self.has("metrics.jsonl"):  # the state counts on its lines, so they must outlive a power cut as it does
                self.directory.sync("metrics.jsonl")
            folder = self.directory.enter("checkpoints", make=True)
            write_checkpoint(folder, state, recipe=self.recipe, step=step)
            prune(folder, checkpoint_steps(folder)[-KEPT:])

    def set_aside(self, state: Any) -> Any:
        """A copy of `state` that holds no memory, for as long as this process trains."""
        with self._explain_os_errors("checkpoints"):
            return set_aside(self.directory.enter("checkpoints", make=True), state)

    def load_checkpoint(self, step: int | None = None) -> tuple[Any, int] | None:
        """The state of `step`, or the newest; None when the run was killed before its first checkpoint."""
        folder = self._saved()
        steps = checkpoint_steps(folder) if folder else []
        if step is not None and step not in steps:
            raise UserError(
                f"{self.path} has no checkpoint of step {step}: it has {', '.join(map(str, steps[-8:])) or 'none'}"
            )
        if folder is None or not steps:
            return None
        chosen = steps[-1] if step is None else step
        return read_checkpoint(folder.enter(f"{chosen:08d}"), recipe=self.recipe), chosen

    def delete_after(self, step: int) -> None:
        """Drop checkpoints later than `step`, and debris: the run goes on from there and will write its own."""
        with self._explain_os_errors("checkpoints"):
            if folder := self._saved():
                prune(folder, [each for each in checkpoint_steps(folder) if each <= step])

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the run for this process; the kernel lets go when the process ends, however it ends."""
        with self._explain_os_errors("lock"):
            handle = self.directory.open_file("lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            with self._explain_os_errors("lock"):
                take_lock(handle, self.path)
            yield
        finally:
            os.close(handle)

    def is_swept(self) -> bool:
        """Whether a process works on a trial of this sweep now, be it before the trial has a run."""
        if self.sweep is None or self.directory.kind("locks") != "a folder":
            return False
        locks = self.directory.enter("locks")
        handles = [locks.open_file(name, os.O_RDONLY) for name in locks.names()]
        try:
            return any(map(is_held, handles))
        finally:
            for handle in handles:
                os.close(handle)

    def is_locked(self) -> bool:
        """Whether a process trains this run now; nothing is written to find out."""
        try:
            handle = self.directory.open_file("lock", os.O_RDONLY)
        except FileNotFoundError:
            return False
        try:
            return is_held(handle)
        finally:
            os.close(handle)

    def _content(self, name: str) -> tuple[bytes, Path]:
        """The bytes of a file of the run, and where they lay."""
        try:
            return self.directory.read(name), self.path / name
        except FileNotFoundError:
            raise UserError(f"{self.path} is not a run folder: it has no {name}") from None

    def _write_json(self, name: str, value: Mapping[str, Any]) -> None:
        self.directory.replace(name, (json.dumps(value, indent=2) + "\n").encode())
