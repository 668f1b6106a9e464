"""The user's own code of a run: which files it was trained with, and which the user lets run now."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quoin.callbacks import current_listener
from quoin.errors import UserError
from quoin.own_code import CodeFile, find_code, is_code_reference, read_code
from quoin.runs.catalog import Recipe
from quoin.train import RunFolder

__all__ = ["NO_CODE", "CodeAccess", "code_as_json", "code_of", "find_run_code", "save_code"]


@dataclass(frozen=True)
class CodeAccess:
    """What the user lets run: files that are named again, and whether the copies in the run folder may run."""

    files: tuple[str, ...] = ()
    trust_copies: bool = False


NO_CODE = CodeAccess()


def code_of(recipe: Recipe, options: Any) -> list[CodeFile]:
    """The user's own files that a run will be trained with: its recipe's, and those that its options name."""
    files = [recipe.code] if recipe.code else []
    for value in dataclasses.asdict(options).values():
        if isinstance(value, str) and is_code_reference(value):
            file = find_code(value.rpartition(":")[0])
            if file not in files:
                files.append(file)
    return files


def save_code(folder: RunFolder, files: list[CodeFile]) -> None:
    """Keep a copy of each in the run folder."""
    for copy, file in _copies(files).items():
        folder.save_code(copy, file.content)


def _copies(files: list[CodeFile]) -> dict[str, CodeFile]:
    """The name of each file's copy in the run folder; of two files of one name the second gets a number."""
    copies: dict[str, CodeFile] = {}
    for file in files:
        name, number = file.place.name, 1
        while name in copies:
            number += 1
            name = f"{file.place.stem}-{number}{file.place.suffix}"
        copies[name] = file
    return copies


def code_as_json(files: list[CodeFile]) -> list[dict[str, Any]]:
    """What config.json keeps of them: the path as it was given, the name of the copy, the hash."""
    return [{"path": file.given, "copy": copy, "sha256": file.sha256} for copy, file in _copies(files).items()]


def find_run_code(folder: RunFolder, access: CodeAccess, given: str) -> CodeFile:
    """The file that the run calls `given`, if the user lets it run; a change since the run began is told."""
    recorded = folder.config.get("code", [])
    record: Any = next((each for each in recorded if each["path"] == given), None)
    named = next((path for path in access.files if Path(path).name == Path(given).name), None)
    if named is None and len(access.files) == 1 and len(recorded) == 1:
        named = access.files[0]  # one file, which was renamed
    if named is not None:
        file = dataclasses.replace(read_code(named), given=given)
        if record is not None and file.sha256 != record["sha256"]:
            current_listener().say(
                f"{named} changed since {folder.path} was started with it: results may differ; its copy is in "
                f"{folder.path / 'code'}"
            )
        return file
    if access.trust_copies and record is not None:
        content = folder.read_code(record["copy"])
        file = CodeFile(given, (folder.path / "code" / record["copy"]).resolve(), content)
        if file.sha256 != record["sha256"]:
            raise UserError(
                f"{folder.path / 'code' / record['copy']} is not the file that the run was started with: name yours "
                f"with --code {Path(given).name}"
            )
        return file
    raise UserError(
        f"{folder.path} was trained with your code {given}, and code never runs unasked: name the file with "
        f"--code {given}, or let the run's copy of it run with --trust-code"
    )
