"""The user's own code of a run: which files it was trained with, and which the user lets run now."""

import dataclasses
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from quoin.callbacks import current_listener
from quoin.errors import UserError, format_value
from quoin.own_code import CodeFile, find_beside, find_code, import_code, imported_beside, is_code_reference, read_code
from quoin.runs.catalog import Recipe
from quoin.train import RunFolder

__all__ = [
    "NO_CODE",
    "CodeAccess",
    "UsedCode",
    "access_to",
    "check_access",
    "code_as_json",
    "code_of",
    "find_run_code",
    "recipe_file",
    "save_code",
]


@dataclass(frozen=True)
class CodeAccess:
    """What the user lets run: files that are named again, and whether the copies in the run folder may run."""

    files: tuple[str, ...] = ()
    trust_copies: bool = False


NO_CODE = CodeAccess()


# ---- of a run that is started -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class UsedCode:
    """A file that a run is trained with, what for, and where in the run's `code/` its copy lies."""

    file: CodeFile
    use: Literal["recipe", "option", "import"]
    copy: str


def access_to(code: list[UsedCode]) -> CodeAccess:
    """Access to the files of a run that was just started with them, for processes that open it."""
    return CodeAccess(tuple(each.file.given for each in code if each.use != "import"))


def code_of(recipe: Recipe, options: Any, references: Sequence[str] = ()) -> list[UsedCode]:
    """The user's own files that a run is trained with: its recipe's, those that its options name, and what they have
    imported from their folders so far.

    Args:
        references: More of what options may name, FILE.py:NAME each.
    """
    named: dict[str, tuple[CodeFile, Literal["recipe", "option"]]] = {}
    if recipe.code is not None:
        named[recipe.code.given] = recipe.code, "recipe"
    for reference in (*_references(options), *references):
        file = find_code(reference.rpartition(":")[0])
        named.setdefault(file.given, (file, "option"))
    for file, _ in named.values():
        import_code(file)  # which tells what it imports
    copies = _Copies()
    found = [UsedCode(file, use, copies.name(file, file.place.name)) for file, use in named.values()]
    for file, _ in named.values():
        for beside in imported_beside(file):
            path = beside.place.relative_to(file.place.parent).as_posix()
            copy = copies.name(file, path)
            if copy not in (each.copy for each in found):
                found.append(UsedCode(beside, "import", copy))
    return found


def _references(options: Any) -> Iterator[str]:
    for value in dataclasses.asdict(options).values():
        for each in value if isinstance(value, tuple) else (value,):
            if isinstance(each, str) and is_code_reference(each):
                yield each


class _Copies:
    """Names for copies: those of one folder stay together, so that they can import each other; those of a second go
    into `2/`, a name that no module has."""

    def __init__(self) -> None:
        self._folders: list[PurePosixPath] = []

    def name(self, file: CodeFile, path: str) -> str:
        folder = PurePosixPath(file.given).parent
        if folder not in self._folders:
            self._folders.append(folder)
        number = self._folders.index(folder) + 1
        return path if number == 1 else f"{number}/{path}"


def save_code(folder: RunFolder, code: list[UsedCode]) -> None:
    """Keep a copy of each in the run folder."""
    for each in code:
        folder.save_code(each.copy, each.file.content)


def code_as_json(code: list[UsedCode]) -> list[dict[str, Any]]:
    """What config.json keeps of them: the path as it was given, the name of the copy, the hash, what it was for."""
    return [{"path": each.file.given, "copy": each.copy, "sha256": each.file.sha256, "use": each.use} for each in code]


# ---- of a run that is opened ------------------------------------------------------------------------------------


def recipe_file(folder: RunFolder) -> str | None:
    """The path of the file that the run's recipe was, as it was given; None for a recipe that has a name."""
    return next((each["path"] for each in folder.config.get("code", []) if each["use"] == "recipe"), None)


def check_access(folder: RunFolder, access: CodeAccess) -> None:
    """Raise an error for a file that the run has no use for."""
    recorded = _recorded(folder)
    for path in access.files:
        if not any(_file_for(access, each["path"], recorded) == path for each in recorded):
            used = ", ".join(format_value(each["path"]) for each in recorded if each["use"] != "import")
            told = f"it was trained with {used}; name" if used else "it was trained with none; leave out"
            raise UserError(
                f"--code {format_value(path)} is no code of {folder.path}: {told} {'that' if used else '--code'}"
            )


