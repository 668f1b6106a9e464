"""How the options of a sweep are written: one value, choices by commas, a range by two dots. Imports no torch.

--lr 0.1                 one value, for all trials
--batch-size 32,64       choices
--lr 1e-3..1e-1          a range, here of real numbers; of whole ones where the option is
--lr 1e-3..1e-1:log      by the logarithm
--dropout 0.1..0.5:0.1   in steps
--lr 1e-3..1e-1:log:n=5  as so many points
--hidden-dims 128, 256 128   lists as `quoin train` takes them, commas between them
--data 'csv:a\\,b.csv'    a comma that belongs to a text
"""

import argparse
import dataclasses
import math
import re
import typing
from collections.abc import Callable, Sequence
from typing import Any

from quoin.cli.flags import Parser, any_number, whole_number
from quoin.errors import UserError, format_value
from quoin.options import ValidatedOptions, flag_name
from quoin.runs.sweep_space import Space, SweepChoices, SweepRange

__all__ = ["SYNTAX", "add_swept_options", "read_swept_options"]

MOST_POINTS = 1000
SYNTAX = """\
values of an option:
  --lr 0.1                   one value: the same in all trials
  --batch-size 32,64         choices, commas between them
  --lr 1e-3..1e-1            any number of a range (--num-layers 1..8: any whole number)
  --lr 1e-3..1e-1:log        the same, uniform in its logarithm
  --dropout 0.1..0.5:0.1     in steps of 0.1
  --lr 1e-3..1e-1:log:n=5    five points of the range
  --hidden-dims 128, 256 128     choices among lists: [128] and [256, 128]
  --batch-norm yes,no        choices for a switch
  --data 'csv:a\\,b.csv'      a comma that belongs to the text
  --lr=-1..1                 as one word, a value that begins with a minus sign"""
_PLAIN = ("seed", "monitor")  # options of the sweep itself: one value each


def add_swept_options(parser: Parser, kind: type[ValidatedOptions], title: str) -> None:
    """One flag a field of `kind`, each of which takes a value, choices or a range as text."""
    group = parser.add_argument_group(title)
    kinds = typing.get_type_hints(kind)
    for each in dataclasses.fields(kind):
        flag, default = flag_name(each.name), each.default
        parser.flags.append(flag)
        help = each.metadata.get("help", "").replace("%", "%%")
        if default not in (None, "", ()):
            shown = " ".join(map(str, default)) if isinstance(default, tuple) else default
            help += f" (default: {('yes' if default else 'no') if isinstance(default, bool) else shown})"
        known: dict[str, Any] = {"dest": f"option_{each.name}", "default": argparse.SUPPRESS}
        if kinds[each.name] is bool:
            parser.flags.append(f"--no-{flag[2:]}")
            group.add_argument(flag, help=help, nargs="*", metavar="yes|no", **known)
            group.add_argument(f"--no-{flag[2:]}", help=argparse.SUPPRESS, action="store_const", const=["no"], **known)
        else:
            metavar = "VALUE" if each.name in _PLAIN else "VALUES"
            group.add_argument(flag, help=help, nargs="+", metavar=metavar, **known)


def read_swept_options(kind: type[ValidatedOptions], parsed: argparse.Namespace) -> tuple[dict[str, Any], Space]:
    """The options of one value each, and the space of those of several."""
    fixed: dict[str, Any] = {}
    space: dict[str, SweepRange | SweepChoices] = {}
    kinds = typing.get_type_hints(kind)
    for each in dataclasses.fields(kind):
        if (given := getattr(parsed, f"option_{each.name}", None)) is None:
            continue
        found = _read(flag_name(each.name), kinds[each.name], given)
        if not isinstance(found, (SweepRange, SweepChoices)):
            fixed[each.name] = found
        elif each.name in _PLAIN:
            instead = "--seeds INT repeats each trial over seeds" if each.name == "seed" else "give one metric"
            raise UserError(f"--{each.name} is no option to sweep over: {instead}")
        else:
            space[each.name] = found
    return fixed, space


