"""A small block of examples, positions and channels, and which outputs of a norm move when one entry changes."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from quoin.lab.parts.picture import Axes, Picture
from quoin.layers import batch_norm_definition, layer_norm_definition, moments
from quoin.notes.claims.normalisation import positions_are_pooled

__all__ = ["BLOCK", "NORMS", "column_of_std", "draw_blocks", "moved_by", "outline", "printed_batch_norm"]

Norm = Callable[[Tensor], Tensor]

BLOCK = torch.randn(4, 3, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
_ONE, _ZERO = torch.ones(3, 4, dtype=torch.float64), torch.zeros(3, 4, dtype=torch.float64)

NORMS: dict[str, Norm] = {
    "layer norm": lambda x: layer_norm_definition(x, _ONE[0], _ZERO[0]).output,
    "layer norm, whole example": lambda x: layer_norm_definition(x, _ONE, _ZERO).output,
    "batch norm": lambda x: batch_norm_definition(x, _ONE[0], _ZERO[0], channel_dim=-1).output,
}

_SHAPE = (0.0, 0.2, -0.3, 0.5, -0.65, 0.1, -0.2, 1.4)


def printed_batch_norm(x: Float[Tensor, "b n c"]) -> Float[Tensor, "b n c"]:
    """Batch norm with the groups that the notes print."""
    assert positions_are_pooled.printed is not None
    return positions_are_pooled.printed(x, _ONE[0], _ZERO[0])


def moved_by(norm: Norm, place: tuple[int, int, int], change: float) -> Float[Tensor, "b n c"]:
    """By how much each output of a norm of BLOCK moves if one input is changed."""
    other = BLOCK.clone()
    other[place] += change
    return (norm(other) - norm(BLOCK)).abs()


def outline(axes: Axes, mask: Bool[Tensor, "row column"], role: str, inset: float) -> None:
    """A frame inside each cell of the mask, on axes with a unit for each cell and rows going down."""
    for row, column in mask.nonzero().tolist():
        left, right, top, bottom = column + inset, column + 1 - inset, row + inset, row + 1 - inset
        axes.line([left, right, right, left, left], [top, top, bottom, bottom, top], role, width=2)


def column_of_std(std: float) -> Float[Tensor, " n"]:
    """Eight numbers with mean 0 and this standard deviation."""
    shape = torch.tensor(_SHAPE, dtype=torch.float64)
    mean, variance = moments(shape)
    return std * (shape - mean) / variance.sqrt()


def draw_blocks(picture: Picture, moved: Float[Tensor, "4 3 4"]) -> Axes:
    """The block left, whose axes are given back, and how far each output moves right; examples apart by lines."""
    names = [f"example {b + 1}, pos. {n + 1}" if n == 1 else str(n + 1) for b in range(4) for n in range(3)]
    channels = ["c 1", "c 2", "c 3", "c 4"]
    left = picture.axes((0, 4), (12, 0), bare=True, box=(134, 28, 190, 360), title="inputs that share a mean")
    left.cells(BLOCK.reshape(12, 4), rows=names, columns=channels, most=4)
    right = picture.axes((0, 4), (12, 0), bare=True, box=(404, 28, 190, 360), title="how far outputs move")
    right.cells(moved.reshape(12, 4), role="change", columns=channels, most=0.8)
    for axes in (left, right):
        for example in (3, 6, 9):
            axes.line([0, 4], [example, example], "ink", width=1.6)
    return left
