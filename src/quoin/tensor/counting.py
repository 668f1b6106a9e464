"""What a sum of products costs, in multiplications of entries: as defined, and in the cheapest order of pairs.

Counts depend on shapes alone; nothing is computed. A claim about cost counts here and does not measure seconds.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from quoin.display import shown
from quoin.errors import UserError, format_value
from quoin.tensor.einsum import parse_einsum

__all__ = ["PairwiseCost", "einsum_multiplications", "pairwise_multiplications"]

MOST_OPERANDS = 10  # the search visits 3^n splits


def einsum_multiplications(spec: str, *shapes: Sequence[int]) -> int:
    """The multiplications of `einsum_definition`: (operands - 1) for each value of all indices together.

    Args:
        spec: Indices as `torch.einsum` takes them, such as "ik,kj->ij".
        shapes: One for each operand.

    >>> einsum_multiplications("ik,kj->ij", (2, 3), (3, 4))
    24
    """
    _, sizes = parse_einsum(spec, tuple(map(tuple, shapes)))
    return (len(shapes) - 1) * math.prod(sizes.values())


@shown
@dataclass(frozen=True)
class PairwiseCost:
    """The fewest multiplications when operands are contracted two at a time, and how: `(0, (1, 2))` begins with 1 and
    2."""

    multiplications: int
    tree: int | tuple


def pairwise_multiplications(spec: str, *shapes: Sequence[int]) -> PairwiseCost:
    """The cheapest order of contracting two operands at a time; an index that nothing further needs is summed at once.

    cost(S) = min over S = L + R of cost(L) + cost(R) + the product of the sizes of all indices still alive in L or R

    Args:
        spec: Indices as `torch.einsum` takes them, such as "ik,kj->ij".
        shapes: One for each operand.

    >>> pairwise_multiplications("ij,jk,k->i", (9, 8), (8, 7), (7,))
    PairwiseCost(multiplications=128, tree=(0, (1, 2)))
    """
    if len(shapes) > MOST_OPERANDS:
        raise UserError(
            f"expected at most {MOST_OPERANDS} operands, got {len(shapes)} in {format_value(spec)}; "
            "contract some of them first"
        )
    indexed, sizes = parse_einsum(spec, tuple(map(tuple, shapes)))
    everyone = frozenset(range(len(shapes)))

    def alive(group: frozenset[int]) -> frozenset[str]:
        needed = set(indexed.output).union(*(indexed.terms[other] for other in everyone - group))
        return frozenset(needed.intersection(*[{index for member in group for index in indexed.terms[member]}]))

    @functools.cache
    def cheapest(group: frozenset[int]) -> PairwiseCost:
        first, *others = sorted(group)
        if not others:
            return PairwiseCost(0, first)
        splits = []
        for bits in range(2 ** len(others) - 1):  # the group of `first`; never everybody
            left = frozenset([first, *(other for k, other in enumerate(others) if bits >> k & 1)])
            one, two = cheapest(left), cheapest(group - left)
            here = math.prod(sizes[index] for index in alive(left) | alive(group - left))
            splits.append((one.multiplications + two.multiplications + here, (one.tree, two.tree)))
        return PairwiseCost(*min(splits, key=lambda split: split[0]))

    return cheapest(everyone)
