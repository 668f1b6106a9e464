"""Which exhibit shows which item, stored: to ask the pages themselves means to import all of them, and torch.

`make index` writes it anew, and a test holds that it was written.
"""

from __future__ import annotations

import functools
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from quoin.lab.catalog import PAGES, page_path

if TYPE_CHECKING:
    from quoin.lab.parts.exhibit import Exhibit

__all__ = ["ListedExhibit", "describe_exhibits", "exhibit_links", "listed_exhibits"]

INDEX = Path(__file__).with_name("exhibits.json")


@dataclass(frozen=True)
class ListedExhibit:
    """An exhibit by name; `printed` says what its address ends with to show an erratum's form as it is printed."""

    page: str
    slug: str
    ids: list[str]
    printed: dict[str, str]


@functools.cache
def listed_exhibits() -> list[ListedExhibit]:
    """The stored index, in the order of the pages."""
    return [ListedExhibit(**each) for each in json.loads(INDEX.read_text(encoding="utf-8"))]


@functools.cache
def exhibit_links(*, printed: bool = False) -> dict[str, str]:
    """Where each id has an exhibit, as an address seen from another page; with its form as `printed`, if it has one."""
    links: dict[str, str] = {}
    for each in listed_exhibits():
        for id in each.ids:
            links.setdefault(id, f"../{each.page}/?at={each.slug}{each.printed.get(id, '') if printed else ''}")
    return links


def describe_exhibits() -> list[ListedExhibit]:
    """The same as `listed_exhibits` from the pages themselves."""
    from quoin.lab.parts.page import exhibits_of

    return [
        ListedExhibit(name, each.slug, list(each.ids), _printed(each))
        for name in PAGES
        if page_path(name).exists()
        for each in exhibits_of(name)
    ]


def _printed(exhibit: Exhibit) -> dict[str, str]:
    from quoin.lab.parts.controls import Choice

    control = next((each for each in exhibit.controls if each.name == "printed"), None)
    if control is None:
        return {}
    if isinstance(control, Choice):
        return {id: f"&printed={id}" for id in exhibit.ids if id in control.options}
    return dict.fromkeys(exhibit.ids, "&printed=1")


if __name__ == "__main__":
    found = [asdict(each) for each in describe_exhibits()]
    INDEX.write_text(json.dumps(found, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
