"""Why depth: networks that fold their input, the pieces they make, and how many pieces any network of given hidden
sizes can make.

A layer that folds the line p times over itself multiplies all later pieces by p and costs p units, so pieces multiply
with depth
where units add. Regions of a given network are counted in regions.py.   d inputs, n width, L hidden layers, k folds, p
pieces
"""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Real
from torch import Tensor, nn

from quoin.errors import UserError, format_value
from quoin.expressivity.layers_of import relu_network
from quoin.expressivity.regions import pieces_on_segment
from quoin.layers import Affine

__all__ = [
    "folding_net",
    "l1_distance",
    "max_regions",
    "min_units",
    "num_folding_regions",
    "partial_sawtooth_net",
    "region_growth_order",
    "sawtooth_definition",
    "sawtooth_l1_lower_bound",
    "sawtooth_net",
    "zigzag_net",
]


def sawtooth_definition(x: Real[Tensor, "*batch"], k: int) -> Real[Tensor, "*batch"]:
    """tent(tent(... x)), k times, with tent(x) = 2 min(x, 1 - x): on [0, 1] it goes up and down 2^(k-1) times.

    Notes: D1.1-15, DE11.
    """
    for _ in range(k):
        x = 2 * torch.minimum(x, 1 - x)
    return x


def zigzag_net(folds: Sequence[int]) -> nn.Sequential:
    """The network whose layer l folds [0, 1] p_l times over itself: p_1 p_2 ... pieces from p_1 + p_2 + ... units.

    Fold by fold it is x -> p x - 2 (p x - 1)_+ + 2 (p x - 2)_+ - ..., which goes up and down p times between 0 and 1.

    Notes: D1.1-12.
    """
    if not folds or min(folds) < 1:
        raise UserError(
            f"expected at least one layer and one fold in each, got {format_value(list(folds))}; give e.g. [2, 2, 2]"
        )
    layers, read = [], torch.ones(1, 1, dtype=torch.float64)
    for p in folds:
        layers.append(Affine(p * torch.ones(p, 1, dtype=torch.float64) @ read, -torch.arange(p, dtype=torch.float64)))
        read = _zigzag(p)
    return relu_network([*layers, Affine(read, torch.zeros(1, dtype=torch.float64))])


def sawtooth_net(k: int) -> nn.Sequential:
    """`sawtooth_definition` on [0, 1] as a network of k hidden layers of two units: 2^k pieces from 2 k units.

    Notes: D1.1-12, D1.1-15, DE11.
    """
    if k < 1:
        raise UserError(f"expected at least one fold, got {k}; give k >= 1")
    return zigzag_net([2] * k)


def max_regions(hidden_dims: Sequence[int], d: int = 1) -> int:
    """No ReLU network of d inputs and these hidden sizes has more regions than prod_l sum_{j <= d} C(n_l, j).

    Notes: D1.1-14, DE10.
    """
    return math.prod(sum(math.comb(n, j) for j in range(d + 1)) for n in hidden_dims)


