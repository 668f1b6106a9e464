"""A list that a notebook shows as a table, a row for each of its things."""

from typing import TypeVar

from quoin.display.short import LINE, short, shown_fields
from quoin.display.tables import Markup, table

__all__ = ["Listing"]

Thing = TypeVar("Thing")


class Listing(list[Thing]):
    """A list of things of one class, which are alike in their fields. Its `repr` shows the first of them.

    >>> Listing([1, 2, 3])
    [1, 2, 3]
    """

    def __repr__(self) -> str:
        parts: list[str] = []
        for each in self:
            part = repr(each)
            if not parts and len(part) > LINE - 40:
                part = f"{part[: LINE - 60]}..."
            if sum(map(len, parts)) + len(part) > LINE - 40 or len(parts) == 12:
                return f"[{', '.join([*parts, '...'])}] of {len(self)}"
            parts.append(part)
        return f"[{', '.join(parts)}]"

    def _repr_html_(self) -> Markup:
        rows = [shown_fields(each) for each in self]
        names = list(dict.fromkeys(name for row in rows for name in row))
        kept = [name for name in names if any(row.get(name) not in (None, (), "") for row in rows)]
        if not kept:
            return table(("",), [(short(each),) for each in self], caption=f"{len(self)} in all")
        return table(kept, [[_cell(row.get(name)) for name in kept] for row in rows], caption=f"{len(self)} in all")


def _cell(value: object) -> object:
    if isinstance(value, tuple) and all(isinstance(each, str) for each in value):
        return short(", ".join(value), 60)[1:-1] if value else ""
    return value if isinstance(value, (str, int, float)) else "" if value is None else short(value, 60)
