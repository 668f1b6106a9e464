"""Which rows train, which choose, which judge: one split, or k folds; a function of the seed and the targets alone.

Rows are shuffled, then sorted by class; taking rows at an even stride from that line gives every part its share of every
class to within one row, and every part its size exactly.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from quoin.data.dataset import Dataset
from quoin.data.seeds import keyed_generator
from quoin.errors import Mistake, shown

__all__ = ["Split", "fold", "split"]


class Split(NamedTuple):
    """Row numbers, ascending, of three parts that share no row."""

    train: Tensor
    validation: Tensor
    test: Tensor


def split(dataset: Dataset, seed: int, *, validation: float = 0.2, test: float = 0.2) -> Split:
    """Hold rows out: round(n · validation) to choose by and round(n · test) to judge by; the rest train.

    Where the source has its own test part, that part is the test and n counts the other rows. A fraction of 0 asks
    for an empty part; any other part that would come out empty is a Mistake.

    Notes: Z3.26.
    """
    line = _line(dataset, seed)
    if dataset.test_from is not None:
        test = 0.0
    _check_fractions(validation, test)

    def sizes(num_rows: int) -> tuple[int, int]:
        return round(num_rows * validation), round(num_rows * test)

    def fills(num_rows: int) -> bool:
        num_chosen, num_judged = sizes(num_rows)
        return num_rows > num_chosen + num_judged and (num_chosen > 0 or validation == 0) and (num_judged > 0 or test == 0)

    _check_rows(dataset, len(line), fills)
    num_chosen, num_judged = sizes(len(line))
    judged, line = _stride(line, num_judged, seed)
    if dataset.test_from is not None:
        judged = torch.arange(dataset.test_from, dataset.num_rows)
    chosen, trained = _stride(line, num_chosen, seed)
    return _ascending(trained, chosen, judged)


def fold(dataset: Dataset, num_folds: int, index: int, seed: int, *, validation: float = 0.2) -> Split:
    """Part `index` of `num_folds` disjoint parts is the test; a fraction `validation` of the others chooses, the rest train.

    The parts of one seed cover every row once and differ in size by at most one; rows of a source's own test part stay out.

    Notes: Z3.28.
    """
    line = _line(dataset, seed)
    if num_folds < 2:
        raise Mistake(f"expected 2 folds or more, got {num_folds}: one fold leaves nothing to train on")
    if len(line) < num_folds:
        raise Mistake(
            f"expected a row or more for each of {num_folds} folds, but {shown(dataset.name, 200)} has {len(line)}: use fewer folds"
        )
    if not 0 <= index < num_folds:
        raise Mistake(f"expected a fold from 0 to {num_folds - 1}, got {index}")
    _check_fractions(validation, 0.0)

    def fills(num_rows: int) -> bool:
        num_others = num_rows - len(range(index, num_rows, num_folds))
        return num_others > round(num_others * validation) >= (validation > 0)

    _check_rows(dataset, len(line), fills)
    mine = torch.arange(len(line)) % num_folds == index
    rest = line[~mine]
    chosen, rest = _stride(rest, round(len(rest) * validation), seed)
    return _ascending(rest, chosen, line[mine])


def _line(dataset: Dataset, seed: int) -> Tensor:
    """The rows that are not the source's own test part: shuffled, then class by class."""
    num_rows = dataset.num_rows if dataset.test_from is None else dataset.test_from
    rows = torch.randperm(num_rows, generator=keyed_generator("split", seed))
    return rows[dataset.targets[rows].argsort(stable=True)] if dataset.is_classification else rows


def _stride(line: Tensor, size: int, seed: int) -> tuple[Tensor, Tensor]:
    """`size` rows at an even stride from `line`, and the others in their order."""
    if len(line) == 0:
        return line, line
    # Row p is taken when (p·size + start) / n passes a whole number; a random start keeps no class from any part for good.
    start = int(torch.randint(len(line), (), generator=keyed_generator("stride", seed)))
    marks = (torch.arange(len(line) + 1) * size + start) // len(line)
    taken = marks[1:] > marks[:-1]
    return line[taken], line[~taken]


def _check_fractions(validation: float, test: float) -> None:
    if not (validation >= 0 and test >= 0 and validation + test < 1):
        raise Mistake(f"expected fractions that leave rows to train on, got validation {validation} and test {test}: choose less")


def _check_rows(dataset: Dataset, num_rows: int, fills: Callable[[int], bool]) -> None:
    """A Mistake that says how many rows it takes, unless `num_rows` of them fill every part that was asked for."""
    if not fills(num_rows):
        # A fraction so small that no count near by will do still leaves a true bound.
        needed = next((more for more in range(num_rows + 1, num_rows + 10_000) if fills(more)), num_rows + 10_000)
        raise Mistake(
            f"expected at least {needed} rows to have some in every part (train, validation, test), "
            f"but {shown(dataset.name, 200)} has {num_rows}: add rows"
        )


def _ascending(train: Tensor, validation: Tensor, test: Tensor) -> Split:
    return Split(train.sort().values, validation.sort().values, test.sort().values)
