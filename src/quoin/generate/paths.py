"""Examples on their way from noise, for those who want to see how they come about."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

__all__ = ["PathModel", "SamplePath"]


class SamplePath(NamedTuple):
    """Draws, with the states that they came through."""

    times: Sequence[float]  # k of them, from pure noise to the end
    states: Tensor  # (k, count, *shape), on the scale of the examples; the last are the draws


@runtime_checkable
class PathModel(Protocol):
    """A law that is drawn from in steps, out of noise; it takes the same choices by name for the path as for the draws."""

    def sample(self, count: int, *, generator: torch.Generator) -> Tensor:
        """New examples, (count, *shape)."""
        ...

    def sample_path(self, count: int, *, generator: torch.Generator) -> SamplePath:
        """The draws of `sample` with the states that they came through; what is not an image yet may lie outside [0, 1]."""
        ...
