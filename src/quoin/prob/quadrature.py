"""Integrals over the line as weighted sums: tanh-sinh nodes between edges, the outermost of which may be infinite.

The nodes crowd doubly exponentially towards each edge. So a breakpoint, a jump or an integrable singularity costs
nothing if it stands at an edge, while between edges the integrand should be smooth; adaptive.py puts edges where it is
not. A tail that starts at the edge e is cut at e + 6 s, where s is the distance from e to its neighbouring edge (one
where it has none), and what lies beyond is laid on (0, 1) by x = e + 6 s / (1 - u): that serves the tails of
exponentials and of powers alike, if s is about the width of what is integrated. e edges, m nodes in all
"""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.tensor import check_floating
from quoin.tensor.array_like import ArrayLike, float_tensor

__all__ = ["Integral", "Quadrature", "check_settled", "cut_tails", "lay_nodes", "line_quadrature"]

_TAIL = 6.0
_SETTLED = 1e-6
_RADIUS = 4.0  # t runs over [-4, 4]: the outermost nodes are within e^-86 of the edges, as fractions of the piece


@shown
class Integral(NamedTuple):
    """An integral by quadrature, and an estimate of its error."""

    output: Float[Tensor, "*batch"]
    error: Float[Tensor, "*batch"]  # no gradient


@shown
@dataclass(frozen=True)
class Quadrature:
    """Points and weights: the integral of f is about sum_i w_i f(x_i). Unpacks as points, weights.

    >>> integral = line_quadrature(torch.tensor([0.0, 1.0], dtype=torch.float64)).integral(lambda x: (x < 0.3).double())
    >>> 0.005 < abs(float(integral.output) - 0.3) < float(integral.error) < 0.5  # a jump between edges, and it says so
    True
    """

    points: Float[Tensor, "*batch m"]
    weights: Float[Tensor, "*batch m"]
    sizes: tuple[int, ...]  # how many of the nodes are on each piece

    def __iter__(self) -> Iterator[Float[Tensor, "*batch m"]]:
        return iter((self.points, self.weights))

    def integral(self, f: Callable[[Tensor], Tensor]) -> Integral:
        """The integral of f, which gives a value for each point, with its error, the sum over pieces of
        `piece_errors`."""
        terms = f(self.points) * self.weights
        return Integral(terms.sum(dim=-1), self.piece_errors(terms).sum(dim=-1))

    def piece_errors(self, terms: Float[Tensor, "*batch m"]) -> Float[Tensor, "*batch pieces"]:
        """How far the sum over each piece of the terms w_i f(x_i) may be from its integral; no gradient.

        Every eighth, every fourth and every second node are rules of their own, as many as there are first nodes. The
        ranges e₈, e₄ and e₂ of their results show how fast the rule converges. At a jump they only halve, at a
        breakpoint they fall to a quarter, and then e₄ is believed, which no luck of where the jump lies makes small. At
        order p the error of all nodes is e₄ (e₄/e₈)²; ten times that is taken, and e₂ where it is larger. All this once
        for the left of the piece and once for its right, in two soft windows that add up to one, lest the errors of a
        jump and of its mirror image cancel; and never less than rounding.
        """
        runs = [
            (size, len(list(same))) for size, same in itertools.groupby(self.sizes)
        ]  # pieces of one size are taken together
        parts = terms.detach().split([size * count for size, count in runs], dim=-1)
        return torch.cat([_piece_error(part.unflatten(-1, (-1, size))) for part, (size, _) in zip(parts, runs)], dim=-1)


def line_quadrature(edges: Float[Tensor, "*batch e"] | ArrayLike, num_nodes: int = 80) -> Quadrature:
    """`num_nodes` nodes on each piece between edges: x = a + (b - a) u, u = 1 / (1 + exp(-pi sinh t)),
    t equally spaced.

    Differentiable in the edges, so that an integral over [a, b] knows its derivatives in a and b.

    Args:
        edges: Increasing; the outermost may be infinite.

    >>> x, w = line_quadrature(torch.tensor([0.0, 1.0], dtype=torch.float64))
    >>> round(float((w * x**-0.5).sum()), 12)  # infinite at the edge, yet integrable: exactly 2
    2.0
    >>> x, w = line_quadrature(torch.tensor([-math.inf, 0.0, math.inf], dtype=torch.float64))
    >>> round(float((w * torch.exp(-x**2)).sum() ** 2), 9)
    3.141592654
    """
    edges = float_tensor(edges, "edges")
    _check_edges(edges)
    if num_nodes < 8:
        raise UserError(f"expected at least 8 nodes on each piece, got {num_nodes}; 80 give about twelve digits")
    return lay_nodes(cut_tails(edges), num_nodes)


def lay_nodes(edges: Float[Tensor, "*batch e"], num_nodes: int) -> Quadrature:
    """`line_quadrature` between edges that have tails cut already."""
    t = torch.linspace(-_RADIUS, _RADIUS, num_nodes, dtype=torch.float64, device=edges.device)
    # u and 1 - u are both kept: near an edge one of them is far smaller than a rounding of the other.
    u, rest = torch.sigmoid(math.pi * torch.sinh(t)), torch.sigmoid(-math.pi * torch.sinh(t))
    du = math.pi * torch.cosh(t) * u * rest * (t[1] - t[0])
    u, rest, du = (each.to(edges.dtype) for each in (u, rest, du))
    low, high = (bool(edges[..., end].isinf().any()) for end in (0, -1))
    pieces = [_tail(edges.flip(-1), rest, u, du)] if low else []  # the line reversed, with u and 1 - u changing places
    pieces.append(_pieces(edges[..., int(low) : edges.shape[-1] - int(high)], u, rest, du))
    pieces += [_tail(edges, u, rest, du)] if high else []
    sizes = [num_nodes] * (edges.shape[-1] - 1)
    sizes[:1] = [pieces[0][0].shape[-1]] if low else sizes[:1]
    sizes[-1:] = [pieces[-1][0].shape[-1]] if high else sizes[-1:]
    points, weights = (torch.cat([piece[part] for piece in pieces], dim=-1) for part in (0, 1))
    return Quadrature(points, weights, tuple(sizes))


