"""Sums of products written by their indices: as nested loops, and on torch's kernels.

`"ik,kj->ij"` names the axes of each operand, then those of the result. Every index that the result lacks is summed
over, and no other: an index may repeat without being summed. Without an arrow the result has the indices that occur
once, in alphabetical order. A leading `...` stands for further axes, the same in every operand that writes it. Unlike
torch.einsum we never stretch an axis of size one to fit: one letter is one size.
"""

import functools
import itertools
import operator
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Num
from torch import Tensor

from quoin.errors import UserError, format_value
from quoin.tensor.entries import check_same_dtype

__all__ = ["einsum", "einsum_definition"]


class Indexed(NamedTuple):
    """A specification once read: the indices of each operand and of the result."""

    terms: tuple[tuple[str, ...], ...]
    output: tuple[str, ...]


def einsum_definition(spec: str, *operands: Num[Tensor, "..."]) -> Num[Tensor, "..."]:
    """Entry by entry: for each value of the output's indices, the products of entries summed over all other indices.

    T_(output) = sum over the indices not in the output of S1_(term 1) S2_(term 2) ...

    Args:
        spec: Indices as `torch.einsum` takes them, such as "ik,kj->ij".

    Notes: D1.2-3.
    """
    indexed, sizes = _checked(spec, operands)
    summed = [index for index in sizes if index not in indexed.output]
    entries = []
    for kept in itertools.product(*(range(sizes[index]) for index in indexed.output)):
        total = operands[0].new_zeros(())
        for free in itertools.product(*(range(sizes[index]) for index in summed)):
            value = dict(zip([*indexed.output, *summed], [*kept, *free], strict=True))
            factors = [
                operand[tuple(value[index] for index in term)]
                for term, operand in zip(indexed.terms, operands, strict=True)
            ]
            total = total + functools.reduce(operator.mul, factors)
        entries.append(total)
    shape = [sizes[index] for index in indexed.output]
    return torch.stack(entries).reshape(shape) if entries else operands[0].new_zeros(shape)


def einsum(spec: str, *operands: Num[Tensor, "..."]) -> Num[Tensor, "..."]:
    """`einsum_definition` at torch's speed: torch.einsum (tf.einsum in TensorFlow), once every index is known to fit.

    >>> A, v = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1.0, 10.0])
    >>> einsum("ij,j", A, v)
    tensor([21., 43.])
    >>> einsum("ij,j", A, torch.ones(3))
    Traceback (most recent call last):
    quoin.errors.UserError: expected index j to be 2 as in operand 1 of shape (2, 2), got 3 in operand 2 of shape (3,);
    ...

    Notes: D1.2-3, D1.2-9.
    """
    _checked(spec, operands)
    return torch.einsum(spec, *operands)


def _checked(spec: str, operands: Sequence[Tensor]) -> tuple[Indexed, Mapping[str, int]]:
    if not operands or not all(isinstance(operand, Tensor) for operand in operands):
        raise UserError(
            f"expected tensors after {format_value(spec)}, got {format_value(operands)}; give one tensor for each term"
        )
    check_same_dtype(*operands)
    # Dynamo would warn that it looks through the cache; it reads a specification only once anyway.
    reading = parse_einsum.__wrapped__ if torch.compiler.is_compiling() else parse_einsum
    return reading(spec, tuple([operand.shape for operand in operands]))


@functools.lru_cache(maxsize=1024)  # a model asks the same thing at every step: then nothing is read again
def parse_einsum(spec: str, shapes: tuple[tuple[int, ...], ...]) -> tuple[Indexed, Mapping[str, int]]:
    """The indices of each operand and of the result, and the size of each index; a UserError where they do not fit."""
    indexed = _indexed(spec, [len(shape) for shape in shapes])
    sizes: dict[str, int] = {}
    for operand_index, (term, shape) in enumerate(zip(indexed.terms, shapes)):
        for index, size in zip(term, shape):
            if sizes.setdefault(index, size) != size:
                _refuse(spec, index, sizes[index], indexed.terms, shapes, operand_index, size)
    return indexed, sizes


def _refuse(
    spec: str, index: str, expected: int, terms: Sequence, shapes: Sequence, operand_index: int, size: int
) -> None:
    first = next(number for number, term in enumerate(terms) if index in term)
    where = (
        "there too"
        if first == operand_index
        else f"in operand {operand_index + 1} of shape {tuple(shapes[operand_index])}"
    )
    name = f"index {index}" if len(index) == 1 else f"axis {index[3:]} of ... (from the last)"
    raise UserError(
        f"expected {name} to be {expected} as in operand {first + 1} of shape {tuple(shapes[first])}, "
        f"got {size} {where}; make the two sizes equal in {format_value(spec)}"
    )


def _indexed(spec: str, orders: Sequence[int]) -> Indexed:
    written = spec.replace(" ", "")
    left, arrow, right = written.partition("->")
    terms = left.split(",")
    for term in [*terms, right]:
        if not re.fullmatch(r"[A-Za-z]*(\.\.\.)?[A-Za-z]*", term):
            raise UserError(
                f"expected letters and at most one ... in a term, got {format_value(term)} in "
                f"{format_value(spec)}; rewrite it"
            )
    if len(terms) != len(orders):
        raise UserError(
            f"expected {len(terms)} operands for {format_value(spec)}, got {len(orders)}; give one for each term"
        )
    read_terms = tuple(
        _term(spec, term, order, operand_index) for operand_index, (term, order) in enumerate(zip(terms, orders), 1)
    )
    counts = Counter(index for term in read_terms for index in term)
    rest = tuple(sorted((index for index in counts if len(index) > 1), key=lambda index: -int(index[3:])))
    lengths = {sum(len(index) > 1 for index in read) for read, term in zip(read_terms, terms) if "..." in term}
    if len(lengths) > 1:
        raise UserError(
            f"expected as many axes under ... in every operand of {format_value(spec)}, got {sorted(lengths)}; "
            "add or remove axes"
        )
    if not arrow:
        return Indexed(
            read_terms, (*rest, *sorted(index for index, count in counts.items() if count == 1 and len(index) == 1))
        )
    if "..." in right and not lengths:
        raise UserError(
            f"expected ... in an operand of {format_value(spec)}, got one only in the result; write it on both sides"
        )
    before, dots, after = right.partition("...")
    letters = before + after
    for index in letters:
        if index not in counts or letters.count(index) > 1:
            reason = "which no operand has" if index not in counts else "more than once"
            raise UserError(
                f"expected the result of {format_value(spec)} to use each index at most once, got {index} "
                f"{reason}; rewrite it"
            )
    return Indexed(read_terms, (*before, *(rest if dots else ()), *after))


def _term(spec: str, term: str, order: int, operand_index: int) -> tuple[str, ...]:
    """The indices of one operand; the axes under `...` are called ...k, counted from the last."""
    before, dots, after = term.partition("...")
    hidden = order - len(before) - len(after)
    if hidden < 0 or (hidden > 0 and not dots):
        count = f"{'at least ' if dots else ''}{len(before + after)}"
        raise UserError(
            f"expected operand {operand_index} of {format_value(spec)} with {count} axes ({term}), got order {order}; "
            "add or remove axes"
        )
    return (*before, *(f"...{k}" for k in range(hidden, 0, -1)), *after)
