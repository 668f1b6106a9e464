"""The runs of a folder, each in a line: state, result, target, when and how long, note and tags.

Of each run the small JSON files are read and no checkpoint; torch is not imported and no recipe is, so that hundreds
of runs are listed at once. A run that cannot be read is listed too, with the reason.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from quoin.errors import UserError, did_you_mean, format_value
from quoin.runs.listing import listed_recipes
from quoin.train.durable import Directory
from quoin.train.folder import RunFolder

__all__ = ["SORTS", "ListedRun", "find_runs", "read_listed_run", "sort_runs"]

State = Literal["finished", "running", "interrupted", "damaged"]
STATES: tuple[State, ...] = ("finished", "running", "interrupted", "damaged")
SORTS = ("started", "name", "recipe", "state", "time")
# Entries by which a folder is known as a run's, or as what a kill left of one.
MARKS = {"config.json", "environment.json", "metrics.jsonl", "checkpoints", "result.json"}


@dataclass(frozen=True)
class ListedRun:
    """One run or multirun in words and numbers.

    Args:
        name: Its folder's, that of a multirun's member with the multirun's before it.
        reason: Why it is damaged.
        seconds: Of training so far.
        metrics: The final ones, of a multirun their means; empty while it is not finished.
        stds: Of a multirun, the standard deviations.
        target: As in result.json.
        epoch: Epochs done so far, of a run that is not finished.
        multirun: Of a multirun or a sweep, over what it goes and how many runs it has.
        num_finished: How many of those are finished.
    """

    path: Path
    name: str
    state: State
    reason: str = ""
    recipe: str = ""
    note: str = ""
    tags: tuple[str, ...] = ()
    started: datetime | None = None
    seconds: float | None = None
    metrics: dict[str, float] = field(default_factory=dict)
    stds: dict[str, float] = field(default_factory=dict)
    target: dict[str, Any] | None = None
    epoch: float | None = None
    num_epochs: int | None = None
    multirun: dict[str, Any] | None = None
    num_finished: int = 0
    members: tuple["ListedRun", ...] = ()

    def key_metric(self, usual: dict[str, str]) -> str | None:
        """The metric to show first: that of the target, or of the recipe's target on its own data, or a loss.

        Args:
            usual: The metric of each recipe's target.
        """
        if self.target:
            return self.target["metric"]
        wanted = usual.get(self.recipe, "")
        candidates = [wanted, wanted.replace("test_", "held_out_fold_", 1)]
        candidates += [f"{split}_loss" for split in ("test", "held_out_fold", "validation", "train")]
        return next((name for name in [*candidates, *sorted(self.metrics)] if name in self.metrics), None)

    def matches(self, words: Sequence[str]) -> bool:
        """Whether every word is part of its name, recipe, note or tags, whatever the letter case."""
        text = "\n".join((self.name, self.recipe, self.note, *self.tags)).casefold()
        return all(word.casefold() in text for word in words)


def usual_metrics() -> dict[str, str]:
    """The metric of each recipe's target."""
    return {each.name: each.target.split()[0] for each in listed_recipes()}


def find_runs(root: Path, *, members: bool = False) -> list[ListedRun]:
    """Every run in `root`, by name; if `root` is a run itself, that one.

    Args:
        members: Whether the runs inside multiruns are read as well.
    """
    inside = Directory.at(root)
    if "config.json" in (names := inside.names()):
        return [read_listed_run(root, members=True)]
    found = []
    for name in names:
        if not name.startswith(".") and _is_run(root / name):
            found.append(read_listed_run(root / name, members=members))
    return found


def _is_run(path: Path) -> bool:
    """Whether there is a folder, which may be a link to one, with an entry that a run has; debris of a kill counts."""
    try:
        return path.is_dir() and not MARKS.isdisjoint(each.name for each in path.iterdir())
    except OSError:  # it may not be entered: it may be a run
        return True


