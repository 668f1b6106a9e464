"""Every public name of the package, read with griffe and never imported: signature, shapes, docstring, place."""

import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import griffe

from generator.docstrings import summary

__all__ = ["PublicName", "Shape", "public_names"]

SOURCE = Path(__file__).parents[2] / "src"
_SHAPE = re.compile(r"(Float|Int|Bool|Num|Real|Inexact|Complex|Shaped|UInt8|Integer|Key)\[Tensor, ['\"]?(.*?)['\"]?\]")


@dataclass(frozen=True)
class Shape:
    """What a tensor of a signature must be."""

    name: str
    kind: str
    dims: str


@dataclass(frozen=True)
class PublicName:
    """A name that users may import, under the shortest path that has it."""

    path: str  # quoin.layers.MultiHeadAttention
    file: str  # quoin/layers/attention/multi_head.py
    line: int
    kind: str  # function, class or attribute
    docstring: str
    signature: str
    shapes: tuple[Shape, ...] = ()
    methods: tuple["PublicName", ...] = ()
    also: tuple[str, ...] = ()  # other paths that export it

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]

    @property
    def package(self) -> str:
        """The part of the reference that has it: `layers`, `options`; `quoin` for the short ways to runs."""
        parts = self.path.split(".")
        return parts[1] if len(parts) > 2 else "quoin"

    @property
    def module(self) -> str:
        """The file without its package: `attention/multi_head`."""
        inside = self.file.removeprefix(f"quoin/{self.package}/").removeprefix("quoin/")
        return inside.removesuffix(".py").removesuffix("/__init__")

    @property
    def page(self) -> str:
        return f"reference/{self.package}/{self.module.replace('/', '-')}.md"

    @property
    def summary(self) -> str:
        return summary(self.docstring)


@functools.cache
def public_names(source: Path = SOURCE) -> tuple[PublicName, ...]:
    """Each name once, by path."""
    loader = griffe.GriffeLoader(search_paths=[source])
    root = loader.load("quoin")
    found: dict[str, tuple[Any, list[str]]] = {}
    for module in _exporting(root):
        for name in map(str, module.exports or ()):
            if not name.startswith("__"):
                target = _resolved(module, name, loader.modules_collection)
                found.setdefault(target.path, (target, []))[1].append(f"{module.path}.{name}")
    names = (_public_name(target, sorted(paths, key=_order(target)), source) for target, paths in found.values())
    return tuple(sorted(names, key=lambda each: each.path))


def _exporting(module: Any) -> list[Any]:
    """Packages, and modules that stand beside them; a module imported by another is an alias, which would never end."""
    below = [each for inner in module.modules.values() if not inner.is_alias for each in _exporting(inner)]
    return [module, *below] if module.filepath.name == "__init__.py" or module.path.count(".") == 1 else below


def _resolved(module: Any, name: str, collection: Any) -> Any:
    """What `module.name` is. The import wins over a file of the same name."""
    found = collection[module.imports.get(name, f"{module.path}.{name}")]
    found = found.final_target if found.is_alias else found
    if found.is_module and name in found.imports:
        return _resolved(found, name, collection)
    return found.members[name] if found.is_module and name in found.members else found


def _order(target: Any):
    """Of several exports first that of the package which defines it, then the shortest."""
    home = target.path.split(".")[1]
    return lambda path: (path.split(".")[1] != home, path.count("."), path)


def _public_name(target: Any, paths: list[str], source: Path) -> PublicName:
    own = paths[0]
    return PublicName(
        path=own,
        file=target.filepath.relative_to(source).as_posix(),
        line=target.lineno or 1,
        kind=target.kind.value,
        docstring=target.docstring.value if target.docstring else "",
        signature=_signature(target, own.rpartition(".")[2]),
        shapes=_shapes(target),
        methods=tuple(_method(own, each, source) for each in _methods(target)),
        also=tuple(paths[1:]),
    )


