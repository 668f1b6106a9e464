"""Train, validation and test rows: one split, or k folds; a function of the seed and the targets alone.

Rows are shuffled, then sorted by class; taking rows at an even stride from that line gives every split its fraction of
every class to within one row, and every split its size exactly.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from quoin.data.dataset import Dataset
from quoin.data.seeds import keyed_generator
from quoin.display import shown
from quoin.errors import UserError, format_value

__all__ = ["Split", "fold", "split"]


@shown
class Split(NamedTuple):
    """Row numbers, ascending, of three disjoint splits."""

    train: Int[Tensor, "train"]
    validation: Int[Tensor, "validation"]
    test: Int[Tensor, "test"]


def split(dataset: Dataset, seed: int, *, validation: float = 0.2, test: float = 0.2) -> Split:
    """Hold rows out: round(n · validation) for validation and round(n · test) for the test; the rest train.

    Where the source has its own test or validation split, that is taken and n counts the other rows. A fraction of 0
    gives an empty split; any other split that would come out empty is a UserError.

    Notes: Z3.26.
    """
    line = _line(dataset, seed, dataset.validation_start)
    if dataset.test_start is not None:
        test = 0.0
    if dataset.validation_start is not None:
        validation = 0.0
    _check_fractions(validation, test)

    def sizes(num_rows: int) -> tuple[int, int]:
        return round(num_rows * validation), round(num_rows * test)

    def fills(num_rows: int) -> bool:
        num_chosen, num_tested = sizes(num_rows)
        return (
            num_rows > num_chosen + num_tested and (num_chosen > 0 or validation == 0) and (num_tested > 0 or test == 0)
        )

    _check_rows(dataset, len(line), fills)
    num_chosen, num_tested = sizes(len(line))
    tested, line = _stride(line, num_tested, seed)
    if dataset.test_start is not None:
        tested = torch.arange(dataset.test_start, dataset.num_rows)
    chosen, trained = _stride(line, num_chosen, seed)
    if dataset.validation_start is not None:
        chosen = torch.arange(dataset.validation_start, dataset.test_start or dataset.num_rows)
    return _ascending(trained, chosen, tested)


def fold(dataset: Dataset, num_folds: int, index: int, seed: int, *, validation: float = 0.2) -> Split:
    """Fold `index` of `num_folds` disjoint folds is the test; a fraction `validation` of the others validates, the rest
    train.

    The folds of one seed cover every row once and differ in size by at most one; rows of a source's own test split stay
    out, while those of its own validation split join the others.

    Args:
        index: From 0 to `num_folds` - 1.

    Notes: Z3.28.
    """
    line = _line(dataset, seed)
    if num_folds < 2:
        raise UserError(f"expected 2 folds or more, got {num_folds}: one fold leaves nothing to train on")
    if len(line) < num_folds:
        raise UserError(
            f"expected a row or more for each of {num_folds} folds, but {format_value(dataset.name, 200)} has "
            f"{len(line)}: use fewer folds"
        )
    if not 0 <= index < num_folds:
        raise UserError(f"expected a fold from 0 to {num_folds - 1}, got {index}")
    _check_fractions(validation, 0.0)

    def fills(num_rows: int) -> bool:
        num_others = num_rows - len(range(index, num_rows, num_folds))
        return num_others > round(num_others * validation) >= (validation > 0)

    _check_rows(dataset, len(line), fills)
    mine = torch.arange(len(line)) % num_folds == index
    rest = line[~mine]
    chosen, rest = _stride(rest, round(len(rest) * validation), seed)
    return _ascending(rest, chosen, line[mine])


def _line(dataset: Dataset, seed: int, end: int | None = None) -> Tensor:
    """The rows before `end`, else those that are not the source's own test split: shuffled, then class by class."""
    num_rows = end or dataset.test_start or dataset.num_rows
    rows = torch.randperm(num_rows, generator=keyed_generator("split", seed))
    return rows[dataset.targets[rows].argsort(stable=True)] if dataset.is_classification else rows


def _stride(line: Tensor, size: int, seed: int) -> tuple[Tensor, Tensor]:
    """`size` rows at an even stride from `line`, and the others in their order."""
    if len(line) == 0:
        return line, line
    # Row p is taken when (p·size + start) / n passes a whole number; a random start keeps no class from any split for
    # good.
    start = int(torch.randint(len(line), (), generator=keyed_generator("stride", seed)))
    marks = (torch.arange(len(line) + 1) * size + start) // len(line)
    taken = marks[1:] > marks[:-1]
    return line[taken], line[~taken]


def _check_fractions(validation: float, test: float) -> None:
    if not (validation >= 0 and test >= 0 and validation + test < 1):
        raise UserError(
            f"expected fractions that leave rows to train on, got validation {validation} and test {test}: choose less"
        )


def _check_rows(dataset: Dataset, num_rows: int, fills: Callable[[int], bool]) -> None:
    """A UserError that says how many rows it takes, unless `num_rows` of them fill every split that is not empty by
    choice."""
    if not fills(num_rows):
        # A fraction so small that no count near by will do still leaves a true bound.
        needed = next((more for more in range(num_rows + 1, num_rows + 10_000) if fills(more)), num_rows + 10_000)
        raise UserError(
            f"expected at least {needed} rows to have some in every split (train, validation, test), "
            f"but {format_value(dataset.name, 200)} has {num_rows}: add rows"
        )


def _ascending(train: Tensor, validation: Tensor, test: Tensor) -> Split:
    return Split(train.sort().values, validation.sort().values, test.sort().values)
