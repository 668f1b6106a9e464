"""The recipes there are: the files of quoin/recipes by name, those of installed packages by name, and the user's own
files by path. Imports no torch."""

import dataclasses
import importlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from quoin.display import shown
from quoin.errors import UserError, did_you_mean, format_value
from quoin.options import ValidatedOptions
from quoin.own_code import CodeFile, import_code, keep_running, read_code
from quoin.runs.packaged import PackagedRecipe, packaged_recipes
from quoin.runs.recipe_module import check_recipe_module, check_task
from quoin.tasks.target import Target
from quoin.train.monitor import Monitor, monitor_named

if TYPE_CHECKING:
    from torch import nn

    from quoin.data import ImageInfo, LabeledTextInfo, PairInfo, PointInfo, TabularInfo, TextInfo
    from quoin.train import DeviceContext, Task

__all__ = [
    "DEFAULT",
    "SUBJECTS",
    "Recipe",
    "final_metric_name",
    "find_recipe",
    "is_recipe_file",
    "recipe_from_code",
    "recipe_from_package",
    "recipe_names",
    "template",
]

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


def template() -> str:
    """The source of a small recipe, to start one's own from."""
    return (_RECIPES / "_template.py").read_text(encoding="utf-8")


def is_recipe_file(reference: str) -> bool:
    """Whether a word names a recipe by its file."""
    return reference.endswith(".py") or "/" in reference or os.sep in reference


def find_recipe(reference: str) -> "Recipe":
    """The recipe of a name, Quoin's own or of an installed package; of PACKAGE:NAME; or in the Python file at a path.
    A UserError with the nearest one, where there is none."""
    if is_recipe_file(reference):
        return recipe_from_code(read_code(reference))
    if reference in recipe_names():
        return Recipe(reference, importlib.import_module(f"quoin.recipes.{reference.replace('-', '_')}"))
    return _packaged(reference)


def recipe_from_code(file: CodeFile) -> "Recipe":
    """The recipe in a file of the user's own, which runs."""
    module = import_code(file)
    check_recipe_module(module, format_value(file.given))
    name = re.sub(r"[^A-Za-z0-9.]+", "-", file.place.stem).strip("-.")[:80]
    return Recipe(name or "recipe", module, file)


def recipe_from_package(package: str, name: str) -> "Recipe":
    """The recipe that an installed package offers under this name."""
    for each in packaged_recipes():
        if (each.package, each.name) == (package, name):
            return Recipe(name, each.load(), package=each)
    raise UserError(
        f"no installed package {format_value(package)} offers a recipe {format_value(name)}: install it, `quoin list` "
        "shows what there is"
    )


def _packaged(reference: str) -> "Recipe":
    package, colon, name = reference.partition(":")
    if colon:
        return recipe_from_package(package, name)
    offered = packaged_recipes()
    match [each for each in offered if each.name == reference]:
        case [one]:
            return Recipe(reference, one.load(), package=one)
        case [one, other, *_]:
            raise UserError(
                f"{one.package} and {other.package} both offer a recipe {format_value(reference)}: say which, as in "
                f"{one.package}:{reference}"
            )
    known = [*recipe_names(), *(each.name for each in offered)]
    hint = did_you_mean(reference, known)
    if os.path.isfile(f"{reference}.py"):
        hint = f"did you mean the file {format_value(f'{reference}.py')}?"
    raise UserError(f"no recipe {format_value(reference)} (`quoin list` shows all): {hint}")


@shown
@dataclass(frozen=True)
class Recipe:
    """One recipe file, seen through the names that such a file has; a file of the user's own may lack all but Options
    and build.

    Args:
        code: The file, if it is the user's own.
        package: Which installed package offers it, if one does.
    """

    name: str
    module: ModuleType
    code: CodeFile | None = None
    package: PackagedRecipe | None = None

    @property
    def reference(self) -> str:
        """What `find_recipe` takes to find it again, in another process of this working folder too."""
        if self.package is not None:
            return f"{self.package.package}:{self.name}"
        if self.code is None:
            return self.name
        # As given, unless that is where it once was: then, where it is.
        given = self.code.given
        is_there = is_recipe_file(given) and Path(given).expanduser().resolve() == self.code.place
        return given if is_there else str(self.code.place)

    @property
    def is_quoins(self) -> bool:
        """Whether it comes with Quoin."""
        return self.code is None and self.package is None

    @property
    def origin(self) -> str:
        """Where it comes from: quoin, a package and its version, or a path."""
        return self.package.origin if self.package else self.code.given if self.code else "quoin"

    @property
    def summary(self) -> str:
        return " ".join((self.module.__doc__ or "").strip().split("\n\n")[0].split())

    @property
    def notes(self) -> tuple[str, ...]:
        return getattr(self.module, "NOTES", ())

    @property
    def keywords(self) -> tuple[str, ...]:
        """Other words by which somebody may look for it, in lower case."""
        return getattr(self.module, "KEYWORDS", ())

    @property
    def subject(self) -> str:
        """Under which heading of `SUBJECTS` it is listed."""
        return getattr(self.module, "SUBJECT", "")

    @property
    def target(self) -> Target | None:
        """What a default run must reach; None where nothing is asked."""
        return getattr(self.module, "TARGET", None)

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
        return getattr(self.module, "MONITOR", None)

    def monitor_for(self, options: Any) -> Monitor | None:
        """That of `--monitor`, or the recipe's own."""
        return monitor_named(options.monitor) if options.monitor else self.monitor

    def model(
        self,
        options: Any,
        data_info: "TabularInfo | TextInfo | PairInfo | LabeledTextInfo | ImageInfo | PointInfo | None",
    ) -> "nn.Module":
        """The untrained model."""
        if not hasattr(self.module, "model"):
            raise UserError(
                f"recipe {self.name} has no function model(options, data_info), which makes the model that the trained "
                f"weights are read into: write one in {format_value(self.origin)}"
            )
        with keep_running(f"model of {self.name}", self.code):
            return self.module.model(options, data_info)

    def build(self, options: Any, device_context: "DeviceContext") -> "Task":
        """All that the trainer needs."""
        with keep_running(f"build of {self.name}", self.code):
            return check_task(self.module.build(options, device_context), f"recipe {self.name}")

    def target_for(self, options: Any) -> Target | None:
        """The target, if the run is on the data that the target is for; on a fold, of the held-out fold."""
        if self.target is None or getattr(options, "data", None) != getattr(self.options(), "data", None):
            return None
        name = final_metric_name(self.target.metric, options)
        return self.target if name == self.target.metric else dataclasses.replace(self.target, metric=name)


def final_metric_name(name: str, options: Any) -> str:
    """A metric of the test split by what that split is: in a run of a cross-validation, the held-out fold."""
    return f"held_out_fold_{name[5:]}" if name.startswith("test_") and getattr(options, "fold", "") else name
