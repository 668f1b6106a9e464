"""Values as TOML writes them; the standard library reads TOML, and writes none."""

import re
from typing import Any

from quoin.errors import UserError, format_value

__all__ = ["format_toml"]

_SHORT = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def format_toml(value: Any) -> str:
    r"""A number, text, true or false, or a list of them as the right side of `key = value`.

    >>> print(format_toml(("C:\\data", 'a "b"', "line\nbreak")))
    ["C:\\data", "a \"b\"", "line\nbreak"]
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(format_toml, value))}]"
    if isinstance(value, str):
        if re.search("[\ud800-\udfff]", value):  # of a file's name that is not text
            raise UserError(f"expected text that a TOML file can hold, got {format_value(value)}: rename the file")
        return '"' + re.sub(r'["\\\x00-\x1f\x7f]', _escape, value) + '"'
    raise TypeError(f"TOML has no {type(value).__name__}")


def _escape(found: re.Match[str]) -> str:
    return _SHORT.get(found[0], f"\\u{ord(found[0]):04x}")
