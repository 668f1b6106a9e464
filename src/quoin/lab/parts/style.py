"""The style sheet of the lab: the palette's colours by their names, and where everything stands."""

import functools
from pathlib import Path

from quoin.plot.palette import TURN_OVER, css_variables

__all__ = ["picture_style", "style_sheet"]


# Words on a coloured cell: their colour on light and then on dark paper (`marks.words_on`).
_WORDS = [(light, dark) for light in ("black", "white") for dark in ("black", "white")]
_TURNS = (
    "".join(f"svg.quoin .words-{light}-{dark}{{fill:{light}}}" for light, dark in _WORDS)
    + f"\n@media (prefers-color-scheme: dark){{svg.quoin .turns{{filter:{TURN_OVER}}}"
    + "".join(f"svg.quoin .words-{light}-{dark}{{fill:{dark}}}" for light, dark in _WORDS)
    + "}"
)


def _sheet() -> str:
    return (Path(__file__).parent / "widget.css").read_text(encoding="utf-8")


@functools.cache
def picture_style() -> str:
    """For a picture that is a document of its own, such as a file: the colours, and what its marks look like."""
    rules = [line for line in _sheet().splitlines() if line.startswith("svg.quoin")]
    return "\n".join([css_variables(), _TURNS, *rules])


@functools.cache
def style_sheet() -> str:
    """For the inside of a widget, which is a document of its own (a shadow root), as for a page."""
    variables = css_variables().replace(":root", ":root,:host,.quoin-lab")
    return f"{variables}\n{_TURNS}\n{_sheet()}"
