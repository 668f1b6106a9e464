"""What a figure is: an id of the notes, a caption, and a function that plots it from the library."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from quoin import notes
from quoin.errors import UserError, did_you_mean, format_value
from quoin.plot import FORMATS, Plot

__all__ = ["Figure", "collect", "figure", "plot_all", "select"]


@dataclass(frozen=True)
class Figure:
    """A figure of the notes, or one they announce."""

    ids: tuple[str, ...]
    caption: str
    function: Callable[[], Plot]

    def plot(self) -> Plot:
        plot = self.function()
        plot.alt = self.caption
        return plot


def figure(ids: str | Sequence[str], caption: str) -> Callable[[Callable[[], Plot]], Figure]:
    """Mark `f() -> Plot` as the figure of these ids."""
    ids = notes.known(ids)
    return lambda function: Figure(ids, caption, function)


def collect() -> list[Figure]:
    """Every figure of this package, in the order of the notes."""
    return notes.declared("quoin.notes.figures", Figure)


def select(figures: Sequence[Figure], words: Sequence[str]) -> list[Figure]:
    """The figures that `words` name: ids, area numbers or area names; all of them when no word is given."""
    return notes.choose(figures, words, "figure")


def plot_all(figures: Sequence[Figure], out: str | Path, format: str = "svg") -> list[Path]:
    """Plot the figures into the folder `out`, each under its first id, and give back the files."""
    if format not in FORMATS:
        raise UserError(f"expected a format, got {format_value(format)}; {did_you_mean(format, FORMATS)}")
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"expected a folder to write to, got {format_value(str(folder))}: {error.strerror}; choose another"
        ) from error
    return [item.plot().save(folder / f"{item.ids[0]}.{format}") for item in figures]
