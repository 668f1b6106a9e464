"""Text made safe: titles for Markdown headings, prose for HTML, links from one page to another."""

import html
import posixpath
import re
from collections.abc import Callable, Iterable, Sequence

__all__ = ["code", "heading", "href", "link", "prose", "table"]

Resolve = Callable[[str], str | None]  # a word in backticks -> where it is explained, if anywhere


def heading(text: str, level: int, anchor: str = "") -> str:
    """A Markdown heading in which every character stands for itself; `...` is code."""
    parts = [
        f"<code>{_plain(part)}</code>" if at % 2 else _plain(part)
        for at, part in enumerate(_spans(" ".join(text.split())))
    ]
    return f"{'#' * level} {''.join(parts)}" + (f" {{ #{anchor} }}" if anchor else "")


def prose(text: str, resolve: Resolve = lambda word: None) -> str:
    """One paragraph as HTML; what stands in backticks is code, with a link where `resolve` knows one.

    >>> prose("`f` of <a, b> is `a*b`", {"f": "f.html"}.get)
    '<a href="f.html"><code>f</code></a> of &lt;a, b&gt; is <code>a*b</code>'
    """
    words = _spans(" ".join(text.split()))
    return "".join(
        code(word, resolve(word)) if at % 2 else html.escape(word, quote=False) for at, word in enumerate(words)
    )


def code(text: str, target: str | None = None) -> str:
    """A word of code, linked where there is a target."""
    inner = f"<code>{html.escape(text, quote=False)}</code>"
    return link(inner, target) if target else inner


def link(inner: str, target: str) -> str:
    return f'<a href="{html.escape(target)}">{inner}</a>'


def href(page: str, other: str, anchor: str = "") -> str:
    """From the built page of one source to another: `notes/area-3.md` to `reference/layers/rnn.md`.

    >>> href("notes/area-3.md", "reference/layers/rnn.md", "quoin.layers.RNN")
    '../reference/layers/rnn.html#quoin.layers.RNN'
    """
    built = re.sub(r"\.md$", ".html", other)
    path = posixpath.relpath(built, posixpath.dirname(page) or ".")
    return path + (f"#{anchor}" if anchor else "")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """An HTML table of cells that are HTML already."""
    lines = [
        '<div class="wide"><table>',
        f"<thead><tr>{''.join(f'<th>{cell}</th>' for cell in head)}</tr></thead>",
        "<tbody>",
    ]
    lines += [f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows]
    return "\n".join([*lines, "</tbody></table></div>"])


def _spans(text: str) -> list[str]:
    """Text and code in turns; a backtick without its partner is a character."""
    return re.split(r"`([^`]+)`", text)


def _plain(text: str) -> str:
    """Every character that Markdown could take for markup, as an entity."""
    return re.sub(r"[\\`*_{}\[\]<>()#+!|&~^$:]", lambda found: f"&#{ord(found[0])};", text)
