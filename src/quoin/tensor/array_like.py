"""Lists, tuples and arrays where a small table of numbers is asked for, made into tensors: here, at the door, and
nowhere else."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from quoin.errors import UserError, format_value
from quoin.tensor.entries import as_floating

__all__ = ["ArrayLike", "float_tensor", "number_tensor"]

ArrayLike: TypeAlias = Sequence[Any] | np.ndarray | float


def float_tensor(values: Shaped[Tensor, "*shape"] | ArrayLike, name: str, *others: object) -> Float[Tensor, "*shape"]:
    """A tensor as it is; numbers, nested lists of them or an array as floats.

    An array of floats keeps its dtype. Other numbers take the dtype of the first of `others` that has floats, for they
    are to meet it, or else torch's default.

    >>> float_tensor([0.5, 0.5], "p")
    tensor([0.5000, 0.5000])
    >>> float_tensor([1, 0], "p", torch.zeros(2, dtype=torch.float64))
    tensor([1., 0.], dtype=torch.float64)
    >>> float_tensor([[0.5], [0.25, 0.25]], "joint")
    Traceback (most recent call last):
    quoin.errors.UserError: expected numbers for joint, got [[0.5], [0.25, 0.25]]; give a tensor, an array or lists of
    equal lengths
    """
    if isinstance(values, Tensor):
        return values  # of whatever dtype: what whole numbers mean is for each function to say
    floats = next((found for other in others if (found := _float_dtype(other)) is not None), None)
    if isinstance(values, np.ndarray) and _float_dtype(values) is not None:
        floats = None  # its own
    made = _made(values, name, floats or (None if isinstance(values, np.ndarray) else torch.get_default_dtype()))
    return as_floating(made.to(_device(others)))


def number_tensor(values: Shaped[Tensor, "*shape"] | ArrayLike, name: str, *others: object) -> Shaped[Tensor, "*shape"]:
    """A tensor as it is; numbers, nested lists of them or an array of the dtype that torch gives them, on the device of
    `others`."""
    return values if isinstance(values, Tensor) else _made(values, name, None).to(_device(others))


def _made(values: Any, name: str, dtype: torch.dtype | None) -> Tensor:
    """A new tensor, rounded once to `dtype`."""
    try:
        if isinstance(values, (list, tuple)) and any(isinstance(each, Tensor) for each in values):
            made = torch.stack([torch.as_tensor(each) for each in values])  # keeps what their gradients need
            return made.to(dtype) if dtype is not None and not made.is_floating_point() else made
        if not isinstance(values, (list, tuple, int, float)):
            return torch.tensor(np.asarray(values), dtype=dtype)
        return torch.tensor(_plain(values), dtype=dtype)
    except (TypeError, ValueError, RuntimeError):
        raise UserError(
            f"expected numbers for {name}, got {format_value(values)}; give a tensor, an array or lists of equal "
            "lengths"
        ) from None


def _device(others: Sequence[object]) -> torch.device | None:
    return next((other.device for other in others if isinstance(other, Tensor)), None)


def _plain(values: Any) -> Any:
    """Arrays inside lists as lists, which torch reads at once."""
    if isinstance(values, (list, tuple)):
        return [_plain(each) for each in values]
    return values.tolist() if isinstance(values, (np.ndarray, np.generic)) else values


def _float_dtype(other: object) -> torch.dtype | None:
    if isinstance(other, Tensor):
        return other.dtype if other.is_floating_point() else None
    if isinstance(other, np.ndarray) and other.dtype.kind == "f":
        return torch.from_numpy(np.empty(0, other.dtype)).dtype
    return None
