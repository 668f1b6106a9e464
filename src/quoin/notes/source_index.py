"""What the source says of the notes and of itself, read with `ast` and never imported; `index.json` is made from it.

An *implementation* of an id is a public function, class or method whose docstring closes with the word Notes, a colon
and its ids; claims and figures carry theirs in a decorator, recipes in a module-level `NOTES`. To parse every file
takes seconds, so `quoin map` reads the stored index: `make index` writes it anew, and a test holds that it was written.
"""

import ast
import functools
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["INDEX", "build_index", "mentions"]

INDEX = Path(__file__).with_name("index.json")
SOURCE = Path(__file__).parents[1]
_ID = r"[A-Z][\w.\-]*\w"
_MENTION = re.compile(rf"\bNotes:\s+({_ID}(?:,\s+{_ID})*)")
_CLOSING = re.compile(rf"{_MENTION.pattern}\.?\s*\Z")
_DECORATED = {
    "quoin.notes.claims": "claim",
    "quoin.notes.figures": "figure",
}  # package -> the decorator that carries its ids
_Def = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class Mention(NamedTuple):
    """An id written in the source: in which column of the map it counts (none for a bare mention), and the name that
    carries it."""

    id: str
    column: str | None
    name: str


def build_index(source: Path = SOURCE) -> dict[str, Any]:
    """What `quoin map` looks through: by id what implements, checks, plots and uses it; every public name and recipe
    with its words."""
    ids: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for id, column, name in mentions(source):
        if column is not None:
            ids[id][column].append(name)
    trees = _trees(source)
    used = used_by_claims(source)
    for columns in ids.values():
        users = {claim for name in columns.get("implementations", ()) for claim in used.get(name, ())}
        if users and "claims" not in columns:
            columns["used_by_claims"] = sorted(users)
    names = {path: _words(tree_node) for path, tree_node in sorted(_public_nodes(trees, source))}
    recipes = {
        module.rpartition(".")[2].replace("_", "-"): _recipe(tree)
        for module, tree in trees.items()
        if module.startswith("quoin.recipes.")
    }
    return {"ids": ids, "names": names, "recipes": recipes}


def mentions(source: Path = SOURCE) -> tuple[Mention, ...]:
    """Every id that the source writes."""
    return tuple(_found(source, _trees(source)))


def used_by_claims(source: Path = SOURCE) -> dict[str, set[str]]:
    """Public name -> the claims that compute with it, in their own body or in a function of the claims' files that they
    call; a method counts where its class and its name are both written."""
    trees = _trees(source)
    packages = {_module(path, source) for path in source.rglob("__init__.py")}
    public = _public_names(trees, packages)
    defined = {
        (module, node.name): node
        for module, tree in trees.items()
        if module.startswith("quoin.notes.claims.")
        for node in tree.body
        if isinstance(node, _Def)
    }
    origin = functools.cache(lambda module, name: _origin(module, name, trees, packages))
    direct, written = {}, {}
    for (module, name), node in defined.items():
        inside = list(ast.walk(node))
        direct[module, name] = {origin(module, each.id) for each in inside if isinstance(each, ast.Name)}
        written[module, name] = {each.attr for each in inside if isinstance(each, ast.Attribute)}
    found: dict[str, set[str]] = defaultdict(set)
    for place, node in defined.items():
        if not _carried(node, "claim"):
            continue
        reached, open_places = set(), [place]
        while open_places:  # through helper functions of this file and of others
            here = open_places.pop()
            if here not in reached:
                reached.add(here)
                open_places += direct.get(here, ())
        attributes = set().union(*(written.get(each, set()) for each in reached))
        for used in (public[each] for each in reached & public.keys()):
            for name in (used, *(f"{used}.{attribute}" for attribute in attributes)):
                found[name].add(".".join(place))
    return found


def _trees(source: Path) -> dict[str, ast.Module]:
    files = sorted(source.rglob("*.py"))
    return _parsed(source, tuple((path, path.stat().st_mtime_ns) for path in files))


@functools.lru_cache(maxsize=1)
def _parsed(source: Path, files: tuple[tuple[Path, int], ...]) -> dict[str, ast.Module]:
    """Once for each state of the files."""
    return {_module(path, source): ast.parse(path.read_bytes()) for path, _ in files}


