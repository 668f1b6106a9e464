"""The first page of the lab: a search over everything, the pages as cards, the notes' contents by area."""

from __future__ import annotations

import html
from collections.abc import Mapping

from quoin import notes
from quoin.lab.catalog import PAGES, PageInfo
from quoin.lab.parts.marks import scripts
from quoin.plot.palette import css_variables

__all__ = ["index_html", "page_of_area"]

MOST_FOUND = 40
_STYLE = """
body{margin:0;background:var(--paper);color:var(--ink);font:17px/1.5 system-ui,sans-serif}
main{max-width:1160px;margin:0 auto;padding:24px 16px 60px}
h1{font-size:34px;margin:0 0 4px}h2{font-size:22px;margin:32px 0 10px}
a{color:var(--accent);text-underline-offset:3px}
form{display:flex;gap:8px;margin:18px 0 6px;max-width:640px}
input{flex:1;min-width:0;font:inherit;padding:8px 12px;border:1px solid var(--edge);border-radius:8px;
background:var(--raised);color:var(--ink)}
button{font:inherit;padding:8px 16px;border:1px solid var(--edge);border-radius:8px;background:var(--raised);
color:var(--ink)}
ul.cards{list-style:none;padding:0;margin:0;display:grid;gap:14px;
grid-template-columns:repeat(auto-fill,minmax(min(260px,100%),1fr))}
.cards a{display:block;height:100%;box-sizing:border-box;padding:14px 16px;border:1px solid var(--grid);
border-radius:10px;background:var(--raised);text-decoration:none;color:var(--ink)}
.cards img{display:block;width:100%;height:auto;aspect-ratio:640/420;object-fit:contain;margin:0 0 10px;
border-radius:6px;background:var(--paper)}
.cards b{display:block;color:var(--accent);font-size:18px}
.cards a:hover{border-color:var(--accent)}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
details{border-bottom:1px solid var(--grid)}summary{padding:7px 0;cursor:pointer}
li{overflow-wrap:anywhere}.faint{color:var(--faint)}code{font-family:ui-monospace,monospace;font-size:.9em}
"""


def page_of_area(area: int) -> PageInfo | None:
    """The page that an area's items are on; the last area, of references, has none."""
    return next((page for page in PAGES.values() if area in page.areas), None)


def index_html(query: str = "", focus: bool = False, runs: Mapping[str, str] | None = None) -> str:
    """The page, with what a search for `query` found.

    Args:
        focus: Whether the search box has the focus.
        runs: Names of the runs that are open, by their number in the address.
    """
    parts = [
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Quoin lab</title>'
        '<link rel="icon" href="data:,"><meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<style>{css_variables()}{_STYLE}</style>"
        "</head><body><main><h1>The lab</h1><p>Deep learning, block by block: the notes to play with. Everything you "
        "see is computed by Quoin on what you type, paint or drag.</p>",
        f'<form role="search"><input name="q" maxlength="100" value="{html.escape(query)}" '
        f'aria-label="search" placeholder="an id, a word, a recipe"{" autofocus" if focus or query else ""}>'
        "<button>Search</button></form>",
    ]
    if query:
        parts.append(_found(query))
    if runs:
        parts.append("<h2>Runs</h2><ul>")
        parts += [
            f'<li><a href="runs/?run={html.escape(key)}">{html.escape(name)}</a></li>' for key, name in runs.items()
        ]
        parts.append('<li><a href="runs/">all of them, side by side</a></li></ul>' if len(runs) > 1 else "</ul>")
    parts.append("<h2>Pages</h2><ul class=cards>")
    parts += [_card(page.name, page.title, page.sentence) for page in PAGES.values()]
    parts.append(_card("errata", "Errata", "What the notes print wrongly, failing before your eyes."))
    parts.append(_card("gallery", "Gallery", "Every figure, to change and to take with you."))
    parts.append("</ul><h2>The notes by area</h2>")
    parts += [_area(number, name) for number, name in notes.areas().items()]
    return "".join(parts) + "</main></body></html>"


def _card(name: str, title: str, sentence: str) -> str:
    # The picture says nothing that the words do not, so that it has no text of its own.
    return (
        f'<li><a href="{name}/"><img src="cards/{name}.svg" width="640" height="420" loading="lazy" alt="">'
        f"<b>{html.escape(title)}</b>{html.escape(sentence)}</a></li>"
    )


def _found(query: str) -> str:
    """What the search found, best first, each with the page where it is."""
    words = query.lower().split()
    rows = [
        f'<li><a href="{page.name}/"><b>{html.escape(page.title)}</b></a> {html.escape(page.sentence)}</li>'
        for page in PAGES.values()
        if all(word in f"{page.title} {page.sentence} {page.name}".lower() for word in words)
    ]
    entries = {entry.id: entry for entry in notes.entries()}
    if direct := [entry for id, entry in entries.items() if id.lower() == query.strip().lower()]:
        rows += map(_row, direct)
    for hit in notes.search(query)[:MOST_FOUND]:
        is_item = hit.kind == "item" and hit.name in entries
        rows.append(
            _row(entries[hit.name])
            if is_item
            else f"<li><code>{html.escape(hit.name)}</code> {html.escape(hit.what)}</li>"
        )
    return f"<ul>{''.join(rows)}</ul>" if rows else f"<p>Nothing here is called {html.escape(query)!r}.</p>"


def _row(entry: notes.Entry) -> str:
    page = page_of_area(entry.area)
    id = html.escape(entry.id)
    where = f'<a href="{page.name}/?item={id}">{id}</a>' if page else id
    return f"<li>{where} {scripts(entry.title)}</li>"


def _area(number: int, name: str) -> str:
    rows = "".join(_row(entry) for entry in notes.entries() if entry.area == number)
    return f"<details><summary><b>{number}</b> {html.escape(name)}</summary><ul>{rows}</ul></details>"
