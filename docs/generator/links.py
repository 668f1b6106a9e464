"""The check of a built site: every link and anchor of every page resolves, and nothing is loaded from elsewhere.

    python -m generator.links build/site

prints what is wrong, a line each, and a summary; exit code 1 where anything is."""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

__all__ = ["Report", "check_site"]

_LOADED = {"src", "srcset", "poster", "data"}  # attributes that fetch; of <link> only these kinds do
_FETCHED_LINKS = {
    "stylesheet",
    "icon",
    "preload",
    "prefetch",
    "modulepreload",
    "preconnect",
    "dns-prefetch",
    "manifest",
}
_CSS = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")


@dataclass
class Report:
    """What was looked at, and what is wrong."""

    pages: int = 0
    links: int = 0
    size: int = 0
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.pages} pages, {self.links:,} links, {len(self.problems)} broken, size {self.size / 1e6:.1f} MB"


class _Page(HTMLParser):
    """The ids of a page, where it links to, and what it loads."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.style = ""
        self._in_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids |= {given[name] for name in ("id", "name") if given.get(name) and (name == "id" or tag == "a")}
        if tag in ("a", "area") and "href" in given:
            self.links.append(given["href"])
        elif tag == "link" and set(given.get("rel", "").split()) & _FETCHED_LINKS:
            self.loads.append(given.get("href", ""))
        elif tag in ("image", "use"):  # of SVG
            self.loads.append(given.get("href", given.get("xlink:href", "")))
        self.loads += [
            part.split()[0] for name in _LOADED & given.keys() if tag != "meta" for part in _sources(name, given[name])
        ]
        self.style += "".join(given.get("style", ""))
        self._in_style = tag == "style"

    def handle_endtag(self, tag: str) -> None:
        self._in_style = False

    def handle_data(self, data: str) -> None:
        if self._in_style:
            self.style += data


def _sources(name: str, value: str) -> list[str]:
    return [part for part in (value.split(",") if name == "srcset" else [value]) if part.strip()]


def check_site(folder: Path) -> Report:
    """Look at every HTML, CSS and SVG file under `folder`."""
    report = Report(size=sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()))
    pages = {path: _read(path) for path in sorted(folder.rglob("*.html"))}
    report.pages = len(pages)
    for path, page in pages.items():
        where = path.relative_to(folder).as_posix()
        for link in page.links:
            report.links += 1
            report.problems += [f"{where}: {link}: {wrong}" for wrong in _broken(folder, path, link, pages)]
        for link in [*page.loads, *_of_css(page.style)]:
            report.links += 1
            report.problems += [f"{where}: loads {link}: {wrong}" for wrong in _unloadable(folder, path, link)]
    for path in [*folder.rglob("*.css"), *folder.rglob("*.svg")]:
        for link in _of_css(path.read_text(encoding="utf-8")):
            report.links += 1
            where = path.relative_to(folder).as_posix()
            report.problems += [f"{where}: loads {link}: {wrong}" for wrong in _unloadable(folder, path, link)]
    return report


def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def _of_css(text: str) -> list[str]:
    return [one or two for one, two in _CSS.findall(text)]


def _broken(folder: Path, path: Path, link: str, pages: dict[Path, _Page]) -> Iterator[str]:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:  # the web is not looked at: a build must not hang on it
        if parts.scheme not in ("http", "https", "mailto"):
            yield "a scheme that no page should have"
        return
    target = _target(folder, path, parts.path)
    if target is None or not target.is_file():
        yield "no such file"
    elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].ids:
        yield "no such anchor"


def _unloadable(folder: Path, path: Path, link: str) -> Iterator[str]:
    parts = urlsplit(link.strip())
    if parts.scheme == "data" or (not parts.path and not parts.netloc):
        return
    if parts.scheme or parts.netloc:
        yield "from elsewhere"
    elif (target := _target(folder, path, parts.path)) is None or not target.is_file():
        yield "no such file"


def _target(folder: Path, path: Path, link: str) -> Path | None:
    """The file that a link on a page means; None outside the site."""
    if not link:
        return path
    target = (path.parent / unquote(link)).resolve()
    target = target / "index.html" if target.is_dir() else target
    return target if target.is_relative_to(folder.resolve()) and not link.startswith("/") else None


def main() -> int:
    report = check_site(Path(sys.argv[1]).resolve())
    print("\n".join([*report.problems, str(report)]))
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
