"""What a figure is: an id of the notes, a caption, and a function that plots it from the library, as the notes have it
or with other numbers."""

import functools
import inspect
import numbers
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, ParamSpec

from quoin import notes
from quoin.callbacks import current_listener
from quoin.display import shown
from quoin.errors import UserError, did_you_mean, format_value
from quoin.plot import FORMATS, Plot

__all__ = ["Figure", "Ranges", "collect", "figure", "plot_all", "select"]

Parameters = ParamSpec("Parameters")
Ranges = Mapping[str, tuple[float, float]]  # of each parameter, or of each entry of it: least and largest


@shown
@dataclass(frozen=True, eq=False)  # one object each: it is a key of tables, and its ranges are a dict
class Figure(Generic[Parameters]):
    """A figure of the notes, or one they announce.

    `figures.sample_paths.plot()` is the figure of the notes, `figures.sample_paths(num_paths=5)` one with other
    numbers than theirs.
    """

    ids: tuple[str, ...]
    caption: str
    function: Callable[Parameters, Plot]
    ranges: Ranges = field(default_factory=dict)

    def __call__(self, *given: Parameters.args, **named: Parameters.kwargs) -> Plot:
        """The figure with these arguments; those of the notes where none is given."""
        try:
            bound = self.signature.bind(*given, **named)
        except TypeError:
            unknown = [name for name in named if name not in self.signature.parameters]
            hint = did_you_mean(unknown[0], self.signature.parameters) if unknown else f"give {self.signature}"
            got = format_value(unknown[0]) if unknown else f"{len(given) + len(named)} arguments"
            raise UserError(f"expected arguments of {self.name}, got {got}; {hint}") from None
        for name, value in bound.arguments.items():
            self._check(name, value)
        plot = self.function(*given, **named)
        changed = [
            f"{name}={value}"
            for name, value in bound.arguments.items()
            if value != self.signature.parameters[name].default
        ]
        plot.alt = f"{self.caption} Here {', '.join(changed)}." if changed else self.caption
        return plot

    def plot(self) -> Plot:
        """The figure as the notes have it."""
        plot = self.function()  # type: ignore[call-arg] - every parameter has a default: `figure` sees to it
        plot.alt = self.caption
        return plot

    @property
    def name(self) -> str:
        return self.function.__name__

    @functools.cached_property
    def signature(self) -> inspect.Signature:
        return inspect.signature(self.function)

    def __repr__(self) -> str:
        return f"Figure({self.ids[0]!r}, {self.name}{str(self.signature).removesuffix(' -> quoin.plot.plots.Plot')})"[
            :200
        ]

    def _repr_html_(self) -> str:
        return self.plot().figure_html(f"{self.ids[0]}: {self.caption}")

    def _check(self, name: str, value: Any) -> None:
        """A number where a number stands in the notes, or so many of them, each in its range."""
        parameter = self.signature.parameters[name]
        low, high = self.ranges[name]
        if not isinstance(parameter.default, tuple):
            _check_number(name, value, parameter.default, low, high)
            return
        length = len(parameter.default)
        is_open = typing.get_args(parameter.annotation)[-1:] == (Ellipsis,)
        if not isinstance(value, (list, tuple)) or not value or (len(value) != length and not is_open):
            many = "one or more" if is_open else str(length)
            raise UserError(f"expected {many} numbers for {name}, got {format_value(value)}; give a list")
        for each in value:
            _check_number(name, each, parameter.default[0], low, high)


def _check_number(name: str, value: Any, default: float, low: float, high: float) -> None:
    kind, words = (numbers.Integral, "a whole number") if isinstance(default, int) else (numbers.Real, "a number")
    if isinstance(value, bool) or not isinstance(value, kind) or not low <= float(value) <= high:  # NaN fails too
        raise UserError(
            f"expected {words} from {low:g} to {high:g} for {name}, got {format_value(value)}; "
            f"the notes have {default:g}"
        )


def figure(
    ids: str | Sequence[str], caption: str, ranges: Ranges | None = None
) -> Callable[[Callable[Parameters, Plot]], Figure[Parameters]]:
    """Mark `f(...) -> Plot` as the figure of these ids; each of its parameters has a default, the number that the notes
    have, and a range in `ranges`."""
    ids = notes.known(ids)

    def declare(function: Callable[Parameters, Plot]) -> Figure[Parameters]:
        parameters = inspect.signature(function).parameters
        if parameters.keys() != (ranges or {}).keys():
            raise ValueError(f"figure {ids[0]}: parameters {list(parameters)} have ranges {list(ranges or {})}")
        for each in parameters.values():
            if each.default is inspect.Parameter.empty:
                raise ValueError(f"figure {ids[0]}: the parameter {each.name} has no default")
        return Figure(ids, caption, function, ranges or {})

    return declare


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
    files = []
    with current_listener().progress("figures") as on_progress:
        for number, item in enumerate(figures):
            on_progress(number, len(figures))
            files.append(item.plot().save(folder / f"{item.ids[0]}.{format}"))
    return files
