"""User errors, in one line: expected, got, what to do.

Every package may import this file, and it imports none. `UserError` is the only error that the command line turns
into one line and an exit code (2); anything else is a fault of ours and keeps its traceback.
"""

import difflib
from collections.abc import Iterable

__all__ = ["UserError", "did_you_mean", "format_value"]

_LISTED = 120  # characters of names that are all told
_LONGEST = 60  # characters of a name that are compared


class UserError(ValueError):
    """A mistake of the caller: the message says what was expected, what it got and what to do."""

    exit_code = 2


def did_you_mean(name: str, names: Iterable[str], otherwise: str | None = None) -> str:
    """A closing hint: the nearest of `names` if one is near, else all of them, or the three nearest of many. At most
    150 characters.

    Args:
        otherwise: What to say where none is nearly the same. For names by the hundred, of which some are always a
            little like another word.

    >>> did_you_mean("digit", ["digits", "iris"])
    "did you mean 'digits'?"
    >>> did_you_mean("Digits", ["digits", "iris"])
    "did you mean 'digits'?"
    >>> did_you_mean("xyz", ["digits", "iris"])
    'choose from digits, iris'
    >>> did_you_mean("column nine", [f"x{i}" for i in range(500)])
    "the nearest of 500 are 'x0', 'x1', 'x10'"
    >>> did_you_mean("column nine", [f"x{i}" for i in range(500)], "there is none")
    'there is none'
    """
    known = sorted(names)
    name, alike = (
        name[:_LONGEST].lower(),
        {each[:_LONGEST].lower(): each for each in known},
    )  # comparing costs the product of lengths
    if close := difflib.get_close_matches(name, alike, n=1, cutoff=0.6 if otherwise is None else 0.8):
        return f"did you mean {format_value(alike[close[0]])}?"
    if otherwise is not None:
        return otherwise
    if len(listed := ", ".join(known)) <= _LISTED and listed.isprintable():
        return f"choose from {listed}"
    ratio = {each: difflib.SequenceMatcher(None, name, each).ratio() for each in alike}
    near = sorted(alike, key=lambda each: (-ratio[each], each))[:3]
    return f"the nearest of {len(known)} are {', '.join(format_value(alike[each], 36) for each in near)}"


def format_value(value: object, limit: int = 60) -> str:
    """`value` as it may be quoted in a one-line message: printable, no line breaks, cut at `limit` characters."""
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."
