"""Adaptive quadrature: pieces of an axis are halved until the error estimated from the nodes is small enough.

A jump or a breakpoint is closed in on by a factor of two each time; on a box only those that run along an axis are,
others stay blurred and the error says by how much. What is so narrow that no node falls on it is not seen: on a line, a
hundredth of a piece between edges, in a box a tenth.   d axes, e edges, m nodes
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Real
from torch import Tensor

from quoin.errors import UserError
from quoin.prob.quadrature import Integral, Quadrature, cut_tails, lay_nodes, line_quadrature

__all__ = ["Adapted", "adapt", "integrate", "mesh"]

_TOLERANCE = 1e-9  # of the integral of |f|
_FIRST = 3  # halvings of a line before anything is evaluated
_ROUNDS = 60  # halvings: a double has 53 digits
_MOST_NODES = 2**20
_MOST_PIECES = 400


class Adapted(NamedTuple):
    """Nodes along each axis, and the error of the integral over all of them."""

    axes: tuple[Quadrature, ...]
    error: Float[Tensor, "*batch"]


def mesh(parts: Sequence[Float[Tensor, "_m"]]) -> list[Float[Tensor, "..."]]:
    """The coordinates of all nodes, each along its own axis, so that they broadcast to (m_1, ..., m_d)."""
    return [part.reshape(-1, *[1] * (len(parts) - 1 - index)) for index, part in enumerate(parts)]


def integrate(f: Callable[..., Tensor], *edges: Sequence[float] | Real[Tensor, "_e"], num_nodes: int = 80) -> Integral:
    """The integral of f, of one tensor for each coordinate, over a box, with an estimate of its error; edges as
    for a `Density`.

    Args:
        num_nodes: Quadrature nodes on each piece between two edges; pieces are halved until the error is small.

    >>> found = integrate(lambda x: (x < 0.3).double(), (0, 1))
    >>> abs(float(found.output) - 0.3) < float(found.error) < 1e-8
    True
    """
    if not edges:
        raise UserError("expected the edges of a box, one sequence for each coordinate, got none; give e.g. (0, 1)")
    lines = [torch.as_tensor(each, dtype=torch.float64) for each in edges]
    found = adapt(lambda *x: f(*x), lines, num_nodes)
    return Integral(_terms(f, found.axes).sum(), found.error)


def adapt(f: Callable[..., Tensor], edges: Sequence[Float[Tensor, "... _e"]], num_nodes: int = 80) -> Adapted:
    """Nodes on which the integral of f is known to 1e-9 of that of |f|, or as well as halving pieces makes it.

    Of one axis the edges may be a batch (..., e), with f of points (..., m); all its lines are halved where one of
    them needs it.
    """
    for line in edges:
        line_quadrature(line, num_nodes)  # checks the edges
    cut = [cut_tails(line) for line in edges]
    for _ in range(_FIRST if len(cut) == 1 else 0):  # on a line, nodes enough to see what is narrow cost little
        cut = [_halved(line, torch.ones(line.shape[-1] - 1, dtype=torch.bool)) for line in cut]
    error = torch.zeros(())
    for _ in range(_ROUNDS):
        axes = tuple(lay_nodes(line, num_nodes) for line in cut)
        with torch.no_grad():
            terms = _terms(f, axes)
            errors = [_errors(axis, terms, index, len(axes)) for index, axis in enumerate(axes)]
            error = torch.stack([each.sum(dim=-1) for each in errors]).sum(dim=0)
            size = terms.abs().sum(dim=tuple(range(-len(axes), 0)))
            worst = float((error / torch.where(size > 0, size, 1)).max()) if error.numel() else 0.0
        if not _TOLERANCE < worst < math.inf:
            break
        bound = (_TOLERANCE / 2 * size / sum(each.shape[-1] for each in errors)).unsqueeze(-1)
        halved = [
            _halved(line, (each > bound).reshape(-1, each.shape[-1]).any(dim=0)) for line, each in zip(cut, errors)
        ]
        count = math.prod((line.shape[-1] - 1) * num_nodes for line in halved)
        is_too_fine = count > _MOST_NODES or max(line.shape[-1] for line in halved) > _MOST_PIECES
        if is_too_fine or all(new.shape == old.shape for new, old in zip(halved, cut)):
            break
        cut = halved
    return Adapted(tuple(lay_nodes(line, num_nodes) for line in cut), error)


def _terms(f: Callable[..., Tensor], axes: Sequence[Quadrature]) -> Tensor:
    """w f(x) at all nodes."""
    if len(axes) == 1:
        return f(axes[0].points) * axes[0].weights
    values = f(*mesh([axis.points for axis in axes]))
    for weights in mesh([axis.weights for axis in axes]):
        values = values * weights
    return values


def _errors(axis: Quadrature, terms: Tensor, index: int, dim: int) -> Tensor:  # (..., m_1, ..., m_d) -> (..., pieces)
    """Of the pieces of one axis: of the terms summed over the other axes, and of each line along it.

    The errors of lines are added as if independent, as a root of squares: a jump along the other axes puts the
    same error on all of them, and the sum shows that; across it the lines differ, and the sum may hide what each
    of them has.
    """
    if dim == 1:
        return axis.piece_errors(terms)
    lines = terms.movedim(index - dim, -1).flatten(terms.ndim - dim, -2)  # (..., lines, m)
    return axis.piece_errors(lines.sum(dim=-2)) + axis.piece_errors(lines).square().sum(dim=-2).sqrt()


def _halved(edges: Tensor, chosen: Tensor) -> Tensor:  # (..., e), (e - 1,) of truth values -> (..., more)
    """Edges with one more in the middle of each chosen piece; a tail is cut where half of its nodes lie."""
    parts = []
    for index in range(edges.shape[-1] - 1):
        a, b = edges[..., index], edges[..., index + 1]
        parts.append(a)
        if not bool(chosen[index]):
            continue
        if bool(a.isinf().any()):
            middle = b - (edges[..., index + 2] - b)
        elif bool(b.isinf().any()):
            middle = a + (a - edges[..., index - 1])
        else:
            middle = a + (b - a) / 2
        apart = 1e-13 * torch.maximum(middle.detach().abs(), torch.where(a.isfinite(), a, b).detach().abs())
        if bool(((middle - a > apart) & (b - middle > apart)).all()):
            parts.append(middle)
    return torch.stack([*parts, edges[..., -1]], dim=-1)
