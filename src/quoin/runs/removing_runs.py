"""Remove run folders, and nothing else.

A folder is a run's if its config.json is; one that is damaged counts if all that is in it has the names of a run's
entries. No link is followed, the folder of a run that is being trained is refused, and so is one with files that no
command of Quoin wrote, unless the user insists. Imports no torch.
"""

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from quoin.errors import UserError, did_you_mean, format_value
from quoin.runs.listing_runs import MARKS, ListedRun, read_listed_run
from quoin.train.checkpoint import STEP
from quoin.train.durable import Directory, draft_name
from quoin.train.folder import FILES, MEMBER, RunFolder

__all__ = ["RemovableRun", "find_removable", "remove_run"]

# What `quoin inspect` and `quoin generate` leave beside a run, and what a kill leaves of a file that was being written.
FOLDERS = ("code", "log", "locks")  # copies of the user's code, logs, and the locks of a sweep's trials
OUTPUTS = re.compile(
    r"inspect(-[a-z0-9.-]*)?\.html|inspect|(samples|strip|traversal)\.png|journal\.jsonl(\.lock)?|"
    r"\..*\.[0-9a-f]{16}\.\w+"
)


@dataclass(frozen=True)
class RemovableRun:
    """A run folder that may be removed, and what is lost with it."""

    run: ListedRun
    path: Path
    num_bytes: int
    foreign: tuple[str, ...]  # entries that are no run's


def find_removable(path: Path, *, force: bool = False) -> RemovableRun:
    """The run folder at `path`, or a UserError that says why it may not be removed.

    Args:
        force: Remove a damaged run too, and with a whole one what else is in its folder.
    """
    shown = format_value(str(path))
    if path.name in ("", ".."):
        raise UserError(f"expected the folder of a run, got {shown}: name it from outside, as in runs/mlp-1")
    if os.path.islink(path):
        raise UserError(f"{shown} is a link, and links are not followed: name the folder that it leads to")
    if not os.path.isdir(path):
        beside = _names(path.parent)
        raise UserError(f"no run folder at {shown}: {did_you_mean(path.name, beside, '`quoin runs` lists them')}")
    directory = Directory.at(path)
    if MARKS.isdisjoint(directory.names()):
        raise UserError(f"{shown} is no run folder: it has no config.json; only runs are removed")
    if MEMBER.fullmatch(path.name) and (multirun := _multirun_of(path)):
        raise UserError(
            f"{shown} is one of the runs of {multirun}, whose mean needs it: remove the whole with `quoin runs rm "
            f"{multirun}`"
        )
    run = read_listed_run(path, members=True)
    if any(each.state == "running" for each in (run, *run.members)):
        raise UserError(f"{shown} is being trained: stop it first, or wait for it")
    foreign = tuple(_foreign(directory))
    listed = ", ".join(format_value(each, 40) for each in foreign[:3]) + (" ..." if len(foreign) > 3 else "")
    if run.state == "damaged" and foreign:
        raise UserError(f"{shown} is no whole run, and {listed} in it is no part of one: remove it by other means")
    if run.state == "damaged" and not force:
        raise UserError(f"{shown} is damaged, so it may be no run ({run.reason}): give --force to remove it")
    if foreign and not force:
        raise UserError(
            f"{shown} holds {listed}, which is no part of a run: move it elsewhere, or give --force to remove it too"
        )
    return RemovableRun(run, path, _num_bytes(path), foreign)


def remove_run(found: RemovableRun) -> None:
    """Remove the folder: renamed first, so that a kill half-way leaves no run with files missing."""
    path = found.path
    inside, beside = Directory.at(path), Directory.at(path.parent)
    with ExitStack() as locks:
        for directory in (inside, *_members(inside)):
            # held until it is gone, so that nobody resumes it meanwhile; one that never trained has no lock to take
            if directory.kind("lock") == "a file":
                locks.enter_context(RunFolder(directory.path, directory).locked())
        doomed = draft_name(path.name, "doomed")
        try:
            if not inside.same_as(beside.about(path.name)):
                raise UserError(f"{format_value(str(path))} was replaced meanwhile: look at it again")
            beside.rename(path.name, doomed)
        except OSError as error:
            raise UserError(
                f"{format_value(str(path))} cannot be removed ({error.strerror}): check the permissions of its folder"
            ) from None
        beside.clear(doomed)
    if beside.kind(doomed) is not None:
        raise UserError(
            f"{format_value(str(path))} was removed in part: check the permissions of {path.parent / doomed}, and "
            "remove that"
        )


def _names(folder: Path) -> list[str]:
    with suppress(OSError):
        return [each.name for each in folder.iterdir() if (each / "config.json").exists()]
    return []


def _multirun_of(path: Path) -> Path | None:
    """The multirun that the folder is in, if it is in one."""
    try:
        parent = Path(os.path.abspath(path)).parent if path.parent == Path() else path.parent
        folder = RunFolder.open(parent)
        return parent if folder.multirun or folder.sweep else None
    except (UserError, OSError):
        return None


def _members(directory: Directory) -> list[Directory]:
    """The runs inside, of a sweep over seeds those of its trials too."""
    names = [name for name in directory.names() if MEMBER.fullmatch(name)]
    found = [directory.enter(name) for name in names if directory.kind(name) == "a folder"]
    return [*found, *(each for inside in found for each in _members(inside))]


def _foreign(directory: Directory, prefix: str = "") -> Iterator[str]:
    """The entries, those of members and checkpoints too, that have no name which Quoin gives."""
    for name in directory.names():
        is_folder = directory.kind(name) == "a folder"
        if MEMBER.fullmatch(name) and is_folder:
            yield from _foreign(directory.enter(name), f"{prefix}{name}/")
        elif name == "checkpoints" and is_folder:
            saved = directory.enter(name)
            known = {*filter(STEP.fullmatch, saved.names()), *saved.drafts_of(STEP.pattern, "draft|doomed")}
            yield from (f"{prefix}{name}/{each}" for each in saved.names() if each not in known)
        elif is_folder and name in FOLDERS:
            continue
        elif name not in (*FILES, "checkpoints") and not OUTPUTS.fullmatch(name):
            yield prefix + name


def _num_bytes(path: Path) -> int:
    """Of all files, a link counted as itself."""
    return sum(os.lstat(os.path.join(folder, name)).st_size for folder, _, names in os.walk(path) for name in names)
