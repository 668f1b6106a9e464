"""Recipes that installed packages offer, by the entry-point group `quoin.recipes`. Imports no torch.

    [project.entry-points."quoin.recipes"]      # in the package's pyproject.toml
    my-recipe = "my_package.my_recipe"          # the recipe's name, and its module

Whoever installed the package lets it run: such a recipe is found by its name like Quoin's own.
"""

import contextlib
import importlib
import re
import sys
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType

from quoin.errors import UserError, format_value
from quoin.own_code import keep_running
from quoin.runs.recipe_module import check_recipe_module

__all__ = ["GROUP", "PackagedRecipe", "packaged_recipes"]

GROUP = "quoin.recipes"


@dataclass(frozen=True)
class PackagedRecipe:
    """A recipe that a package offers; nothing of it has been imported."""

    name: str
    package: str
    version: str
    entry_point: EntryPoint

    @property
    def origin(self) -> str:
        return f"{self.package} {self.version}"

    def load(self) -> ModuleType:
        """Its module, which has what a recipe must have."""
        shown = f"recipe {format_value(self.name)} of package {self.origin}"
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}", self.name):
            raise UserError(f"{shown}: a recipe's name has letters, digits, dashes and dots; the package must mend it")
        place = self.entry_point.value
        try:
            with contextlib.redirect_stdout(sys.stderr), keep_running(shown):
                module = importlib.import_module(place)
        except UserError:
            raise
        except Exception as error:
            what = " ".join(f"{type(error).__name__}: {error}".split())
            raise UserError(f"{shown} does not import ({what[:120]}): update or uninstall the package") from error
        check_recipe_module(module, shown)
        return module


def packaged_recipes() -> list[PackagedRecipe]:
    """Every recipe that an installed package offers, by name."""
    found = [
        PackagedRecipe(each.name, each.dist.name, each.dist.version, each)
        for each in entry_points(group=GROUP)
        if each.dist is not None
    ]
    return sorted(found, key=lambda each: (each.name, each.package))
