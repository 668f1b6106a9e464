"""JSON that may have been edited by hand: parsed once and validated against a type; an error is one line that names the
file and the place in it.

A type says what a document must hold: a dataclass or a TypedDict of whole numbers, numbers, text, lists of them ...,
each narrowed where needed by `Annotated[int, Must(...)]`. Imports no torch.
"""

import dataclasses
import json
import math
import types
import typing
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

from quoin.errors import UserError, format_value

__all__ = ["Count", "Must", "Name", "Size", "checked", "parse_json"]

DEEPEST = 32  # levels of lists and objects, of which ours have six
LARGEST = 2**63 - 1
REMEDY = "restore the file or train again"


class Must(NamedTuple):
    """What a value must be beside its type."""

    words: str
    holds: Callable[[Any], bool]


Count = Annotated[int, Must("a whole number from 0 on", lambda number: number >= 0)]
Size = Annotated[int, Must("a whole number from 1 to a million", lambda number: 1 <= number <= 10**6)]
Name = Annotated[
    str, Must("a name of 1 to 200 printable characters", lambda text: 0 < len(text) <= 200 and text.isprintable())
]


def parse_json(content: bytes, where: str) -> Any:
    """The value that `content` writes in UTF-8, of finite numbers that a float can hold, not nested out of all measure.

    >>> parse_json(b'{"a": [1, 2.5]}', "here")
    {'a': [1, 2.5]}
    """
    try:
        value = json.loads(content.decode("utf-8"), parse_int=_whole, parse_float=_finite, parse_constant=_finite)
        if _depth(value) <= DEEPEST:
            return value
        raise ValueError(f"nested more than {DEEPEST} deep")
    except RecursionError:
        raise UserError(f"{where} cannot be read as JSON (nested too deep): {REMEDY}") from None
    except ValueError as error:
        raise UserError(f"{where} cannot be read as JSON ({str(error)[:100]}): {REMEDY}") from None


def _whole(digits: str) -> int:
    if len(digits) > 20 or abs(int(digits)) > LARGEST:
        raise ValueError(f"a whole number of {len(digits)} digits, beyond 64 bits")
    return int(digits)


def _finite(digits: str) -> float:
    if not math.isfinite(number := float(digits)):
        raise ValueError(f"the number {digits[:20]}, which is not finite")
    return number


def _depth(value: Any) -> int:
    """Level by level, not by recursion: what is measured may be too deep for that."""
    depth, level = 0, [value]
    while level := [each for each in level if isinstance(each, (dict, list))]:
        level = [inner for each in level for inner in (each.values() if isinstance(each, dict) else each)]
        depth += 1
    return depth


def checked(kind: Any, value: Any, where: str) -> Any:
    """`value` as a `kind`: lists become tuples and objects dataclasses where the type says so; else a UserError that
    begins with `where`.

    >>> checked(tuple[int, ...], [1, 2], "here")
    (1, 2)
    >>> checked(dict[str, int], {"a": 1.5}, "here")
    Traceback (most recent call last):
    quoin.errors.UserError: here: expected a whole number for a, got 1.5; restore the file or train again
    """
    return _checked(kind, value, where, "")


def _checked(kind: Any, value: Any, where: str, place: str) -> Any:
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        found = _checked(inner[0], value, where, place)
        for must in inner[1:]:
            if isinstance(must, Must) and not must.holds(found):
                raise _error(must.words, value, where, place)
        return found
    if origin is typing.NotRequired:
        return _checked(inner[0], value, where, place)
    if origin in (typing.Union, types.UnionType):
        return _one_of(inner, value, where, place)
    if typing.is_typeddict(kind) or dataclasses.is_dataclass(kind):
        return _fields(kind, value, where, place)
    if origin is dict and isinstance(value, dict):
        of_keys, of_values = inner
        return {
            _checked(of_keys, key, where, f"a name in {place or 'it'}"): _checked(
                of_values, each, where, _under(place, key)
            )
            for key, each in value.items()
        }
    if origin is tuple and isinstance(value, (list, tuple)) and (inner[1:] == (...,) or len(inner) == len(value)):
        kinds = [inner[0]] * len(value) if inner[1:] == (...,) else inner
        return tuple(
            _checked(each, item, where, f"{place}[{number}]") for number, (each, item) in enumerate(zip(kinds, value))
        )
    if origin is list and isinstance(value, list):
        return [_checked(inner[0], item, where, f"{place}[{number}]") for number, item in enumerate(value)]
    if not _is(kind, origin, inner, value):
        raise _error(_spoken(kind), value, where, place)
    return value


def _one_of(kinds: tuple[Any, ...], value: Any, where: str, place: str) -> Any:
    """The first kind of a union that fits; where one may also be None, the UserError is that of the other."""
    for kind in kinds[:-1]:
        try:
            return _checked(kind, value, where, place)
        except UserError:
            if kinds[1:] == (type(None),) and value is not None:
                raise
    return _checked(kinds[-1], value, where, place)


def _fields(kind: Any, value: Any, where: str, place: str) -> Any:
    if not isinstance(value, dict):
        raise _error(_SPOKEN[dict], value, where, place)
    kinds = typing.get_type_hints(kind, include_extras=True)
    if not typing.is_typeddict(kind):
        needed = {
            each.name
            for each in dataclasses.fields(kind)
            if each.default is each.default_factory is dataclasses.MISSING
        }
    else:
        needed = kind.__required_keys__
    if missing := sorted(needed - value.keys()):
        raise UserError(f"{where}: expected {_under(place, missing[0])}, and there is none; {REMEDY}")
    if strange := [name for name in value if name not in kinds]:
        raise UserError(f"{where}: expected no {_under(place, strange[0])}, got one; {REMEDY}")
    found = {name: _checked(kinds[name], each, where, _under(place, name)) for name, each in value.items()}
    if typing.is_typeddict(kind):
        return found
    try:
        return kind(**found)
    except UserError as mistake:  # what the fields must be together
        raise UserError(f"{where}: {mistake}") from None


def _is(kind: Any, origin: Any, inner: tuple[Any, ...], value: Any) -> bool:
    if kind is Any:
        return True
    if origin is typing.Literal:
        return any(type(value) is type(each) and value == each for each in inner)
    if kind is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, kind) if origin is None else False


def _under(place: str, name: object) -> str:
    told = format_value(name, 40)[1:-1] if isinstance(name, str) else format_value(name, 40)
    return f"{place}.{told}" if place else told


def _error(words: str, value: Any, where: str, place: str) -> UserError:
    return UserError(
        f"{where}: expected {words}{f' for {place[-80:]}' if place else ''}, got {format_value(value, 40)}; {REMEDY}"
    )


_SPOKEN = {
    int: "a whole number",
    float: "a number",
    str: "text",
    bool: "true or false",
    type(None): "null",
    tuple: "a list",
    list: "a list",
    dict: "an object with named values",
}


def _spoken(kind: Any) -> str:
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Literal:
        return " or ".join(map(repr, inner))
    if origin is tuple and inner[1:] != (...,):
        return f"a list of {len(inner)}"
    return _SPOKEN.get(origin or kind, getattr(kind, "__name__", str(kind)))
