"""Rows of k folds for tensors at hand; `fold` does the same for a Dataset, keeping the fractions of its classes."""

from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError

__all__ = ["Fold", "kfold"]


@shown
class Fold(NamedTuple):
    """Row numbers, ascending, of two disjoint sets that together have all."""

    train: Int[Tensor, "train"]
    validation: Int[Tensor, "validation"]


def kfold(num_rows: int, num_folds: int, *, generator: torch.Generator | None = None) -> list[Fold]:
    """k disjoint folds of the shuffled rows, each once the validation fold while the others train; sizes differ by at
    most one.

    Notes: Z3.28.
    """
    if not 2 <= num_folds <= num_rows:
        raise UserError(
            f"expected from 2 folds to as many as rows, got {num_folds} folds of {num_rows} rows; choose another number"
        )
    rows = torch.randperm(num_rows, generator=generator)
    fold = torch.empty(num_rows, dtype=torch.long)
    fold[rows] = torch.arange(num_rows) % num_folds
    return [Fold((fold != each).nonzero()[:, 0], (fold == each).nonzero()[:, 0]) for each in range(num_folds)]
