"""A trained generative model opened again, its data gone: to draw from, to see a draw come about, to walk through its latents."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from quoin.data import Facts, ImageFacts
from quoin.errors import Mistake, nearest, shown
from quoin.generate import PathModel, SamplePath
from quoin.models import DecoderModel, GenerativeModel, check_sample_count, draw_in_pieces
from quoin.recipes.running.asked import read_config
from quoin.recipes.running.catalogue import Recipe
from quoin.recipes.running.memory import memory_told
from quoin.recipes.running.run import best_model, open_one
from quoin.train import RunFolder
from quoin.train.run_files import fitting

__all__ = ["FREE", "Choices", "GenerativeRun", "Traversal", "is_image_model_run", "open_generative_run"]

FARTHEST = 2.5  # standard deviations of the prior that a traversal goes to either side


@dataclass(frozen=True)
class Choices:
    """How a model that can be steered is to draw; what is None is left to the model."""

    label: str | None = None  # the name of a class
    steps: int | None = None
    guidance: float | None = None
    sampler: Callable[..., Any] | None = None
    temperature: float | None = None


FREE = Choices()  # all left to the model


class Traversal(NamedTuple):
    """Decoded latents; in row j coordinate j of the same latent takes the values."""

    values: Tensor  # (columns,)
    images: Tensor  # (rows, columns, *shape)


@dataclass(frozen=True)
class GenerativeRun:
    """A run's law, and what it must know of the examples it was learnt from."""

    folder: RunFolder
    recipe: Recipe
    options: Any
    facts: ImageFacts | Facts | None
    model: Any  # an nn.Module that is a GenerativeModel
    step: int

    @property
    def takes(self) -> set[str]:
        """The choices by name that the model has."""
        return {*inspect.signature(self.model.sample).parameters} - {"count", "generator"}

    @torch.no_grad()
    def sample(self, count: int, *, generator: torch.Generator, choices: Choices = FREE) -> Tensor:  # -> (count, *shape)
        """New examples, drawn a thousand at a time."""
        return draw_in_pieces(lambda size: self.model.sample(size, generator=generator, **self._named(choices, size)), count)

    @torch.no_grad()
    def sample_path(self, count: int, *, generator: torch.Generator, choices: Choices = FREE) -> SamplePath:
        """New examples with the states that they came through."""
        check_sample_count(count)
        if not isinstance(self.model, PathModel):
            raise Mistake(f"{self.recipe.name} draws at once, with no path from noise to see: try a run of diffusion-digits")
        return self.model.sample_path(count, generator=generator, **self._named(choices, count))

    @torch.no_grad()
    def traverse(self, rows: int, columns: int, *, generator: torch.Generator) -> Traversal:
        """What the decoder makes of one drawn latent as each of its coordinates in turn goes from one end to the other, at most `rows`."""
        if not isinstance(self.model, DecoderModel):
            raise Mistake(f"{self.recipe.name} has no latents that are decoded: try a run of vae")
        start = torch.randn(self.model.latent_dim, generator=generator)
        values, rows = torch.linspace(-FARTHEST, FARTHEST, columns), min(rows, self.model.latent_dim)
        latents = start.repeat(rows, columns, 1)
        for row in range(rows):
            latents[row, :, row] = values
        return Traversal(values, self.model.decode_mean(latents.flatten(0, 1)).unflatten(0, (rows, columns)))

    def _named(self, choices: Choices, count: int) -> dict[str, Any]:
        """The choices as the model's own arguments, those only that were made; one that it does not have is refused."""
        named: dict[str, Any] = {name: value for name, value in vars(choices).items() if value is not None}
        if "label" in named and "labels" in self.takes:
            named["labels"] = torch.full((count,), self.class_number(named.pop("label")))
        if strange := [name for name in named if name not in self.takes]:
            flags = {"label": "class", "labels": "class"}
            known = [f"--{flags.get(name, name)}" for name in ("labels", *vars(choices)) if name in self.takes]
            told = f"leave it out; it takes {', '.join(known)}" if known else "leave it out"
            raise Mistake(f"{self.recipe.name}, the model of {self.folder.path}, takes no --{flags.get(strange[0], strange[0])}: {told}")
        return named

    def class_number(self, name: str) -> int:
        """The number of the class of this name."""
        names = (self.facts.class_names if self.facts else None) or ()
        if name not in names:
            raise Mistake(f"{self.folder.path} knows no class {shown(name)}: {nearest(name, names)}")
        return names.index(name)


def is_image_model_run(folder: RunFolder) -> bool:
    """Whether the folder's run learnt the law of images, not what they show."""
    return isinstance(data := folder.config["data"], dict) and {"image_shape", "levels"} <= data.keys()


def open_generative_run(path: Path | str, *, step: int | None = None) -> GenerativeRun:
    """The best model of the generative run at `path`, from its newest checkpoint or from that of `step`."""
    folder = open_one(Path(path))
    recipe, options, _ = read_config(folder)
    data = folder.config["data"] or {}
    facts = folder.facts(ImageFacts) if is_image_model_run(folder) else folder.facts(Facts) if "feature_shape" in data else None
    # The model is asked before its weights are: of another kind of run they may stand elsewhere.
    with fitting(str(folder.path / "config.json")), memory_told():
        draws = (not data or facts is not None) and isinstance(recipe.model(options, facts), GenerativeModel)
    if not draws:
        came = f"{shown(str(path))} is one of {folder.recipe}"
        raise Mistake(f"expected the run of a model that draws, such as lstm-lm, vae or diffusion-digits, but {came}: give another")
    best = best_model(folder, facts, step)
    return GenerativeRun(folder, recipe, options, facts, best.model, best.step)
