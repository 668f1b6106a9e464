"""The API reference: a page for each file that defines public names, and one for each package that lists them."""

import functools
from collections.abc import Iterable
from itertools import groupby

from generator.docstrings import docstring_page
from generator.public_names import PublicName, public_names
from generator.sources import source_page
from generator.text import Resolve, code, heading, href, link, prose, table
from quoin.cli.packages import package_duties
from quoin.notes import entries

__all__ = ["definition_of", "reference_pages", "where_is"]


def reference_pages() -> dict[str, str]:
    """Path to Markdown, for all packages."""
    names = public_names()
    packages = sorted({each.package for each in names}, key=lambda package: (package != "quoin", package))
    pages = {"reference/index.md": _contents(packages, names)}
    for package in packages:
        own = [each for each in names if each.package == package]
        pages[f"reference/{package}/index.md"] = _package(package, own)
        for page, inside in groupby(sorted(own, key=lambda each: (each.page, each.line)), key=lambda each: each.page):
            pages[page] = _file(page, list(inside))
    return pages


def where_is(page: str, path: str) -> str | None:
    """The link from a page to a public name or to a method of one: `quoin.layers.MultiHeadAttention.forward`."""
    known = _by_path()
    if path in known:
        return href(page, known[path].page, known[path].path)
    owner = known.get(path.rpartition(".")[0])
    return href(page, owner.page, path) if owner and any(each.path == path for each in owner.methods) else None


def definition_of(path: str) -> str | None:
    """The public definition beside a fast form: `attention_definition` of `Attention`."""
    package, _, name = path.rpartition(".")
    snake = "".join(
        f"_{letter.lower()}" if letter.isupper() and at and not name[at - 1].isupper() else letter.lower()
        for at, letter in enumerate(name)
    )
    found = [f"{package}.{each}_definition" for each in (name, snake)]
    return next((each for each in found if each in _by_path()), None)


@functools.cache
def _by_path() -> dict[str, PublicName]:
    return {each.path: each for each in public_names()} | {
        other: each for each in public_names() for other in each.also
    }


def _contents(packages: list[str], names: Iterable[PublicName]) -> str:
    duties = {name.strip("/").removesuffix(".py"): duty for name, duty in package_duties().items()}
    duties["quoin"] = "The short way to runs: train a module of your own, go on with a run, open one."
    names = list(names)
    rows = [
        (
            link(f"<code>{_import(package)}</code>", href("reference/index.md", f"reference/{package}/index.md")),
            prose(duties[package]),
            str(sum(each.package == package for each in names)),
        )
        for package in packages
    ]
    said = (
        f'<p>{len(names):,} public names. Shapes in a signature are jaxtyping\'s: <code>Float[Tensor, "batch seq dim"]'
        "</code>; a star stands for any number of dimensions, <code>#</code> for one that broadcasts. They are checked "
        "at every call of the contract tests.</p>"
    )
    return "\n\n".join([heading("API reference", 1), said, table(("package", "contents", "names"), rows)])


def _import(package: str) -> str:
    return package if package == "quoin" else f"quoin.{package}"


def _package(package: str, names: list[PublicName]) -> str:
    page = f"reference/{package}/index.md"
    duty = {name.strip("/").removesuffix(".py"): text for name, text in package_duties().items()}.get(package, "")
    parts = [heading(f"`{_import(package)}`", 1), f"<p>{prose(duty)}</p>"]
    for other, inside in groupby(sorted(names, key=lambda each: (each.page, each.line)), key=lambda each: each.page):
        inside = list(inside)
        parts.append(heading(f"{inside[0].module}.py", 2))
        parts.append(
            table(
                ("name", "what it is"),
                [
                    (code(each.name, href(page, other, each.path)), prose(each.summary, _near(page, each)))
                    for each in inside
                ],
            )
        )
    return "\n\n".join(parts)


def _file(page: str, names: list[PublicName]) -> str:
    """All public names of one file, in its order: a definition stands before its fast form."""
    package, file = names[0].package, names[0].file
    crumbs = " › ".join(
        [
            link("reference", href(page, "reference/index.md")),
            link(f"<code>{_import(package)}</code>", href(page, f"reference/{package}/index.md")),
            code(file.removeprefix("quoin/")),
        ]
    )
    parts = [heading(f"{_import(package)}: {names[0].module}", 1), f'<p class="crumbs">{crumbs}</p>']
    for each in names:
        parts += [heading(f"`{each.name}`", 2, each.path), *_entry(page, each)]
        for method in each.methods:
            parts += [heading(f"`{each.name}.{method.name}`", 3, method.path), *_entry(page, method)]
    return "\n\n".join(parts)


def _entry(page: str, each: PublicName) -> list[str]:
    parts = [f"```python\n{each.signature}\n```"]
    if each.shapes:
        shown = ", ".join(
            f"<code>{shape.name}</code> ({_dims(shape.dims)}) {shape.kind.lower()}" for shape in each.shapes
        )
        parts.append(f'<p class="shapes">Shapes: {shown}</p>')
    parts.append(docstring_page(each.docstring, _near(page, each), _note(page)))
    parts.append(f'<p class="source">{" · ".join(_ways(page, each))}</p>')
    return parts


def _ways(page: str, each: PublicName) -> list[str]:
    """How to import it, and where its source, its definition and its other names are."""
    package, _, name = each.path.rpartition(".")
    ways = [code(f"from {package} import {name}")] if each.kind not in ("method", "property") else []
    definition = definition_of(each.path) if each.kind in ("function", "class") else None
    if definition:
        ways.append("definition: " + code(definition.rpartition(".")[2], where_is(page, definition)))
    ways += [f"also {code(other)}" for other in each.also if not other.startswith(f"{package}.")]
    return [*ways, link(f"source, line {each.line}", href(page, source_page(each.file), f"L-{each.line}"))]


def _dims(dims: str) -> str:
    return f"<code>{', '.join(dims.split())}</code>" if dims.strip() else "a scalar"


def _near(page: str, near: PublicName) -> Resolve:
    """Names in backticks: methods of the same class, names of the same package, then any that is public."""
    package = ".".join(near.path.split(".")[:2])
    names = _short()

    def resolve(word: str) -> str | None:
        word = word.removesuffix("()")
        if word == near.name:
            return None
        for path in (
            f"{near.path}.{word}",
            f"{near.path.rpartition('.')[0]}.{word}",
            f"{package}.{word}",
            f"quoin.{word}",
            word,
        ):
            found = where_is(page, path)
            if found:
                return found
        return where_is(page, names[word]) if word in names and len(word) > 3 else None

    return resolve


@functools.cache
def _short() -> dict[str, str]:
    """Names that only one package has."""
    found: dict[str, list[str]] = {}
    for each in public_names():
        found.setdefault(each.name, []).append(each.path)
    return {name: paths[0] for name, paths in found.items() if len(paths) == 1}


def _note(page: str) -> Resolve:
    areas = _areas()
    return lambda id: href(page, f"notes/area-{areas[id]}.md", id) if id in areas else None


@functools.cache
def _areas() -> dict[str, int]:
    return {entry.id: entry.area for entry in entries()}