def num_folding_regions(hidden_dim: int, num_layers: int, d: int) -> int:
    """The regions that `folding_net` has in the unit cube: floor(n / d)^(d (L - 1)) sum_{j <= d} C(n, j).

    Notes: D1.1-14, DE10.
    """
    return (hidden_dim // d) ** (d * (num_layers - 1)) * max_regions([hidden_dim], d)


def region_growth_order(hidden_dim: int, num_layers: int, d: int) -> float:
    """(n / d)^(d (L - 1)) n^d: the most regions that width n >= d and L hidden layers can reach grow at least like
    this.

    Notes: D1.1-14, DE10.
    """
    return (hidden_dim / d) ** (d * (num_layers - 1)) * hidden_dim**d


def folding_net(hidden_dim: int, num_layers: int, d: int) -> nn.Sequential:
    """A network of d inputs and L hidden layers of n units that has `num_folding_regions(n, L, d)` linear regions in
    the unit cube.

    L - 1 layers fold every coordinate floor(n / d) times; the last cuts the cube by n hyperplanes in general position,
    all of whose crossings lie inside, and every fold below copies this pattern.

    Notes: D1.1-14, DE10.
    """
    if d < 1 or hidden_dim < d or num_layers < 1:
        raise UserError(
            f"expected hidden_dim >= d >= 1 and num_layers >= 1, got {hidden_dim}, {d} and {num_layers}; "
            "widen or deepen the net"
        )
    p, eye = hidden_dim // d, torch.eye(d, dtype=torch.float64)
    idle = torch.zeros(hidden_dim - p * d, d, dtype=torch.float64)  # units left over when d does not divide the width
    read, layers = eye, []
    for _ in range(num_layers - 1):
        copies = torch.cat([eye.repeat_interleave(p, dim=0) * p, idle])
        layers.append(Affine(copies @ read, -torch.cat([torch.arange(p, dtype=torch.float64).repeat(d), idle[:, 0]])))
        read = torch.cat([torch.kron(eye, _zigzag(p)), idle.T], dim=1)
    # On the hyperplanes sum_i t^i y_i = t^d any d different t meet in one point, whose coordinates are at most C(d, i):
    # it stays inside.
    t = torch.linspace(-1, 1, hidden_dim + 2, dtype=torch.float64)[1:-1]
    t = t + 0.1 * t.square() / hidden_dim  # not symmetric, lest three lines meet
    scale = 0.4 / 2**d
    # The sides alternate, so that outside all crossings no cell has every unit inactive: there two folds would be one
    # flat region.
    side = torch.tensor([(-1.0) ** j for j in range(hidden_dim)], dtype=torch.float64)
    normal = side[:, None] * t[:, None] ** torch.arange(d)
    layers.append(Affine(normal @ read, -0.5 * normal.sum(dim=1) - scale * side * t**d))
    weights = (
        1 + (torch.arange(1, hidden_dim + 1, dtype=torch.float64) * (math.sqrt(5) - 1) / 2) % 1
    )  # lest sums of them cancel
    return relu_network([*layers, Affine(weights[None], torch.zeros(1, dtype=torch.float64))])


def min_units(pieces: int, num_layers: int) -> int:
    """The least n_1 + ... + n_L with (n_1 + 1) ... (n_L + 1) >= pieces: on the line fewer units cannot make so many.

    Notes: D1.1-12.
    """
    if pieces < 1 or num_layers < 1:
        raise UserError(
            f"expected at least one piece and one layer, got {pieces} and {num_layers}; give positive counts"
        )
    base = 1
    while (base + 1) ** num_layers <= pieces:
        base += 1
    # For a given sum the product is largest when the hidden sizes differ by at most one.
    extra = next(j for j in range(num_layers + 1) if (base + 1) ** j * base ** (num_layers - j) >= pieces)
    return num_layers * (base - 1) + extra


def sawtooth_l1_lower_bound(k: int, pieces: int) -> float:
    """No function of p linear pieces comes closer to the sawtooth of 2^k in the mean: the integral of |f - g| is at
    least (1 - 2 p / 2^k - 2 / 2^k) / 8, or 0 where that is negative.

    Notes: D1.1-15, DE11.
    """
    return max(0.0, (1 - 2 * pieces / 2**k - 2 / 2**k) / 8)


def partial_sawtooth_net(k: int, pieces: int) -> nn.Sequential:
    """A shallow network of p pieces that follows the sawtooth of 2^k for p - 1.5 of its teeth and then rests at 1/2: on
    [0, 1] it has mean error (1 - (p - 1.5) / 2^k) / 4, about twice what `sawtooth_l1_lower_bound` leaves to any p
    pieces far below 2^k.

    Notes: D1.1-15.
    """
    if not 2 <= pieces <= 2**k:
        raise UserError(f"expected from 2 to {2**k} pieces, got {pieces}; change k or the pieces")
    n, slope = pieces, 2.0**k
    starts = torch.arange(n, dtype=torch.float64) / slope
    starts[-1] -= 0.5 / slope  # the last breakpoint, half-way down or up a tooth, is where it stops
    jumps = 2 * slope * torch.tensor([(-1.0) ** j for j in range(n)], dtype=torch.float64)
    jumps[0] = slope
    jumps[-1] /= 2
    one = torch.ones(n, 1, dtype=torch.float64)
    return relu_network([Affine(one, -starts), Affine(jumps[None], torch.zeros(1, dtype=torch.float64))])


def l1_distance(f: nn.Module, g: nn.Module) -> float:
    """The integral of |f - g| over [0, 1] of two ReLU networks of one input and one output, piece by piece and so
    without a grid.

    Notes: D1.1-15.
    """
    first, second = (pieces_on_segment(net, [0.0], [1.0]) for net in (f, g))
    t = torch.cat([first.breaks, second.breaks]).unique()
    difference = _between(t, first.breaks, first.values[:, 0]) - _between(t, second.breaks, second.values[:, 0])
    left, right = difference[:-1], difference[1:]
    total = left.abs() + right.abs()
    # Two triangles where the sign changes inside, a trapezium elsewhere.
    height = torch.where(left * right < 0, (left.square() + right.square()) / total.clamp(min=1e-300), total)
    return float((height / 2 * t.diff()).sum())


def _between(t: Tensor, breaks: Tensor, values: Tensor) -> Tensor:
    """The values at t of the function that is linear between its breaks."""
    index = torch.searchsorted(breaks, t, right=True).clamp(1, len(breaks) - 1)
    fraction = (t - breaks[index - 1]) / (breaks[index] - breaks[index - 1])
    return values[index - 1] + fraction * (values[index] - values[index - 1])


def _zigzag(p: int) -> Tensor:  # (1, p): what reads the folded line from the units (p x - j)_+
    read = 2 * torch.tensor([[(-1.0) ** j for j in range(p)]], dtype=torch.float64)
    read[0, 0] = 1
    return read
