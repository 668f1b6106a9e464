"""The ids of the notes, and where each one lives: `notes.toml` joined with the source, which is read and never imported.

A *home* is a public function, class or method whose docstring closes with the word Notes, a colon and its ids; claims and
figures carry theirs in a decorator, recipes in a module-level `NOTES`. Imports no torch and runs no room: `quoin map` is quick.
"""

import ast
import difflib
import functools
import importlib
import importlib.resources
import pkgutil
import re
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from quoin.errors import Mistake, shown

__all__ = ["Entry", "areas", "choose", "declared", "entries", "known", "select", "titles", "unknown_ids"]

_ID = r"[A-Z][\w.\-]*\w"
_MENTION = re.compile(rf"\bNotes:\s+({_ID}(?:,\s+{_ID})*)")
_CLOSING = re.compile(rf"{_MENTION.pattern}\.?\s*\Z")
_DECORATED = {"quoin.notes.claims": "claim", "quoin.notes.figures": "figure"}  # package -> the decorator that carries its ids
_Def = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Entry:
    """One id of the notes: what it is, where it lives, what checks it, what draws it and which recipes use it."""

    id: str
    title: str
    kind: str
    area: int
    homes: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    recipes: tuple[str, ...] = ()

    @property
    def ids(self) -> tuple[str, ...]:
        return (self.id,)

    @property
    def needs_home(self) -> bool:
        """Whether software can provide it: a matter of wording or a reference to read needs none."""
        return self.kind not in ("wording", "reference")

    @property
    def is_home(self) -> bool:
        """Whether what kind of thing it is has been built: a claim is checked, a figure drawn, the rest computed somewhere."""
        where = {"claim": self.claims, "figure": self.figures}.get(self.kind, self.homes)
        return bool(where) or not self.needs_home

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
    return tomllib.loads((_source() / "notes" / "notes.toml").read_text(encoding="utf-8"))


def _source() -> Path:
    return Path(str(importlib.resources.files("quoin")))


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
        raise ValueError(f"expected ids of notes.toml, got {shown(wrong or found)}; correct the id or add it there")
    return found


# ---- choosing by words --------------------------------------------------------------------------------------------------


def choose(items: Iterable[Item], words: Sequence[str], what: str = "entry") -> list[Item]:
    """The items that `words` name (ids, area numbers, area names or their beginnings); all of them when no word is given.

    A word that names nothing, or only ids without a `what`, is a Mistake: silence would read as success.
    """
    items = list(items)
    wanted: set[str] = set()
    for word in words:
        ids = _named(word)
        if not any(ids & set(item.ids) for item in items):
            raise Mistake(f"expected an id or area with a {what}, got {shown(word)}, which has none; see `quoin map {word}`")
        wanted |= ids
    return [item for item in items if not words or wanted & set(item.ids)]


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
        raise Mistake(f"expected one area, got {shown(word)}, which begins {names}; write more of it or its number")
    candidates = {name.lower(): name for name in [*table, *areas().values()]}
    close = difflib.get_close_matches(word.lower(), candidates, n=1, cutoff=0.6)
    hint = f"did you mean {candidates[close[0]]!r}?" if close else "see `quoin map` for all of them"
    raise Mistake(f"expected an id, an area number or an area name, got {shown(word)}; {hint}")


def _plain(name: str) -> str:
    return " ".join(re.findall(r"\w+", name.lower().replace("_", " ")))


def select(words: Sequence[str] = ()) -> list[Entry]:
    """The entries that `words` name, all of them when no word is given."""
    return choose(entries(), words)


def declared(room: str, kind: type[Kind]) -> list[Kind]:
    """Every `kind` declared in a file of the package `room`, in the notes' order: discovery is importing and looking."""
    found = []
    for file in pkgutil.iter_modules(importlib.import_module(room).__path__, f"{room}."):
        values = vars(importlib.import_module(file.name)).values()
        found += [value for value in values if isinstance(value, kind) and value.function.__module__ == file.name]
    order = {id: place for place, id in enumerate(titles())}
    return sorted(found, key=lambda item: order[item.ids[0]])


# ---- reading the source -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Place:
    """An id written in the source: in which column of the map it counts (none for a bare mention), and its name there."""

    id: str
    column: str | None
    name: str


def entries() -> list[Entry]:
    """Every id of the notes with its homes, claims, figures and recipes, in the order of notes.toml."""
    columns: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for place in _places(_source()):
        if place.column is not None:
            columns[place.id][place.column].append(place.name)
    return [
        Entry(id, row["title"], row["kind"], row["area"], **{name: tuple(found) for name, found in columns[id].items()})
        for id, row in _table()["notes"].items()
    ]


