"""Information of laws with a density: differential entropy, joint and conditional; relative and cross-entropy; mutual information.

The definitions are integrals, done by quadrature in float64: of a `Density`, or of one `torch.distributions` law on the line. The others
take the closed form where torch has one (normal, uniform, exponential, Laplace, gamma, beta, ...; batched) and the integral elsewhere.
A density may exceed one, so an entropy here may be negative; only its differences mean what they do for tables. Nats, unless a base
is given. Two ways an integral is found infinite:

- q vanishes on a set to which P gives probability (a single point is none). A set finer than the nodes is not seen: put an edge there.
- The outermost nodes, at |x| of 1e100 where there is room, still weigh something. A proof it is not; `kl_by_truncation` shows it happen.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.distributions import Distribution, MultivariateNormal

from quoin.errors import Mistake
from quoin.info.closed_form import NoClosedForm, closed_entropy, closed_kl
from quoin.info.entropy import conditional_entropy
from quoin.info.mutual import mutual_information
from quoin.info.units import in_base
from quoin.prob import Density, line_quadrature, support_edges

__all__ = [
    "conditional_differential_entropy",
    "cross_entropy_of_densities",
    "differential_entropy",
    "differential_entropy_definition",
    "kl_by_truncation",
    "kl_of_densities",
    "kl_of_densities_definition",
    "mutual_information_of_density",
]

_NODES = 80
_MOST_NODES = 2**24
_NOTHING = 1e-9  # a probability that quadrature cannot tell from zero
_WEIGHS = 1e-6  # the share of an integral that the nodes at one end may have


def differential_entropy_definition(law: Density | Distribution, base: float = math.e) -> Tensor:  # -> ()
    """h(X) = -∫ p(x) log p(x) dx; of a density in several coordinates this is their joint entropy.

    >>> half = Density(lambda x: 2 + 0 * x, (0, 0.5))
    >>> round(float(differential_entropy_definition(half, base=2)), 9)  # minus one bit
    -1.0

    Notes: Z13.8, Z13.14.
    """
    p = _known(law)
    nodes = _where_positive(p, _nodes(p.edges, p.num_nodes))
    log_p = p.log(*nodes.points)
    return in_base(_summed(nodes, -log_p.exp() * log_p), base)


def differential_entropy(law: Density | Distribution, base: float = math.e) -> Tensor:  # -> the law's batch shape
    """`differential_entropy_definition` in closed form where torch has it: ½ log(2πe σ²) of a normal, log(b - a) of a uniform law.

    >>> differential_entropy(torch.distributions.Uniform(0.0, 0.5))
    tensor(-0.6931)

    Notes: Z13.8, Z13.14.
    """
    if isinstance(law, Distribution):
        try:
            return in_base(closed_entropy(law), base)
        except NoClosedForm:
            pass
    return differential_entropy_definition(law, base)


def kl_of_densities_definition(p: Density | Distribution, q: Density | Distribution, base: float = math.e) -> Tensor:  # -> ()
    """D(P || Q) = ∫ p(x) log(p(x) / q(x)) dx; infinite where P gives {q = 0} a probability, and where a tail makes it so.

    A density rounds to zero below 1e-308 and its logarithm does not: far from where Q has its mass, give q as a torch distribution.

    Notes: Z13.21.
    """
    return in_base(_relative(p, q, lambda log_p, log_q: log_p - log_q), base)


def kl_of_densities(p: Density | Distribution, q: Density | Distribution, base: float = math.e) -> Tensor:  # -> the pair's batch shape
    """`kl_of_densities_definition` in closed form for the pairs of families that torch knows.

    >>> kl_of_densities(torch.distributions.Normal(0.0, 1.0), torch.distributions.Normal(1.0, 1.0))
    tensor(0.5000)
    >>> kl_of_densities(torch.distributions.Cauchy(0.0, 1.0), torch.distributions.Normal(0.0, 1.0))
    tensor(inf, dtype=torch.float64)

    Notes: Z13.21.
    """
    if isinstance(p, Distribution) and isinstance(q, Distribution):
        try:
            return in_base(closed_kl(p, q), base)
        except NoClosedForm:
            pass
    return kl_of_densities_definition(p, q, base)


def cross_entropy_of_densities(p: Density | Distribution, q: Density | Distribution, base: float = math.e) -> Tensor:  # -> ()
    """CE(P, Q) = -∫ p(x) log q(x) dx = h(P) + D(P || Q).

    Notes: Z13.26.
    """
    return in_base(_relative(p, q, lambda log_p, log_q: -log_q), base)


def kl_by_truncation(p: Density | Distribution, q: Density | Distribution, radii: Sequence[float]) -> Tensor:  # -> one for each radius
    """∫ p(x) log(p(x) / q(x)) dx over |x| ≤ R, in nats: D(P || Q) is its limit for R → ∞, and infinite if this grows for ever.

    >>> cauchy, normal = torch.distributions.Cauchy(0.0, 1.0), torch.distributions.Normal(0.0, 1.0)
    >>> kl_by_truncation(cauchy, normal, (10, 100, 1000))  # P << Q, and yet
    tensor([  1.5367,  29.7949, 316.2083], dtype=torch.float64)

    Notes: Z13.24.
    """
    first, second = _known(p), _known(q)
    if len(first.edges) != 1 or not all(0 < radius < math.inf for radius in radii):
        raise Mistake(f"expected laws on the line and finite radii above zero, came {len(first.edges)} coordinates, {tuple(radii)}")
    (edges,) = _common_edges(first, second)
    found = []
    for radius in radii:
        low, high = edges[0].clamp(min=-radius), edges[-1].clamp(max=radius)
        inner = edges[(low < edges) & (edges < high)]
        nodes = _where_positive(first, _nodes((torch.cat([low[None], inner, high[None]]),), first.num_nodes))
        log_p, log_q = first.log(*nodes.points), second.log(*nodes.points)
        found.append((nodes.weights * log_p.exp() * (log_p - log_q)).sum())
    return torch.stack(found)


def conditional_differential_entropy(joint: Density | MultivariateNormal, *given: int, base: float = math.e) -> Tensor:
    """h(Y | X) = -∫ p(x, y) log p(y | x) dx dy, X being the coordinates `given` and Y the others; h(X, Y) - h(X).

    Of a normal law ½ log((2πe)^m det Σ_{Y|X}) with det Σ_{Y|X} = det Σ / det Σ_XX, batched.

    Notes: Z13.16.
    """
    if isinstance(joint, MultivariateNormal):
        _parted(joint.event_shape[0], given)
        whole, of_given = closed_entropy(joint), closed_entropy(_marginal(joint, given))
        return in_base(whole - of_given, base)
    masses, weights = _table(joint, given)
    # Each node is a cell of width w: h(Y | X) = H(cell of Y | cell of X) + E log w_Y, as for ever finer bins.
    return in_base(conditional_entropy(masses) + (masses.sum(dim=0) * weights.log()).sum(), base)


def mutual_information_of_density(joint: Density | MultivariateNormal, *first: int, base: float = math.e) -> Tensor:
    """I(X, Y) = ∫ p(x, y) log(p(x, y) / (p_X(x) p_Y(y))) dx dy, X being the coordinates `first` and Y the others.

    Of a normal law ½ log(det Σ_XX det Σ_YY / det Σ), batched: -½ log(1 - ρ²) for a pair.

    >>> correlated = MultivariateNormal(torch.zeros(2), torch.tensor([[1.0, 0.6], [0.6, 1.0]]))
    >>> mutual_information_of_density(correlated, 0)  # -log 0.8
    tensor(0.2231)

    Notes: Z13.18.
    """
    if isinstance(joint, MultivariateNormal):
        rest = _parted(joint.event_shape[0], first)
        parts = closed_entropy(_marginal(joint, first)) + closed_entropy(_marginal(joint, rest))
        return in_base(parts - closed_entropy(joint), base)
    masses, _ = _table(joint, first)
    return mutual_information(masses, base)  # of the cells at the nodes: their widths cancel in p(x, y) / (p(x) p(y))


class _Known(NamedTuple):
    """A law as this file sees it."""

    log: Callable[..., Tensor]  # log p at points, minus infinity where p = 0
    edges: tuple[Tensor, ...]
    num_nodes: int


def _known(law: Density | Distribution) -> _Known:
    if isinstance(law, Density):
        return _Known(lambda *x: law(*x).log(), law.edges, law.num_nodes)
    if law.batch_shape or law.event_shape:
        came = f"{type(law).__name__} of batch shape {tuple(law.batch_shape)} and event shape {tuple(law.event_shape)}"
        raise Mistake(f"expected one law on the line to integrate over, came {came}; take them one by one, or build a Density")
    edges = support_edges(law).double()

    def log(x: Tensor) -> Tensor:
        inside = (edges[0] <= x) & (x <= edges[-1])  # outside, torch refuses to answer
        return torch.where(inside, law.log_prob(torch.where(inside, x, edges[1].detach())), -math.inf)

    return _Known(log, (edges,), _NODES)


class _Nodes(NamedTuple):
    """Places and their weights, listed: ∫ f is about Σ_i w_i f(x_i)."""

    points: tuple[Tensor, ...]  # d of (m,)
    weights: Tensor  # (m,)
    ends: Tensor  # (2d, m): whether a node is the first, or the last, on an axis

    def keep(self, chosen: Tensor) -> "_Nodes":
        return _Nodes(tuple(each[chosen] for each in self.points), self.weights[chosen], self.ends[:, chosen])


def _nodes(edges: Sequence[Tensor], num_nodes: int) -> _Nodes:
    axes = [line_quadrature(each, num_nodes) for each in edges]
    shape = [len(axis.points) for axis in axes]
    if math.prod(shape) > _MOST_NODES:
        raise Mistake(f"expected at most {_MOST_NODES} nodes in all, came {math.prod(shape)}; give fewer `num_nodes` or edges")
    points = torch.meshgrid(*(axis.points for axis in axes), indexing="ij")
    weights = functools.reduce(torch.mul, torch.meshgrid(*(axis.weights for axis in axes), indexing="ij"))
    places = torch.meshgrid(*(torch.arange(size) for size in shape), indexing="ij")
    ends = [place == end for place, size in zip(places, shape) for end in (0, size - 1)]
    return _Nodes(tuple(each.flatten() for each in points), weights.flatten(), torch.stack([each.flatten() for each in ends]))


def _where_positive(law: _Known, nodes: _Nodes) -> _Nodes:
    """The nodes where p > 0: elsewhere 0 log 0 = 0, but its gradient in floats is not a number."""
    with torch.no_grad():
        positive = law.log(*nodes.points).exp() > 0
    return nodes.keep(positive)


def _summed(nodes: _Nodes, integrand: Tensor) -> Tensor:
    terms = nodes.weights * integrand
    heaviest = max((terms.detach()[end].sum() for end in nodes.ends), key=abs)
    if abs(heaviest) > _WEIGHS * terms.detach().abs().sum():
        return torch.full_like(heaviest, math.copysign(math.inf, float(heaviest)))
    return terms.sum()


def _relative(p: Density | Distribution, q: Density | Distribution, of_logs: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """∫ p(x) f(log p(x), log q(x)) dx, infinite where P gives {q = 0} a probability."""
    first, second = _known(p), _known(q)
    edges = _common_edges(first, second)
    for num_nodes in (first.num_nodes, first.num_nodes + 1):  # a single point where q = 0 cannot be a node of both
        nodes = _where_positive(first, _nodes(edges, num_nodes))
        with torch.no_grad():
            impossible = second.log(*nodes.points) == -math.inf
            missed = (nodes.weights * first.log(*nodes.points).exp())[impossible].sum()
        if missed <= _NOTHING:
            nodes = nodes.keep(~impossible)
            log_p = first.log(*nodes.points)
            return _summed(nodes, log_p.exp() * of_logs(log_p, second.log(*nodes.points)))
    return torch.tensor(math.inf, dtype=torch.float64)


def _common_edges(p: _Known, q: _Known) -> tuple[Tensor, ...]:
    """The edges of p, and between them those of q, where its density may break; a tail is cut as p alone would have it."""
    if len(p.edges) != len(q.edges):
        raise Mistake(f"expected two laws on one space, came {len(p.edges)} and {len(q.edges)} coordinates; give both the same")
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


def _table(joint: Density, chosen: Sequence[int]) -> tuple[Tensor, Tensor]:
    """The probabilities of the nodes, the chosen coordinates along the rows, and the weights of the others' nodes."""
    rest = _parted(joint.dim, chosen)
    rows, columns = (_nodes([joint.edges[axis] for axis in axes], joint.num_nodes) for axes in (chosen, rest))
    at = dict(zip(chosen, (each[:, None] for each in rows.points))) | dict(zip(rest, columns.points))
    return rows.weights[:, None] * columns.weights * joint(*(at[axis] for axis in range(joint.dim))), columns.weights


def _parted(dim: int, chosen: Sequence[int]) -> list[int]:
    """The coordinates that were not chosen; some must be on either side."""
    if not chosen or len(set(chosen)) != len(chosen) or not set(chosen) < set(range(dim)):
        raise Mistake(f"expected some but not all of the coordinates 0 to {dim - 1}, came {tuple(chosen)}; name each once")
    return [axis for axis in range(dim) if axis not in chosen]


def _marginal(law: MultivariateNormal, axes: Sequence[int]) -> MultivariateNormal:
    axes = list(axes)
    return MultivariateNormal(law.loc[..., axes], law.covariance_matrix[..., axes, :][..., axes])
