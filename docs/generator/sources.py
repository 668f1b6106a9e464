"""The source as pages: one for each file, a plain page of its own with an anchor for each line.

They are no part of the search: that would find every word of the code before its explanation."""

import html
from pathlib import Path

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

__all__ = ["source_html", "source_page", "source_pages", "source_style"]

SOURCE = Path(__file__).parents[2] / "src"
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><link rel="stylesheet" href="{up}assets/source.css"></head>
<body><p><a href="{up}index.html">Quoin</a> › <a href="{up}reference/index.html">reference</a> › {title}</p>
<pre class="highlight">{code}</pre>
</body></html>
"""


def source_page(file: str) -> str:
    """Where the source of `quoin/layers/rnn.py` stands on the site."""
    return f"source/{file.removesuffix('.py')}.html"


def source_pages() -> dict[str, str]:
    """Path to HTML, for every Python file of the package."""
    files = (path.relative_to(SOURCE).as_posix() for path in sorted((SOURCE / "quoin").rglob("*.py")))
    return {source_page(file): source_html(file) for file in files}


def source_html(file: str) -> str:
    """The page of one file, an element for each line."""
    text = (SOURCE / file).read_text(encoding="utf-8")
    lines = highlight(text, PythonLexer(stripnl=False), HtmlFormatter(nowrap=True)).splitlines()
    code = "".join(f'<i id="L-{number}">{line}\n</i>' for number, line in enumerate(lines, 1))
    return _PAGE.format(title=html.escape(file), up="../" * source_page(file).count("/"), code=code)


def source_style() -> str:
    """Colours by day and by night."""
    light = HtmlFormatter(style="friendly").get_style_defs(".highlight")
    dark = HtmlFormatter(style="github-dark").get_style_defs(".highlight")
    page = (
        "body { margin: 1rem auto; max-width: 72rem; padding: 0 1rem; font-family: system-ui, sans-serif; }\n"
        ":root { color-scheme: light dark; }\n"
        ".highlight { font-size: 0.85rem; line-height: 1.45; overflow-x: auto; counter-reset: line; }\n"
        ".highlight i { font-style: normal; counter-increment: line; display: block; }\n"
        ".highlight i::before { content: counter(line); display: inline-block; width: 3rem; padding-right: 1rem; "
        "text-align: right; opacity: 0.5; user-select: none; }\n"
        ".highlight i:target { background: rgb(255 200 0 / 30%); }\n"
    )
    return f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n{page}"