def unknown_ids() -> list[str]:
    """Each id that the source writes and notes.toml lacks, with the place that writes it; an empty list is the law."""
    wrong = {(place.id, place.name): None for place in _places(_source()) if place.id not in _table()["notes"]}
    return [f"{id} in {name}" for id, name in wrong]


def _places(source: Path) -> tuple[_Place, ...]:
    files = sorted(source.rglob("*.py"))
    return _read_places(source, tuple((path, path.stat().st_mtime_ns) for path in files))


@functools.cache
def _read_places(source: Path, files: tuple[tuple[Path, int], ...]) -> tuple[_Place, ...]:
    """Once for each state of the files: to parse them all takes seconds."""
    return tuple(_found_places(source, {_module(path, source): ast.parse(path.read_bytes()) for path, _ in files}))


def _found_places(source: Path, trees: dict[str, ast.Module]) -> Iterator[_Place]:
    packages = {_module(path, source) for path in source.rglob("__init__.py")}
    public = _public_names(trees, packages)
    for module, tree in trees.items():
        room, _, stem = module.removeprefix("quoin.").partition(".")
        yield from (_Place(id, None, module) for id in _mentioned(tree))
        for node in tree.body:
            if isinstance(node, _Def):
                yield from _homes(node, f"{module}.{node.name}", public.get((module, node.name)))
                if decorator := _DECORATED.get(module.rpartition(".")[0]):
                    yield from (_Place(id, f"{decorator}s", f"{module}.{node.name}") for id in _carried(node, decorator))
            elif room == "recipes" and stem and (ids := _assigned(node, "NOTES")) is not None:
                yield from (_Place(id, room, stem.replace("_", "-")) for id in ids)


def _module(path: Path, source: Path) -> str:
    parts = path.relative_to(source).with_suffix("").parts
    return ".".join(("quoin", *(part for part in parts if part != "__init__")))


def _homes(node: _Def, name: str, public: str | None) -> Iterator[_Place]:
    """The ids closing the docstring of a definition and of its methods: homes when the name is public, else mentions."""
    yield from (_Place(id, None, name) for id in _mentioned(node))
    closing = _CLOSING.search(ast.get_docstring(node) or "")
    if closing and public:
        yield from (_Place(id, "homes", public) for id in re.split(r",\s+", closing[1]))
    for inner in node.body:
        if isinstance(inner, _Def):
            open_to_all = public if isinstance(node, ast.ClassDef) and not inner.name.startswith("_") else None
            yield from _homes(inner, f"{name}.{inner.name}", open_to_all and f"{open_to_all}.{inner.name}")


def _mentioned(node: _Def | ast.Module) -> list[str]:
    """Ids after a `Notes:` in the node's own docstring."""
    return [id for group in _MENTION.findall(ast.get_docstring(node) or "") for id in re.split(r",\s+", group)]


def _carried(node: _Def, decorator: str) -> list[str]:
    """Ids in the first argument of `@decorator(...)`."""
    for call in node.decorator_list:
        if isinstance(call, ast.Call) and call.args and getattr(call.func, "id", getattr(call.func, "attr", "")) == decorator:
            ids = ast.literal_eval(call.args[0])
            return [ids] if isinstance(ids, str) else list(ids)
    return []


def _assigned(node: ast.stmt, name: str) -> list[str] | None:
    """The strings of `name = (...)`, or None if this statement does not assign them."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    if not any(isinstance(target, ast.Name) and target.id == name for target in targets):
        return None
    value = getattr(node, "value", None)
    return list(ast.literal_eval(value)) if value is not None else None


def _public_names(trees: dict[str, ast.Module], packages: set[str]) -> dict[tuple[str, str], str]:
    """(module that defines it, its name) -> the shortest public path: `__all__` of a package, followed through its imports."""
    public: dict[tuple[str, str], str] = {}
    rooms = [module for module in trees if module in packages or module.count(".") == 1]
    for room in sorted(rooms, key=lambda module: module.count(".")):
        exported = [name for node in trees[room].body for name in _assigned(node, "__all__") or []]
        for name in exported:
            public.setdefault(_origin(room, name, trees, packages), f"{room}.{name}")
    return public


def _origin(module: str, name: str, trees: dict[str, ast.Module], packages: set[str]) -> tuple[str, str]:
    """The module and name under which `module.name` was first defined."""
    for node in _top_level(trees[module].body) if module in trees else ():
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    here = module.split(".")
                    base = here[: len(here) - node.level + (module in packages)] if node.level else []
                    return _origin(".".join([*base, *filter(None, [node.module])]), alias.name, trees, packages)
    return module, name


def _top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module, those under `if TYPE_CHECKING:` too: a lazy package names its imports there."""
    for node in body:
        yield node
        if isinstance(node, ast.If):
            yield from node.body
