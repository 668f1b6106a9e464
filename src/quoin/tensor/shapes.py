"""Shapes checked against a legend, so that a wrong one is reported in the caller's words and not in a kernel's.

A legend has one term per argument, `"... n d, m d"`. A letter or word names an axis, and one name is one size in all
arguments; a number is that size; a leading `...` stands for any axes, the same in every argument that has them, because
silent broadcasting is the error most worth catching (`Tensor.expand` broadcasts on purpose, and copies nothing); `()`
is a single number.
"""

from jaxtyping import Shaped
from torch import Tensor

from quoin.errors import UserError

__all__ = ["check_shapes"]


def check_shapes(legend: str, **arguments: Shaped[Tensor, "..."] | None) -> None:
    """Hold each argument, in the order given, against its term of the legend; an argument that is None is passed over.

    Args:
        legend: A term for each argument, with commas between: names of axes, which have one size wherever they stand,
            or sizes; `...` first for leading axes that all such terms share; `()` for a scalar.

    >>> import torch
    >>> check_shapes("... n d, ... m d", query=torch.zeros(2, 5, 3), key=torch.zeros(2, 7, 3))
    >>> check_shapes("n d, m d", query=torch.zeros(5, 3), key=torch.zeros(7, 4))
    Traceback (most recent call last):
    quoin.errors.UserError: expected axis d of key to be 3 as in query, got 4 (key has shape (7, 4)); make the two sizes
    equal
    """
    terms = [term.split() for term in legend.split(",")]
    assert len(terms) == len(arguments), f"legend {legend!r} has {len(terms)} terms for {len(arguments)} arguments"
    known: dict[str, tuple[int, str]] = {}  # axis -> (size, the argument that set it)
    batch: tuple[tuple[int, ...], str] | None = None

    for dims, (name, tensor) in zip(terms, arguments.items(), strict=True):
        if tensor is None:
            continue
        shape = tuple(tensor.shape)
        open_ended = dims[:1] == ["..."]
        dims = [dim for dim in dims if dim not in ("...", "()")]
        if len(shape) < len(dims) or (len(shape) > len(dims) and not open_ended):
            count = f"{'at least ' if open_ended else ''}{len(dims)} {'axis' if len(dims) == 1 else 'axes'}"
            written = f" ({' '.join(dims)})" if dims else ""
            raise UserError(f"expected {name} with {count}{written}, got shape {shape}; add or remove axes of {name}")
        split = len(shape) - len(dims)
        if open_ended:
            batch = batch or (shape[:split], name)
            if shape[:split] != batch[0]:
                raise UserError(
                    f"expected leading axes {batch[0]} of {name} as in {batch[1]}, got {shape[:split]} "
                    f"({name} has shape {shape}); make them equal"
                )
        for dim, size in zip(dims, shape[split:], strict=True):
            if dim.isdigit():
                if size != int(dim):
                    raise UserError(
                        f"expected {name} to have size {dim} where it has {size} (shape {shape}); reshape {name}"
                    )
                continue
            expected, giver = known.setdefault(dim, (size, name))
            if size != expected:
                raise UserError(
                    f"expected axis {dim} of {name} to be {expected} as in {giver}, got {size} "
                    f"({name} has shape {shape}); make the two sizes equal"
                )
