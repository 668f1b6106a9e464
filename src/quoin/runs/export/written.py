"""What an export leaves behind: its files, and how far their answers are from the run's own."""

from pathlib import Path
from typing import NamedTuple

from jaxtyping import Shaped
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError

__all__ = ["TOLERANCE", "CannotExportError", "Difference", "Written", "largest_difference"]

TOLERANCE = 1e-5  # of float32, over the largest answer or 1


class CannotExportError(UserError):
    """The form has no counterpart for this model; the message says which one it has instead."""


@shown
class Difference(NamedTuple):
    """The largest |ours - theirs| over max(1, largest |ours|), on one input."""

    what: str  # the input: "random rows, batch 3", "real rows, batch 8"
    value: float
    tolerance: float = TOLERANCE

    @property
    def is_met(self) -> bool:
        return self.value <= self.tolerance  # False for NaN


@shown
class Written(NamedTuple):
    """An export that was read back by the other runtime."""

    files: tuple[Path, ...]  # the main one first
    differences: tuple[Difference, ...]
    notes: tuple[str, ...] = ()  # what the user should know

    @property
    def is_equal(self) -> bool:
        return all(each.is_met for each in self.differences)


def largest_difference(ours: Shaped[Tensor, "*shape"], theirs: Shaped[Tensor, "*shape"]) -> float:
    """max |ours - theirs| over max(1, max |ours|); infinite where the shapes differ, NaN where a number is.

    >>> import torch
    >>> largest_difference(torch.tensor([1.0, 4.0]), torch.tensor([1.0, 4.5]))
    0.125
    """
    if ours.shape != theirs.shape:
        return float("inf")
    if not ours.numel():
        return 0.0
    ours, theirs = ours.detach().double(), theirs.detach().double()
    return float((ours - theirs).abs().max() / ours.abs().max().clamp_min(1.0))
