"""Distributions with a density on a box of one to three dimensions: probabilities, means, marginals and conditioning,
all by quadrature.

A function of a point takes one tensor for each coordinate, `lambda x, y: x + y`, and works elementwise. A box is one
increasing sequence of edges for each coordinate, the outermost possibly infinite; put edges at breakpoints and jumps of
the density, and about a width apart where the mass is (quadrature.py says why). Those of f are found (adaptive.py). A
density may carry parameters: what is computed here is differentiable in them.
"""

import functools
import math
from collections.abc import Callable, Mapping, Sequence

import torch
from jaxtyping import Float, Real
from torch import Tensor
from torch.distributions import Distribution

from quoin.display import fields_table, line_chart, shown
from quoin.errors import UserError
from quoin.prob.adaptive import adapt, integrate, mesh
from quoin.prob.quadrature import Integral, Quadrature, check_settled, line_quadrature
from quoin.prob.quadrature_edges import support_edges
from quoin.tensor import as_floating
from quoin.tensor.array_like import ArrayLike, float_tensor, number_tensor

__all__ = ["Density", "condition_density", "independence_gap_of_density", "normal_density_1d", "product_density"]

_MOST_POINTS = 2**24
_SLACK = 1e-5  # how far a density's integral may be from one: float32 rounds some log-densities by nearly that much
_COARSE_SLACK = 1e-2  # and how far with half the nodes: more says that the nodes do not resolve it


def normal_density_1d(
    x: Real[Tensor, "*#batch"] | ArrayLike,
    mean: Real[Tensor, "*#batch"] | ArrayLike = 0.0,
    std: Real[Tensor, "*#batch"] | ArrayLike = 1.0,
) -> Float[Tensor, "*#batch"]:
    """(2 pi sigma^2)^(-1/2) exp(-(x - mu)^2 / (2 sigma^2)); `torch.distributions.Normal` gives its logarithm.

    >>> normal_density_1d(torch.tensor([0.0, 1.0]))
    tensor([0.3989, 0.2420])

    Notes: Z3.17.
    """
    x = number_tensor(x, "x")
    x = as_floating(x)
    mean = mean if isinstance(mean, Tensor | float | int) else float_tensor(mean, "mean", x)
    std = std if isinstance(std, Tensor | float | int) else float_tensor(std, "std", x)
    variance = torch.as_tensor(std, dtype=x.dtype, device=x.device) ** 2
    if not bool((variance > 0).all()):
        raise UserError(
            f"expected a standard deviation above zero, got {std}; a distribution of variance zero has no density"
        )
    return torch.exp(-((x - mean) ** 2) / (2 * variance)) / torch.sqrt(2 * math.pi * variance)


