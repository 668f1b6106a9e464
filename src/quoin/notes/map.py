"""The items of the notes by their ids, and what implements, checks and plots each: `notes.toml` joined with the stored
index of the source.

Imports no torch: `quoin map` is quick.
"""

import difflib
import functools
import importlib
import json
import pkgutil
import re
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from quoin.display import Listing, shown
from quoin.errors import UserError, format_value

__all__ = ["Entry", "areas", "choose", "declared", "entries", "index", "is_id", "known", "select", "titles"]

_NOTES = Path(__file__).parent


@shown
@dataclass(frozen=True)
class Entry:
    """One id of the notes: what it is, where it lives, what checks it, what draws it and which recipes use it."""

    id: str
    title: str
    kind: str
    area: int
    implementations: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    recipes: tuple[str, ...] = ()
    used_by_claims: tuple[str, ...] = ()  # where no claim carries this id: those that compute with what implements it

    @property
    def ids(self) -> tuple[str, ...]:
        return (self.id,)

    @property
    def needs_implementation(self) -> bool:
        """Whether software can provide it: a matter of wording or a reference to read needs none."""
        return self.kind not in ("wording", "reference")

    @property
    def is_implemented(self) -> bool:
        """Whether what kind of thing it is has been built: a claim is checked, a figure drawn, the rest computed
        somewhere."""
        where = {"claim": self.claims, "figure": self.figures}.get(self.kind, self.implementations)
        return bool(where) or not self.needs_implementation

    @property
    def checked_by(self) -> tuple[str, ...]:
        """The claims that carry this id, or else those that compute with what implements it."""
        return self.claims or self.used_by_claims

    def as_json(self) -> dict[str, object]:
        """The entry as the object that `quoin map --json` prints."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}


class HasIds(Protocol):
    @property
    def ids(self) -> tuple[str, ...]: ...


class Declared(HasIds, Protocol):
    @property
    def function(self) -> Callable: ...


Item = TypeVar("Item", bound=HasIds)
Kind = TypeVar("Kind", bound=Declared)


@functools.cache
def _table() -> dict[str, dict]:
    return tomllib.loads((_NOTES / "notes.toml").read_text(encoding="utf-8"))


@functools.cache
def index() -> dict[str, Any]:
    """What the source says of the notes and of itself, as `source_index.build_index` found it."""
    return json.loads((_NOTES / "index.json").read_text(encoding="utf-8"))


def areas() -> dict[int, str]:
    """The areas of the notes: number to name."""
    return {int(number): name for number, name in _table()["areas"].items()}


def titles() -> dict[str, str]:
    """Every id of the notes, in their order, with its title."""
    return {id: row["title"] for id, row in _table()["notes"].items()}


def known(ids: str | Sequence[str]) -> tuple[str, ...]:
    """`ids` as a tuple, once each is found in notes.toml; for decorators, so that a wrong id fails at import."""
    found = (ids,) if isinstance(ids, str) else tuple(ids)
    wrong = [id for id in found if id not in titles()]
    if wrong or not found:
        raise ValueError(
            f"expected ids of notes.toml, got {format_value(wrong or found)}; correct the id or add it there"
        )
    return found


# ---- choosing by words ------------------------------------------------------------------------------------------


def choose(items: Iterable[Item], words: Sequence[str], what: str = "entry") -> list[Item]:
    """The items that `words` name (ids, area numbers, area names or their beginnings); all of them when no word is
    given.

    A word that names nothing, or only ids without a `what`, is a UserError: silence would read as success.
    """
    items = list(items)
    wanted: set[str] = set()
    for word in words:
        ids = _named(word)
        if not any(ids & set(item.ids) for item in items):
            raise UserError(
                f"expected an id or area with a {what}, got {format_value(word)}, which has none; see `quoin map "
                f"{word}`"
            )
        wanted |= ids
    return Listing(item for item in items if not words or wanted & set(item.ids))


def _named(word: str) -> set[str]:
    """The ids that one word names."""
    table, plain = _table()["notes"], _plain(word)
    ids = {id for id in table if id.lower() == word.lower()}
    if ids:
        return ids
    numbers = {number for number, name in areas().items() if plain in (str(number), _plain(name))}
    numbers = numbers or {number for number, name in areas().items() if plain and _plain(name).startswith(plain)}
    if len(numbers) == 1:
        return {id for id, row in table.items() if row["area"] in numbers}
    if numbers:
        names = ", ".join(areas()[number] for number in sorted(numbers))
        raise UserError(
            f"expected one area, got {format_value(word)}, which begins {names}; write more of it or its number"
        )
    candidates = {name.lower(): name for name in [*table, *areas().values()]}
    close = difflib.get_close_matches(word.lower(), candidates, n=1, cutoff=0.6)
    hint = f"did you mean {candidates[close[0]]!r}?" if close else "see `quoin map` for all of them"
    raise UserError(f"expected an id, an area number or an area name, got {format_value(word)}; {hint}")


def _plain(name: str) -> str:
    return " ".join(re.findall(r"\w+", name.lower().replace("_", " ")))


def is_id(word: str) -> bool:
    """Whether the word is an id of the notes or the number of an area, so that it need not be searched for."""
    return word.lower() in {id.lower() for id in titles()} or (word.isdecimal() and int(word) in areas())


def entries() -> list[Entry]:
    """Every id of the notes with what implements, checks, plots and uses it, in the order of notes.toml."""
    columns = index()["ids"]
    return Listing(
        Entry(
            id,
            row["title"],
            row["kind"],
            row["area"],
            **{name: tuple(found) for name, found in columns.get(id, {}).items()},
        )
        for id, row in _table()["notes"].items()
    )


def select(words: Sequence[str] = ()) -> list[Entry]:
    """The entries that `words` name, all of them when no word is given."""
    return choose(entries(), words)


def declared(package: str, kind: type[Kind]) -> list[Kind]:
    """Every `kind` declared in a file of `package`, in the notes' order: discovery is importing and looking."""
    found = []
    for file in pkgutil.iter_modules(importlib.import_module(package).__path__, f"{package}."):
        values = vars(importlib.import_module(file.name)).values()
        found += [value for value in values if isinstance(value, kind) and value.function.__module__ == file.name]
    order = {id: index for index, id in enumerate(titles())}
    return Listing(sorted(found, key=lambda item: order[item.ids[0]]))
