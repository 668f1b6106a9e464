"""The still pictures on the index's cards: each page's first exhibit that needs no trained model, as an SVG file.

To draw them all takes ten seconds, most of them imports. So a process of its own draws what the cache lacks, once the
index was asked for, and the index, which is up at once, shows each as it comes. What is cached belongs to one state of
the lab's files. Imports neither torch nor marimo until it draws: `python -m quoin.lab.cards FOLDER`.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from quoin import __version__
from quoin.data.cache import cache_folder
from quoin.lab.catalog import PAGES, page_path

__all__ = ["CARDS", "card", "card_folder", "card_svg", "draw", "stop"]

# The cards that are no page of the notes: an exhibit with the printed form beside the right one, and a figure.
ERRATUM = ("attention", "why-the-root", {"printed": True})
FIGURE = "D1F1"
CARDS = (*PAGES, "errata", "gallery")
WAITS = 60.0  # seconds for a picture, on a busy machine
_plotting: subprocess.Popen[bytes] | None = None


@functools.cache
def _key() -> str:
    """A hash of all that the lab draws with."""
    files = sorted(Path(__file__).parent.rglob("*.py"))
    return hashlib.sha256(b"".join([__version__.encode(), *(each.read_bytes() for each in files)])).hexdigest()[:12]


def card_folder() -> Path:
    """Where the pictures of this version of the lab are kept."""
    return cache_folder() / "stills" / _key()


async def card(name: str) -> bytes | None:
    """The picture of a card, as soon as it is there; None where there is no such card, or it could not be drawn."""
    global _plotting
    if name not in CARDS:
        return None
    path = card_folder() / f"{name}.svg"
    if not path.is_file() and (_plotting is None or _plotting.poll() is not None):
        _plotting = subprocess.Popen(
            [sys.executable, "-m", "quoin.lab.cards", str(card_folder())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
    for _ in range(int(WAITS / 0.1)):
        if path.is_file():
            return path.read_bytes()
        if _plotting is not None and _plotting.poll() is not None:
            break
        await asyncio.sleep(0.1)
    return path.read_bytes() if path.is_file() else None


def stop() -> None:
    """End the drawing that is under way; for a server that stops."""
    if _plotting is not None and _plotting.poll() is None:
        _plotting.kill()
        _plotting.wait()


def card_svg(name: str) -> str:
    """The picture of a card as a document of its own, in light and dark."""
    from quoin.lab.parts.page import exhibits_of
    from quoin.lab.parts.style import picture_style
    from quoin.notes.figures import collect

    if name == "gallery":
        return next(figure for figure in collect() if FIGURE in figure.ids).plot().svg()
    page, slug, state = ERRATUM if name == "errata" else (name, "", {})
    exhibits = exhibits_of(page)
    chosen = next(each for each in exhibits if (each.slug == slug if slug else not each.needs))
    svg = chosen.view(state).picture.svg()
    return svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1).replace(
        ">", f"><style>{picture_style()}</style>", 1
    )


def draw(folder: Path) -> None:
    """Draw what the folder lacks, each whole or not at all; pictures of other versions are thrown away."""
    folder.mkdir(parents=True, exist_ok=True)
    for other in folder.parent.iterdir():
        if other != folder:
            shutil.rmtree(other, ignore_errors=True)
    for name in CARDS:
        path = folder / f"{name}.svg"
        if path.is_file() or (name in PAGES and not page_path(name).exists()):
            continue
        draft = folder / f".{name}.{os.getpid()}.draft"
        draft.write_text(card_svg(name), encoding="utf-8")
        os.replace(draft, path)


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
