"""Examples on their way from noise, for those who want to see how they come about."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.display import shown

__all__ = ["PathModel", "SamplePath"]


@shown
class SamplePath(NamedTuple):
    """Samples, with the intermediate ones on their way from noise."""

    times: Sequence[float]  # k of them, from pure noise to the end
    states: Float[Tensor, "times num_samples *shape"]  # on the scale of the examples; the last are the samples


@runtime_checkable
class PathModel(Protocol):
    """A distribution that is sampled from in steps, from noise; the path takes the same options as the samples."""

    def sample(self, num_samples: int, *, generator: torch.Generator) -> Float[Tensor, "{num_samples} *shape"]:
        """New examples."""
        ...

    def sample_path(self, num_samples: int, *, generator: torch.Generator) -> SamplePath:
        """The samples of `sample` with the intermediate ones; what is not an image yet may lie outside [0, 1]."""
        ...
