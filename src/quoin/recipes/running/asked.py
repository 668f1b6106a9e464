"""What a run was asked to do, read from its folder: the recipe, its options, the settings."""

from typing import Any

from quoin.errors import Mistake, shown
from quoin.options import options_from_json
from quoin.recipes.running.catalogue import Recipe, find_recipe, recipe_names
from quoin.recipes.running.settings import Settings
from quoin.train import RunFolder

__all__ = ["read_config"]


def read_config(folder: RunFolder) -> tuple[Recipe, Any, Settings]:
    """What a run was asked to do."""
    config, where = folder.config, str(folder.path / "config.json")
    if config["recipe"] not in recipe_names():
        raise Mistake(f"{where}: expected a recipe of this Quoin, came {shown(config['recipe'])}; restore the file or train again")
    recipe = find_recipe(config["recipe"])
    return recipe, options_from_json(recipe.options, config["options"], where), options_from_json(Settings, config["settings"], where)
