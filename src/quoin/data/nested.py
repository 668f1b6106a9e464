"""Nested tensors, as examples come in: one tensor, a tuple of them or a dict by name, to any depth.

What is no tensor (a text, an object of somebody's own) passes through unchanged; with a method `to`, as a batch of
graphs has, it is moved too.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Int, Shaped
from torch import Tensor

from quoin.errors import UserError

__all__ = ["concatenate", "describe_nested", "map_tensors", "move", "num_rows", "split_rows", "take_rows", "tensors_of"]

Nested = Any


def map_tensors(function: Callable[[Any], Any], nested: Nested) -> Nested:
    """`function` of every leaf, in the same structure.

    >>> map_tensors(lambda leaf: leaf.shape[0], {"a": torch.ones(3), "b": (torch.ones(2), torch.ones(1))})
    {'a': 3, 'b': (2, 1)}
    """
    if isinstance(nested, Mapping):
        return {name: map_tensors(function, each) for name, each in nested.items()}
    if isinstance(nested, tuple) and hasattr(nested, "_fields"):
        return type(nested)(*(map_tensors(function, each) for each in nested))
    if isinstance(nested, (list, tuple)):
        return type(nested)(map_tensors(function, each) for each in nested)
    return function(nested)


def tensors_of(nested: Nested) -> list[Shaped[Tensor, "..."]]:
    """All tensors, in order."""
    return list(_leaves(nested))


def _leaves(nested: Nested) -> Iterator[Tensor]:
    if isinstance(nested, Tensor):
        yield nested
    elif isinstance(nested, (list, tuple, Mapping)):
        for each in nested.values() if isinstance(nested, Mapping) else nested:
            yield from _leaves(each)


def num_rows(nested: Nested) -> int | None:
    """Rows of the first tensor; None where there is no tensor with rows."""
    return next((len(each) for each in _leaves(nested) if each.ndim), None)


def take_rows(nested: Nested, rows: Int[Tensor, "rows"]) -> Nested:
    return map_tensors(lambda leaf: leaf.index_select(0, rows) if isinstance(leaf, Tensor) else leaf, nested)


def split_rows(nested: Nested, size: int) -> list[Nested]:
    """Pieces of at most `size` rows."""
    total = num_rows(nested) or 0
    if total <= size:
        return [nested]
    return [
        map_tensors(lambda leaf, start=start: leaf[start : start + size] if isinstance(leaf, Tensor) else leaf, nested)
        for start in range(0, total, size)
    ]


def move(nested: Nested, device: torch.device) -> Nested:
    """On `device`; what lies there already is not copied."""
    return map_tensors(lambda leaf: _moved(leaf, device), nested)


def _moved(leaf: Any, device: torch.device) -> Any:
    is_there = isinstance(leaf, Tensor) and leaf.device == device
    return leaf.to(device) if hasattr(leaf, "to") and not is_there else leaf


def concatenate(pieces: Sequence[Nested]) -> Nested:
    """Pieces of one structure, row after row; what is no tensor is left out of a dict."""
    first = pieces[0]
    if isinstance(first, Tensor):
        if first.ndim == 0:
            raise UserError("expected outputs with a row for each example, got a single number: call run.model itself")
        return torch.cat(list(pieces))
    if isinstance(first, Mapping):
        names = [name for name, each in first.items() if isinstance(each, (Tensor, tuple, list, Mapping))]
        return {name: concatenate([piece[name] for piece in pieces]) for name in names}
    if isinstance(first, (list, tuple)):
        return tuple(concatenate(column) for column in zip(*pieces))
    raise UserError(f"expected tensors as outputs, got {type(first).__name__}: call run.model itself")


def describe_nested(nested: Nested, *, of_rows: bool = True) -> str:
    """Dtypes and shapes as a person writes them; `of_rows` leaves the number of rows out.

    >>> describe_nested((torch.ones(8, 3), torch.zeros(8, dtype=torch.int64)))
    '(float32 (3,), int64 ())'
    """
    if isinstance(nested, Tensor):
        shape = tuple(nested.shape)[1:] if of_rows else tuple(nested.shape)
        return f"{str(nested.dtype).removeprefix('torch.')} {shape}"
    if isinstance(nested, Mapping):
        return (
            "{" + ", ".join(f"{name}: {describe_nested(each, of_rows=of_rows)}" for name, each in nested.items()) + "}"
        )
    if isinstance(nested, (list, tuple)):
        return "(" + ", ".join(describe_nested(each, of_rows=of_rows) for each in nested) + ")"
    return type(nested).__name__
