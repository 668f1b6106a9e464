"""What a figure is: an id of the notes, a caption, and a function that draws it from the library."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from quoin import notes
from quoin.errors import Mistake, nearest, shown
from quoin.plot import FORMATS, Drawing

__all__ = ["Figure", "collect", "draw_all", "figure", "select"]


@dataclass(frozen=True)
class Figure:
    """A picture of the notes, or one they announce."""

    ids: tuple[str, ...]
    caption: str
    function: Callable[[], Drawing]

    def draw(self) -> Drawing:
        drawing = self.function()
        drawing.alt = self.caption
        return drawing


def figure(ids: str | Sequence[str], caption: str) -> Callable[[Callable[[], Drawing]], Figure]:
    """Mark `f() -> Drawing` as the figure of these ids."""
    ids = notes.known(ids)
    return lambda function: Figure(ids, caption, function)


def collect() -> list[Figure]:
    """Every figure of this package, in the order of the notes."""
    return notes.declared("quoin.notes.figures", Figure)


def select(figures: Sequence[Figure], words: Sequence[str]) -> list[Figure]:
    """The figures that `words` name: ids, area numbers or area names; all of them when no word is given."""
    return notes.choose(figures, words, "figure")


def draw_all(figures: Sequence[Figure], out: str | Path, format: str = "svg") -> list[Path]:
    """Draw the figures into the folder `out`, each under its first id, and give back the files."""
    if format not in FORMATS:
        raise Mistake(f"expected a format, got {shown(format)}; {nearest(format, FORMATS)}")
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Mistake(f"expected a folder to write to, got {shown(str(folder))}: {error.strerror}; choose another") from error
    return [item.draw().save(folder / f"{item.ids[0]}.{format}") for item in figures]
