"""Trained to draw; its data gone: to draw from, to see a draw come about, to walk through its latents, to compress images."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from quoin.data import ImageFacts, keyed_generator
from quoin.errors import Mistake, nearest, shown
from quoin.generate import PathModel, PixelSampler, SamplePath
from quoin.models import DecoderModel, GenerativeModel, check_sample_count, draw_in_pieces
from quoin.models.generative_model import latent_traversal
from quoin.runs.kinds.trained import Trained

if TYPE_CHECKING:
    from quoin.runs.pixel_codec import PixelCodec
    from quoin.runs.run import Run

__all__ = ["FREE", "Choices", "TrainedGenerator", "TrainedImageModel", "Traversal"]


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


class TrainedGenerator(Trained):
    """A law that is drawn from."""

    is_a = "draws examples"
    facts: ImageFacts | None

    def __init__(self, run: "Run") -> None:
        super().__init__(run)
        if not isinstance(self.model, GenerativeModel):
            where = run.path / "config.json"
            raise Mistake(f"{where}: expected the kind of {run.recipe.name}, came {run.kind}, which draws; restore the file or train again")

    @property
    def takes(self) -> set[str]:
        """The choices by name that the model has."""
        return {*inspect.signature(self.model.sample).parameters} - {"count", "generator"}

    def generate(self, count: int, *, seed: int = 0, choices: Choices = FREE) -> Tensor:  # -> (count, *shape)
        """New examples."""
        return self.sample(count, generator=keyed_generator("generate", seed), choices=choices)

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
        values, latents = latent_traversal(start, torch.arange(min(rows, self.model.latent_dim)), columns)
        return Traversal(values, self.model.decode_mean(latents.flatten(0, 1)).unflatten(0, latents.shape[:2]))

    def _named(self, choices: Choices, count: int) -> dict[str, Any]:
        """The choices as the model's own arguments, those only that were made; one that it does not have is refused."""
        named: dict[str, Any] = {name: value for name, value in vars(choices).items() if value is not None}
        if "label" in named and "labels" in self.takes:
            named["labels"] = torch.full((count,), self.class_number(named.pop("label")))
        if strange := [name for name in named if name not in self.takes]:
            flags = {"label": "class", "labels": "class"}
            known = [f"--{flags.get(name, name)}" for name in ("labels", *vars(choices)) if name in self.takes]
            told = f"leave it out; it takes {', '.join(known)}" if known else "leave it out"
            raise Mistake(f"{self.recipe.name}, the model of {self.run.path}, takes no --{flags.get(strange[0], strange[0])}: {told}")
        return named

    def class_number(self, name: str) -> int:
        """The number of the class of this name."""
        names = (self.facts.class_names if self.facts else None) or ()
        if name not in names:
            raise Mistake(f"{self.run.path} knows no class {shown(name)}: {nearest(name, names)}")
        return names.index(name)


class TrainedImageModel(TrainedGenerator):
    """A law of images."""

    data_info = ImageFacts
    is_a = "draws images"
    facts: ImageFacts

    def codec(self) -> "PixelCodec":
        """The model as a compressor of files of images, if it is one that goes pixel by pixel."""
        from quoin.runs.pixel_codec import PixelCodec

        if not isinstance(self.model, PixelSampler):
            came = f"{shown(str(self.run.path))} is one of {self.recipe.name}"
            raise Mistake(f"expected a run whose model knows the law of each pixel, such as pixelcnn's, but {came}: give another")
        return PixelCodec(self.model.model, self.recipe.name)