def read_listed_run(path: Path, *, members: bool = False) -> ListedRun:
    """What there is to say of the run at `path`; whatever is wrong with it is its `reason`."""
    try:
        return _read(RunFolder.open(path), path.name, members)
    except (UserError, OSError) as error:
        return ListedRun(path, path.name, "damaged", " ".join(str(error).split()))


def _read(folder: RunFolder, name: str, members: bool) -> ListedRun:
    config, result, multirun = folder.config, folder.result, _several(folder)
    names = [f"{multirun['over']}-{index}" for index in range(multirun["count"])] if multirun else []
    known: Any = result or {}
    inside = _members(folder, name, names) if multirun and (members or result is None) else ()
    locked = folder.is_locked() or folder.is_swept() or any(each.state == "running" for each in inside)
    state: State = "running" if locked else "interrupted" if result is None else "finished"
    last = folder.metrics()[-1:] if result is None and not multirun else []
    if result is not None:
        seconds = result["seconds"]
    elif inside:
        seconds = sum(each.seconds or 0.0 for each in inside)
    else:
        seconds = last[0]["seconds"] if last else None
    metrics = known.get("metrics", {})
    epochs = config["options"].get("epochs")
    return ListedRun(
        folder.path,
        name,
        state,
        recipe=config["recipe"],
        note=config.get("note", ""),
        tags=tuple(config.get("tags", ())),
        started=_time(folder.environment.get("started")),
        seconds=seconds,
        metrics={each: value["mean"] if multirun else value for each, value in metrics.items()},
        stds={each: value["std"] for each, value in metrics.items()} if multirun else {},
        target=known.get("target"),
        epoch=(last[0]["epoch"] if last else 0.0) if result is None and not multirun else None,
        num_epochs=epochs if isinstance(epochs, int) else None,
        multirun=multirun,
        num_finished=len(names) if result is not None else sum(each.state == "finished" for each in inside),
        members=inside if members else (),
    )


def _several(folder: RunFolder) -> dict[str, Any] | None:
    """Over what the runs inside go, and how many there are to be: seeds, folds, or trials of a sweep."""
    if (sweep := folder.sweep) is not None:
        return {"over": "trial", "count": sweep["trials"]}
    return dict(folder.multirun) if folder.multirun else None


def _members(folder: RunFolder, name: str, names: Sequence[str]) -> tuple[ListedRun, ...]:
    """The runs of a multirun that have begun."""
    found = []
    for each in names:
        path, called = folder.path / each, f"{name}/{each}"
        try:
            if (member := folder.member(each)) is not None:
                found.append(_read(member, called, False))
        except (UserError, OSError) as error:
            found.append(ListedRun(path, called, "damaged", " ".join(str(error).split())))
    return tuple(found)


def _time(stamp: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(stamp).astimezone()
    except (TypeError, ValueError, OverflowError):  # a file that somebody edited
        return None


def sort_runs(runs: Sequence[ListedRun], by: str, *, reverse: bool = False) -> list[ListedRun]:
    """The runs by one of `SORTS` or by a metric; those that have no value of it come last, either way."""
    metrics = {name for run in runs for each in (run, *run.members) for name in each.metrics}
    if by not in SORTS and by not in metrics and runs:
        raise UserError(f"--sort {format_value(by)}: {did_you_mean(by, {*SORTS, *metrics})}")
    known = [run for run in runs if _value(run, by) is not None]
    rest = [run for run in runs if _value(run, by) is None]
    known.sort(key=lambda run: (_value(run, by), _natural(run.name)), reverse=reverse)
    return known + sorted(rest, key=lambda run: _natural(run.name))


def _value(run: ListedRun, by: str) -> Any:
    if by not in SORTS:
        return run.metrics.get(by)
    return {
        "started": run.started,
        "name": _natural(run.name),
        "recipe": run.recipe or None,
        "state": STATES.index(run.state),
        "time": run.seconds,
    }[by]


def _natural(name: str) -> list[tuple[str, int]]:
    """A key by which mlp-2 comes before mlp-10."""
    return [(text, int(digits or -1)) for text, digits in re.findall(r"([^0-9]*)([0-9]{0,18})", name)]
