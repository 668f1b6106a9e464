"""The map of the notes: a page for each area with every item's definition, fast form, claim, figure and recipe; and
the gallery of all figures."""

import ast
import functools
import html
from pathlib import Path

from generator.public_names import public_names
from generator.reference import definition_of, where_is
from generator.sources import SOURCE, source_page
from generator.text import code, heading, href, link, prose, table
from quoin.notes import Entry, areas, entries
from quoin.notes.claims import Claim
from quoin.notes.claims import collect as collect_claims
from quoin.notes.figures import Figure
from quoin.notes.figures import collect as collect_figures

__all__ = ["area_page", "figure_file", "gallery_page", "notes_pages", "plot_figures"]

_KINDS = {
    "block": "something to compute",
    "claim": "a statement, checked by a claim that can fail",
    "figure": "a picture, plotted from the library",
    "mention": "a subject that the notes name",
    "wording": "a matter of wording",
    "reference": "something to read",
}


def notes_pages() -> dict[str, str]:
    """Path to Markdown: the contents, an area each, the gallery."""
    found = entries()
    pages = {"notes/index.md": _contents(found), "gallery.md": gallery_page()}
    return pages | {area_page(number): _area(number, name, found) for number, name in areas().items()}


def area_page(number: int) -> str:
    return f"notes/area-{number}.md"


def figure_file(figure: Figure) -> str:
    return f"pictures/figures/{figure.ids[0]}.svg"


def plot_figures(folder: Path) -> None:
    """Every figure as SVG into its place under `folder`."""
    for each in collect_figures():
        path = folder / figure_file(each)
        path.parent.mkdir(parents=True, exist_ok=True)
        each.plot().save(path)


def _contents(found: list[Entry]) -> str:
    page = "notes/index.md"
    rows = []
    for number, name in areas().items():
        own = [entry for entry in found if entry.area == number]
        rows.append(
            (
                str(number),
                link(prose(name), href(page, area_page(number))),
                str(len(own)),
                *(
                    str(sum(bool(getattr(entry, column)) for entry in own))
                    for column in ("implementations", "claims", "figures", "recipes")
                ),
            )
        )
    counted = [entry for entry in found if entry.needs_implementation]
    done = sum(entry.is_implemented for entry in counted)
    said = (
        f"<p>Quoin follows lecture notes on deep learning. They have {len(found)} items, each with an id and with a "
        f"title in our words; {len(counted)} of them software can provide, and {done} are there. A letter names the "
        "notes (Z, D, M), an E after it their errata. <code>quoin map</code> prints the same, <code>quoin check</code> "
        "runs the claims, <code>quoin figure</code> plots the figures.</p>"
    )
    head = ("", "area", "items", "with code", "with claims", "with figures", "with recipes")
    return "\n\n".join([heading("The map of the notes", 1), said, table(head, rows)])


def _area(number: int, name: str, found: list[Entry]) -> str:
    page = area_page(number)
    own = [entry for entry in found if entry.area == number]
    up = link("the map of the notes", href(page, "notes/index.md"))
    crumbs = f'<p class="crumbs">{up} › area {number}, {len(own)} items</p>'
    shown: set[str] = set()
    parts = [heading(f"{number} {name}", 1), crumbs]
    for entry in own:
        parts += [heading(f"{entry.id}: {entry.title}", 2, entry.id), _item(page, entry, shown)]
    return "\n\n".join(parts)


def _item(page: str, entry: Entry, shown: set[str]) -> str:
    """One item as a definition list; a figure is shown where it comes first on the page."""
    rows = [("kind", prose(_KINDS[entry.kind]))]
    definitions, blocks = _twice(entry.implementations)
    rows += [("definition", _name(page, path)) for path in definitions]
    label = "fast form" if definitions else "code"
    rows += [(label, _name(page, path)) for path in blocks]
    rows += [("claim", _claim(page, path)) for path in entry.claims]
    for path in entry.figures:
        rows.append(("figure", _figure(page, _figures()[path], path in shown)))
        shown.add(path)
    rows += [
        ("recipe", f"{link(code(name), href(page, f'recipes/{name}.md'))} <code>quoin train {name}</code>")
        for name in entry.recipes
    ]
    return '<dl class="item">' + " ".join(f"<dt>{key}</dt> <dd>{value}</dd>" for key, value in rows) + "</dl>"


