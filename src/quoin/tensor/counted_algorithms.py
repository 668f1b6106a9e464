"""Five small algorithms that count as they work, one for each growth met most: 1, log n, n, n log n and n².

They are read, not used: Python's own list, bisect and sorted are quicker at all of it. Each states what it counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from quoin.display import shown
from quoin.errors import UserError

__all__ = ["Counted", "LinkedList", "array_access", "binary_search", "bubble_sort", "linked_list_access", "merge_sort"]


@shown
class Counted(NamedTuple):
    """What an algorithm found, and the operations that it took."""

    output: Any
    operations: int


def array_access(array: Sequence, index: int) -> Counted:
    """The entry at `index`: one read, wherever it lies. O(1).

    >>> array_access("quoin", 4)
    Counted(output='n', operations=1)

    Notes: D4-3.
    """
    _check_index(index, len(array))
    return Counted(array[index], 1)


def binary_search(array: Sequence, value: Any) -> Counted:
    """The index of `value` in an ascending array, None where it is not; counts the entries looked at, at most ⌊log₂ n⌋
    + 1. O(log n).

    >>> binary_search([1, 3, 5, 7, 9], 7)
    Counted(output=3, operations=3)

    Notes: D4-3.
    """
    low, high, num_reads = 0, len(array), 0
    while low < high:
        middle = (low + high) // 2
        num_reads += 1
        if array[middle] == value:
            return Counted(middle, num_reads)
        low, high = (middle + 1, high) if array[middle] < value else (low, middle)
    return Counted(None, num_reads)


@shown
@dataclass(frozen=True, eq=False, repr=False)  # either would recurse as deep as the list is long
class LinkedList:
    """A value and the rest of the list, None at its end: the next entry is known only from the one before."""

    value: Any
    rest: "LinkedList | None" = None

    @classmethod
    def from_values(cls, values: Sequence) -> "LinkedList":
        """The list of one value or more."""
        if not values:
            raise UserError("expected one value or more, got none; an empty list has no first link")
        chain = None
        for value in reversed(values):
            chain = cls(value, chain)
        assert chain is not None
        return chain


def linked_list_access(chain: LinkedList, index: int) -> Counted:
    """The entry at `index`, counting the links visited on the way to it: index + 1, at most n. O(n).

    >>> linked_list_access(LinkedList.from_values("quoin"), 4)
    Counted(output='n', operations=5)

    Notes: D4-3.
    """
    here: LinkedList | None = chain
    visited = 0
    while here is not None and index >= 0:
        visited += 1
        if visited > index:
            return Counted(here.value, visited)
        here = here.rest
    raise UserError(f"expected an index from 0 below the list's length, got {index}; choose one inside")


def merge_sort(values: Sequence) -> Counted:
    """The values in order, either half sorted and the two merged; counts comparisons.

    W(n) = W(⌊n/2⌋) + W(⌈n/2⌉) + n - 1 at worst, which is n⌈log₂ n⌉ - 2^⌈log₂ n⌉ + 1. O(n log n).

    >>> merge_sort([4, 2, 3, 1])
    Counted(output=[1, 2, 3, 4], operations=5)

    Notes: D4-3.
    """
    if len(values) < 2:
        return Counted(list(values), 0)
    middle = len(values) // 2
    left, right = merge_sort(values[:middle]), merge_sort(values[middle:])
    merged, compared = [], left.operations + right.operations
    i = j = 0
    while i < len(left.output) and j < len(right.output):
        compared += 1
        if right.output[j] < left.output[i]:
            merged.append(right.output[j])
            j += 1
        else:  # equal values keep their order
            merged.append(left.output[i])
            i += 1
    return Counted(merged + left.output[i:] + right.output[j:], compared)


def bubble_sort(values: Sequence) -> Counted:
    """The values in order, neighbours exchanged until none is out of order; counts comparisons, n(n - 1)/2 at worst.
    O(n²).

    >>> bubble_sort([4, 3, 2, 1])
    Counted(output=[1, 2, 3, 4], operations=6)
    >>> bubble_sort([1, 2, 3, 4]).operations
    3

    Notes: D4-3.
    """
    found, compared, last = list(values), 0, len(values) - 1
    while last > 0:
        end, last = last, 0
        for index in range(end):
            compared += 1
            if found[index + 1] < found[index]:
                found[index], found[index + 1] = found[index + 1], found[index]
                last = index  # beyond the last exchange all is in order
    return Counted(found, compared)


def _check_index(index: int, length: int) -> None:
    if not 0 <= index < length:
        raise UserError(f"expected an index from 0 to {length - 1}, got {index}; choose one inside")