@shown
class Density:
    """The distribution P_X[B] = int 1_B(x) p(x) dx on a box, with E f(X) = int f(x) p(x) dx.

    Args:
        density: p, of one tensor for each coordinate, elementwise.
        edges: One increasing sequence for each coordinate, the outermost possibly infinite: put edges at jumps of p,
            and about a width apart where its mass is.
        num_nodes: Quadrature nodes on each piece between two edges.

    >>> joint = Density(lambda x, y: x + y, (0, 1), (0, 1))
    >>> round(float(joint.probability((0, 0.5), (0, 0.5))), 12)
    0.125
    >>> round(float(joint.expectation(lambda x, y: x * y)), 12)
    0.333333333333

    Notes: D5-5.
    """

    def __init__(
        self, density: Callable[..., Tensor], *edges: Sequence[float] | Real[Tensor, "_e"], num_nodes: int = 80
    ):
        if not edges:
            raise UserError("expected the edges of a box, one sequence for each coordinate, got none; give e.g. (0, 1)")
        self._density, self.num_nodes = density, num_nodes
        self.edges = tuple(torch.as_tensor(each, dtype=torch.float64) for each in edges)
        if any(each.ndim != 1 for each in self.edges):
            raise UserError(
                "expected one distribution, with one sequence of edges for each coordinate, got a batch; take its "
                "distributions one by one"
            )
        self._axes = tuple(line_quadrature(each, num_nodes) for each in self.edges)
        count = math.prod(len(axis.points) for axis in self._axes)
        if count > _MOST_POINTS:
            raise UserError(
                f"expected at most {_MOST_POINTS} nodes in all, got {count}; give fewer `num_nodes` or edges, or "
                "sample instead"
            )
        self._check_mass()

    @classmethod
    def from_distribution(cls, distribution: Distribution, *, num_nodes: int = 80) -> "Density":
        """A `torch.distributions` distribution on the line, with edges about a width apart where it has its mass."""
        return cls(lambda x: distribution.log_prob(x).exp(), support_edges(distribution), num_nodes=num_nodes)

    def __repr__(self) -> str:
        sides = " × ".join(f"[{float(each[0]):g}, {float(each[-1]):g}]" for each in self.edges)
        return f"Density on {sides}, {self.num_nodes} nodes a piece"[:200]

    def _repr_html_(self) -> str:
        if self.dim > 1:
            return fields_table(repr(self), {"edges": self.edges, "num_nodes": self.num_nodes})
        points = self._axes[0].points.flatten()
        inside = points[torch.linspace(0, len(points) - 1, min(len(points), 200)).long()]
        return line_chart(inside.tolist(), self(inside).tolist(), title=repr(self))

    @property
    def dim(self) -> int:
        return len(self.edges)

    def __call__(self, *x: Real[Tensor, "*#batch"] | float) -> Float[Tensor, "*#batch"]:
        """p(x) of one tensor for each coordinate, which is zero outside the box."""
        if len(x) != self.dim:
            raise UserError(f"expected {self.dim} coordinates, got {len(x)}; give one tensor for each")
        coordinates = torch.broadcast_tensors(*(torch.as_tensor(each, dtype=torch.float64) for each in x))
        inside = functools.reduce(
            torch.logical_and, ((a[0] <= each) & (each <= a[-1]) for a, each in zip(self.edges, coordinates))
        )
        # Outside the box p may not be defined: it is asked at some inner point instead, and the answer dropped.
        asked = (torch.where(inside, each, axis.points[0]) for axis, each in zip(self._axes, coordinates))
        return torch.where(inside, self._values(*asked), 0)

    def weighed(
        self, f: Callable[..., Tensor] | None = None, *others: Callable[..., Tensor]
    ) -> tuple[Float[Tensor, "m"], Float[Tensor, "m"]]:
        """f at every node, and the nodes' masses w_i p(x_i): E f(X) is the sum of their products. Without f, the
        one coordinate itself.

        The nodes are laid so that they resolve f, and `others` that are to be weighed on the same ones.
        """
        if f is None and self.dim > 1:
            raise UserError(f"expected a function of {self.dim} coordinates, got none; give e.g. lambda x, y: x * y")
        masses, (values,) = self._laid(self.adapted(f, *others)[0], f)
        terms = torch.where(masses == 0, 0, values * masses).abs()
        for axis in range(self.dim):  # seen along one axis, the others summed out
            of_axis, mass = (
                each.movedim(axis, -1).reshape(-1, each.shape[axis]).sum(dim=0) for each in (terms, masses)
            )
            check_settled(of_axis / torch.where(mass == 0, 1, mass), mass)
        return values.flatten(), masses.flatten()

    def adapted(
        self, *functions: Callable[..., Tensor] | None
    ) -> tuple[tuple[Quadrature, ...], Float[Tensor, "functions"]]:
        """Nodes that resolve each f p, and the largest of their errors."""

        def integrand(*x: Tensor) -> Tensor:
            p = self._values(*x)
            return torch.stack([torch.where(p == 0, 0, p * self._asked(f, x, p)) for f in functions])

        return adapt(integrand, self.edges, self.num_nodes)

    def _laid(
        self, axes: Sequence[Quadrature], *functions: Callable[..., Tensor] | None
    ) -> tuple[Tensor, list[Tensor]]:
        """The masses of the nodes and what each f is there."""
        x = mesh([axis.points for axis in axes])
        p = self._values(*x)
        masses = functools.reduce(torch.mul, mesh([axis.weights for axis in axes]), p)
        return masses, [self._asked(f, x, masses) for f in functions]

    def _asked(self, f: Callable[..., Tensor] | None, x: Sequence[Tensor], like: Tensor) -> Tensor:
        return torch.broadcast_to(x[0] if f is None else torch.as_tensor(f(*x), dtype=like.dtype), like.shape)

    def expectation(self, f: Callable[..., Tensor] | None = None) -> Float[Tensor, ""]:
        """E f(X) = int f(x) p(x) dx; without f, in one dimension, the mean. What has no mass counts nothing, even where
        f is infinite.

        Where f jumps or has a breakpoint the nodes close in on it, if in more dimensions than one it runs along an
        axis: `integral` gives how exact the mean is. A bump of f that is narrower than the nodes lie apart is not seen,
        so for a small box take `probability`.

        >>> standard = torch.distributions.Normal(torch.zeros((), dtype=torch.float64), 1.0)
        >>> distribution = Density.from_distribution(standard)
        >>> round(float(distribution.expectation(lambda x: (x < 0.3).double())), 9)  # Φ(0.3)
        0.617911422
        """
        values, masses = self.weighed(f)
        return (torch.where(masses == 0, 0, values) * masses).sum()

    def integral(self, f: Callable[..., Tensor] | None = None) -> Integral:
        """`expectation` with an estimate of its error."""
        return Integral(self.expectation(f), self.adapted(f)[1].amax())

    def probability(self, *box: Sequence[float]) -> Float[Tensor, ""]:
        """P_X[B] for a box B, one (low, high) for each coordinate; for another event take `expectation`
        of its indicator.
        """
        if len(box) != self.dim or any(len(sides) != 2 or not sides[0] <= sides[1] for sides in box):
            raise UserError(f"expected {self.dim} intervals (low, high), got {box}; use -inf and inf for a whole axis")
        parts = [_between(axis, *sides) for axis, sides in zip(self.edges, box)]
        if any(part is None for part in parts):
            return torch.zeros((), dtype=torch.float64)
        return _integral(self._values, [line_quadrature(part, self.num_nodes) for part in parts if part is not None])

    def marginal(self, *keep: int) -> "Density":
        """The distribution of some coordinates: p_X(x) = int p(x, y) dy.

        >>> joint = Density(lambda x, y: x + y, (0, 1), (0, 1))
        >>> joint.marginal(0)(torch.tensor([0.0, 1.0]))  # x + 1/2
        tensor([0.5000, 1.5000], dtype=torch.float64)

        Notes: D5-6.
        """
        self._check_axes(keep)
        density = lambda *x: self._summed_out(dict(zip(keep, x)))  # noqa: E731
        return Density(density, *(self.edges[axis] for axis in keep), num_nodes=self.num_nodes)

    def _summed_out(self, at: Mapping[int, Tensor]) -> Tensor:  # coordinate: (...) -> (...)
        """The integral over all coordinates but those in `at`."""
        rest = [axis for axis in range(self.dim) if axis not in at]
        known = {axis: x[(..., *[None] * len(rest))] for axis, x in at.items()}  # axes for the nodes of the others

        def inner(*y: Tensor) -> Tensor:
            point = known | dict(zip(rest, y))
            return self._values(*(point[axis] for axis in range(self.dim)))

        return _integral(inner, [self._axes[axis] for axis in rest])

    def _values(self, *x: Tensor) -> Tensor:
        values = self._density(*x)
        values = values if isinstance(values, Tensor) else torch.tensor(values, dtype=torch.float64)
        return values.broadcast_to(torch.broadcast_shapes(*(each.shape for each in x)))

    def _check_axes(self, axes: Sequence[int]) -> None:
        if not axes or len(set(axes)) != len(axes) or not set(axes) < set(range(self.dim)):
            raise UserError(
                f"expected some but not all of the coordinates 0 to {self.dim - 1}, got {tuple(axes)}; name each once"
            )

    def _check_mass(self) -> None:
        values = self._values(*mesh([axis.points for axis in self._axes])).detach()
        # Every second node, each with twice its weight, is the same rule with double the step.
        mass, coarse = (float(_sum(values, self._axes, step).detach()) for step in (1, 2))
        # NaN fails too
        if not (abs(mass - 1) <= _SLACK and abs(coarse - 1) <= _COARSE_SLACK and float(values.min()) >= 0):
            raise UserError(
                "expected a density, non-negative with integral one, got a least value of "
                f"{float(values.min()):.3g} and an integral "
                f"{mass - 1:.3g} away from one ({coarse - 1:.3g} on half the nodes); divide by the integral, or "
                "set edges where the mass is"
            )


