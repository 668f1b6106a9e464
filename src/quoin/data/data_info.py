"""Data info: what a run records of its data in its config.json, for when the data are gone. Each kind of data has a
subclass."""

import dataclasses
from dataclasses import dataclass
from typing import Any, Self

from quoin.documents import checked

__all__ = ["DataInfo"]


@dataclass(frozen=True)
class DataInfo:
    """Data info as a frozen dataclass, to JSON and back; a tuple travels as a list.

    Reading checks the type of each field; what the fields must be together, a subclass checks whenever it is made.
    """

    source: str  # where the data came from, as `--data` names it
    fingerprint: str  # of the data: a run does not go on with others

    @property
    def remarks(self) -> list[str]:
        """What is told of the data when a run begins."""
        return []

    def as_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, values: Any, where: str = "config.json") -> Self:
        """What `as_json` gave; a file that was changed by hand is a UserError that begins with `where`."""
        return checked(cls, values, where)
