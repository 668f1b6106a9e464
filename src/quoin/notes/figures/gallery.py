"""A page of figures, area by area, beside the files they were plotted into."""

import html
from collections.abc import Mapping, Sequence
from pathlib import Path

from quoin import notes
from quoin.notes.figures.figure import Figure
from quoin.train.report_page import page

__all__ = ["gallery"]

_STYLE = """
.gallery { display: grid; gap: 1.6rem 1.4rem; align-items: start;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 22rem), 1fr)) }
.gallery figure { border: 1px solid var(--grid); border-radius: 0.4rem; padding: 0.6rem; min-width: 0 }
.gallery .plot { width: 100% } .gallery .plot img { display: block; width: 100%; height: auto; max-height: 20rem;
  object-fit: contain }
.gallery h3 { font-size: 1rem; margin: 0.4rem 0 0.1rem } .gallery h3 a { font-weight: 400; margin-left: 0.5rem }
"""


def gallery(figures: Sequence[Figure], files: Mapping[Figure, Path]) -> str:
    """The page, to be written into the folder of the files: each figure with its ids, its caption and a link to its
    file. It loads nothing but these, and they follow the reader's choice of light or dark themselves.
    """
    area_of = {entry.id: entry.area for entry in notes.entries()}
    by_area: dict[int, list[Figure]] = {}
    for each in figures:
        by_area.setdefault(area_of[each.ids[0]], []).append(each)
    sections = [
        f'<h2>{html.escape(name)}</h2>\n<div class="gallery">\n'
        + "\n".join(_shown(each, files[each]) for each in by_area[number])
        + "\n</div>"
        for number, name in notes.areas().items()
        if number in by_area
    ]
    several = len(figures) != 1
    lead = f"{len(figures)} figure{'s' * several} of the lecture notes, plotted by Quoin. Click one to enlarge it."
    return page("Figures", lead, sections, style=_STYLE)


def _shown(each: Figure, file: Path) -> str:
    ids, caption, address = " ".join(each.ids), html.escape(each.caption), html.escape(file.name)
    return (
        f'<figure id="{html.escape(each.ids[0])}">\n<div class="plot" data-title="{html.escape(ids)}">'
        f'<img src="{address}" alt="{caption}" loading="lazy"></div>\n'
        f'<h3>{html.escape(ids)} <a href="{address}">{file.suffix[1:].upper()}</a></h3>\n'
        f"<figcaption>{caption}</figcaption></figure>"
    )
