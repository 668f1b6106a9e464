"""What a person calls a run, to find it again among others. Imports no torch."""

from dataclasses import dataclass
from typing import Any

from quoin.errors import UserError, format_value

__all__ = ["NO_LABEL", "RunLabel"]

LONGEST_NAME = 100  # bytes: a folder's name may have 255, and one that is being removed has a longer one
LONGEST_TAG = 50
LONGEST_NOTE = 10_000


@dataclass(frozen=True)
class RunLabel:
    """A name, which the run's folder gets, a note in words, and tags to filter by; each may be empty.

    >>> RunLabel(name="a/b")
    Traceback (most recent call last):
    quoin.errors.UserError: --name expects a plain folder name, got 'a/b': it holds a /
    """

    name: str = ""
    note: str = ""
    tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.name and (reason := _name_error(self.name)):
            raise UserError(f"--name expects a plain folder name, got {format_value(self.name)}: {reason}")
        for tag in self.tags:
            if not 0 < len(tag) <= LONGEST_TAG or not tag.isprintable() or " " in tag:
                raise UserError(
                    f"--tag expects a word of 1 to {LONGEST_TAG} printable characters without spaces, got "
                    f"{format_value(tag)}; for a sentence there is --note"
                )
        if len(self.note) > LONGEST_NOTE:
            raise UserError(
                f"--note expects at most {LONGEST_NOTE} characters, got {len(self.note)}: keep the text in a file "
                "and note where it is"
            )
        object.__setattr__(self, "tags", tuple(dict.fromkeys(self.tags)))

    def as_json(self) -> dict[str, Any]:
        """What config.json keeps of it; the name is the folder's."""
        return {"note": self.note, "tags": list(self.tags)}


def _name_error(name: str) -> str:
    """Why `name` can be no run's, or nothing."""
    if "/" in name:
        return "it holds a /"
    if name[0] in "-.":
        return f"it begins with {name[0]}"
    if not name.isprintable():
        return "it holds characters that cannot be printed"
    if name != name.strip():
        return "it begins or ends with a space"
    if len(name.encode()) > LONGEST_NAME:
        return f"it is longer than {LONGEST_NAME} bytes"
    return ""


NO_LABEL = RunLabel()