def _piece_error(terms: Tensor) -> Tensor:  # (..., m) -> (...)
    windows = torch.sigmoid(torch.linspace(-_RADIUS, _RADIUS, terms.shape[-1], dtype=terms.dtype, device=terms.device))
    seen = torch.stack([terms * windows, terms * (1 - windows)])
    ranges = []
    for stride in (8, 4, 2):
        rules = (
            torch.nn.functional.pad(seen, (0, -terms.shape[-1] % stride)).unflatten(-1, (-1, stride)).sum(dim=-2)
            * stride
        )
        ranges.append(rules.amax(dim=-1) - rules.amin(dim=-1))
    e8, e4, e2 = ranges
    ratio = e4 / torch.where(e8 > 0, e8, 1)
    error = 2 * torch.maximum(e2, e4 * (10 * ratio.square()).clamp(max=1)).sum(dim=0)
    return error + 8 * torch.finfo(terms.dtype).eps * terms.abs().sum(dim=-1)


def check_settled(values: Float[Tensor, "*batch m"] | ArrayLike, masses: Float[Tensor, "*batch m"] | ArrayLike) -> None:
    """Raise an error for a mean sum_i f(x_i) m_i whose terms are still large at the outermost nodes that have any mass:
    it may be infinite.
    """
    values = float_tensor(values, "values", masses)
    masses = float_tensor(masses, "masses", values)
    masses = masses.detach()
    sizes = torch.where(masses == 0, 0, values.detach() * masses).abs()
    total = sizes.sum(dim=-1)
    if not bool(total.isfinite().all()):
        return  # an integrand that is infinite, or no number, says so by itself
    some = (masses != 0).long()
    ends = torch.stack([some.argmax(dim=-1), masses.shape[-1] - 1 - some.flip(-1).argmax(dim=-1)], dim=-1)
    if bool((sizes.gather(-1, ends).amax(dim=-1) > _SETTLED * total).any()):
        raise UserError(
            "expected an integral that is settled before the ends of the line, got terms that do not die out; it "
            "is infinite, or its "
            "tail is too heavy to sum: plot the integrand far out"
        )


def cut_tails(edges: Float[Tensor, "*batch e"]) -> Float[Tensor, "*batch more_edges"]:
    """Edges with a finite one put before each infinite end, where the tail begins."""
    if edges.shape[-1] == 2 and bool(edges.isinf().all()):
        edges = torch.stack([edges[..., 0], torch.zeros_like(edges[..., 0]), edges[..., 1]], dim=-1)
    widths = edges.diff(dim=-1)
    cut = []
    for end, inner, width in ((0, 1, 1), (-1, -2, -2)):
        infinite = edges[..., end].isinf()
        if not bool(infinite.any()):
            cut.append(edges[..., :0])
            continue
        near = widths[..., width] if edges.shape[-1] > 2 else torch.ones_like(edges[..., inner])
        near = torch.where(near.isfinite(), near, 1)
        cut.append((edges[..., inner] + edges[..., end].sign() * _TAIL * near)[..., None])
    return torch.cat([edges[..., :1], cut[0], edges[..., 1:-1], cut[1], edges[..., -1:]], dim=-1)


def _pieces(edges: Tensor, u: Tensor, rest: Tensor, du: Tensor) -> tuple[Tensor, Tensor]:  # finite edges
    a, b = edges[..., :-1, None], edges[..., 1:, None]
    width = b - a
    x = torch.where(u < rest, a + width * u, b - width * rest)  # (..., pieces, nodes)
    # A node that rounds onto an edge moves one float inside: a density may be infinite, or not defined, at the edge
    # itself.
    inside = torch.nextafter(a, b).detach(), torch.nextafter(b, a).detach()
    return (x + (x.detach().clamp(*inside) - x.detach())).flatten(-2), (width * du).flatten(-2)


def _tail(edges: Tensor, u: Tensor, rest: Tensor, du: Tensor) -> tuple[Tensor, Tensor]:
    """The last piece of `edges`, from a finite edge to an infinite one on either side."""
    start, towards = edges[..., -2, None], edges[..., -1, None].sign()
    width = (start - edges[..., -3, None]).abs()
    near = rest > 1e-30  # x and its weight must stay far from overflow, in float32 too
    u, rest, du = u[near], rest[near], du[near]
    return start + towards * width * u / rest, width * (du / rest / rest)


def _check_edges(edges: Tensor) -> None:
    check_floating(edges, "edges")
    if edges.ndim == 0 or edges.shape[-1] < 2:
        raise UserError(
            f"expected at least two edges on the last axis, got shape {tuple(edges.shape)}; give (low, high)"
        )
    edges = edges.detach()
    if not bool((edges.diff(dim=-1) > 0).all()) or bool(edges[..., 1:-1].isinf().any()):  # NaN fails too
        raise UserError(
            f"expected edges that increase, only the outermost infinite, got {edges.flatten().tolist()[:6]}; sort them"
        )
    ends = edges[..., [0, -1]].isinf().flatten(0, -2) if edges.ndim > 1 else edges[None, [0, -1]].isinf()
    if bool((ends != ends[:1]).any()):
        raise UserError(
            "expected the same ends infinite for all lines of a batch, got both kinds; integrate them one by one"
        )
