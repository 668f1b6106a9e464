"""Rows of k folds for tensors at hand; `fold` does the same for a Dataset, keeping the shares of its classes."""

from typing import NamedTuple

import torch
from torch import Tensor

from quoin.errors import Mistake

__all__ = ["Fold", "kfold"]


class Fold(NamedTuple):
    """Row numbers, ascending, of two parts that share no row and together have all."""

    train: Tensor
    validation: Tensor


def kfold(num_rows: int, num_folds: int, *, generator: torch.Generator | None = None) -> list[Fold]:
    """k disjoint parts of the shuffled rows, each once the validation part while the others train; sizes differ by at most one.

    Notes: Z3.28.
    """
    if not 2 <= num_folds <= num_rows:
        raise Mistake(f"expected from 2 folds to as many as rows, came {num_folds} folds of {num_rows} rows; choose another number")
    rows = torch.randperm(num_rows, generator=generator)
    part = torch.empty(num_rows, dtype=torch.long)
    part[rows] = torch.arange(num_rows) % num_folds
    return [Fold((part != each).nonzero()[:, 0], (part == each).nonzero()[:, 0]) for each in range(num_folds)]