def find_run_code(folder: RunFolder, access: CodeAccess, given: str) -> CodeFile:
    """The file that the run calls `given`, if the user lets it run; a change since the run began is told."""
    recorded = _recorded(folder)
    record = next((each for each in recorded if each["path"] == given), None)
    if record is None:
        raise UserError(
            f"{folder.path / 'config.json'} names the code {format_value(given)}, of which the run has no record: "
            "restore the file or train again"
        )
    if (named := _file_for(access, given, recorded)) is not None:
        file = dataclasses.replace(read_code(named), given=given)
        _tell_changes(folder, file, record, recorded)
        return file
    if access.trust_copies:
        return _trusted(folder, record, recorded)
    told = format_value(given)[1:-1]
    raise UserError(
        f"{folder.path} was trained with your code {told}, and code never runs unasked: name the file with "
        f"--code {told}, or let the run's copy of it run with --trust-code"
    )


def _recorded(folder: RunFolder) -> list[Any]:
    return list(folder.config.get("code", []))


def _file_for(access: CodeAccess, given: str, recorded: list[Any]) -> str | None:
    """Which of the named files the run calls `given`: the same path, or else the one that ends most alike; no file
    stands for two."""
    wanted = [each["path"] for each in recorded if each["use"] != "import"]
    if len(access.files) == len(wanted) == 1:  # perhaps renamed
        return access.files[0] if given == wanted[0] else None
    found = {path: path for path in wanted if path in access.files}
    alike = [
        (_shared_end(file, path), -len(Path(file).parts), file, path)
        for file in access.files
        for path in wanted
        if file not in found and path not in found and _shared_end(file, path)
    ]
    for _, _, file, path in sorted(alike, reverse=True):
        if path not in found and file not in found.values():
            found[path] = file
    return found.get(given)


def _shared_end(one: str, other: str) -> int:
    """How many names two paths share at their ends."""
    count = 0
    for mine, yours in zip(reversed(Path(one).parts), reversed(Path(other).parts)):
        if mine != yours:
            break
        count += 1
    return count


def _group(copy: str) -> str:
    """The folder of a copy among those of `_Copies`."""
    return found[0] if (found := re.match(r"[0-9]+/", copy)) else ""


def _beside(record: Any, recorded: list[Any]) -> list[Any]:
    """What a file imported from its folder, by the records."""
    return [each for each in recorded if each["use"] == "import" and _group(each["copy"]) == _group(record["copy"])]


def _tell_changes(folder: RunFolder, file: CodeFile, record: Any, recorded: list[Any]) -> None:
    changed = [str(file.place.name)] if file.sha256 != record["sha256"] else []
    for each in _beside(record, recorded):
        path = each["copy"].removeprefix(_group(each["copy"]))
        now = find_beside(file, path)
        if now is not None and now.sha256 != each["sha256"]:
            changed.append(path)
    if changed:
        current_listener().say(
            f"{', '.join(changed)} changed since {folder.path} was started: what it is now is used, and results may "
            f"differ; what it was is in {folder.path / 'code'}"
        )


def _trusted(folder: RunFolder, record: Any, recorded: list[Any]) -> CodeFile:
    """The run's copy of a file, with those that it imports and no others; each is what it was."""
    group = _group(record["copy"])
    copies = {
        each["copy"].removeprefix(group): _read_copy(folder, each) for each in recorded if _group(each["copy"]) == group
    }
    place = (folder.path / "code" / record["copy"]).resolve()
    return CodeFile(record["path"], place, copies[record["copy"].removeprefix(group)], copies)


def _read_copy(folder: RunFolder, record: Any) -> bytes:
    content = folder.read_code(record["copy"])
    if CodeFile("", Path(), content).sha256 != record["sha256"]:
        raise UserError(
            f"{folder.path / 'code' / record['copy']} is not the file that the run was started with: name yours with "
            f"--code {format_value(record['path'])[1:-1]}"
        )
    return content