def _method(owner: str, target: Any, source: Path) -> PublicName:
    attribute = target.kind.value == "attribute"  # a property
    return PublicName(
        path=f"{owner}.{target.name}",
        file=target.filepath.relative_to(source).as_posix(),
        line=target.lineno or 1,
        kind="property" if attribute else "method",
        docstring=target.docstring.value if target.docstring else "",
        signature=f"{target.name}: {target.annotation}" if attribute else _signature(target, target.name),
        shapes=() if attribute else _shapes(target),
    )


def _methods(target: Any) -> list[Any]:
    """The methods and properties of a class that say what they are."""
    if target.kind.value != "class":
        return []
    own = [each for each in target.members.values() if not each.is_alias and not each.name.startswith("_")]
    return [
        each
        for each in own
        if each.docstring
        and (each.kind.value == "function" or (each.kind.value == "attribute" and "property" in each.labels))
    ]


def _fields(target: Any) -> tuple[str, ...]:
    """The fields of a NamedTuple or dataclass."""
    if target.kind.value != "class" or not ("dataclass" in target.labels or "NamedTuple" in map(str, target.bases)):
        return ()
    own = [each for each in target.members.values() if not each.is_alias and each.kind.value == "attribute"]
    return tuple(
        f"{each.name}: {_plain(each.annotation)}"
        for each in own
        if each.annotation is not None and "property" not in each.labels and not each.name.startswith("_")
    )


def _parameters(target: Any) -> list[Any]:
    if target.kind.value == "attribute":
        return []
    return [each for each in target.parameters if each.name not in ("self", "cls")]


def _signature(target: Any, name: str) -> str:
    """As one would write it: on one line where it is short, else a line for each parameter."""
    if target.kind.value == "attribute":
        value = " ".join(str(target.value).split())
        return f"{name} = {value if len(value) < 200 else value[:200] + ' ...'}"
    if "NamedTuple" in map(str, getattr(target, "bases", ())):
        return _call(name, list(_fields(target)), "")
    parts, bare, positional = [], False, False
    for each in _parameters(target):
        kind = each.kind.value
        positional = positional or kind == "positional-only"
        if positional and kind != "positional-only":
            parts.append("/")
            positional = False
        if kind == "keyword-only" and not bare:
            parts.append("*")
        bare = bare or kind in ("keyword-only", "variadic positional")
        parts.append(_parameter(each, kind))
    if positional:
        parts.append("/")
    returns = "" if target.kind.value == "class" or target.returns is None else f" -> {_plain(target.returns)}"
    return _call(name, parts, returns)


def _call(name: str, parts: list[str], returns: str) -> str:
    short = f"{name}({', '.join(parts)}){returns}"
    if len(short) <= 88:
        return short
    inside = "".join(f"    {part},\n" for part in parts)
    return f"{name}(\n{inside}){returns}"


def _parameter(each: Any, kind: str) -> str:
    stars = {"variadic positional": "*", "variadic keyword": "**"}.get(kind, "")
    annotation = "" if each.annotation is None else f": {_plain(each.annotation)}"
    shown = "" if each.default is None or stars else f"{' = ' if annotation else '='}{each.default}"
    return f"{stars}{each.name}{annotation}{shown}"


def _plain(annotation: Any) -> str:
    """Shapes in double quotes, as they are written in the source; griffe takes those of one word for names."""
    return re.sub(r"\[Tensor, '?([^\]]*?)'?\]", r'[Tensor, "\1"]', str(annotation))


def _shapes(target: Any) -> tuple[Shape, ...]:
    if target.kind.value == "attribute":
        return ()
    given = [(each.name, str(each.annotation)) for each in _parameters(target)]
    if target.kind.value != "class":
        given.append(("returns", str(target.returns)))
    return tuple(Shape(name, kind, dims) for name, text in given for kind, dims in _SHAPE.findall(text))
