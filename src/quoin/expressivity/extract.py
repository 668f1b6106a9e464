"""From a ReLU network of one input, of any depth and width, to its pieces: exact breakpoints, found layer by layer.

A layer's units are piecewise linear functions on one common list of breakpoints. An affine map changes their values and
slopes but no breakpoint; ReLU adds one wherever a unit crosses zero inside a piece. No grid is laid, so the work grows
with the number
of pieces met times the hidden sizes.   k breakpoints, k + 1 pieces, n units
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from quoin.errors import UserError
from quoin.expressivity.layers_of import affine_layers
from quoin.expressivity.piecewise import PiecewiseLinear

__all__ = ["from_relu_network"]

_EPS = torch.finfo(torch.float64).eps


class _Units(NamedTuple):
    """All units of a layer as functions of the network's one input."""

    breakpoints: Tensor  # (k,), k >= 1
    values: Tensor  # (k, n), at the breakpoints
    slopes: Tensor  # (k + 1, n), on the pieces
    magnitude: Tensor  # (k + 1, n), the slopes with every sign made positive: what their rounding is relative to


def from_relu_network(net: nn.Module) -> PiecewiseLinear:
    """The function that a ReLU network of one input and one output computes, as its breakpoints and slopes in float64.

    Exact but for rounding: breakpoints that coincide within it are one, and a change of slope that it could have made
    is none.

    >>> tent = nn.Sequential(nn.Linear(1, 2), nn.ReLU(), nn.Linear(2, 1)).double()
    >>> for parameter, entries in zip(tent.parameters(), ([[2.0], [4.0]], [0.0, -2.0], [[1.0, -1.0]], [0.0])):
    ...     parameter.data = torch.tensor(entries, dtype=torch.float64)
    >>> from_relu_network(nn.Sequential(tent, tent)).breakpoints.tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    layers = affine_layers(net)
    in_features, out_features = layers[0].weight.shape[1], layers[-1].weight.shape[0]
    if (in_features, out_features) != (1, 1):
        raise UserError(
            f"expected a network of one input and one output, got {in_features} and {out_features}; take a line "
            "and an output"
        )
    one = torch.ones(2, 1, dtype=torch.float64)
    # 0 is no breakpoint; it is there so that there is always a point where values are known.
    units = _Units(torch.zeros(1, dtype=torch.float64), torch.zeros(1, 1, dtype=torch.float64), one, one)
    roundings = 0
    for index, (weight, bias) in enumerate(layers):
        roundings += weight.shape[1] + 2
        slopes, magnitude = units.slopes @ weight.T, units.magnitude @ weight.T.abs()
        # A flat unit that rounding had tilted would cross zero somewhere far away.
        slopes = torch.where(slopes.abs() > roundings * _EPS * magnitude, slopes, 0.0)
        units = _Units(units.breakpoints, units.values @ weight.T + bias, slopes, magnitude)
        if index < len(layers) - 1:
            units = _rectified(units)
    slopes, magnitude = units.slopes[:, 0], units.magnitude[:, 0]
    is_break = slopes.diff().abs() > roundings * _EPS * (magnitude[1:] + magnitude[:-1])
    kept = torch.cat([is_break.new_ones(1), is_break])
    return PiecewiseLinear(
        units.breakpoints[is_break], slopes[kept], units.values[0, 0] - slopes[0] * units.breakpoints[0]
    )


def _rectified(units: _Units) -> _Units:
    """ReLU of every unit, on the breakpoints of before and those where a unit crosses zero."""
    t, values, slopes, magnitude = units
    crossing = _crossings(t, values, slopes)  # (k + 1, n), NaN where a unit keeps its sign on a piece
    found = ~crossing.isnan()
    crossing[found] = _merged(crossing[found], t)
    everywhere = torch.cat([t, crossing[found]]).unique()
    old = torch.searchsorted(
        t, torch.cat([everywhere, everywhere.new_tensor([torch.inf])])
    )  # the old piece each new one lies in
    start = torch.cat([everywhere.new_tensor([-torch.inf]), everywhere])[:, None]
    end = torch.cat([everywhere, everywhere.new_tensor([torch.inf])])[:, None]
    # Floats are compared with the very floats they were made of, so no rounding can put a piece on the wrong side.
    beyond = torch.where(slopes[old] > 0, start >= crossing[old], end <= crossing[old])
    on = torch.where(found[old], beyond, _positive(values, slopes)[old])
    # A unit that is on at one side of a breakpoint only is exactly zero there.
    height = torch.where(on[:-1] & on[1:], _heights(everywhere, old[:-1], units).relu(), 0.0)
    return _Units(everywhere, height, slopes[old] * on, magnitude[old] * on)


def _heights(x: Tensor, piece: Tensor, units: _Units) -> Tensor:
    """The units at points x of the given pieces, counted from the piece's end that is nearer to 0: its value has the
    smaller rounding."""
    t = units.breakpoints
    left, right = (piece - 1).clamp(min=0), piece.clamp(max=len(t) - 1)
    anchor = torch.where(t[left].abs() <= t[right].abs(), left, right)
    return units.values[anchor] + units.slopes[piece] * (x - t[anchor])[:, None]


def _crossings(t: Tensor, values: Tensor, slopes: Tensor) -> Tensor:
    """Where each unit is zero strictly inside each piece, NaN where nowhere."""
    left, right = values[:-1], values[1:]
    fraction = left / (left - right)
    inside = torch.where(left * right < 0, t[:-1, None] + t.diff()[:, None] * fraction, torch.nan)
    before, after = t[0] - values[:1] / slopes[:1], t[-1] - values[-1:] / slopes[-1:]
    before = torch.where(before.isfinite() & (before < t[0]), before, torch.nan)
    after = torch.where(after.isfinite() & (after > t[-1]), after, torch.nan)
    return torch.cat([before, inside, after])


def _positive(values: Tensor, slopes: Tensor) -> Tensor:
    """Whether each unit is positive on a piece, for pieces on which it keeps its sign."""
    first = (values[:1] > 0) | ((values[:1] == 0) & (slopes[:1] < 0))
    last = (values[-1:] > 0) | ((values[-1:] == 0) & (slopes[-1:] > 0))
    return torch.cat([first, (values[:-1] > 0) | (values[1:] > 0), last])


def _merged(crossings: Tensor, t: Tensor) -> Tensor:
    """The crossings, those that only rounding keeps from an old breakpoint or from each other made equal."""
    size = torch.cat([t, crossings]).abs()
    tolerance = 4 * _EPS * torch.maximum(crossings.abs(), size.median())
    right = torch.searchsorted(t, crossings).clamp(max=len(t) - 1)
    left = (right - 1).clamp(min=0)
    nearest = torch.where((crossings - t[left]).abs() <= (crossings - t[right]).abs(), t[left], t[right])
    snapped = torch.where((crossings - nearest).abs() <= tolerance, nearest, crossings)
    ordered, order = snapped.sort()
    distinct = ordered.diff() > tolerance[order[1:]]
    group = torch.cat([distinct.new_zeros(1), distinct]).cumsum(0) if len(ordered) else order
    first = torch.cat([distinct.new_ones(1), distinct]) if len(ordered) else distinct
    return torch.empty_like(snapped).scatter(0, order, ordered[first][group])
