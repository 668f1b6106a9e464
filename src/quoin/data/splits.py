"""Which rows train, which choose, which judge: one split, or k folds; a function of the seed and the targets alone.

Rows are shuffled, then sorted by class; taking rows at an even stride from that line gives every part its share of every
class to within one row, and every part its size exactly.
"""

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
    num_rows = len(line)
    if dataset.test_from is None:
        _check_fractions(validation, test)
        judged, line = _stride(line, round(num_rows * test), seed)
    else:
        _check_fractions(validation, 0.0)
        judged = torch.arange(dataset.test_from, dataset.num_rows)
    chosen, trained = _stride(line, round(num_rows * validation), seed)
    return _checked(dataset, Split(trained, chosen, judged), (True, validation > 0, test > 0))


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
            f"expected a row or more for each of {num_folds} folds, but {shown(dataset.name, 200)} has {len(line)}: "
            "use fewer folds"
        )
    if not 0 <= index < num_folds:
        raise Mistake(f"expected a fold from 0 to {num_folds - 1}, got {index}")
    _check_fractions(validation, 0.0)
    mine = torch.arange(len(line)) % num_folds == index
    rest = line[~mine]
    chosen, rest = _stride(rest, round(len(rest) * validation), seed)
    return _checked(dataset, Split(rest, chosen, line[mine]), (True, validation > 0, True))


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


def _checked(dataset: Dataset, parts: Split, wanted: tuple[bool, bool, bool]) -> Split:
    """The parts with their rows in ascending order, or a Mistake for one that was wanted and is empty."""
    for name, rows, needed in zip(Split._fields, parts, wanted):
        if needed and len(rows) == 0:
            raise Mistake(
                f"expected rows for the {name} part, but {shown(dataset.name, 200)} has only {dataset.num_rows}: "
                "add rows"
            )
    return Split(*(rows.sort().values for rows in parts))
