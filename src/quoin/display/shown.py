"""`@shown`: a class shows itself in one short line, and in a notebook as a table of its fields.

What a class writes itself stays: its own `__repr__`, its own `_repr_html_`.
"""

import inspect
import sys
from collections.abc import Callable
from typing import TypeVar

from quoin.display.short import one_line, shown_fields
from quoin.display.tables import fields_table

__all__ = ["shown"]

Shown = TypeVar("Shown")


def shown(cls: type[Shown]) -> type[Shown]:
    """Give the class a short `repr` and a table for notebooks.

    >>> from typing import NamedTuple
    >>> @shown
    ... class Fit(NamedTuple):
    ...     loss: float
    ...     weights: list
    >>> Fit(0.25, list(range(100)))
    Fit(loss=0.25, weights=[0, 1, 2, 3, 4, 5, ...] of 100)
    """
    methods: dict[str, Callable[..., str]] = {"__repr__": _repr, "_repr_html_": _repr_html}
    for name, method in methods.items():
        if not _is_written(cls, name):
            setattr(cls, name, method)
    return cls


def _repr(self: object) -> str:
    return one_line(type(self).__name__, shown_fields(self))


def _repr_html(self: object) -> str:
    return fields_table(type(self).__name__, shown_fields(self))


def _is_written(cls: type, name: str) -> bool:
    """Whether a class of ours, this one or one that it extends, has the method in its source: dataclasses and named
    tuples make a `__repr__` of their own, which has none."""
    for each in cls.__mro__:
        if (function := vars(each).get(name)) is not None:
            if not each.__module__.startswith("quoin"):
                return False
            code = getattr(inspect.unwrap(function), "__code__", None)
            return code is not None and code.co_filename == getattr(sys.modules[each.__module__], "__file__", None)
    return False
