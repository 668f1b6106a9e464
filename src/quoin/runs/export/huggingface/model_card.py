"""The model card of an exported run, README.md: what was trained, on what, how well, and how to load it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import quoin
from quoin.display import format_number
from quoin.runs.run import Run

__all__ = ["write_model_card"]

CARD = "README.md"
_LICENCE = (
    "Not stated. The weights are those of whoever trained them; the data have a licence of their own. Set `license:` "
    "at the top of this file before you publish it."
)


def write_model_card(
    run: Run, folder: Path, *, code: str, library: str, pipeline_tag: str, notes: Sequence[str] = ()
) -> Path:
    """Write it.

    Args:
        code: Python that loads the model from the folder it is in; it is executed by the tests.
        notes: What whoever uses the model should know.
    """
    parts = [
        _front(library, pipeline_tag),
        f"# {run.path.resolve().name}\n\n{_first_sentence(run)}",
        "## How to load it\n\nIn this folder:\n\n```python\n" + code.strip() + "\n```",
        *(["## Notes\n\n" + "\n".join(f"- {note}" for note in notes)] if notes else []),
        "## Training\n\n" + _table(("", ""), _training(run)),
        "## Metrics\n\n" + _metrics(run),
        f"## Licence\n\n{_LICENCE}",
    ]
    path = folder / CARD
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8", errors="backslashreplace")
    return path


def _front(library: str, pipeline_tag: str) -> str:
    return f"---\nlibrary_name: {library}\npipeline_tag: {pipeline_tag}\nlicense: unknown\ntags:\n- quoin\n---"


def _first_sentence(run: Run) -> str:
    summary, source = run.recipe.summary.rstrip("."), getattr(run.options, "data", None)
    words = f"{summary}, trained by Quoin {quoin.__version__} with the recipe `{run.recipe_name}`."
    if source != getattr(run.recipe.options(), "data", None):  # the summary tells of the recipe's own data
        about = f"trained on `{source}`" if source else "imported"
        words = f"A model of the recipe `{run.recipe_name}`, {about} by Quoin {quoin.__version__}."
    if run.folder.result is None:
        words += f" Its training is not finished: these are its best weights so far, of step {run.trained.step}."
    return words


def _training(run: Run) -> list[tuple[str, str]]:
    options, source = run.folder.config["options"], getattr(run.data_info, "source", None)
    rows = [("recipe", f"`{run.recipe_name}`"), ("data", f"`{source}`" if source else "none")]
    rows += [("seed", str(options.get("seed", ""))), ("steps", str(run.trained.step))]
    return rows + [(name, f"`{value}`") for name, value in _changed(run, options)]


def _changed(run: Run, options: dict[str, Any]) -> list[tuple[str, Any]]:
    """The options that are not the recipe's own."""
    usual: Any = run.recipe.options()
    return [
        (f"--{name.replace('_', '-')}", value)
        for name, value in options.items()
        if name not in ("seed", "data") and value not in (getattr(usual, name, None), list(_tuple(usual, name)))
    ]


def _tuple(options: Any, name: str) -> tuple[Any, ...]:
    value = getattr(options, name, ())
    return value if isinstance(value, tuple) else ()


def _metrics(run: Run) -> str:
    result: Any = run.folder.result
    if result is None:
        return "None yet: the run is not finished."
    rows = [(f"`{name}`", format_number(value)) for name, value in (run.metrics or {}).items()]
    if not rows:
        return "None: the weights were imported, and not evaluated."
    found = _table(("metric", "value"), rows)
    if target := result["target"]:
        met = "met" if target["met"] else "missed"
        return f"{found}\n\nTarget: `{target['metric']}` {target['bound']}; {met}."
    return found + "\n\nNo target was set for these data and options."


def _table(head: tuple[str, str], rows: Sequence[tuple[str, str]]) -> str:
    lines = [f"| {left} | {right} |" for left, right in (head, ("---", "---"), *rows)]
    return "\n".join(line.replace("\n", " ") for line in lines)