def _read(flag: str, kind: Any, given: Sequence[str]) -> Any:
    """One value, or a range, or choices."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is not typing.Literal and type(None) in inner:
        kind = next(each for each in inner if each is not type(None))
    is_list = origin is tuple
    item = inner[0] if is_list else kind
    text = " ".join(given) if given else "yes"
    if not is_list and item in (int, float) and ".." in text:
        return _range(flag, item, text)
    pieces = [piece.strip().replace("\\,", ",") for piece in re.split(r"(?<!\\),", text)]
    if not all(pieces):
        raise UserError(f"{flag} {format_value(text)}: a value is missing beside a comma; write as in 32,64")
    values = [
        tuple(_one(flag, item, word) for word in piece.split()) if is_list else _one(flag, item, piece)
        for piece in pieces
    ]
    values = [value for number, value in enumerate(values) if value not in values[:number]]
    return values[0] if len(values) == 1 else SweepChoices(tuple(values))


def _one(flag: str, kind: Any, text: str) -> Any:
    """A value of this type; words and ranges are the options' own matter."""
    if kind is bool:
        if text.lower() not in ("yes", "no", "true", "false"):
            raise UserError(f"{flag} expects yes or no, got {format_value(text)}")
        return text.lower() in ("yes", "true")
    readers: dict[Any, Callable[[str], Any]] = {int: whole_number, float: any_number}
    try:
        return readers.get(kind, str)(text)
    except argparse.ArgumentTypeError as error:
        raise UserError(f"{flag} {error}") from None


def _range(flag: str, kind: Any, text: str) -> SweepRange | SweepChoices:
    ends, *suffixes = text.split(":")
    low, high = (_one(flag, kind, end.strip()) for end in ends.split("..", 1))
    where = f"{flag} {format_value(text)[1:-1]}"
    if "," in ends or not (math.isfinite(low) and math.isfinite(high)):
        raise UserError(f"{where}: expected two numbers around the dots; a range and choices do not mix")
    if low >= high:
        raise UserError(f"{where}: the range is empty; write the smaller number first, as in 1e-3..1e-1")
    log, step, points = False, None, None
    for suffix in suffixes:
        if suffix == "log":
            log = True
        elif suffix.startswith("n="):
            points = _one(f"{where}: n=", int, suffix[2:])
        elif re.match(r"[-+.\d]", suffix):
            step = _one(where, kind, suffix)
        else:
            raise UserError(f"{where}: expected :log, :STEP or :n=POINTS behind a range, got {format_value(suffix)}")
    if log and low <= 0:
        raise UserError(f"{where}: a logarithmic range begins above 0, this one at {low:g}; begin higher, or drop :log")
    if step is not None and (log or points is not None):
        raise UserError(f"{where}: a step goes neither with log nor with n=; write :log:n=5 for points")
    if step is not None and not 0 < step <= high - low:
        raise UserError(f"{where}: expected a step above 0 and at most {high - low:g}, got {step:g}")
    if points is None:
        return SweepRange(low, high, log, step)
    if not 2 <= points <= MOST_POINTS:
        raise UserError(f"{where}: expected from 2 to {MOST_POINTS} points, got {points}")
    return _points(kind, low, high, log, points)


def _points(kind: Any, low: float, high: float, log: bool, number: int) -> SweepChoices:
    """So many numbers evenly apart, or by equal factors; whole ones are rounded, and each is taken once."""
    fractions = [index / (number - 1) for index in range(number)]
    values = [low * (high / low) ** each if log else low + (high - low) * each for each in fractions]
    values = [low, *values[1:-1], high]
    return SweepChoices(tuple(dict.fromkeys(round(each) if kind is int else float(f"{each:.6g}") for each in values)))
