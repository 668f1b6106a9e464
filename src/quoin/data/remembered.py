"""What a run keeps of its data when the data are gone, in its config.json; each kind of data says in a subclass what that is."""

import dataclasses
from dataclasses import dataclass
from typing import Any, Self

from quoin.documents import checked

__all__ = ["RememberedData"]


@dataclass(frozen=True)
class RememberedData:
    """Facts about data as a frozen dataclass, to JSON and back; a tuple travels as a list.

    Reading checks the type of each field; what the fields must be together, a subclass checks whenever it is made.
    """

    def as_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, values: Any, where: str = "config.json") -> Self:
        """What `as_json` gave; a file that was changed by hand is a Mistake that begins with `where`."""
        return checked(cls, values, where)
