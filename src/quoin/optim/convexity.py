"""Convex sets and functions: their definition on a segment, and searches for a segment that breaks it.

A search either gives a counterexample, which settles the matter, or reports how much it tried, which does not. Second
derivatives decide more, in curvature.py. A function takes one point, a tensor of any shape, to one number; a set is a
test `contains` of one point. λ is called `weight`: λ = 1 is the first point, λ = 0 the second.   n points
"""

import math
from collections.abc import Callable, Iterator, Sized
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Real
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.optim.descend import Objective
from quoin.tensor import as_floating, check_finite, check_floating, check_shapes

__all__ = [
    "Segment",
    "SegmentSearch",
    "chord_gap",
    "convex_combination",
    "is_convex",
    "is_convex_set",
    "jensen_gap",
    "jensen_steps",
    "sublevel_set",
]


ROUNDINGS = 1000  # of the values' size: what a sum of a few hundred terms inside f may lose


# ---- the definitions --------------------------------------------------------------------------------------------


def convex_combination(
    a: Real[Tensor, "*#shape"], b: Real[Tensor, "*#shape"], weight: float | Real[Tensor, "*#shape"]
) -> Float[Tensor, "*#shape"]:
    """λa + (1 - λ)b, a point of the segment from b to a for 0 <= λ <= 1, and of the whole line for any λ.

    >>> convex_combination(torch.tensor([0.0, 4.0]), torch.tensor([4.0, 0.0]), 0.25)
    tensor([3., 1.])

    Notes: Z12.2.
    """
    a, b, weight = as_floating(a), as_floating(b), _weight(weight)
    return weight * a + (1 - weight) * b


def chord_gap(
    f: Objective, a: Real[Tensor, "*shape"], b: Real[Tensor, "*shape"], weight: float | Real[Tensor, ""]
) -> Float[Tensor, ""]:
    """λf(a) + (1 - λ)f(b) - f(λa + (1 - λ)b): how far the chord lies above f at λ; f is convex if it is never negative.

    >>> chord_gap(torch.square, torch.tensor(1.0), torch.tensor(3.0), 0.5)
    tensor(1.)

    Notes: Z12.5.
    """
    a, b, weight = as_floating(a), as_floating(b), _weight(weight)
    return weight * _number(f, a) + (1 - weight) * _number(f, b) - _number(f, convex_combination(a, b, weight))


def jensen_gap(
    f: Objective, points: Float[Tensor, "n *shape"], weights: Real[Tensor, "n"] | None = None
) -> Float[Tensor, ""]:
    """Σ_i α_i f(x_i) - f(Σ_i α_i x_i) = E f(X) - f(E X), at least 0 for a convex f; α_i = 1/n if none are given.

    >>> jensen_gap(torch.square, torch.tensor([0.0, 4.0]))  # of the square: the variance
    tensor(4.)

    Notes: Z12.6, D1.4-10.
    """
    weights = _weights(points, weights)
    values = torch.stack([_number(f, point) for point in points])
    return weights @ values - _number(f, torch.tensordot(weights, points, dims=1))


def jensen_steps(
    f: Objective, points: Float[Tensor, "n *shape"], weights: Real[Tensor, "n"] | None = None
) -> Float[Tensor, "n-1"]:
    """`jensen_gap` as the sum of n - 1 chord gaps, one for each use of convexity in its proof by induction.

    To join x_{k+1} with the mean m_k of the points before it, weights renormalized by P_k = α_1 + ... + α_k, costs the
    gap of one chord: P_{k+1} · chord_gap(x_{k+1}, m_k) at λ = α_{k+1} / P_{k+1}.

    Notes: D1.4-10.
    """
    weights = _weights(points, weights)
    mean, steps = points[0], [points.new_zeros(0)]
    for point, weight, total in zip(points[1:], weights[1:], weights.cumsum(0)[1:]):
        # While no point has weight there is no mean to join: the next one replaces it.
        weight = weight / total if float(total.detach()) > 0 else torch.ones_like(weight)
        steps.append((total * chord_gap(f, point, mean, weight)).reshape(1))
        mean = convex_combination(point, mean, weight)
    return torch.cat(steps)


def sublevel_set(f: Objective, level: float) -> Callable[[Tensor], bool]:
    """S_b = {x : f(x) <= b} as a test of one point; convex for every b if f is, but not only then.

    >>> sublevel_set(torch.square, 4.0)(torch.tensor(-3.0))
    False

    Notes: Z12.9.
    """
    return lambda x: float(_number(f, x).detach()) <= level


# ---- searches ---------------------------------------------------------------------------------------------------


@shown
class Segment(NamedTuple):
    """Two points, the weight λ of the first, and by how much λa + (1 - λ)b breaks the definition; for a set it is just
    outside.
    """

    a: Float[Tensor, "*shape"]
    b: Float[Tensor, "*shape"]
    weight: float
    violation: float


@shown
@dataclass(frozen=True)
class SegmentSearch:
    """What a search for a broken segment gave: true when it found none, and then no proof; `tried` is what it
    evaluated.
    """

    tried: str
    counterexample: Segment | None = None

    def __bool__(self) -> bool:
        return self.counterexample is None


