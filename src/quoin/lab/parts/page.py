"""A page of the lab: its head, its exhibits, and the rest of its area, as cells of a marimo notebook show them."""

from __future__ import annotations

import importlib

import traitlets

from quoin import notes
from quoin.lab.catalog import PAGES, PageInfo
from quoin.lab.parts.exhibit import Exhibit, Show, exhibit_of
from quoin.lab.parts.widget import Asking, ExhibitWidget, ItemsWidget

__all__ = ["HeadWidget", "exhibits_of", "head", "play", "rest", "title"]


class HeadWidget(Asking):
    """Title, sentence, links to the exhibits and to the other pages; keys that belong to the whole page."""

    head = traitlets.Dict().tag(sync=True)

    def __init__(self, page: PageInfo, exhibits: list[Exhibit]) -> None:
        super().__init__()
        order = list(PAGES.values())
        at = order.index(page) if page in order else -1
        self.head = {
            "title": page.title,
            "sentence": page.sentence,
            "exhibits": [{"slug": each.slug, "question": each.question} for each in exhibits],
            "before": order[at - 1].name if at > 0 else "",
            "after": order[at + 1].name if 0 <= at < len(order) - 1 else "",
        }


def exhibits_of(name: str) -> list[Exhibit]:
    """The exhibits of a page, in its order."""
    module = importlib.import_module(f"quoin.lab.{name.replace('-', '_')}")
    return [found for value in vars(module).values() if (found := exhibit_of(value))]


def head(name: str) -> HeadWidget:
    """The top of a page."""
    return HeadWidget(PAGES[name], exhibits_of(name))


def title(words: str, sentence: str) -> HeadWidget:
    """The top of a page that is about no area."""
    return HeadWidget(PageInfo("", (), words, sentence), [])


def play(show: Show) -> ExhibitWidget:
    """The exhibit of a function, to play with."""
    exhibit = exhibit_of(show)
    if exhibit is None:
        raise TypeError(f"expected a function marked as @exhibit, got {show!r}")
    return ExhibitWidget(exhibit)


def rest(name: str) -> ItemsWidget:
    """Every id of the page's area that no exhibit of it names, each folded, so that no claim or figure is out of
    reach."""
    shown = {id for each in exhibits_of(name) for id in each.ids}
    areas = PAGES[name].areas
    entries = [entry for entry in notes.entries() if entry.area in areas and entry.id not in shown]
    return ItemsWidget("The rest of this area", entries)
