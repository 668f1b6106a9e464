"""The linear regions of a ReLU network, exactly: on a segment in any dimension, and as polygons in a window of the
plane.

Nothing is sampled. The window is a mesh of convex polygons with shared vertices; each unit of each layer is affine on
every polygon it meets, so its zero line cuts some of them in two. A new vertex belongs to the edge it lies on, so
neighbours stay joined and the work grows with the regions found. Vertices are exact to float64 rounding; what lies
within `SNAP` of a line counts as on it.

P regions, V vertices, d inputs, m outputs, h hidden units of all layers together
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Real
from torch import Tensor, nn

from quoin.display import shown
from quoin.errors import UserError, format_value
from quoin.expressivity.layers_of import affine_layers
from quoin.expressivity.mesh import Mesh, split_mesh
from quoin.layers import Affine

__all__ = ["Pieces", "Regions", "activation_pattern", "piece_maps", "pieces_on_segment", "regions_in_window"]

SNAP = 1e-11  # relative to the largest value that a unit's terms can add up to
SAME = 1e-8  # two gradients closer than this, relative to the largest, are one


def activation_pattern(net: nn.Module, x: Real[Tensor, "*batch d"]) -> Bool[Tensor, "*batch h"]:
    """Which hidden units are positive at x: the definition of a region is that this does not change inside it.

    Notes: D1.1-14.
    """
    found, hidden = [], x.detach().to("cpu", torch.float64)
    for weight, bias in affine_layers(net)[:-1]:
        z = hidden @ weight.T + bias
        found.append(z > 0)
        hidden = z.relu()
    return torch.cat(found, dim=-1) if found else torch.zeros(*x.shape[:-1], 0, dtype=torch.bool)


def piece_maps(layers: Sequence[Affine], patterns: Bool[Tensor, "P h"]) -> Affine:
    """The affine map that the network is where its units have these patterns: A_L D_{L-1} A_{L-1} ... D_1 A_1, D of
    zeros and ones. The weight has shape (P, m, d), the bias (P, m).

    Args:
        layers: As `affine_layers` gives them.
        patterns: Whether each hidden unit is positive, layer after layer, one row for each map.
    """
    weight, bias = (each.expand(len(patterns), *each.shape) for each in layers[0])
    start = 0
    for following in layers[1:]:
        on = patterns[:, start : start + weight.shape[1]].double()
        start += weight.shape[1]
        weight, bias = following.weight @ (on[..., None] * weight), (on * bias) @ following.weight.T + following.bias
    return Affine(weight, bias)


@shown
@dataclass(frozen=True)
class Pieces:
    """The pieces of a network on the segment from `start` to `end`: piece i lies between breaks i and i + 1."""

    breaks: Float[Tensor, "breaks"]  # from 0 at `start` to 1 at `end`
    patterns: Bool[Tensor, "breaks-1 h"]
    values: Float[Tensor, "breaks m"]  # of the network at the breaks

    @property
    def slopes(self) -> Float[Tensor, "P m"]:
        """By the parameter, which goes from 0 to 1."""
        return self.values.diff(dim=0) / self.breaks.diff()[:, None]

    @property
    def num_linear_pieces(self) -> int:
        """How many pieces are left when neighbours with one slope are joined."""
        slopes = self.slopes
        return 1 + int((slopes.diff(dim=0).abs().amax(dim=1) > SAME * float(slopes.abs().max())).sum())


def pieces_on_segment(
    net: nn.Module, start: Real[Tensor, "d"] | Sequence[float], end: Real[Tensor, "d"] | Sequence[float]
) -> Pieces:
    """Where a ReLU network changes slope on the way from `start` to `end`, in a net of any number of inputs.

    Notes: D1.1-14, D1.1-15.
    """
    layers = affine_layers(net)
    ends = torch.stack([_corner(each, layers, "the ends") for each in (start, end)])
    if torch.equal(ends[0], ends[1]):
        raise UserError(
            f"expected two different ends, got {format_value(ends[0].tolist())} twice; give a segment of some length"
        )
    breaks, values = torch.tensor([0.0, 1.0], dtype=torch.float64), ends
    patterns = torch.zeros(1, 0, dtype=torch.bool)
    for weight, bias in layers[:-1]:
        zero = _rounding(values, weight, bias)
        z = _snapped(values @ weight.T + bias, zero)
        row, unit = ((z[:-1].sign() * z[1:].sign()) < 0).nonzero(as_tuple=True)
        fraction = z[row, unit] / (z[row, unit] - z[row + 1, unit])
        order = torch.argsort(row + fraction)
        row, fraction = row[order], fraction[order]
        # Units that break at one point give one breakpoint: copies in a construction do.
        fresh = torch.ones(len(row), dtype=torch.bool)
        fresh[1:] = (row.diff() > 0) | (fraction.diff() > SNAP)
        row, fraction = row[fresh], fraction[fresh]
        permutation = torch.argsort(torch.cat([torch.arange(len(breaks), dtype=torch.float64), row + fraction]))
        new = breaks[row] + fraction * (breaks[row + 1] - breaks[row])
        between = z[row] + fraction[:, None] * (z[row + 1] - z[row])
        origin = torch.cat([torch.arange(len(breaks)), row])[permutation][:-1]  # the piece of each new piece
        breaks, z = torch.cat([breaks, new])[permutation], torch.cat([z, between])[permutation]
        z = _snapped(z, 2 * zero)
        patterns = torch.cat([patterns[origin], (z[:-1] > 0) | (z[1:] > 0)], dim=1)
        values = z.relu()
    return Pieces(breaks, patterns, values @ layers[-1].weight.T + layers[-1].bias)


@shown
@dataclass(frozen=True)
class Regions:
    """The regions of a network in a window of the plane: convex polygons on shared vertices, with what the network is
    on each."""

    mesh: Mesh
    patterns: Bool[Tensor, "P h"]  # the units that are positive inside
    maps: Affine  # the network there, a map for each region

    def __len__(self) -> int:
        return len(self.patterns)

    @property
    def polygons(self) -> list[np.ndarray]:
        """The corners (k, 2) of each region, in order around it."""
        return self.mesh.polygons()

    def linear_labels(self) -> np.ndarray:  # (P,)
        """For each region the number of the linear region it belongs to: neighbours on which the network is one affine
        map are joined."""
        weight = self.maps.weight.flatten(1)
        first, second = self.mesh.neighbors().T
        scale = SAME * float(weight.abs().max())
        # Across an edge the network is continuous, so equal gradients make equal maps.
        same = ((weight[first] - weight[second]).abs().amax(dim=1) <= scale).numpy()
        return _joined(len(self), np.stack([first, second], axis=1)[same])

    @property
    def num_linear_regions(self) -> int:
        return int(self.linear_labels().max()) + 1


def regions_in_window(
    net: nn.Module,
    low: Real[Tensor, "2"] | Sequence[float] = (-1.0, -1.0),
    high: Real[Tensor, "2"] | Sequence[float] = (1.0, 1.0),
) -> Regions:
    """Every region of a ReLU network of two inputs that meets the window from corner `low` to corner `high`.

    >>> corner = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1))
    >>> _ = corner[0].weight.data.copy_(torch.eye(2)), corner[0].bias.data.zero_()
    >>> len(regions_in_window(corner))
    4

    Notes: D1.1-14.
    """
    layers = affine_layers(net)
    if layers[0].weight.shape[1] != 2:
        raise UserError(
            f"expected a network of 2 inputs, got {layers[0].weight.shape[1]}; cut it with pieces_on_segment instead"
        )
    corners = [_corner(each, layers, "the window's corners").tolist() for each in (low, high)]
    (left, bottom), (right, top) = corners
    if not (left < right and bottom < top):
        raise UserError(
            f"expected a window from its lower left to its upper right corner, got {format_value(corners)}; swap them"
        )
    mesh = Mesh.rectangle(left, right, bottom, top)
    hidden, patterns = mesh.points, np.zeros((1, 0), dtype=bool)
    for weight, bias in layers[:-1]:
        given = torch.from_numpy(hidden)
        mesh, z, origin = split_mesh(mesh, (given @ weight.T + bias).numpy(), _rounding(given, weight, bias).numpy())
        patterns = np.concatenate([patterns[origin], mesh.any_of(z > 0)], axis=1)
        hidden = np.maximum(z, 0)
    found = torch.from_numpy(patterns)
    return Regions(mesh, found, piece_maps(layers, found))


def _corner(given: Tensor | Sequence[float], layers: list[Affine], what: str) -> Tensor:
    point, size = torch.as_tensor(given, dtype=torch.float64), layers[0].weight.shape[1]
    if point.shape != (size,) or not point.isfinite().all():
        raise UserError(
            f"expected {what} as {size} finite numbers each, got {format_value(given)}; give one for each input"
        )
    return point


def _rounding(
    values: Tensor, weight: Tensor, bias: Tensor
) -> Tensor:  # (m,): below this a unit's value is zero but for rounding
    return SNAP * ((values.abs() @ weight.T.abs()).amax(dim=0) + bias.abs())


def _snapped(z: Tensor, zero: Tensor) -> Tensor:
    return torch.where(z.abs() <= zero, 0.0, z)


def _joined(count: int, pairs: np.ndarray) -> np.ndarray:
    """Labels 0, 1, ... of the connected components, by union and find: `pairs` are few."""
    parent = list(range(count))

    def root(node: int) -> int:
        while parent[node] != node:
            parent[node] = node = parent[parent[node]]
        return node

    for first, second in pairs.tolist():
        parent[root(first)] = root(second)
    return np.unique([root(node) for node in range(count)], return_inverse=True)[1]
