"""The trials of a sweep in an Optuna storage, a journal or SQLite file, and who works on which.

A trial's number decides the seed of its sampler, so that a sweep that was killed samples what it would have sampled. A
trial is created together with the id of the sweep folder that trains it, and its worker holds a lock of its own in that
folder for as long as it works: a trial that is running in the storage and whose lock is free is dead, and is taken up
again. Optuna is imported here and in sweep_page.py only.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quoin.errors import UserError, format_value
from quoin.runs.sweep_space import Space, SweepChoices, grid
from quoin.train import RunFolder

if TYPE_CHECKING:
    import optuna
    from optuna.distributions import BaseDistribution
    from optuna.pruners import BasePruner
    from optuna.trial import FrozenTrial

__all__ = ["ClaimedTrial", "TrialStorage", "check_storage_name", "import_optuna"]

JOURNAL = "journal.jsonl"  # in the sweep's folder, unless another storage is given
_OURS = "quoin-sweep-"  # begins the name of the study; a hash of what is searched follows


def import_optuna() -> Any:
    """Optuna, which logs nothing; a UserError with the pip line where it is missing."""
    try:
        import optuna
    except ImportError:
        raise UserError("quoin sweep needs Optuna, which is not installed: pip install 'quoin[sweep]'") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def check_storage_name(name: str) -> None:
    """Whether it names a file in one of the two forms."""
    if name and not (name.startswith("sqlite:///") and name[10:]) and not (name.startswith("journal:") and name[8:]):
        raise UserError(f"--storage expects sqlite:///FILE or journal:FILE, got {format_value(name)}")


@dataclass
class ClaimedTrial:
    """A trial that this process works on; the lock is let go by `release` or by the end of the process."""

    number: int
    id: int  # of the storage
    _lock: int

    def release(self) -> None:
        os.close(self._lock)


class TrialStorage:
    """All trials of one sweep.

    Args:
        folder: The sweep's folder.
        about: What is searched and how: processes share a storage if this is the same.
        greater_is_better: Of two values of a trial.
        num_trials: Trials of all processes together.
    """

    def __init__(
        self, folder: RunFolder, about: dict[str, Any], *, place: str, greater_is_better: bool, num_trials: int
    ) -> None:
        self._optuna = import_optuna()
        self._folder, self._num_trials = folder, num_trials
        self._owner: str = about["id"]
        searched = {name: value for name, value in about.items() if name != "id"}
        self._storage = self._open(place)
        text = json.dumps(searched, sort_keys=True)
        name = _OURS + hashlib.sha256(text.encode()).hexdigest()[:16]
        with _explained(place or JOURNAL):
            found = self._storage.get_all_studies()
            for study in found:
                if study.study_name != name:
                    self._refuse(study, searched, place or JOURNAL)
            if not any("searched" in study.user_attrs for study in found):
                self._optuna.create_study(
                    storage=self._storage,
                    study_name=name,
                    direction="maximize" if greater_is_better else "minimize",
                    load_if_exists=True,  # another process may be as fast
                ).set_user_attr("searched", searched)
            study_id = self._storage.get_study_id_from_name(name)
        self.name, self._study_id = name, study_id

    def _refuse(self, study: Any, searched: dict[str, Any], place: str) -> None:
        """The storage holds another study than ours: say in what it differs."""
        theirs = study.user_attrs.get("searched", {}) if study.study_name.startswith(_OURS) else None
        if theirs is None:
            raise UserError(
                f"the storage {place} holds the study {format_value(study.study_name)} of another program: give "
                "--storage a file of its own"
            )
        names = [name for name in searched if theirs.get(name) != searched[name]]
        differs = " and ".join(name.replace("_", " ") for name in names[:3]) or "settings"
        raise UserError(
            f"the storage {place} belongs to another sweep, which differs in {differs}: give the same options to join "
            "it, or another --storage"
        )

    def _open(self, place: str) -> Any:
        from optuna.storages import JournalStorage, RDBStorage
        from optuna.storages.journal import JournalFileBackend

        if place.startswith("sqlite:///"):
            path = self._seen_from_here(place[10:])
            _check_database(path)
            with _explained(place):
                return RDBStorage(f"sqlite:///{path}", engine_kwargs={"connect_args": {"timeout": 120}})
        if place:
            path = self._seen_from_here(place.removeprefix("journal:"))
        else:
            self._folder.directory.expect(JOURNAL, "a file")
            path = str(self._folder.path / JOURNAL)
        with _explained(place or path):
            return JournalStorage(JournalFileBackend(path, lock_obj=_JournalLock(path)))  # type: ignore[arg-type]

    def _seen_from_here(self, path: str) -> str:
        """A relative path is one from where the sweep was started."""
        return os.path.normpath(os.path.join(self._folder.path, self._folder.config["folder"], path))

    def trials(self) -> "list[FrozenTrial]":
        """Those there are so far, by number; one beyond the last, which two processes made in one moment, is none."""
        return self._storage.get_all_trials(self._study_id)[: self._num_trials]

    def study(self) -> "optuna.Study":
        """A fresh one: Optuna's keeps the trials that it once saw."""
        return self._optuna.load_study(study_name=self.name, storage=self._storage)

    # who works on what

    def claim(self) -> ClaimedTrial | None:
        """A trial whose worker is dead, else a new one; None where there is nothing to take up now."""
        state = self._optuna.trial.TrialState
        with self.held("claim"):
            for trial in self._running_here():
                lock = self._lock(f"trial-{trial.number}")
                if lock is not None:
                    # looked at again: its worker may have ended it before it let go
                    if self._storage.get_trial(trial._trial_id).state == state.RUNNING:
                        return ClaimedTrial(trial.number, trial._trial_id, lock)
                    os.close(lock)
            if len(self._storage.get_all_trials(self._study_id, deepcopy=False)) >= self._num_trials:
                return None
            template = self._optuna.trial.create_trial(state=state.RUNNING, user_attrs={"folder": self._owner})
            made = self._storage.create_new_trial(self._study_id, template_trial=template)
            number = self._storage.get_trial_number_from_id(made)
            if number >= self._num_trials:  # another folder's process was faster
                self._storage.set_trial_state_values(made, state.FAIL)
                return None
            lock = self._lock(f"trial-{number}")
            assert lock is not None, "nobody else could know of a trial that was made a moment ago"
            return ClaimedTrial(number, made, lock)

    def _running_here(self) -> "list[FrozenTrial]":
        running = [each for each in self.trials() if not each.state.is_finished()]
        return [each for each in running if each.user_attrs.get("folder") == self._owner]

    def is_waited_for(self) -> bool:
        """Whether trials of this folder are still trained, by other processes."""
        return bool(self._running_here())

    @contextlib.contextmanager
    def held(self, name: str) -> Iterator[None]:
        """Hold a lock of the sweep's folder, for what only one process may do at a time; wait for it if need be."""
        handle = self._lock(name, wait=True)
        assert handle is not None, "it was waited for"
        try:
            yield
        finally:
            os.close(handle)

    def _lock(self, name: str, *, wait: bool = False) -> int | None:
        """Hold the lock of this name; None where another process does."""
        handle = self._folder.directory.enter("locks", make=True).open_file(name, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            os.close(handle)
            return None
        return handle

    # what a trial is

    def sample(self, trial: ClaimedTrial, space: Space, sampler: str, seed: int) -> dict[str, Any]:
        """The trial's values of all options that vary: those that it has, or new ones, which it then has."""
        frozen = self._storage.get_trial(trial.id)
        spread = {name: _distribution(each) for name, each in space.items()}
        if set(frozen.params) < set(spread):
            sampled = grid(space, trial.number) if sampler == "grid" else self._sampled(frozen, spread, sampler, seed)
            for name, distribution in spread.items():
                value, each = sampled[name], space[name]
                if sampler == "grid":
                    value = _as_choice(value)
                if not isinstance(each, SweepChoices):
                    value = each.rounded(value)
                if name not in frozen.params:
                    inner = distribution.to_internal_repr(value)
                    self._storage.set_trial_param(trial.id, name, inner, distribution)
            frozen = self._storage.get_trial(trial.id)
        return values_of(frozen, space)

    def _sampled(self, frozen: Any, spread: dict[str, Any], sampler: str, seed: int) -> dict[str, Any]:
        samplers = {"random": self._optuna.samplers.RandomSampler, "tpe": self._optuna.samplers.TPESampler}
        key = hashlib.sha256(f"sweep/{seed}/{frozen.number}".encode()).digest()
        chosen = samplers[sampler](seed=int.from_bytes(key[:4], "big"))
        study = self.study()
        together = chosen.sample_relative(study, frozen, spread) if sampler == "tpe" else {}
        return {
            name: together[name] if name in together else chosen.sample_independent(study, frozen, name, distribution)
            for name, distribution in spread.items()
        }

    def report(self, trial: ClaimedTrial, epoch: int, value: float, pruner: "BasePruner") -> bool:
        """Note the value of an epoch; whether the trial is so poor among the others that it should stop."""
        self._storage.set_trial_intermediate_value(trial.id, epoch, value)
        frozen = self._storage.get_trial(trial.id)
        if "pruned_at" not in frozen.user_attrs and pruner.prune(self.study(), frozen):
            self.note(trial, "pruned_at", epoch)
            return True
        return frozen.user_attrs.get("pruned_at", epoch + 1) <= epoch

    def pruned(self, trial: ClaimedTrial) -> bool:
        return "pruned_at" in self._storage.get_trial(trial.id).user_attrs

    def pruner(self, name: str, num_epochs: int) -> "BasePruner":
        if name == "median":
            return self._optuna.pruners.MedianPruner()
        return self._optuna.pruners.HyperbandPruner(min_resource=1, max_resource=num_epochs)

    def note(self, trial: ClaimedTrial, name: str, value: Any) -> None:
        self._storage.set_trial_user_attr(trial.id, name, value)

    def end(self, trial: ClaimedTrial, state: str, value: float | None = None) -> None:
        """The trial is complete, pruned or failed."""
        ended = {"complete": "COMPLETE", "pruned": "PRUNED", "failed": "FAIL"}[state]
        values = None if value is None else [value]
        self._storage.set_trial_state_values(trial.id, self._optuna.trial.TrialState[ended], values)


def values_of(trial: "FrozenTrial", space: Space) -> dict[str, Any]:
    """The options of a trial as the recipe takes them."""
    found = {}
    for name, each in space.items():
        if name in trial.params:
            value = trial.params[name]
            if isinstance(each, SweepChoices):
                value = next(choice for choice in each.values if _as_choice(choice) == value)
            found[name] = value
    return found


def _as_choice(value: Any) -> Any:
    """Optuna chooses among numbers and words, not among lists."""
    return " ".join(map(str, value)) if isinstance(value, tuple) else value


def _distribution(each: Any) -> "BaseDistribution":
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(each, SweepChoices):
        return CategoricalDistribution([_as_choice(value) for value in each.values])
    if each.is_whole:
        return IntDistribution(int(each.low), int(each.last), log=each.log, step=int(each.step or 1))
    return FloatDistribution(float(each.low), float(each.last), log=each.log, step=each.step)


class _JournalLock:
    """Optuna's own locks outlive a process that is killed; this one the kernel lets go. A line that a power cut tore is
    taken out before the next is written."""

    def __init__(self, path: str) -> None:
        self._path, self._handle = path, -1

    def acquire(self) -> bool:
        self._handle = os.open(f"{self._path}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        fcntl.flock(self._handle, fcntl.LOCK_EX)
        with open(self._path, "r+b") as file:
            if (size := file.seek(0, os.SEEK_END)) and file.seek(size - 1) >= 0 and file.read(1) != b"\n":
                file.seek(0)
                file.truncate(file.read().rfind(b"\n") + 1)
        return True

    def release(self) -> None:
        os.close(self._handle)


def _check_database(path: str) -> None:
    """A file that is no SQLite database, or one of another program, is not touched."""
    if not os.path.exists(path) or not os.path.getsize(path):
        return
    try:
        with contextlib.closing(sqlite3.connect(Path(path).absolute().as_uri() + "?mode=ro", uri=True)) as database:
            names = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.Error as error:
        raise UserError(f"the storage {path} is no SQLite database ({error}): give --storage another file") from None
    if names and not {"version_info", "studies"} <= names:
        raise UserError(f"the storage {path} is a database of another program: give --storage another file")


@contextlib.contextmanager
def _explained(place: str) -> Iterator[None]:
    """What a storage cannot be read for, as one line."""
    try:
        yield
    except (UserError, MemoryError):
        raise
    except Exception as error:
        text = " ".join(str(error).split())
        if isinstance(error, RuntimeError) and "compatible" in text:
            raise UserError(
                f"the storage {place} was written by another version of Optuna: install that one, or give another "
                "--storage"
            ) from None
        raise UserError(
            f"the storage {place} cannot be read, it is damaged or no storage of Optuna ({type(error).__name__}: "
            f"{text[:80]}): restore it, or give another --storage"
        ) from None
