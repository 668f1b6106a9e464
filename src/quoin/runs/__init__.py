"""Training runs: fit, resume, predict, evaluate, generate, inspect, compare; recipes are found by name."""

from typing import TYPE_CHECKING

from quoin.lazy import export_lazily

if TYPE_CHECKING:
    from quoin.runs.catalog import Recipe, find_recipe, recipe_names
    from quoin.runs.fit import fit_recipe
    from quoin.runs.fit_module import open_run, resume
    from quoin.runs.lr_range import find_lr, plot_lr_range
    from quoin.runs.run import Run
    from quoin.runs.run_config import RunConfig

__all__ = [
    "Recipe",
    "Run",
    "RunConfig",
    "find_lr",
    "find_recipe",
    "fit_recipe",
    "open_run",
    "plot_lr_range",
    "recipe_names",
    "resume",
]

export_lazily(__name__)
