"""What a reader can move on a page: sliders, choices, texts, handles in the picture, cells to paint, files.

A control knows its default, how it is shown, and how to read what a browser sends: `parse` gives back a value that
`show` functions can trust, or raises a UserError of one line. Nothing that arrives is evaluated.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from quoin.errors import UserError, format_value

__all__ = [
    "RIGHT",
    "Choice",
    "Clock",
    "Control",
    "DragPoints",
    "File",
    "Handle",
    "Paint",
    "Slider",
    "Step",
    "Switch",
    "Text",
    "printed_choice",
]

TEXT_BYTES = 20_000
RIGHT = "right"


@dataclass(frozen=True)
class Control:
    """A named value of an exhibit's state."""

    kind: ClassVar[str] = ""

    name: str
    label: str

    @property
    def initial(self) -> Any:
        raise NotImplementedError

    def parse(self, value: object) -> Any:
        """`value`, as it came from the browser or from a link, as what `show` is given."""
        raise NotImplementedError

    def spec(self) -> dict[str, Any]:
        """What the browser needs to show it."""
        return {"kind": self.kind, "name": self.name, "label": self.label, "initial": self.initial}


def _number(name: str, value: object, low: float, high: float) -> float:
    try:
        number = float(value)  # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not low <= number <= high:
        raise UserError(
            f"expected {name} between {low:g} and {high:g}, got {format_value(value)}; move it back into the range"
        )
    return number


@dataclass(frozen=True)
class Slider(Control):
    """A number between `low` and `high`: in steps, or (log) by factors, or one of `choices`.

    Args:
        step: The distance of neighbouring values; a whole number (given as an int) makes all values ints.
        log: Equal distances on the slider are equal factors.
        choices: The only values there are, in order; low, high and step follow from them.
        last: What the browser shows for the last of the choices, where that is no number: JSON has no infinity.
    """

    kind = "slider"

    low: float = 0.0
    high: float = 1.0
    default: float = 0.0
    step: float = 0.01
    log: bool = False
    choices: tuple[float, ...] = ()
    unit: str = ""
    last: str = ""

    def __post_init__(self):
        if self.choices:
            object.__setattr__(self, "low", min(self.choices))
            object.__setattr__(self, "high", max(self.choices))
        if not self.low <= self.default <= self.high or (self.choices and self.default not in self.choices):
            raise ValueError(f"slider {self.name}: the default {self.default} is none of its values")

    @property
    def whole(self) -> bool:
        return isinstance(self.default, int)

    @property
    def initial(self) -> float:
        return self.default

    def parse(self, value: object) -> float:
        number = _number(self.label or self.name, value, self.low, self.high)
        if self.choices:
            number = min(self.choices, key=lambda choice: abs(choice - number))
        return round(number) if self.whole else number

    def spec(self) -> dict[str, Any]:
        return {
            **super().spec(),
            "low": self.low,
            "high": self.high,
            "step": self.step,
            "log": self.log,
            "whole": self.whole,
            "choices": list(self.choices),
            "unit": self.unit,
            "last": self.last,
        }


@dataclass(frozen=True)
class Choice(Control):
    """One of a few words.

    Args:
        texts: What the browser shows for each option, where that is not the option itself.
    """

    kind = "choice"

    options: tuple[str, ...] = ()
    default: str = ""
    texts: tuple[str, ...] = ()

    @property
    def initial(self) -> str:
        return self.default or self.options[0]

    def parse(self, value: object) -> str:
        if value not in self.options:
            raise UserError(f"expected {self.label}: {', '.join(self.options)}; got {format_value(value)}; choose one")
        return str(value)

    def spec(self) -> dict[str, Any]:
        return {**super().spec(), "options": list(self.options), "texts": list(self.texts or self.options)}


def printed_choice(forms: Mapping[str, str]) -> Choice:
    """Which of several errata of one exhibit is shown as printed: its id, or `RIGHT` for none. Key p goes through them.

    Args:
        forms: For each id what is printed, in a few words.
    """
    texts = ("as it is right", *(f"{id}, as printed: {words}" for id, words in forms.items()))
    return Choice("printed", "form", (RIGHT, *forms), texts=texts)


@dataclass(frozen=True)
class Switch(Control):
    """On or off. A switch named `printed` shows the notes' printed form; key p turns it."""

    kind = "switch"

    default: bool = False

    @property
    def initial(self) -> bool:
        return self.default

    def parse(self, value: object) -> bool:
        if value in (True, 1, "1", "true"):
            return True
        if value in (False, 0, "0", "false"):
            return False
        raise UserError(f"expected {self.label} on or off, got {format_value(value)}; click it")


@dataclass(frozen=True)
class Text(Control):
    """A text to type, of at most `most` characters; `rows` above 1 make it an area."""

    kind = "text"

    default: str = ""
    most: int = 200
    rows: int = 1

    @property
    def initial(self) -> str:
        return self.default

    def parse(self, value: object) -> str:
        if not isinstance(value, str) or len(value) > self.most or len(value.encode("utf-8", "replace")) > TEXT_BYTES:
            got = f"{len(value):,}" if isinstance(value, str) else format_value(value)
            raise UserError(f"expected {self.label} of at most {self.most:,} characters, got {got}; shorten it")
        return value.encode("utf-8", "replace").decode("utf-8")  # a lone surrogate is a question mark from here on

    def spec(self) -> dict[str, Any]:
        return {**super().spec(), "most": self.most, "rows": self.rows}


