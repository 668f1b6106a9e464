"""One public function tried with numbers of every dtype: the float64 answer to that dtype's rounding, or a refusal.

A case is a function of `x`, which turns plain numbers into a tensor of the dtype that is tried:

    CASES = {"softmax": lambda x: softmax(x([[0, 255, 250], [3, 1, 2]]))}

The numbers are rounded (or wrapped) to the dtype first and the float64 answer is asked for exactly those, so that
nothing but the computation itself is compared. Take numbers whose sums, differences and products leave uint8 and int8
(200, 255), and whole ones where the function allows them.
"""

import dataclasses
import math
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from quoin.errors import UserError

__all__ = ["DTYPES", "Numbers", "answer_or_refusal", "in_dtype", "numbers_in", "whole"]

DTYPES = (torch.uint8, torch.int8, torch.int64, torch.bool, torch.float16, torch.bfloat16, torch.float64)
ROUNDINGS = 64  # how many roundings of the result's dtype, relative to its largest entry, a computation may lose
# torch's own refusals name the dtype that a kernel lacks; they are no silent wrong answer.
TORCH_REFUSES = (
    "not implemented for",
    "dtype",
    "scalar type",
    "floating point",
    "bool tensor",
    "bool input",
    "only integer tensors",
)
TORCH_REFUSES += ("Half", "BFloat16", "Long", "Byte", "Char", "Bool")
TORCH_REFUSES += ("should be the same", "handle types other than float", "tensors used as indices", "__index__")

Numbers = Callable[[Any], Tensor]
Module = TypeVar("Module", bound=nn.Module)


def answer_or_refusal(
    call: Callable[[Numbers], Any],
    dtype: torch.dtype,
    *,
    roundings: float = ROUNDINGS,
    reference: torch.dtype = torch.float64,
) -> str:
    """'answered' or 'refused'; a wrong answer, or an error that says nothing of the dtype, fails.

    `reference` is int64 for labels, lengths and places, which are whole numbers and no measurements."""
    try:
        expected: Any = list(
            numbers_in(call(lambda values: torch.tensor(values, dtype=torch.float64).to(dtype).to(reference)))
        )
    except UserError as mistake:
        expected = mistake
    try:
        found = list(numbers_in(call(lambda values: torch.tensor(values, dtype=torch.float64).to(dtype))))
    except UserError:
        return "refused"
    except (RuntimeError, NotImplementedError, TypeError, IndexError) as error:
        if any(word in str(error) for word in TORCH_REFUSES):
            return "refused"
        raise
    assert not isinstance(expected, UserError), f"{dtype}: answered {found} where {reference} refuses: {expected}"
    assert len(found) == len(expected), f"{dtype}: {len(found)} results, float64 has {len(expected)}"
    for ours, right in zip(found, expected):
        _compare(ours, right, dtype, roundings)
    return "answered"


def numbers_in(result: Any) -> Iterator[Tensor]:
    """Every tensor and number of a result, in order."""
    if isinstance(result, Tensor):
        yield result.detach()
    elif isinstance(result, bool | int | float):
        yield torch.tensor(result, dtype=torch.float64 if isinstance(result, float) else None)
    elif isinstance(result, dict):
        for value in result.values():
            yield from numbers_in(value)
    elif isinstance(result, list | tuple):
        for value in result:
            yield from numbers_in(value)
    elif dataclasses.is_dataclass(result):
        for field in dataclasses.fields(result):
            yield from numbers_in(getattr(result, field.name))
    else:
        assert result is None or isinstance(result, str), (
            f"the case gives a {type(result).__name__}: let it give tensors or numbers"
        )


def whole(*shape: int, most: int = 150) -> Any:
    """Nested lists of whole numbers 0 ... most, in no order."""
    i = torch.arange(math.prod(shape))
    return ((i**3 * 7 + i * 37 + 11) % 211 % (most + 1)).reshape(shape).tolist()


def in_dtype(make: Callable[[], Module], x: Numbers) -> Module:
    """The module that `make` builds from one seed, in the dtype of `x`'s numbers where that is a float; its weights
    have few digits, so that they are the same numbers in each of them."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = make().requires_grad_(False)
    with torch.no_grad():
        for each in (*module.parameters(), *module.buffers()):
            if each.is_floating_point():
                # Nothing hides behind a zero, nor behind rows that are alike.
                each.copy_(
                    (each if each.any() else torch.linspace(0.25, 1, each.numel()).reshape(each.shape)).bfloat16()
                )
    dtype = x(0.0).dtype
    return module.to(dtype) if dtype.is_floating_point else module


def _compare(ours: Tensor, right: Tensor, dtype: torch.dtype, roundings: float) -> None:
    assert ours.shape == right.shape, f"{dtype}: shape {tuple(ours.shape)}, float64 gives {tuple(right.shape)}"
    if not ours.is_floating_point():  # whole results are exact
        assert torch.equal(ours.double(), right.double()), f"{dtype}: {ours} where float64 gives {right}"
        return
    # A number that torch gives back as a Python float was still computed in the dtype of the numbers that went in.
    coarse = torch.float64 if dtype == torch.float64 else dtype if dtype.is_floating_point else torch.float32
    right = right.to(coarse).double()  # what is too large for the dtype is infinite there too
    largest = right[right.isfinite()].abs().max().item() if right.isfinite().any() else 0.0
    tolerance = roundings * torch.finfo(coarse).eps * max(largest, torch.finfo(coarse).tiny)
    close = torch.isclose(ours.double(), right, rtol=0.0, atol=tolerance, equal_nan=True)
    assert bool(close.all()), f"{dtype}: {ours} where float64 gives {right} (off by at most {tolerance:.3g} allowed)"
    assert math.isfinite(tolerance)