def _twice(paths: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """The definitions among these names, and those beside them; then the fast forms."""
    partners = [found for path in paths if (found := definition_of(path))]
    definitions = [path for path in paths if path.endswith("_definition")]
    return list(dict.fromkeys([*definitions, *partners])), [path for path in paths if path not in definitions]


def _name(page: str, path: str) -> str:
    target = where_is(page, path)
    return f"{code(path.removeprefix('quoin.'), target)} {prose(_summaries().get(path, ''))}"


@functools.cache
def _summaries() -> dict[str, str]:
    return {each.path: each.summary for name in public_names() for each in (name, *name.methods)}


def _claim(page: str, path: str) -> str:
    claim = _claims()[path]
    check = code(f"quoin check {claim.ids[0]}")
    return f"{prose(claim.statement)} {_place(page, path, 'source')} {check}"


def _figure(page: str, figure: Figure, again: bool) -> str:
    more = _gallery_link(page, figure)
    return f"{prose(figure.caption)} {more}" if again else f"{_picture(page, figure)} {prose(figure.caption)} {more}"


def _gallery_link(page: str, figure: Figure) -> str:
    id = figure.ids[0]
    return f"{link('gallery', href(page, 'gallery.md', f'figure-{id}'))} {code(f'quoin figure {id}')}"


def _picture(page: str, figure: Figure) -> str:
    file = href(page, figure_file(figure))
    alt = html.escape(figure.caption)
    return f'<a class="picture" href="{file}"><img class="figure" loading="lazy" src="{file}" alt="{alt}"></a>'


def _place(page: str, path: str, said: str) -> str:
    """The source of a claim or figure, at its line."""
    module, _, name = path.rpartition(".")
    file = f"{module.replace('.', '/')}.py"
    return link(said, href(page, source_page(file), f"L-{_lines(file).get(name, 1)}"))


@functools.cache
def _lines(file: str) -> dict[str, int]:
    tree = ast.parse((SOURCE / file).read_text(encoding="utf-8"))
    return {node.name: node.lineno for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}


@functools.cache
def _claims() -> dict[str, Claim]:
    return {each.name: each for each in collect_claims()}


@functools.cache
def _figures() -> dict[str, Figure]:
    return {f"{each.function.__module__}.{each.function.__qualname__}": each for each in collect_figures()}


def gallery_page() -> str:
    """Every figure, by area, each with its ids, its command and its source."""
    page = "gallery.md"
    where = {entry.id: entry.area for entry in entries()}
    said = "<p>Every figure of the notes, plotted by the library. A picture opens alone; its ids lead to the map.</p>"
    parts = [heading("Gallery", 1), said]
    for number, name in areas().items():
        own = [(path, each) for path, each in _figures().items() if where[each.ids[0]] == number]
        if own:
            cards = "".join(_card(page, path, each, where) for path, each in own)
            parts += [heading(f"{number} {name}", 2), f'<div class="gallery">{cards}</div>']
    return "\n\n".join(parts)


def _card(page: str, path: str, figure: Figure, where: dict[str, int]) -> str:
    ids = ", ".join(code(id, href(page, area_page(where[id]), id)) for id in figure.ids)
    foot = f"{ids} · {_place(page, path, 'source')}"
    return (
        f'<figure id="figure-{figure.ids[0]}">{_picture(page, figure)}'
        f"<figcaption>{prose(figure.caption)}<br>{foot}</figcaption></figure>"
    )