@dataclass(frozen=True)
class Step(Control):
    """Buttons *Step*, *Play* and *Back to the start*: a count from 0 to `most`."""

    kind = "step"

    most: int = 100
    default: int = 0
    by: int = 1
    interval: int = 200  # milliseconds between the steps of Play

    @property
    def initial(self) -> int:
        return self.default

    def parse(self, value: object) -> int:
        return round(_number(self.label, value, 0, self.most))

    def spec(self) -> dict[str, Any]:
        return {**super().spec(), "most": self.most, "by": self.by, "interval": self.interval}


@dataclass(frozen=True)
class Clock(Control):
    """Nothing to see: the browser asks again every `interval` milliseconds while the exhibit is in sight."""

    kind = "clock"

    interval: int = 2000
    ends: int = 10**9  # after so many

    @property
    def initial(self) -> int:
        return 0

    def parse(self, value: object) -> int:
        return round(_number(self.label, value, 0, self.ends))

    def spec(self) -> dict[str, Any]:
        return {**super().spec(), "interval": self.interval}


@dataclass(frozen=True)
class Handle(Control):
    """A point in the picture that a hand can hold: `Axes.handle` draws it. Its value is (x, y).

    Args:
        low, high: The corners of where it may be.
        whole: Whether the picture counts it in whole steps, such as cells: an arrow key then moves it by one.
    """

    kind = "handle"

    default: tuple[float, float] = (0.0, 0.0)
    low: tuple[float, float] = (-1.0, -1.0)
    high: tuple[float, float] = (1.0, 1.0)
    whole: bool = False

    @property
    def initial(self) -> list[float]:
        return list(self.default)

    def parse(self, value: object) -> tuple[float, float]:
        return _point(self.label, value, self.low, self.high)

    def spec(self) -> dict[str, Any]:
        return {**super().spec(), "low": list(self.low), "high": list(self.high), "whole": self.whole}


@dataclass(frozen=True)
class DragPoints(Control):
    """Points in the picture to drag, place (a click, if there are fewer than `most`) and remove (Delete).

    Its value is a list of (x, y). `Axes.points_to_drag` draws them. Where `classes` is above 1 each point is (x, y,
    class), and the choice named `class_name` says of which class a new one is.
    """

    kind = "points"

    default: tuple[tuple[float, ...], ...] = ()
    low: tuple[float, float] = (-1.0, -1.0)
    high: tuple[float, float] = (1.0, 1.0)
    most: int = 60
    least: int = 1
    classes: int = 1
    class_name: str = ""

    @property
    def initial(self) -> list[list[float]]:
        return [list(point) for point in self.default]

    def parse(self, value: object) -> list[tuple[float, ...]]:
        if not isinstance(value, Sequence) or isinstance(value, str) or not self.least <= len(value) <= self.most:
            got = len(value) if isinstance(value, Sequence) else format_value(value)
            raise UserError(f"expected {self.least} to {self.most} {self.label}, got {got}; add or remove some")
        return [self._point(each) for each in value]

    def _point(self, value: object) -> tuple[float, ...]:
        if self.classes == 1:
            return _point(self.label, value, self.low, self.high)
        if not isinstance(value, Sequence) or len(value) != 3:
            raise UserError(f"expected {self.label} as x, y and class, got {format_value(value)}; place it again")
        where = _point(self.label, value[:2], self.low, self.high)
        return *where, round(_number(f"class of {self.label}", value[2], 0, self.classes - 1))

    def spec(self) -> dict[str, Any]:
        return {
            **super().spec(),
            "low": list(self.low),
            "high": list(self.high),
            "most": self.most,
            "least": self.least,
            "classes": self.classes,
            "class_name": self.class_name,
        }


def _point(label: str, value: object, low: tuple[float, float], high: tuple[float, float]) -> tuple[float, float]:
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != 2:
        raise UserError(f"expected {label} as two numbers, got {format_value(value)}; drag it again")
    x, y = (_number(label, each, a, b) for each, a, b in zip(value, low, high))
    return x, y


@dataclass(frozen=True)
class Paint(Control):
    """Cells to paint: `rows` times `columns` numbers from 0 to `levels` - 1, row by row. `Axes.paint` draws them.

    A click or drag sets cells to the next level of the first one touched.
    """

    kind = "paint"

    rows: int = 8
    columns: int = 8
    levels: int = 2
    default: tuple[int, ...] = ()

    @property
    def initial(self) -> list[int]:
        return list(self.default) or [0] * (self.rows * self.columns)

    def parse(self, value: object) -> list[int]:
        size = self.rows * self.columns
        if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != size:
            raise UserError(f"expected {size} cells of {self.label}, got {format_value(value)}; paint again")
        return [round(_number(f"a cell of {self.label}", each, 0, self.levels - 1)) for each in value]

    def spec(self) -> dict[str, Any]:
        return {**super().spec(), "rows": self.rows, "columns": self.columns, "levels": self.levels}


@dataclass(frozen=True)
class File(Control):
    """A file of the reader's own, of at most `most` bytes. Its value is its bytes, or None before one is chosen."""

    kind = "file"

    endings: tuple[str, ...] = (".csv",)
    most: int = 5_000_000

    @property
    def initial(self) -> None:
        return None

    def parse(self, value: object) -> bytes | None:
        if value is None or value == "":
            return None
        if not isinstance(value, str):
            raise UserError(f"expected a file for {self.label}, got {format_value(value)}; choose one")
        if len(value) > self.most * 4 / 3 + 4:
            raise UserError(f"expected a file of at most {self.most:,} bytes, got a larger one; choose a smaller one")
        try:
            return base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            raise UserError(f"expected a file for {self.label}, got something else; choose it again") from None

    def spec(self) -> dict[str, Any]:
        return {**super().spec(), "endings": list(self.endings), "most": self.most}
