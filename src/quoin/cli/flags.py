"""Flags from dataclasses, and a parser whose errors are one line with the nearest name. Standard library only.

A small bridge instead of a library for it: the ones there are report mistakes in boxes of many lines.
"""

import argparse
import dataclasses
import typing
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NoReturn, TypeVar

from quoin.errors import UserError, did_you_mean, format_value
from quoin.options import CALLED_ELSEWHERE, ValidatedOptions, choices_of, flag_name, takes_own_part

__all__ = ["AUTO", "Parser", "add_options", "any_number", "number_or_auto", "read_options", "whole_number"]

AUTO = "auto"  # in place of a number that the command is to find

Options = TypeVar("Options", bound=ValidatedOptions)
Group = argparse._ArgumentGroup  # the standard library has no public name for it


class Parser(argparse.ArgumentParser):
    """argparse, but a mistake is raised instead of printed with the usage."""

    def __init__(self, prog: str, description: str, epilog: str = "") -> None:
        super().__init__(
            prog=prog,
            description=description,
            epilog=epilog,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self.flags: list[str] = ["--help"]

    def add_flag(
        self,
        names: str,
        help: str,
        metavar: str,
        *,
        type: Callable[[str], Any] = str,
        default: Any = None,
        group: Group | None = None,
    ) -> None:
        """A flag that takes a value, by one or several names ("-n --num-samples"), under the heading of its group if it
        has one."""
        self.flags += names.split()
        (group or self).add_argument(
            *names.split(), help=help.replace("%", "%%"), metavar=metavar, type=type, default=default
        )

    def add_rows(self, name: str, help: str) -> None:
        """A flag that takes whole numbers, one or more."""
        self.flags.append(name)
        self.add_argument(name, help=help.replace("%", "%%"), metavar="INT", type=whole_number, nargs="+", default=[])

    def add_repeated(self, name: str, help: str, metavar: str) -> None:
        """A flag that takes one value each time it is given; None where it never is."""
        self.flags.append(name)
        self.add_argument(name, help=help.replace("%", "%%"), metavar=metavar, action="append")

    def add_switch(self, name: str, help: str, *, group: Group | None = None) -> None:
        """A flag that is there or not."""
        self.flags.append(name)
        (group or self).add_argument(name, help=help.replace("%", "%%"), action="store_true")

    def parse(self, words: Sequence[str]) -> argparse.Namespace:
        """All the words, or a UserError that names the first one which does not belong."""
        parsed, unknown = self.parse_known_args(words)
        if unknown:
            word = unknown[0].partition("=")[0]
            hint = self._hint(word) if word.startswith("-") else "it stands where nothing is expected"
            raise UserError(f"{self.prog} does not know {format_value(word)}: {hint}")
        return parsed

    def _hint(self, flag: str) -> str:
        meant = CALLED_ELSEWHERE.get(flag.strip("-").replace("_", "-"), "")
        if meant.startswith("quoin "):
            return f"`{meant} RUN` does that"
        return did_you_mean(meant if meant in self.flags else flag, self.flags)

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message.removeprefix('argument ')}; see `{self.prog} --help`")


def add_options(
    parser: Parser,
    kind: type[ValidatedOptions],
    title: str,
    *,
    auto: Mapping[str, str] = MappingProxyType({}),
    without: Sequence[str] = (),
) -> None:
    """One flag a field, under a heading of their own in the help.

    Args:
        auto: Fields of numbers that take the word `auto` too, and what it stands for; the command finds the number.
        without: Fields that get no flag.
    """
    group = parser.add_argument_group(title)
    kinds = typing.get_type_hints(kind)
    for each in dataclasses.fields(kind):
        if each.name in without:
            continue
        flag, default, reading = flag_name(each.name), each.default, _reading(kinds[each.name])
        parser.flags.append(flag)
        help = each.metadata.get("help", "").replace("%", "%%")
        if each.name in auto:
            help, reading = f"{help}; auto {auto[each.name]}", {"type": number_or_auto, "metavar": "FLOAT|auto"}
        help += f" (default: {_format_default(default)})" if default not in (None, "", ()) else ""
        try:
            group.add_argument(flag, dest=f"option_{each.name}", help=help, default=argparse.SUPPRESS, **reading)
        except argparse.ArgumentError:
            raise UserError(
                f"the option {each.name} of {title.removeprefix('options of ')} clashes with another flag {flag} of "
                f"`{parser.prog}`: choose another name"
            ) from None


def read_options(kind: type[Options], parsed: argparse.Namespace) -> Options:
    """The options object that the flags spell; fields without a flag keep their default."""
    given = vars(parsed)
    names = [each.name for each in dataclasses.fields(kind) if f"option_{each.name}" in given]
    values = {name: given[f"option_{name}"] for name in names}
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})


def _format_default(default: Any) -> str:
    if isinstance(default, bool):
        return "yes" if default else "no"
    return " ".join(map(str, default)) if isinstance(default, tuple) else str(default)


def _reading(kind: Any) -> dict[str, Any]:
    """How argparse is to read a value of this type."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if kind is bool:
        return {"action": argparse.BooleanOptionalAction}
    if origin is typing.Literal or takes_own_part(kind):
        names = [*choices_of(kind), *(["FILE.py:NAME"] if takes_own_part(kind) else [])]
        return {"type": str, "metavar": "|".join(names)}  # ValidatedOptions names the nearest choice
    if origin is tuple:
        return _reading(inner[0]) | {"nargs": "+"}
    if type(None) in inner:
        return _reading(next(each for each in inner if each is not type(None)))
    read, metavar = {str: (str, "STR"), int: (whole_number, "INT"), float: (any_number, "FLOAT")}[kind]
    return {"type": read, "metavar": metavar}


def whole_number(text: str) -> int:
    """`text` as an integer, for flags that no dataclass describes."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expects a whole number, got {format_value(text)}") from None


def number_or_auto(text: str) -> float | str:
    """`text` as a number, or the word `auto`."""
    try:
        return text if text == AUTO else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expects a number or {AUTO}, got {format_value(text)}") from None


def any_number(text: str) -> float:
    """`text` as a number, for flags that no dataclass describes."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expects a number, got {format_value(text)}") from None
