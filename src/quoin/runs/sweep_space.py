"""What a sweep searches: for each option that varies, a range of numbers or the choices among values. Imports no torch.

How a user writes them on the command line is in cli/sweep_syntax.py; how Optuna samples them, in sweep_storage.py.
"""

import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from quoin.documents import checked
from quoin.errors import UserError, format_value
from quoin.options import ValidatedOptions, flag_name

__all__ = [
    "Space",
    "SweepChoices",
    "SweepRange",
    "check_space",
    "grid",
    "grid_size",
    "space_from_json",
    "space_to_json",
    "written",
]

LARGEST_GRID = 10_000
_CHECKED = 512  # combinations of ends and choices that are all tried on the options before anything starts


@dataclass(frozen=True)
class SweepRange:
    """Numbers from `low` to `high`, both included: whole ones if both are; evenly, by their logarithm, or in steps."""

    low: float
    high: float
    log: bool = False
    step: float | None = None

    @property
    def is_whole(self) -> bool:
        return isinstance(self.low, int) and isinstance(self.high, int)

    def ends(self) -> list[Any]:
        return [self.low, self.high]

    def points(self) -> list[Any] | None:
        """All values, where they can be counted: those of steps, and whole numbers."""
        if self.log or (self.step is None and not self.is_whole):
            return None
        step = Decimal(repr(self.step if self.step is not None else 1))
        low, number = Decimal(repr(self.low)), self._num_steps(step)
        if number >= LARGEST_GRID:
            return None
        return [(int if self.is_whole else float)(low + index * step) for index in range(number + 1)]

    def _num_steps(self, step: Decimal) -> int:
        return int((Decimal(repr(self.high)) - Decimal(repr(self.low))) / step)

    @property
    def last(self) -> float:
        """The largest value: `high`, or the last step below it."""
        if self.step is None:
            return self.high
        step = Decimal(repr(self.step))
        value = Decimal(repr(self.low)) + self._num_steps(step) * step
        return int(value) if self.is_whole else float(value)

    def rounded(self, value: float) -> Any:
        """A sampled value with six digits that matter, so that a command can be pasted."""
        return int(value) if self.is_whole else min(max(float(f"{value:.6g}"), self.low), self.high)

    def __str__(self) -> str:
        how = ":log" if self.log else f":{self.step:g}" if self.step is not None else ""
        return f"{self.low:g}..{self.high:g}{how}"


@dataclass(frozen=True)
class SweepChoices:
    """One of these values: numbers, words, yes and no, lists."""

    values: tuple[Any, ...]

    def ends(self) -> list[Any]:
        return list(self.values)

    def points(self) -> list[Any]:
        return list(self.values)

    def __str__(self) -> str:
        return ", ".join(map(written, self.values))


Space = Mapping[str, SweepRange | SweepChoices]  # by the name of the option


def written(value: Any) -> str:
    """A value as a command has it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def check_space(options: ValidatedOptions, space: Space) -> None:
    """Try the ends of ranges and all choices on the options' own class, which refuses what is out of range or does not
    go together: now, and not in the trial that meets it."""
    ends = {name: each.ends() for name, each in space.items()}
    if math.prod(map(len, ends.values())) <= _CHECKED:
        together: Iterator[dict[str, Any]] = (dict(zip(ends, values)) for values in itertools.product(*ends.values()))
    else:
        together = ({name: value} for name, values in ends.items() for value in values)
    for values in together:
        dataclasses.replace(options, **values)


def grid_size(space: Space) -> int:
    """How many combinations a grid has; a range without steps has no end of them."""
    for name, each in space.items():
        if each.points() is None:
            raise UserError(
                f"{flag_name(name)} {each}: a grid needs points, and this range has none; write a step as in "
                "0.1..0.5:0.1, or a number of points as in 1e-3..1e-1:log:n=5"
            )
    number = math.prod(len(each.points() or ()) for each in space.values())
    if number > LARGEST_GRID:
        raise UserError(f"expected a grid of at most {LARGEST_GRID} trials, got {number}: choose --sampler random")
    return number


def grid(space: Space, number: int) -> dict[str, Any]:
    """Combination `number` of the grid; the last option changes fastest."""
    found = {}
    for name, each in reversed(list(space.items())):
        points = each.points() or []
        number, index = divmod(number, len(points))
        found[name] = points[index]
    return dict(reversed(list(found.items())))


def space_to_json(space: Space) -> dict[str, Any]:
    """As config.json keeps it."""
    return {
        name: {"choices": [list(value) if isinstance(value, tuple) else value for value in each.values]}
        if isinstance(each, SweepChoices)
        else dataclasses.asdict(each)
        for name, each in space.items()
    }


def space_from_json(options: ValidatedOptions, value: dict[str, Any], where: str) -> Space:
    """What `space_to_json` wrote, checked as a new one is."""
    space: dict[str, SweepRange | SweepChoices] = {}
    names = {each.name for each in dataclasses.fields(options)}
    for name, each in value.items():
        if name not in names:
            raise UserError(f"{where}: the sweep is over {format_value(name)}, no option of its recipe; restore it")
        if isinstance(each, dict) and "choices" in each:
            choices = checked(list[Any], each["choices"], f"{where}, {name}")
            space[name] = SweepChoices(tuple(tuple(one) if isinstance(one, list) else one for one in choices))
        else:
            kind = {"low": int | float, "high": int | float, "log": bool, "step": int | float | None}
            known = checked(dict[str, Any], each, f"{where}, {name}")
            if known.keys() != kind.keys():
                raise UserError(f"{where}: expected low, high, log and step for {name}; restore the file")
            space[name] = SweepRange(**{key: checked(kind[key], known[key], f"{where}, {name}") for key in kind})
    if not space or any(not each.ends() for each in space.values()):
        raise UserError(f"{where}: expected options to sweep over, got none; restore the file")
    check_space(options, space)
    return space
