"""The recipes there are: the files of quoin/recipes, found by name. Imports no torch."""

import dataclasses
import importlib
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from quoin.errors import UserError, did_you_mean, format_value
from quoin.options import ValidatedOptions
from quoin.own_code import CodeFile
from quoin.tasks.target import Target
from quoin.train.monitor import Monitor, monitor_named

if TYPE_CHECKING:
    from torch import nn

    from quoin.data import ImageInfo, LabeledTextInfo, PairInfo, PointInfo, TabularInfo, TextInfo
    from quoin.train import DeviceContext, Task

__all__ = ["DEFAULT", "SUBJECTS", "Recipe", "final_metric_name", "find_recipe", "recipe_names"]

DEFAULT = "mlp"
SUBJECTS = (  # in the order in which they are listed
    "Linear models",
    "Multilayer perceptrons",
    "Convolutional networks",
    "Recurrent networks and language models",
    "Attention and Transformers",
    "Translation",
    "Generative models",
    "Latent-variable models",
    "Diffusion and flow matching",
    "Optimization",
    "Expressivity",
    "Kernels and non-parametric methods",
    "Graphs",
)
_RECIPES = Path(__file__).parents[1] / "recipes"


def recipe_names() -> list[str]:
    """Every file of the package is a recipe; its name is the file's, with dashes."""
    return sorted(path.stem.replace("_", "-") for path in _RECIPES.glob("*.py") if not path.stem.startswith("_"))


def find_recipe(name: str) -> "Recipe":
    """The recipe `name`, or a UserError with the nearest one."""
    if name not in recipe_names():
        raise UserError(
            f"no recipe {format_value(name)} (`quoin list` shows all): {did_you_mean(name, recipe_names())}"
        )
    return Recipe(name, importlib.import_module(f"quoin.recipes.{name.replace('-', '_')}"))


@dataclass(frozen=True)
class Recipe:
    """One recipe file, seen through the names that every such file has; `code` is the file if it is the user's own."""

    name: str
    module: ModuleType
    code: CodeFile | None = None

    @property
    def reference(self) -> str:
        """What `find_recipe` takes to find it again, in another process too."""
        return self.name

    @property
    def summary(self) -> str:
        return " ".join((self.module.__doc__ or "").strip().split("\n\n")[0].split())

    @property
    def notes(self) -> tuple[str, ...]:
        return self.module.NOTES

    @property
    def keywords(self) -> tuple[str, ...]:
        """Other words by which somebody may look for it, in lower case."""
        return self.module.KEYWORDS

    @property
    def subject(self) -> str:
        """Under which heading of `SUBJECTS` it is listed."""
        return self.module.SUBJECT

    @property
    def target(self) -> Target:
        return self.module.TARGET

    @property
    def options(self) -> type[ValidatedOptions]:
        return self.module.Options

    @property
    def gives_probabilities(self) -> bool:
        """Whether a softmax of the model's outputs may be read as probabilities; scores of a margin may not."""
        return getattr(self.module, "GIVES_PROBABILITIES", True)

    @property
    def data(self) -> str:
        """The data that it learns from by default; a file whose options have no `data` may say it in `DATA`."""
        return getattr(self.options(), "data", getattr(self.module, "DATA", "generated"))

    @property
    def monitor(self) -> Monitor | None:
        """The metric by which it keeps the best weights; None where it keeps the last."""
        return self.module.MONITOR

    def monitor_for(self, options: Any) -> Monitor | None:
        """That of `--monitor`, or the recipe's own."""
        return monitor_named(options.monitor) if options.monitor else self.monitor

    def model(
        self,
        options: Any,
        data_info: "TabularInfo | TextInfo | PairInfo | LabeledTextInfo | ImageInfo | PointInfo | None",
    ) -> "nn.Module":
        """The untrained model."""
        return self.module.model(options, data_info)

    def build(self, options: Any, device_context: "DeviceContext") -> "Task":
        """All that the trainer needs."""
        return self.module.build(options, device_context)

    def target_for(self, options: Any) -> Target | None:
        """The target, if the run is on the data that the target is for; on a fold, of the held-out fold."""
        if getattr(options, "data", None) != getattr(self.options(), "data", None):
            return None
        name = final_metric_name(self.target.metric, options)
        return self.target if name == self.target.metric else dataclasses.replace(self.target, metric=name)


def final_metric_name(name: str, options: Any) -> str:
    """A metric of the test split by what that split is: in a run of a cross-validation, the held-out fold."""
    return f"held_out_fold_{name[5:]}" if name.startswith("test_") and getattr(options, "fold", "") else name
