"""Values in a few characters: a tensor is its dtype and shape unless it is tiny, a long list its first entries."""

import dataclasses
import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from quoin.errors import format_value

__all__ = ["is_array", "one_line", "short", "shown_fields"]

LINE = 200  # characters of a repr
VALUE = 60  # and of one of its values
_FEW = 6  # numbers that are shown themselves
_CANNOT_READ = (RuntimeError, TypeError, ValueError, AttributeError, NotImplementedError)  # of torch's traced tensors


def is_array(value: object) -> bool:
    """Whether it is a tensor or an array: it has axes and a dtype."""
    return hasattr(value, "shape") and hasattr(value, "dtype") and hasattr(value, "tolist")


def short(value: Any, limit: int = VALUE) -> str:
    """`value` in at most `limit` characters on one line.

    >>> short([0.5, 0.25])
    '[0.5, 0.25]'
    >>> short(0.1 + 0.2), short("a\\nb")
    ('0.3', "'a\\\\nb'")
    """
    if is_array(value):
        return _array(value, limit)
    if isinstance(value, float):
        return repr(value) if len(repr(value)) <= 8 else f"{value:.6g}"
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return _series(value, "()" if isinstance(value, tuple) else "[]", limit)
    if isinstance(value, Mapping):
        inside = [f"{short(name, limit)}: {short(each, limit)}" for name, each in list(value.items())[:_FEW]]
        return _joined(inside, len(value), "{}", limit)
    if hasattr(value, "named_parameters"):  # a module's own repr is a tree of many lines
        return type(value).__name__
    if inspect.isroutine(value) or inspect.isclass(value):
        return str(getattr(value, "__name__", type(value).__name__))
    if type(value).__repr__ is object.__repr__:
        return type(value).__name__
    return format_value(value, limit).replace("\n", " ")


def one_line(name: str, fields: Mapping[str, Any], limit: int = LINE) -> str:
    """`name(field=value, ...)`, values shortened, and the last fields left out where the line would be too long."""
    parts: list[str] = []
    left = limit - len(name) - len("(, ...)")
    for field, value in fields.items():
        part = f"{field}={short(value)}"
        if len(part) > left:
            parts.append("...")
            break
        parts.append(part)
        left -= len(part) + 2
    return f"{name}({', '.join(parts)})"


def shown_fields(thing: object) -> dict[str, Any]:
    """What an object is made of: the fields of a named tuple or dataclass, else those arguments of its constructor
    that it keeps, or
    its public attributes. Nothing is computed for it."""
    if isinstance(thing, tuple):
        return {name: getattr(thing, name) for name in getattr(thing, "_fields", ())}
    if dataclasses.is_dataclass(thing):
        return {
            each.name: getattr(thing, each.name)
            for each in dataclasses.fields(thing)
            if each.repr and hasattr(thing, each.name)
        }
    kept = getattr(thing, "__dict__", {})
    if not kept:  # a number, say, whose type tells no signature
        return {}
    named = [each for each in inspect.signature(type(thing)).parameters if each != "generator"]
    found = {name: kept[key] for name in named for key in (name, f"_{name}") if key in kept}
    return found or {name: value for name, value in kept.items() if not name.startswith("_")}


def _array(value: Any, limit: int) -> str:
    kind = f"{str(value.dtype).rsplit('.', 1)[-1]}[{', '.join(map(str, value.shape))}]"
    count = 1
    for size in value.shape:
        count *= size
    if count > _FEW or len(value.shape) > 1 or count == 0:
        return kind
    try:
        text = repr(value)
    except _CANNOT_READ:  # a tensor without numbers, as while a graph is traced
        return kind
    return text if len(text) <= limit and "\n" not in text else kind


def _series(values: Sequence[Any], brackets: str, limit: int) -> str:
    comma = "," if len(values) == 1 and brackets == "()" else ""
    return _joined([short(each, limit) for each in values[:_FEW]], len(values), brackets, limit, comma)


def _joined(parts: Iterable[str], count: int, brackets: str, limit: int, comma: str = "") -> str:
    """As many of the parts as there are characters for, and how many there are in all where some are left out."""
    parts = list(parts)
    whole = f"{brackets[0]}{', '.join(parts)}{comma}{brackets[1]}"
    if len(parts) == count and len(whole) <= limit:
        return whole
    while parts and len(", ".join(parts)) > limit - 16:
        parts.pop()
    return f"{brackets[0]}{', '.join([*parts, '...'])}{brackets[1]} of {count}"
