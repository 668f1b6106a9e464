"""Integrals of log densities by quadrature, in float64: of a `Density`, or of one torch distribution on the line.

Two ways an integral is found infinite:

- q vanishes on a set to which P gives probability (a single point is none). A set finer than the nodes is not seen: put
  an edge there.
- The outermost nodes, at |x| of 1e100 on an infinite axis, still contribute. This is no proof; `info.kl_by_truncation`
  shows the growth.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.distributions import Distribution

from quoin.errors import UserError
from quoin.prob.density import Density
from quoin.prob.quadrature import line_quadrature
from quoin.prob.quadrature_edges import support_edges

__all__ = [
    "LogDensity",
    "Nodes",
    "as_log_density",
    "check_mass",
    "common_edges",
    "integrate_pair",
    "positive_nodes",
    "product_nodes",
    "sum_nodes",
]

_NODES = 80
_MOST_NODES = 2**24
_SLACK = 1e-4  # a log density that float32 rounded must pass
_NOTHING = 1e-9  # a probability that quadrature cannot tell from zero
_END_WEIGHT = 1e-6  # the fraction of an integral that the nodes at one end may have


class LogDensity(NamedTuple):
    """A distribution by the logarithm of its density, with the edges between which nodes are laid."""

    log: Callable[..., Tensor]  # log p at points, minus infinity where p = 0
    edges: tuple[Float[Tensor, "_e"], ...]
    num_nodes: int


def as_log_density(distribution: Density | Distribution) -> LogDensity:
    """log p with the edges of its support."""
    if isinstance(distribution, Density):
        return LogDensity(lambda *x: distribution(*x).log(), distribution.edges, distribution.num_nodes)
    if distribution.batch_shape or distribution.event_shape:
        shapes = f"of batch shape {tuple(distribution.batch_shape)} and event shape {tuple(distribution.event_shape)}"
        got = f"{type(distribution).__name__} {shapes}"
        raise UserError(
            f"expected one distribution on the line to integrate over, got {got}; take them one by one, or build a "
            "Density"
        )
    edges = support_edges(distribution).double()

    def log(x: Tensor) -> Tensor:
        inside = (edges[0] <= x) & (x <= edges[-1])  # outside, torch raises an error
        return torch.where(inside, distribution.log_prob(torch.where(inside, x, edges[1].detach())), -math.inf)

    return LogDensity(log, (edges,), _NODES)


class Nodes(NamedTuple):
    """The nodes of a box and their weights, in a row: ∫ f is about Σ_i w_i f(x_i)."""

    points: tuple[Float[Tensor, "m"], ...]  # one for each coordinate
    weights: Float[Tensor, "m"]
    ends: Bool[Tensor, "sides m"]  # two for each axis: whether a node is the first, or the last, on it

    def keep(self, chosen: Bool[Tensor, "m"]) -> "Nodes":
        return Nodes(tuple(each[chosen] for each in self.points), self.weights[chosen], self.ends[:, chosen])


def product_nodes(edges: Sequence[Float[Tensor, "_e"]], num_nodes: int) -> Nodes:
    """The product of one `line_quadrature` for each axis."""
    axes = [line_quadrature(each, num_nodes) for each in edges]
    shape = [len(axis.points) for axis in axes]
    if math.prod(shape) > _MOST_NODES:
        raise UserError(
            f"expected at most {_MOST_NODES} nodes in all, got {math.prod(shape)}; give fewer `num_nodes` or edges"
        )
    points = torch.meshgrid(*(axis.points for axis in axes), indexing="ij")
    weights = functools.reduce(torch.mul, torch.meshgrid(*(axis.weights for axis in axes), indexing="ij"))
    indices = torch.meshgrid(*(torch.arange(size) for size in shape), indexing="ij")
    ends = [index == end for index, size in zip(indices, shape) for end in (0, size - 1)]
    return Nodes(
        tuple(each.flatten() for each in points), weights.flatten(), torch.stack([each.flatten() for each in ends])
    )


def positive_nodes(p: LogDensity, nodes: Nodes) -> Nodes:
    """The nodes where p > 0: elsewhere 0 log 0 = 0, but its gradient in floats is not a number."""
    with torch.no_grad():
        positive = p.log(*nodes.points).exp() > 0
    return nodes.keep(positive)


def check_mass(p: LogDensity, nodes: Nodes) -> None:
    """Raise an error where the nodes miss some of P: an integral over them would be wrong without a word."""
    with torch.no_grad():
        mass = float((nodes.weights * p.log(*nodes.points).exp()).sum())
    if not abs(mass - 1) <= _SLACK:
        raise UserError(
            f"expected quadrature nodes that see a probability of 1, got {mass:.4g}; build a Density with edges where "
            "the mass is"
        )


def sum_nodes(nodes: Nodes, integrand: Float[Tensor, "m"]) -> Float[Tensor, ""]:
    """Σ_i w_i f(x_i), infinite where the outermost nodes still contribute."""
    terms = nodes.weights * integrand
    outermost = max((terms.detach()[end].sum() for end in nodes.ends), key=abs)
    if abs(outermost) > _END_WEIGHT * terms.detach().abs().sum():
        return torch.full_like(outermost, math.copysign(math.inf, float(outermost)))
    return terms.sum()


def integrate_pair(
    p: Density | Distribution, q: Density | Distribution, of_logs: Callable[[Tensor, Tensor], Tensor]
) -> Float[Tensor, ""]:
    """∫ p(x) f(log p(x), log q(x)) dx, infinite where P gives {q = 0} a probability."""
    first, second = as_log_density(p), as_log_density(q)
    edges = common_edges(first, second)
    for num_nodes in (first.num_nodes, first.num_nodes + 1):  # a single point where q = 0 cannot be a node of both
        nodes = positive_nodes(first, product_nodes(edges, num_nodes))
        check_mass(first, nodes)
        with torch.no_grad():
            impossible = second.log(*nodes.points) == -math.inf
            missed = (nodes.weights * first.log(*nodes.points).exp())[impossible].sum()
        if missed <= _NOTHING:
            nodes = nodes.keep(~impossible)
            log_p = first.log(*nodes.points)
            return sum_nodes(nodes, log_p.exp() * of_logs(log_p, second.log(*nodes.points)))
    return torch.tensor(math.inf, dtype=torch.float64)


def common_edges(p: LogDensity, q: LogDensity) -> tuple[Float[Tensor, "_e"], ...]:
    """The edges of p, and between them those of q, where its density may break; a tail is cut as p alone would have
    it."""
    if len(p.edges) != len(q.edges):
        raise UserError(
            f"expected two distributions on one space, got {len(p.edges)} and {len(q.edges)} coordinates; give "
            "both the same"
        )
    return tuple(_merged(of_p, of_q) for of_p, of_q in zip(p.edges, q.edges))


def _merged(of_p: Tensor, of_q: Tensor) -> Tensor:
    further = of_q[(of_p[0] < of_q) & (of_q < of_p[-1]) & ~torch.isin(of_q, of_p)]
    if len(further) == 0:
        return of_p
    finite = of_p[of_p.isfinite()]
    edges = torch.cat([of_p, further]).sort().values
    inner = edges[edges.isfinite()]
    # line_quadrature reads a tail's width off the two edges before it: let these be as far apart as p's were.
    left, right = (finite[1] - finite[0], finite[-1] - finite[-2]) if len(finite) > 1 else (inner.new_ones(()),) * 2
    before = [of_p[:1], inner[:1] - left] if bool(of_p[0].isinf()) else []
    after = [inner[-1:] + right, of_p[-1:]] if bool(of_p[-1].isinf()) else []
    return torch.cat([*before, inner, *after])
