"""A trained generative model without its data: samples, sampling paths, latent traversals, compression of images."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.data import ImageInfo, PointInfo, keyed_generator
from quoin.errors import UserError, did_you_mean, format_value
from quoin.generate import PathModel, PixelSampler, SamplePath
from quoin.models import DecoderModel, GenerativeModel, check_num_samples, sample_in_batches
from quoin.models.generative import latent_traversal
from quoin.runs.kinds.trained import Trained

if TYPE_CHECKING:
    from quoin.runs.pixel_codec import PixelCodec
    from quoin.runs.run import Run

__all__ = [
    "DEFAULT_SAMPLING",
    "SamplingOptions",
    "TrainedGenerator",
    "TrainedImageModel",
    "TrainedPointModel",
    "Traversal",
]


@dataclass(frozen=True)
class SamplingOptions:
    """How a model samples; what is None is left to the model."""

    label: str | None = None  # the name of a class
    num_steps: int | None = None
    guidance_scale: float | None = None
    sampler: Callable[..., Any] | None = None
    temperature: float | None = None


DEFAULT_SAMPLING = SamplingOptions()  # all left to the model


class Traversal(NamedTuple):
    """Decoded latents; in row j coordinate j of the same latent takes the values."""

    values: Float[Tensor, "columns"]
    images: Float[Tensor, "rows columns *shape"]


class TrainedGenerator(Trained):
    """A distribution that is sampled from."""

    is_a = "generates examples"
    data_info: ImageInfo | PointInfo | None

    def __init__(self, run: "Run") -> None:
        super().__init__(run)
        if not isinstance(self.model, GenerativeModel):
            where = run.path / "config.json"
            raise UserError(
                f"{where}: expected the kind of {run.recipe.name}, got {run.kind}, which generates; restore the "
                "file or train again"
            )

    @property
    def supported_options(self) -> set[str]:
        """The choices by name that the model has."""
        return {*inspect.signature(self.model.sample).parameters} - {"num_samples", "generator"}

    def generate(
        self, num_samples: int, *, seed: int = 0, options: SamplingOptions = DEFAULT_SAMPLING
    ) -> Float[Tensor, "{num_samples} *shape"]:
        """New examples."""
        return self.sample(num_samples, generator=keyed_generator("generate", seed), options=options)

    @torch.no_grad()
    def sample(
        self, num_samples: int, *, generator: torch.Generator, options: SamplingOptions = DEFAULT_SAMPLING
    ) -> Float[Tensor, "{num_samples} *shape"]:
        """New examples, sampled a thousand at a time."""
        return sample_in_batches(
            lambda size: self.model.sample(size, generator=generator, **self._named(options, size)), num_samples
        )

    @torch.no_grad()
    def sample_path(
        self, num_samples: int, *, generator: torch.Generator, options: SamplingOptions = DEFAULT_SAMPLING
    ) -> SamplePath:
        """New examples with the states of their sampling paths."""
        check_num_samples(num_samples)
        if not isinstance(self.model, PathModel):
            raise UserError(
                f"{self.recipe.name} samples at once, with no path from noise to show: try a run of diffusion-digits"
            )
        return self.model.sample_path(num_samples, generator=generator, **self._named(options, num_samples))

    @torch.no_grad()
    def traverse(self, rows: int, columns: int, *, generator: torch.Generator) -> Traversal:
        """A latent traversal: the decoder's images of one sampled latent as each dimension in turn varies, at most
        `rows` of them."""
        if not isinstance(self.model, DecoderModel):
            raise UserError(f"{self.recipe.name} has no latents that are decoded: try a run of vae")
        latent = torch.randn(self.model.latent_dim, generator=generator)
        values, latents = latent_traversal(latent, torch.arange(min(rows, self.model.latent_dim)), columns)
        return Traversal(values, self.model.decode_mean(latents.flatten(0, 1)).unflatten(0, latents.shape[:2]))

    def _named(self, options: SamplingOptions, num_samples: int) -> dict[str, Any]:
        """The choices as the model's own arguments, those only that were made; one that it does not have is an
        error."""
        named: dict[str, Any] = {name: value for name, value in vars(options).items() if value is not None}
        if "label" in named and "labels" in self.supported_options:
            named["labels"] = torch.full((num_samples,), self.class_number(named.pop("label")))
        if strange := [name for name in named if name not in self.supported_options]:
            flags = {"label": "class", "labels": "class"}
            known = [
                "--" + flags.get(name, name).replace("_", "-")
                for name in ("labels", *vars(options))
                if name in self.supported_options
            ]
            advice = f"leave it out; it takes {', '.join(known)}" if known else "leave it out"
            raise UserError(
                f"{self.recipe.name}, the model of {self.run.path}, takes no "
                f"--{flags.get(strange[0], strange[0]).replace('_', '-')}: {advice}"
            )
        return named

    def class_number(self, name: str) -> int:
        """The number of the class of this name."""
        names = (self.data_info.class_names if isinstance(self.data_info, ImageInfo) else None) or ()
        if name not in names:
            raise UserError(f"{self.run.path} knows no class {format_value(name)}: {did_you_mean(name, names)}")
        return names.index(name)


class TrainedPointModel(TrainedGenerator):
    """A distribution of points of any dimension."""

    data_info_class = PointInfo
    is_a = "generates points"
    data_info: PointInfo  # pyright: ignore[reportIncompatibleVariableOverride]: `data_info_class` demands it


class TrainedImageModel(TrainedGenerator):
    """A distribution of images."""

    data_info_class = ImageInfo
    is_a = "generates images"
    data_info: ImageInfo  # pyright: ignore[reportIncompatibleVariableOverride]: `data_info_class` demands it

    def codec(self) -> "PixelCodec":
        """The model as a compressor of files of images, if it is one that goes pixel by pixel."""
        from quoin.runs.pixel_codec import PixelCodec

        if not isinstance(self.model, PixelSampler):
            got = f"{format_value(str(self.run.path))} is one of {self.recipe.name}"
            raise UserError(
                f"expected a run whose model knows the distribution of each pixel, such as pixelcnn's, but {got}: "
                "give another"
            )
        return PixelCodec(self.model.model, self.recipe.name)