def is_convex_set(
    contains: Callable[[Tensor], bool],
    points: Float[Tensor, "n *shape"],
    *,
    generator: torch.Generator,
    num_cases: int = 400,
) -> SegmentSearch:
    """Search for a, b in the set and λ in [0, 1] with λa + (1 - λ)b outside it, among the `points` that lie in it.

    A set with an edge or of no thickness (a subspace) needs a `contains` that forgives rounding.

    Args:
        contains: Whether a point lies in the set.
        num_cases: How many random segments are tried.

    >>> ring = lambda x: 1 <= float(x.norm()) <= 2
    >>> found = is_convex_set(ring, torch.randn(50, 2), generator=torch.Generator().manual_seed(0))
    >>> bool(found), ring(convex_combination(*found.counterexample[:3]))
    (False, False)

    Notes: Z12.2.
    """
    _check(points, num_cases)
    inside = [point for point in points if bool(contains(point))]
    if len(inside) < 2:
        raise UserError(
            f"expected at least two points of the set, got {len(inside)} among {len(points)}; give points that lie "
            "in it"
        )
    for case, (a, b, weight) in enumerate(_segments(torch.stack(inside), num_cases, generator), 1):
        if not bool(contains(convex_combination(a, b, weight))):
            return SegmentSearch(_tried(case, inside), Segment(a, b, weight, math.inf))
    return SegmentSearch(_tried(num_cases, inside))


def is_convex(
    f: Objective,
    points: Float[Tensor, "n *shape"],
    *,
    generator: torch.Generator,
    num_cases: int = 400,
    tol: float | None = None,
) -> SegmentSearch:
    """Search for a, b and λ with f(λa + (1 - λ)b) > λf(a) + (1 - λ)f(b), on segments between the `points`, which span
    the domain.

    Long segments are tried, and short ones, a tenth and a hundredth as long, that see a narrow dent. f may be
    +infinity where it is not defined.

    Args:
        num_cases: How many random segments are tried.
        tol: What f may exceed the chord by, relative to the larger |f| at its ends or 1; by default 1000 roundings of
            the points' type.

    >>> x = torch.linspace(-1, 1, 21)
    >>> bool(is_convex(torch.exp, x, generator=torch.Generator().manual_seed(0)))
    True
    >>> is_convex(torch.cos, x, generator=torch.Generator().manual_seed(0)).counterexample.violation > 0
    True

    Notes: Z12.5.
    """
    _check(points, num_cases)
    if len(points) < 2:
        raise UserError("expected at least two points of the domain, got one; give several, on which f is defined")
    tol = ROUNDINGS * torch.finfo(points.dtype).eps if tol is None else tol
    for case, (a, far, weight) in enumerate(_segments(points, num_cases, generator), 1):
        b = convex_combination(far, a, 0.1 ** (case % 3))
        ends, middle = (_value(f, a), _value(f, b)), _value(f, convex_combination(a, b, weight))
        if math.inf in ends:
            continue  # the chord is infinitely high
        violation = middle - weight * ends[0] - (1 - weight) * ends[1]
        if violation > tol * max(1.0, *map(abs, ends)):
            return SegmentSearch(_tried(case, points), Segment(a, b, weight, violation))
    return SegmentSearch(_tried(num_cases, points))


def _segments(points: Tensor, num_cases: int, generator: torch.Generator) -> Iterator[tuple[Tensor, Tensor, float]]:
    """Pairs of different points, with every other time their middle and else a random weight."""
    first = torch.randint(len(points), (num_cases,), generator=generator)
    second = (first + torch.randint(1, len(points), (num_cases,), generator=generator)) % len(points)
    weights = torch.rand(num_cases, generator=generator, dtype=torch.float64).tolist()
    for case, (i, j, weight) in enumerate(zip(first.tolist(), second.tolist(), weights)):
        yield points[i], points[j], 0.5 if case % 2 else weight


def _tried(num_cases: int, points: Sized) -> str:
    return f"{num_cases} points on segments between {len(points)} points"


def _weight(weight: float | Tensor) -> float | Tensor:
    return as_floating(weight) if isinstance(weight, Tensor) else weight


def _number(f: Objective, x: Tensor) -> Tensor:  # (...) -> ()
    value = torch.as_tensor(f(x))
    if value.numel() != 1:
        raise UserError(
            f"expected one number from f, got shape {tuple(value.shape)} for a point of shape {tuple(x.shape)}; "
            "reduce it"
        )
    return value.reshape(())


def _value(f: Objective, x: Tensor) -> float:
    value = float(_number(f, x).detach())
    if math.isnan(value) or value == -math.inf:
        raise UserError(f"expected numbers from f on the whole segment, got {value}; keep the points inside its domain")
    return value


def _check(points: Tensor, num_cases: int) -> None:
    check_floating(points, "points")
    if points.dim() < 1 or points.numel() == 0:
        raise UserError(f"expected a stack of points, got shape {tuple(points.shape)}; give at least two")
    check_finite(points, "points")
    if num_cases < 1:
        raise UserError(f"expected at least one case, got {num_cases}; a search of nothing finds nothing")


def _weights(points: Tensor, weights: Tensor | None) -> Tensor:
    """The weights in the points' type, once they are seen to be some of a mean: not negative, of sum one."""
    _check(points, 1)
    if weights is None:
        return points.new_full((len(points),), 1 / len(points))
    check_shapes("n, n", points=points.reshape(len(points), -1)[:, 0], weights=weights)
    weights = weights.to(points.dtype)
    total = float(weights.detach().sum())
    if not bool((weights >= 0).all()) or not abs(total - 1) <= len(weights) * 8 * torch.finfo(points.dtype).eps:
        raise UserError(f"expected weights of at least 0 and of sum one, got a sum of {total:.6g}; divide by their sum")
    return weights
