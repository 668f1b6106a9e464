"""The recipes there are: the files of quoin/recipes, found by name. Imports no torch."""

import importlib
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from quoin.errors import Mistake, nearest, shown
from quoin.options import Checked
from quoin.tasks.target import Target
from quoin.train.monitor import Monitor

if TYPE_CHECKING:
    from torch import nn

    from quoin.data import Facts, ImageFacts, LabelledFacts, PairFacts, TextFacts
    from quoin.train import Place, Task

__all__ = ["DEFAULT", "Recipe", "find_recipe", "recipe_names"]

DEFAULT = "mlp"
_RECIPES = Path(__file__).parents[1] / "recipes"


def recipe_names() -> list[str]:
    """Every file of the room is a recipe; its name is the file's, with dashes."""
    return sorted(path.stem.replace("_", "-") for path in _RECIPES.glob("*.py") if not path.stem.startswith("_"))


def find_recipe(name: str) -> "Recipe":
    """The recipe `name`, or a Mistake with the nearest one."""
    if name not in recipe_names():
        raise Mistake(f"no recipe {shown(name)} (`quoin list` shows all): {nearest(name, recipe_names())}")
    return Recipe(name, importlib.import_module(f"quoin.recipes.{name.replace('-', '_')}"))


@dataclass(frozen=True)
class Recipe:
    """One recipe file, seen through the names that every such file has."""

    name: str
    module: ModuleType

    @property
    def summary(self) -> str:
        return (self.module.__doc__ or "").strip().splitlines()[0]

    @property
    def notes(self) -> tuple[str, ...]:
        return self.module.NOTES

    @property
    def target(self) -> Target:
        return self.module.TARGET

    @property
    def options(self) -> type[Checked]:
        return self.module.Options

    @property
    def gives_probabilities(self) -> bool:
        """Whether a softmax of the model's outputs may be read as probabilities; scores of a margin may not."""
        return getattr(self.module, "GIVES_PROBABILITIES", True)

    @property
    def data(self) -> str:
        """What it learns from unless told otherwise; a file whose options have no `data` may say it in `DATA`."""
        return getattr(self.options(), "data", getattr(self.module, "DATA", "generated"))

    @property
    def monitor(self) -> Monitor | None:
        return self.module.MONITOR

    def model(self, options: Any, facts: "Facts | TextFacts | PairFacts | LabelledFacts | ImageFacts | None") -> "nn.Module":
        """The untrained model."""
        return self.module.model(options, facts)

    def build(self, options: Any, place: "Place") -> "Task":
        """All that the loop needs."""
        return self.module.build(options, place)

    def target_for(self, options: Any) -> Target | None:
        """The target, if the run is on the data that the target speaks of."""
        return self.target if getattr(options, "data", None) == getattr(self.options(), "data", None) else None
