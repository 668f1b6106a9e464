"""One run per file: its options, its target, and how the parts are put together; `open_run` gives a trained model back."""

import importlib
from typing import TYPE_CHECKING

from quoin.recipes.running.catalogue import Recipe, find_recipe, recipe_names

if TYPE_CHECKING:
    from quoin.recipes.running.generative_run import GenerativeRun, open_generative_run
    from quoin.recipes.running.language_run import LanguageRun, open_language_run
    from quoin.recipes.running.opened import OpenedRun, open_run
    from quoin.recipes.running.run import resume, start

__all__ = [
    "GenerativeRun",
    "LanguageRun",
    "OpenedRun",
    "Recipe",
    "find_recipe",
    "open_generative_run",
    "open_language_run",
    "open_run",
    "recipe_names",
    "resume",
    "start",
]

_LATER = {
    "GenerativeRun": "generative_run",
    "LanguageRun": "language_run",
    "OpenedRun": "opened",
    "open_generative_run": "generative_run",
    "open_language_run": "language_run",
    "open_run": "opened",
    "resume": "run",
    "start": "run",
}


def __getattr__(name: str) -> object:
    """The names that need torch come when first asked for: `quoin list` does without."""
    if name in _LATER:
        return getattr(importlib.import_module(f"quoin.recipes.running.{_LATER[name]}"), name)
    raise AttributeError(f"quoin.recipes has no {name!r}")