def product_density(first: Density, second: Density) -> Density:
    """The distribution of an independent pair, in d_X + d_Y coordinates: p(x, y) = p_X(x) p_Y(y).

    Notes: D5-7.
    """
    split = first.dim
    nodes = min(first.num_nodes, second.num_nodes)
    return Density(lambda *z: first(*z[:split]) * second(*z[split:]), *first.edges, *second.edges, num_nodes=nodes)


def independence_gap_of_density(joint: Density, *first: int) -> Float[Tensor, ""]:
    """int |p(x, y) - p_X(x) p_Y(y)| / 2, X being the coordinates `first`: zero exactly if X and the
    others are independent.

    Notes: D5-7.
    """
    joint._check_axes(first)
    rest = [axis for axis in range(joint.dim) if axis not in first]
    left, right = joint.marginal(*first), joint.marginal(*rest)

    def gap(*z: Tensor) -> Tensor:
        return (joint(*z) - left(*(z[i] for i in first)) * right(*(z[i] for i in rest))).abs() / 2

    return integrate(gap, *joint.edges, num_nodes=joint.num_nodes).output


def condition_density(joint: Density, given: Mapping[int, float], *, fallback: Density | None = None) -> Density:
    """The distribution of the other coordinates once those in `given` are known: p_{X|Y=y}(x) = p(x, y) / p_Y(y).

    Where p_Y(y) = 0 any fixed distribution will do, but it must be a distribution: `fallback`, and a refusal where
    there is none.

    >>> joint = Density(lambda x, y: x + y, (0, 1), (0, 1))
    >>> condition_density(joint, {1: 0.0})(torch.tensor([0.25, 0.75]))  # x / (1/2)
    tensor([0.5000, 1.5000], dtype=torch.float64)

    Notes: D5-9, D5-12.
    """
    joint._check_axes(tuple(given))
    rest = [axis for axis in range(joint.dim) if axis not in given]
    at = {axis: torch.as_tensor(y, dtype=torch.float64) for axis, y in given.items()}
    inside = all(bool((joint.edges[axis][0] <= y) & (y <= joint.edges[axis][-1])) for axis, y in at.items())
    of_given = joint._summed_out(at) if inside else torch.zeros(())
    if not bool(of_given > 0):
        if fallback is None:
            raise UserError(
                f"expected a point of positive density to condition on, got {dict(given)} of density 0; give `fallback`"
            )
        if fallback.dim != len(rest):
            raise UserError(
                f"expected `fallback` in {len(rest)} dimensions, got {fallback.dim}; it stands for the coordinates "
                f"{rest}"
            )
        return fallback

    def density(*x: Tensor) -> Tensor:
        point = at | dict(zip(rest, x))
        return joint._values(*(point[axis] for axis in range(joint.dim))) / of_given

    return Density(density, *(joint.edges[axis] for axis in rest), num_nodes=joint.num_nodes)


def _between(edges: Tensor, low: float, high: float) -> Tensor | None:
    """The edges of the part of an axis between low and high; None where there is none."""
    # The axis's own ends stay themselves: they may be parameters of the distribution, in which a probability has a
    # gradient.
    first, last = edges[0].maximum(edges.new_tensor(low)), edges[-1].minimum(edges.new_tensor(high))
    if not bool(first < last):
        return None
    return torch.cat([first[None], edges[(first < edges) & (edges < last)], last[None]])


def _integral(f: Callable[..., Tensor], axes: Sequence[Quadrature]) -> Tensor:
    return _sum(f(*mesh([axis.points for axis in axes])), axes)


def _sum(values: Tensor, axes: Sequence[Quadrature], step: int = 1) -> Tensor:
    for axis in reversed(axes):
        values = values[..., ::step] @ (step * axis.weights[::step]).to(values.dtype)
    return values
