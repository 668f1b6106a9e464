"""What a person calls a run, to find it again among others. Imports no torch."""

from dataclasses import dataclass
from typing import Any

__all__ = ["NO_LABEL", "RunLabel"]


@dataclass(frozen=True)
class RunLabel:
    """A name, which the run's folder gets, a note in words, and tags to filter by."""

    name: str = ""
    note: str = ""
    tags: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """What config.json keeps of it; the name is the folder's."""
        return {"note": self.note, "tags": list(self.tags)}


NO_LABEL = RunLabel()
