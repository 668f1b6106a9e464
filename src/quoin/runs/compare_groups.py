"""Runs to compare, read from their folders and grouped: those of a multirun, and runs that differ only in their seed.

Only files are read (config, result, metrics.jsonl), never a recipe or a checkpoint: a run compares
wherever its code is.
"""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from quoin.display import shown
from quoin.documents import checked
from quoin.errors import UserError
from quoin.train import Metrics, RunFolder

__all__ = ["ComparedRun", "GroupedRuns", "RunGroup", "read_groups"]


@dataclass(frozen=True)
class ComparedRun:
    """One run, as its files tell."""

    folder: RunFolder
    seed: int | None
    metrics: Metrics | None  # the final ones; None while the run is not finished
    seconds: float | None
    num_parameters: int | None
    history: list[dict[str, Any]]

    @property
    def key(self) -> tuple[int | None, str]:
        """What two runs must share to be compared as a pair."""
        return self.seed, str(self.folder.config["options"].get("fold") or "")


@shown
@dataclass(frozen=True)
class RunGroup:
    """Runs that differ in nothing but their seed or fold; a run alone is a group of one."""

    name: str
    over: Literal["", "seed", "fold"]
    count: int  # of runs, begun or not
    runs: tuple[ComparedRun, ...]  # those begun
    folder: RunFolder  # of the multirun, or of the first run
    paths: tuple[Path, ...]  # as they were given

    @property
    def finished(self) -> list[ComparedRun]:
        return [run for run in self.runs if run.metrics is not None]

    @property
    def one(self) -> RunFolder:
        """A folder of a run inside: all of them have the same model and the same data."""
        return self.runs[0].folder if self.runs else self.folder

    @property
    def options(self) -> dict[str, Any]:
        """What it was trained with; the seeds of several runs as a range."""
        config = self.folder.config
        found = {"recipe": config["recipe"], **config["options"], **config["settings"]}
        if self.over == "seed":
            found["seed"] = _range([run.seed for run in self.runs if run.seed is not None])
        elif self.over == "fold":
            found["fold"] = f"all {self.count}"
        return found

    @property
    def standing(self) -> str:
        """How many runs it stands for: "3 seeds", "2 of 3 seeds" while one is not finished; "" for a finished run."""
        finished = len(self.finished)
        if not self.over:
            return "" if finished else "unfinished"
        return f"{self.count} {self.over}s" if finished == self.count else f"{finished} of {self.count} {self.over}s"

    @property
    def target(self) -> tuple[str, str] | None:
        """The metric of its target and the bound, if it has a result that says so."""
        results: list[Any] = [self.folder.result, *(run.folder.result for run in self.finished)]
        return next(((r["target"]["metric"], r["target"]["bound"]) for r in results if r and r["target"]), None)


@dataclass(frozen=True)
class GroupedRuns:
    """The groups in the order in which they were named, and what to know of them."""

    groups: list[RunGroup]
    notes: list[str]


def read_groups(paths: list[Path], *, group: bool = True) -> GroupedRuns:
    """Read the folders; plain runs that differ in nothing but the seed become one group unless `group` is false."""
    notes: list[str] = []
    found = [_read(path, notes) for path in paths]
    if group:
        found = _merge_seeds(found, notes)
    return GroupedRuns(_named(found), [*notes, *_doubtful(found)])


def _read(path: Path, notes: list[str]) -> RunGroup:
    folder = RunFolder.open(path)
    _ = folder.result  # whole, or an error
    if folder.sweep:
        raise UserError(f"{path} is a sweep, whose page compares its trials: name some of them, as in {path}/trial-*")
    if (multirun := folder.multirun) is None:
        return RunGroup(folder.path.name, "", 1, (_read_run(folder),), folder, (path,))
    runs = []
    for name in (f"{multirun['over']}-{index}" for index in range(multirun["count"])):
        try:
            if (member := folder.member(name)) is not None:
                runs.append(_read_run(member))
        except UserError as error:  # a damaged one costs itself: the others are what there is to compare
            notes.append(f"{path}/{name} is left out: {error}"[:280])
    return RunGroup(folder.path.name, multirun["over"], multirun["count"], tuple(runs), folder, (path,))