def _public_nodes(trees: dict[str, ast.Module], source: Path) -> Iterator[tuple[str, _Def]]:
    public = _public_names(trees, {_module(path, source) for path in source.rglob("__init__.py")})
    for module, tree in trees.items():
        yield from (
            (public[module, node.name], node)
            for node in tree.body
            if isinstance(node, _Def) and (module, node.name) in public
        )


def _words(node: _Def | ast.Module) -> list[str]:
    """The first sentence of a docstring, and the rest of it without examples and ids."""
    text = re.sub(r"(?m)^\s*>>> .*(\n\s*\S.*)*", "", ast.get_docstring(node) or "")
    first, _, rest = _MENTION.sub("", text).partition("\n\n")
    return [" ".join(first.split()), " ".join(rest.split())]


def _recipe(tree: ast.Module) -> list[str]:
    """The summary of a recipe file, its keywords and the rest of its docstring."""
    keywords = [word for node in tree.body for word in _assigned(node, "KEYWORDS") or []]
    summary, rest = _words(tree)
    return [summary, "; ".join(keywords), rest]


def _found(source: Path, trees: dict[str, ast.Module]) -> Iterator[Mention]:
    packages = {_module(path, source) for path in source.rglob("__init__.py")}
    public = _public_names(trees, packages)
    for module, tree in trees.items():
        package, _, stem = module.removeprefix("quoin.").partition(".")
        yield from (Mention(id, None, module) for id in _mentioned(tree))
        for node in tree.body:
            if isinstance(node, _Def):
                yield from _implementations(node, f"{module}.{node.name}", public.get((module, node.name)))
                if decorator := _DECORATED.get(module.rpartition(".")[0]):
                    yield from (
                        Mention(id, f"{decorator}s", f"{module}.{node.name}") for id in _carried(node, decorator)
                    )
            elif package == "recipes" and stem and (ids := _assigned(node, "NOTES")) is not None:
                yield from (Mention(id, package, stem.replace("_", "-")) for id in ids)


def _module(path: Path, source: Path) -> str:
    parts = path.relative_to(source).with_suffix("").parts
    return ".".join(("quoin", *(part for part in parts if part != "__init__")))


def _implementations(node: _Def, name: str, public: str | None) -> Iterator[Mention]:
    """The ids closing the docstring of a definition and of its methods: implementations when the name is public, else
    mentions."""
    yield from (Mention(id, None, name) for id in _mentioned(node))
    closing = _CLOSING.search(ast.get_docstring(node) or "")
    if closing and public:
        yield from (Mention(id, "implementations", public) for id in re.split(r",\s+", closing[1]))
    for inner in node.body:
        if isinstance(inner, _Def):
            open_to_all = public if isinstance(node, ast.ClassDef) and not inner.name.startswith("_") else None
            yield from _implementations(inner, f"{name}.{inner.name}", open_to_all and f"{open_to_all}.{inner.name}")


def _mentioned(node: _Def | ast.Module) -> list[str]:
    """Ids after a `Notes:` in the node's own docstring."""
    return [id for group in _MENTION.findall(ast.get_docstring(node) or "") for id in re.split(r",\s+", group)]


def _carried(node: _Def, decorator: str) -> list[str]:
    """Ids in the first argument of `@decorator(...)`."""
    for call in node.decorator_list:
        if (
            isinstance(call, ast.Call)
            and call.args
            and getattr(call.func, "id", getattr(call.func, "attr", "")) == decorator
        ):
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
    """(module that defines it, its name) -> the shortest public path: `__all__` of a package, followed through its
    imports."""
    public: dict[tuple[str, str], str] = {}
    exporting = [module for module in trees if module in packages or module.count(".") == 1]
    for package in sorted(exporting, key=lambda module: module.count(".")):
        exported = [name for node in trees[package].body for name in _assigned(node, "__all__") or []]
        for name in exported:
            origin = _origin(package, name, trees, packages)
            own = origin[0].split(".")[1:2] == package.split(".")[1:]  # before a package that exports it too
            public[origin] = f"{package}.{name}" if own else public.get(origin, f"{package}.{name}")
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


def main() -> None:
    INDEX.write_text(json.dumps(build_index(), ensure_ascii=False, indent=0, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
