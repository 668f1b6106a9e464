"""Which degree for the reader's own two columns: five folds choose, rows that were held out judge once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.data import kfold
from quoin.errors import UserError
from quoin.lab.parts.noisy_curve import sample_curve
from quoin.lab.parts.own_table import read_table
from quoin.losses import squared_loss
from quoin.metrics import cross_validate
from quoin.models import linear_regression_definition, polynomial_features, ridge

__all__ = ["DEGREES", "DegreeErrors", "compare_degrees", "fit_ridge_polynomial"]

DEGREES = range(1, 13)
MOST_ROWS, LEAST_ROWS = 2000, 12


class DegreeErrors(NamedTuple):
    """The rows to choose by and those held out, x first, and the validation error of each of DEGREES."""

    names: tuple[str, ...]
    kept: Float[Tensor, "kept 2"]
    held: Float[Tensor, "held 2"]
    errors: list[float]


def fit_ridge_polynomial(degree: int, l2: float, x: Float[Tensor, " n"], y: Float[Tensor, " n"]) -> Callable:
    """A polynomial whose weights, without the constant, are penalised; as a function of x."""
    found = ridge(polynomial_features(x, degree)[:, 1:], y, l2)
    return lambda x: linear_regression_definition(polynomial_features(x, degree)[:, 1:], *found)


@functools.lru_cache(maxsize=8)
def compare_degrees(table: bytes | None, l2: float) -> DegreeErrors:
    """Validation errors by degree for the first two columns of a CSV file, or for an example of ours."""
    names, rows = ("x", "y"), torch.stack(sample_curve(40, seed=3), dim=1)
    if table is not None:
        names, rows = read_table(table).first_numbers(2)
    rows = rows[:MOST_ROWS].double()
    if len(rows) < LEAST_ROWS:
        raise UserError(f"expected at least {LEAST_ROWS} rows, got {len(rows)}; choose another file")
    x, y = rows.T
    # twice a standard score: powers of it stay near 1 in the middle and are not lost in rounding at the ends
    rows = torch.stack([2 * (x - x.mean()) / x.std().clamp(min=1e-12), y], dim=1)
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))
    held, kept = rows[order[: len(rows) // 5]], rows[order[len(rows) // 5 :]]
    folds = kfold(len(kept), 5, generator=torch.Generator().manual_seed(0))
    fits = [functools.partial(fit_ridge_polynomial, degree, l2) for degree in DEGREES]
    errors = [cross_validate(fit, squared_loss, kept[:, 0], kept[:, 1], folds).validation_error for fit in fits]
    return DegreeErrors(names, kept, held, errors)