def _read_run(folder: RunFolder) -> ComparedRun:
    options, result = folder.config["options"], folder.result
    seed = checked(int | None, options.get("seed"), f"{folder.path / 'config.json'}, seed")
    if result is None:
        return ComparedRun(folder, seed, None, None, None, folder.metrics())
    if "steps" not in result:
        raise UserError(f"expected the result of one run in {folder.path}, got that of several; train it again")
    return ComparedRun(
        folder, seed, result["metrics"], result["seconds"], result.get("num_parameters"), folder.metrics()
    )


def _merge_seeds(groups: list[RunGroup], notes: list[str]) -> list[RunGroup]:
    """Runs alone that are equal but for their seeds, all of which differ, as one group in the place of the first."""
    alike: list[list[RunGroup]] = []
    for each in groups:
        if each.over == "" and each.runs[0].seed is not None:
            for others in alike:
                if _but_the_seed(others[0]) == _but_the_seed(each):
                    others.append(each)
                    break
            else:
                alike.append([each])
    merged: dict[int, RunGroup | None] = {}
    for some in (some for some in alike if len(some) > 1):
        names = ", ".join(each.name for each in some)
        if len({each.runs[0].seed for each in some}) < len(some):
            notes.append(f"{_short(names)} have equal options, and some the same seed: they are not one group")
            continue
        merged |= dict.fromkeys(map(id, some))
        merged[id(some[0])] = _one_group(some)
        notes.append(f"{_short(names)} differ in nothing but the seed and are one group; --no-group keeps them apart")
    return [found for each in groups if (found := merged.get(id(each), each)) is not None]


def _one_group(some: list[RunGroup]) -> RunGroup:
    runs = tuple(each.runs[0] for each in some)
    name = f"{some[0].name} and {len(some) - 1} more"
    return RunGroup(name, "seed", len(some), runs, some[0].folder, tuple(each.paths[0] for each in some))


def _but_the_seed(group: RunGroup) -> Any:
    config = group.folder.config
    options = {name: value for name, value in config["options"].items() if name != "seed"}
    code = sorted((each["path"], each["sha256"]) for each in config.get("code", []))
    return config["recipe"], config["kind"], options, config["settings"], code


def _named(groups: list[RunGroup]) -> list[RunGroup]:
    """No two of one name: paths where the names of folders are the same, and a number where paths are."""
    names = [group.name for group in groups]
    if len(set(names)) < len(names):
        names = [
            str(group.paths[0]) if group.over != "seed" or len(group.paths) == 1 else group.name for group in groups
        ]
    seen: dict[str, int] = {}
    named = []
    for group, name in zip(groups, names, strict=True):
        seen[name] = seen.get(name, 0) + 1
        named.append(dataclasses.replace(group, name=f"{name} ({seen[name]})" if seen[name] > 1 else name))
    return named


def _doubtful(groups: list[RunGroup]) -> list[str]:
    """What to know before these groups are held against one another."""
    found = [
        f"{group.name} is not finished: {group.standing or 'no run'} so far"
        for group in groups
        if group.over and len(group.finished) < group.count
    ]
    if over := {group.over for group in groups} - {""}:
        if len(over) > 1:
            found.append("seeds and folds are mixed: their spreads measure different things, and are not tested")
        if "fold" in over:
            found.append("folds share training examples: over folds, intervals are too narrow and p-values too small")
    data = [
        (group.one.config["options"].get("data"), (group.one.config["data"] or {}).get("fingerprint"))
        for group in groups
    ]
    if any(a[0] == b[0] is not None and a[1] != b[1] for a in data for b in data):
        found.append("some runs name the same data and learnt from different ones: their files changed in between")
    return found


def _range(seeds: list[int]) -> str:
    if seeds and len(seeds) > 2 and seeds == list(range(seeds[0], seeds[0] + len(seeds))):
        return f"{seeds[0]}..{seeds[-1]}"
    return " ".join(map(str, seeds))


def _short(names: str) -> str:
    return names if len(names) <= 120 else names[:117] + "..."
