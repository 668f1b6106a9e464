"""What a run keeps of its data when the data are gone, in its config.json; each kind of data says in a subclass what that is."""

import dataclasses
from dataclasses import dataclass
from typing import Any, Self

from quoin.errors import Mistake

__all__ = ["RememberedData"]


@dataclass(frozen=True)
class RememberedData:
    """Facts about data as a frozen dataclass, to JSON and back; a tuple travels as a list."""

    def as_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        """What `as_json` gave; a file that was changed by hand is a Mistake."""
        try:
            return cls(**{name: tuple(value) if isinstance(value, list) else value for name, value in dict(values).items()})
        except (TypeError, ValueError) as error:
            raise Mistake(f"the run's config does not describe its data as expected ({error}): restore config.json") from None
