"""Means, variances and covariances under any distribution: a finite space or a variable on it, a `Density`, or a
distribution of `torch.distributions`.

Each distribution is laid out as values f(x) with masses, on all its outcomes or on the nodes of a quadrature; the
moments are sums over those. f takes what the distribution speaks of: an outcome, the value of a variable, one tensor
for each coordinate of a density, or a tensor of samples of a torch distribution, batch axes last. Counts without end
are summed to 40 standard deviations beyond the mean.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.distributions import Distribution, constraints

from quoin.errors import UserError, format_value
from quoin.prob.adaptive import adapt
from quoin.prob.checks import check_parameters
from quoin.prob.density import Density
from quoin.prob.finite import ProbabilitySpace, RandomVariable
from quoin.prob.quadrature import Quadrature, check_settled
from quoin.prob.quadrature_edges import support_edges

__all__ = ["covariance", "expectation", "variance"]

DistributionLike = ProbabilitySpace | RandomVariable | Density | Distribution
Function = Callable[..., Any]

_MOST_COUNTS = 10**6
_SLACK = 1e-4


class _Laid(NamedTuple):
    values: Tensor  # (..., m)
    masses: Tensor  # (..., m)
    dtype: torch.dtype  # of the distribution: nodes are laid in float64, whatever it is

    def mean(self, values: Tensor) -> Tensor:  # (..., m) -> (...)
        return (torch.where(self.masses == 0, 0, values) * self.masses).sum(
            dim=-1
        )  # what has no mass counts nothing, even if infinite

    def centered(self) -> Tensor:  # (..., m)
        return self.values - self.mean(self.values).unsqueeze(-1)


def expectation(distribution: DistributionLike, f: Function | None = None) -> Float[Tensor, "*batch"]:
    """E f(X) = sum_x f(x) p(x), or int f(x) p(x) dx; without f, the mean.

    Args:
        distribution: A `ProbabilitySpace`, a `RandomVariable`, a `Density` or a torch distribution.

    >>> expectation(torch.distributions.Normal(1.0, 2.0), lambda x: x**2)  # 1 + 4
    tensor(5.)

    Notes: Z2.9, D5-3.
    """
    laid = _laid(distribution, f)
    return laid.mean(laid.values).to(laid.dtype)


def variance(distribution: DistributionLike, f: Function | None = None) -> Float[Tensor, "*batch"]:
    """Var f(X) = E (f(X) - E f(X))^2, which is E f(X)^2 - (E f(X))^2 without the cancellation.

    Args:
        distribution: A `ProbabilitySpace`, a `RandomVariable`, a `Density` or a torch distribution.
        f: The variance is that of X itself unless given.

    >>> die = ProbabilitySpace.uniform(range(1, 7))
    >>> round(float(12 * variance(die)), 9)  # 35 / 12
    35.0

    Notes: Z2.9.
    """
    laid = _laid(distribution, f)
    return laid.mean(laid.centered() ** 2).to(laid.dtype)


def covariance(distribution: DistributionLike, f: Function, g: Function) -> Float[Tensor, "*batch"]:
    """Cov(f(X), g(X)) = E (f(X) - E f(X)) (g(X) - E g(X)); for variables X and Y on one space,
    `covariance(space, X, Y)`.

    Args:
        distribution: A `ProbabilitySpace`, a `RandomVariable`, a `Density` or a torch distribution.

    Notes: Z2.9.
    """
    left, right = _laid(distribution, f, g), _laid(distribution, g, f)  # on the same nodes
    return left.mean(left.centered() * right.centered()).to(left.dtype)


def _laid(distribution: DistributionLike, f: Function | None, *others: Function) -> _Laid:
    if isinstance(distribution, Distribution):
        return _laid_torch(distribution, f, *others)
    if isinstance(distribution, RandomVariable):
        values, masses = distribution.space.weighed(
            distribution if f is None else lambda outcome: f(distribution(outcome))
        )
    elif isinstance(distribution, Density):
        values, masses = distribution.weighed(f, *others)
    elif isinstance(distribution, ProbabilitySpace):
        values, masses = distribution.weighed(f)
    else:
        raise UserError(
            "expected a probability space, a random variable, a Density or a torch distribution, "
            f"got {format_value(distribution)}; build one from it"
        )
    return _Laid(values, masses, masses.dtype)


def _laid_torch(distribution: Distribution, f: Function | None, *others: Function) -> _Laid:  # (*batch, m)
    check_parameters(distribution)
    steps = None
    if distribution.has_enumerate_support and not distribution.event_shape:
        try:
            points = distribution.enumerate_support()  # (m, *batch)
        except NotImplementedError:  # binomials of different lengths in one batch
            raise UserError(
                "expected distributions on one set of outcomes, got a mixed batch of "
                f"{type(distribution).__name__}; split it"
            ) from None
        dtype = distribution.mean.dtype
    elif getattr(distribution, "support", None) is constraints.nonnegative_integer:
        points, dtype = _counts(distribution), distribution.mean.dtype
    else:
        edges = support_edges(distribution)
        nodes, dtype = _resolving(distribution, edges.double(), f, *others), edges.dtype
        points, steps = nodes.points.movedim(-1, 0), nodes.weights
    masses = distribution.log_prob(points).exp().movedim(0, -1)
    masses = masses if steps is None else masses * steps
    total = masses.sum(dim=-1, keepdim=True)
    far = float((total.detach() - 1).abs().max())
    if not far <= _SLACK:
        raise UserError(
            f"expected the distribution's masses to sum to one, got {far:.3g} away from it; build a Density with "
            "edges where the mass is"
        )
    masses = masses / total  # log_prob may have rounded in float32, and a mean far from zero would show it
    points = points.to(masses.dtype)
    values = (
        (points if f is None else torch.as_tensor(f(points), dtype=masses.dtype))
        .broadcast_to(points.shape)
        .movedim(0, -1)
    )
    if steps is not None:
        check_settled(values, masses)
    return _Laid(values, masses, dtype)


def _resolving(distribution: Distribution, edges: Tensor, *functions: Function | None) -> Quadrature:
    """Nodes that resolve each f p, for all distributions of a batch."""

    def integrand(x: Tensor) -> Tensor:  # (*batch, m) -> (functions, *batch, m)
        points = x.movedim(-1, 0)
        p = distribution.log_prob(points).exp()
        values = [
            points if f is None else torch.as_tensor(f(points), dtype=p.dtype).broadcast_to(points.shape)
            for f in functions
        ]
        return torch.stack([torch.where(p == 0, 0, p * value) for value in values]).movedim(1, -1)

    return adapt(integrand, [edges]).axes[0]


def _counts(distribution: Distribution) -> Tensor:  # -> (m, *batch)
    last = float((distribution.mean + 40 * distribution.stddev + 40).detach().max())
    if not last <= _MOST_COUNTS:
        raise UserError(
            f"expected a distribution of counts up to about {_MOST_COUNTS}, got one up to {last:.3g}; sample from "
            "it instead"
        )
    counts = torch.arange(int(last) + 1, dtype=distribution.mean.dtype, device=distribution.mean.device)
    return counts.reshape(-1, *[1] * len(distribution.batch_shape)).expand(-1, *distribution.batch_shape)
