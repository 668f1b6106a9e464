"""Shapes checked against a legend, so that a wrong one is reported in the caller's words and not in a kernel's.

A legend has one term per argument, `"... n d, m d"`. A letter or word names an axis, and one name is one size in all
arguments; a number is that size; a leading `...` stands for any axes, the same in every argument that has them, because
silent broadcasting is the error most worth catching (`Tensor.expand` broadcasts on purpose, and copies nothing); `()` is a
single number.
"""

from torch import Tensor

from quoin.errors import Mistake

__all__ = ["check_shapes"]


def check_shapes(legend: str, **arguments: Tensor | None) -> None:
    """Hold each argument, in the order given, against its term of the legend; an argument that is None is passed over.

    >>> import torch
    >>> check_shapes("... n d, ... m d", query=torch.zeros(2, 5, 3), key=torch.zeros(2, 7, 3))
    >>> check_shapes("n d, m d", query=torch.zeros(5, 3), key=torch.zeros(7, 4))
    Traceback (most recent call last):
    quoin.errors.Mistake: expected axis d of key to be 3 as in query, came 4 (key has shape (7, 4)); make the two sizes equal
    """
    terms = [term.split() for term in legend.split(",")]
    assert len(terms) == len(arguments), f"legend {legend!r} has {len(terms)} terms for {len(arguments)} arguments"
    known: dict[str, tuple[int, str]] = {}  # axis -> (size, the argument that set it)
    batch: tuple[tuple[int, ...], str] | None = None

    for axes, (name, tensor) in zip(terms, arguments.items(), strict=True):
        if tensor is None:
            continue
        shape = tuple(tensor.shape)
        open_ended = axes[:1] == ["..."]
        axes = [axis for axis in axes if axis not in ("...", "()")]
        if len(shape) < len(axes) or (len(shape) > len(axes) and not open_ended):
            count = f"{'at least ' if open_ended else ''}{len(axes)} {'axis' if len(axes) == 1 else 'axes'}"
            written = f" ({' '.join(axes)})" if axes else ""
            raise Mistake(f"expected {name} with {count}{written}, came shape {shape}; add or remove axes of {name}")
        split = len(shape) - len(axes)
        if open_ended:
            batch = batch or (shape[:split], name)
            if shape[:split] != batch[0]:
                raise Mistake(
                    f"expected leading axes {batch[0]} of {name} as in {batch[1]}, came {shape[:split]} "
                    f"({name} has shape {shape}); make them equal"
                )
        for axis, size in zip(axes, shape[split:], strict=True):
            if axis.isdigit():
                if size != int(axis):
                    raise Mistake(f"expected {name} to have size {axis} where it has {size} (shape {shape}); reshape {name}")
                continue
            expected, giver = known.setdefault(axis, (size, name))
            if size != expected:
                raise Mistake(
                    f"expected axis {axis} of {name} to be {expected} as in {giver}, came {size} "
                    f"({name} has shape {shape}); make the two sizes equal"
                )
