"""Entries checked before a computation that would otherwise answer nonsense: real floats, finite, of one dtype.

Shapes are in shapes.py, labels in labels.py.
"""

from functools import reduce

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from quoin.errors import UserError

__all__ = ["as_floating", "check_finite", "check_floating", "check_same_dtype"]


def check_floating(x: Shaped[Tensor, "..."], name: str = "x") -> None:
    """Raise an error for integers, booleans and complex numbers where real floats are needed."""
    if not x.is_floating_point():
        hint = "take its real part" if x.is_complex() else f"convert it with {name}.double()"
        raise UserError(f"expected {name} of a float dtype, got {x.dtype}; {hint}")


def as_floating(x: Shaped[Tensor, "*shape"], *others: Shaped[Tensor, "..."]) -> Float[Tensor, "*shape"]:
    """`x` itself where it holds floats; integers and booleans become torch's default dtype, as they do in `torch.exp`.

    Where `x` is to meet `others` of which some are floats, it takes their dtype, as in `x + other`.

    Differences and products of small integers wrap around in silence: 0 - 255 is 1 in uint8.

    >>> as_floating(torch.tensor([0, 255], dtype=torch.uint8))
    tensor([  0., 255.])
    """
    if x.is_complex():
        raise UserError(f"expected real numbers, got {x.dtype}; take the real part")
    if x.is_floating_point():
        return x
    floats = [other.dtype for other in others if other.is_floating_point()]
    return x.to(reduce(torch.promote_types, floats) if floats else torch.get_default_dtype())


def check_finite(x: Shaped[Tensor, "..."], name: str = "x") -> None:
    """Raise an error on entries that are NaN or infinite, naming the index of the first."""
    if torch.compiler.is_exporting():  # a program has no values yet
        return
    wrong = ~x.detach().isfinite()
    if bool(wrong.any()):
        index = tuple(wrong.nonzero()[0].tolist())
        raise UserError(
            f"expected finite entries of {name}, got {float(x.detach()[index])} at {index}; clean or mask the data"
        )


def check_same_dtype(*tensors: Shaped[Tensor, "..."]) -> None:
    """Raise an error on operands of different dtypes, where torch's products stop with a kernel's words, and on those
    whose products wrap around.
    """
    dtype = tensors[0].dtype
    for tensor in tensors:
        if tensor.dtype != dtype:
            raise UserError(
                f"expected operands of one dtype, got {dtype} and {tensor.dtype}; convert them with .to({dtype})"
            )
    if not (dtype.is_floating_point or dtype.is_complex or dtype == torch.int64):
        raise UserError(
            f"expected operands of a float dtype or int64, got {dtype}, whose products overflow; convert them with "
            ".long()"
        )
