"""What a person did wrong, said in one line: expected, came, what to do.

Every room may import this file, and it imports none. `Mistake` is the only error that the command line turns
into one line and an exit code (2); anything else is a fault of ours and keeps its traceback.
"""

import difflib
from collections.abc import Iterable

__all__ = ["Mistake", "nearest", "shown"]


class Mistake(ValueError):
    """A mistake of the caller: the message says what was expected, what came and what to do."""

    exit_code = 2


def nearest(name: str, names: Iterable[str]) -> str:
    """A closing hint: the nearest of `names` if one is near, else all of them.

    >>> nearest("digit", ["digits", "iris"])
    "did you mean 'digits'?"
    >>> nearest("Digits", ["digits", "iris"])
    "did you mean 'digits'?"
    >>> nearest("xyz", ["digits", "iris"])
    'choose from digits, iris'
    """
    known = sorted(names)
    alike = {each.lower(): each for each in known}
    close = difflib.get_close_matches(name.lower(), alike, n=1, cutoff=0.6)
    return f"did you mean {alike[close[0]]!r}?" if close else f"choose from {', '.join(known)}"


def shown(value: object, limit: int = 60) -> str:
    """`value` as it may be quoted in a one-line message: printable, no line breaks, cut at `limit` characters."""
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."
