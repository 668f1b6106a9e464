"""A page of the lab, still: its exhibits at their first state and at their surprise, as HTML without scripts."""

from __future__ import annotations

from quoin.lab.catalog import PAGES, page_path
from quoin.lab.parts.exhibit import Exhibit, View
from quoin.lab.parts.marks import escape
from quoin.lab.parts.page import exhibits_of
from quoin.lab.parts.style import style_sheet

__all__ = ["still", "stills"]


def stills() -> dict[str, tuple[str, str]]:
    """Every page by its name: its title, and what it shows, with the style that it needs."""
    return {
        name: (page.title, f"<style>{_scoped()}</style>\n{still(name)}")
        for name, page in PAGES.items()
        if page_path(name).exists()
    }


def _scoped() -> str:
    """The lab's style sheet, kept from the rest of the site's page; no line of it is empty, which would end a block of
    HTML in Markdown."""
    return "\n".join(line for line in style_sheet().splitlines() if line.strip())


def still(name: str) -> str:
    """The exhibits of a page as one fragment of HTML; those that need a trained model say so."""
    if not page_path(name).exists():
        return ""
    shown = "".join(_exhibit(each) for each in exhibits_of(name))
    return f'<div class="quoin-lab"><p class="sentence">{escape(PAGES[name].sentence)}</p>{shown}</div>'


def _exhibit(exhibit: Exhibit) -> str:
    parts = [
        f'<section class="exhibit" id="{escape(exhibit.slug)}"><h2>{escape(exhibit.question)}</h2>',
        f'<p class="intro">{escape(exhibit.intro)}</p>',
    ]
    if exhibit.needs:
        recipes = ", ".join(model.recipe for model in exhibit.needs.values())
        parts.append(
            f"<p>This one needs a small trained model ({escape(recipes)}): see it in <code>quoin lab</code>.</p>"
        )
    else:
        parts.append(_view(exhibit.view()))
        if exhibit.surprise_at:
            moved = ", ".join(_moved(exhibit, key) for key in exhibit.surprise_at)
            parts.append(f'<p class="note">After a move: {escape(moved)}.</p>')
            parts.append(_view(exhibit.view(exhibit.surprise_at)))
    if exhibit.surprise:
        parts.append(f'<p class="surprise">{escape(exhibit.surprise)}</p>')
    parts.append(f"<footer>{escape(' '.join(exhibit.ids))}</footer></section>")
    return "".join(parts)


def _moved(exhibit: Exhibit, key: str) -> str:
    label = next(control.label for control in exhibit.controls if control.name == key)
    value = exhibit.surprise_at[key]
    if isinstance(value, bool):
        return f"{label} {'on' if value else 'off'}"
    return f"{label} = {value}" if isinstance(value, (int, float, str)) and len(str(value)) < 40 else label


def _view(view: View) -> str:
    numbers = "".join(f"<dt>{escape(each.label)}</dt><dd>{escape(each.text)}</dd>" for each in view.numbers)
    code = f"<details><summary>code</summary><pre>{escape(view.code)}</pre></details>" if view.code else ""
    return (
        f'<div class="body"><div class="stage"><div class="picture">{_unheld(view.picture.svg())}</div></div>'
        f'<div class="side"><dl class="numbers">{numbers}</dl>{code}</div></div>'
    )


def _unheld(svg: str) -> str:
    """The picture without what only a hand needs."""
    return svg.replace(' tabindex="0"', "")
