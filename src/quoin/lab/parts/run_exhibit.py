"""An exhibit about runs: made at run time of a function that knows them, and named after it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from quoin.lab.parts.controls import Control
from quoin.lab.parts.exhibit import Exhibit, View
from quoin.lab.parts.open_runs import run_names
from quoin.runs import Run

__all__ = ["run_exhibit"]


def run_exhibit(
    show: Callable[..., View], question: str, intro: str, controls: Sequence[Control], runs: Sequence[Run]
) -> Exhibit:
    """The question with the runs' names behind it; `show` takes the controls by their names."""
    slug = show.__name__.strip("_").replace("_", "-")
    names = ", ".join(run_names([run.path for run in runs]))
    return Exhibit(slug, f"{question} ({names})", intro, (), tuple(controls), "", {}, (), {}, show, yours=True)
