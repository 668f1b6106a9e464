"""Continuous piecewise linear functions of one variable: the sum of clipped ramps, the table of pieces, the ReLU
network.

The way back, from a network to its pieces, is in extract.py.   t_0 < ... < t_p breakpoints, lambda_0 ... lambda_{p+1}
slopes
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Real
from torch import Tensor, nn

from quoin.display import shown
from quoin.errors import UserError
from quoin.expressivity.layers_of import relu_network
from quoin.layers import Affine, relu
from quoin.tensor import as_floating, check_floating, check_shapes

__all__ = [
    "PiecewiseLinear",
    "clipped_ramp",
    "interpolant",
    "piecewise_linear_definition",
    "relu_form_definition",
    "to_relu_network",
    "to_relu_network_with_identity",
]


def clipped_ramp(
    x: Real[Tensor, "*#batch"], start: Real[Tensor, "*#batch"], end: Real[Tensor, "*#batch"]
) -> Float[Tensor, "*#batch"]:
    """(0 ∨ (x - s)) ∧ (t - s): how far x has come on the way from s to t, which for s <= t is ReLU(x - s) - ReLU(x -
    t)."""
    x, start, end = as_floating(x), as_floating(start), as_floating(end)
    return torch.minimum(relu(x - start), end - start)


def piecewise_linear_definition(
    x: Real[Tensor, "*batch"],
    breakpoints: Real[Tensor, "breakpoints"],
    slopes: Real[Tensor, "breakpoints+1"],
    offset: Real[Tensor, ""],
) -> Float[Tensor, "*batch"]:
    """lambda_0 (x ∧ t_0) + c_0 + sum_{l=1}^p lambda_l ((0 ∨ (x - t_{l-1})) ∧ (t_l - t_{l-1})) + lambda_{p+1} (0 ∨ (x -
    t_p))."""
    x, breakpoints, slopes, offset = (as_floating(each) for each in (x, breakpoints, slopes, offset))
    before = slopes[0] * torch.minimum(x, breakpoints[0]) + offset
    between = clipped_ramp(x[..., None], breakpoints[:-1], breakpoints[1:]) @ slopes[1:-1]
    return before + between + slopes[-1] * relu(x - breakpoints[-1])


def relu_form_definition(
    x: Real[Tensor, "*batch"],
    breakpoints: Real[Tensor, "breakpoints"],
    slopes: Real[Tensor, "breakpoints+1"],
    offset: Real[Tensor, ""],
) -> Float[Tensor, "*batch"]:
    """lambda_0 x + c_0 + sum_{l=1}^{p+1} (lambda_l - lambda_{l-1}) ReLU(x - t_{l-1}): each slope jumps where its piece
    begins."""
    x, breakpoints, slopes, offset = (as_floating(each) for each in (x, breakpoints, slopes, offset))
    return slopes[0] * x + offset + relu(x[..., None] - breakpoints) @ slopes.diff()


@shown
@dataclass(frozen=True, eq=False)
class PiecewiseLinear:
    """The continuous f with f(x) = lambda_l x + c_l for t_{l-1} <= x <= t_l, without bound on the left of t_0 and the
    right of t_p.

    Only c_0 is free; the other offsets follow, for neighbours meet: c_l = c_{l-1} + (lambda_{l-1} - lambda_l) t_{l-1}.
    Without breakpoints it is the affine lambda_0 x + c_0. This is the fast form of `piecewise_linear_definition`: it
    finds the piece by bisection.

    >>> tent = PiecewiseLinear(torch.tensor([0.0, 0.5, 1.0]), torch.tensor([0.0, 2.0, -2.0, 0.0]), torch.tensor(0.0))
    >>> tent(torch.tensor([-1.0, 0.25, 0.5, 0.75, 2.0])).tolist()
    [0.0, 0.5, 1.0, 0.5, 0.0]

    Notes: D1.1-2.
    """

    breakpoints: Float[Tensor, "breakpoints"]
    slopes: Float[Tensor, "breakpoints+1"]
    offset: Float[Tensor, ""]  # the first piece at 0

    def __post_init__(self):
        check_shapes("b, s, ()", breakpoints=self.breakpoints, slopes=self.slopes, offset=self.offset)
        for name in ("breakpoints", "slopes", "offset"):
            check_floating(getattr(self, name), name)
        if len(self.slopes) != len(self.breakpoints) + 1:
            got = f"{len(self.slopes)} for {len(self.breakpoints)}"
            raise UserError(
                f"expected one slope more than breakpoints, got {got}; give a slope for each piece, the two outer "
                "ones too"
            )
        if not all(bool(each.isfinite().all()) for each in (self.breakpoints, self.slopes, self.offset)):
            raise UserError(
                "expected finite breakpoints, slopes and offset, got inf or NaN; the outer pieces need no breakpoint"
            )
        steps = self.breakpoints.diff() > 0
        if not steps.all():
            at = int((~steps).int().argmax())
            left, right = self.breakpoints[at : at + 2].tolist()
            raise UserError(
                f"expected increasing breakpoints, got {left:.6g} before {right:.6g} at index {at}; "
                "sort them, without repeats"
            )

    @property
    def num_pieces(self) -> int:
        return len(self.slopes)

    @property
    def jumps(self) -> Float[Tensor, "breakpoints"]:
        """lambda_l - lambda_{l-1}, by how much the slope changes at each breakpoint."""
        return self.slopes.diff()

    @property
    def offsets(self) -> Float[Tensor, "pieces"]:
        """c_0 ... c_{p+1}, the value of each piece's line at 0."""
        return torch.cat([self.offset[None], self.offset - (self.jumps * self.breakpoints).cumsum(0)])

    @property
    def values(self) -> Float[Tensor, "breakpoints"]:
        """f(t_0) ... f(t_p)."""
        start = self.slopes[:1] * self.breakpoints[:1] + self.offset
        return torch.cat([start, start + (self.slopes[1:-1] * self.breakpoints.diff()).cumsum(0)])[
            : len(self.breakpoints)
        ]

    def __call__(self, x: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        if not len(self.breakpoints):
            return self.slopes[0] * x + self.offset
        piece = torch.searchsorted(self.breakpoints.detach(), x.detach().contiguous())
        # Counted from the piece's own end: far from 0 the line's value there is a large number that would cancel.
        anchor = (piece - 1).clamp(min=0)
        return self.values[anchor] + self.slopes[piece] * (x - self.breakpoints[anchor])


def interpolant(points: Real[Tensor, "n"], values: Real[Tensor, "n"]) -> PiecewiseLinear:
    """The function through (t_i, y_i) that is affine between neighbours and goes on beyond both ends as it was.

    Args:
        points: t_i, ascending.

    >>> through = interpolant(torch.tensor([0.0, 1.0, 3.0]), torch.tensor([1.0, 2.0, 0.0]))
    >>> through(torch.tensor([-1.0, 2.0, 4.0])).tolist()
    [0.0, 1.0, -1.0]
    """
    check_shapes("n, n", points=points, values=values)
    points, values = as_floating(points), as_floating(values)
    if len(points) < 2:
        raise UserError(f"expected at least two points to interpolate, got {len(points)}; give two or more")
    slopes = values.diff() / points.diff()
    # Both outermost points carry no breakpoint, so they are no breakpoints.
    return PiecewiseLinear(points[1:-1], slopes, values[0] - slopes[0] * points[0])


def to_relu_network(f: PiecewiseLinear) -> nn.Sequential:
    """f as a network of one hidden layer, exactly, with p + 2 units: one for each breakpoint and one for what lies left
    of t_0.

    lambda_1 ReLU(x - t_0) - lambda_0 ReLU(t_0 - x) + f(t_0) + sum_{l=2}^{p+1} (lambda_l - lambda_{l-1}) ReLU(x -
    t_{l-1})

    An affine f has no breakpoint; 0 serves it as one, with two units.
    """
    corners = f.breakpoints if len(f.breakpoints) else torch.zeros_like(f.slopes)
    start = f.values[0] if len(f.breakpoints) else f.offset
    right = torch.cat([f.slopes[1:2] if len(f.breakpoints) else f.slopes, f.jumps[1:]])
    directions = torch.cat([-torch.ones_like(corners[:1]), torch.ones_like(corners)])
    hidden = Affine(directions[:, None], torch.cat([corners[:1], -corners]))
    return relu_network([hidden, Affine(torch.cat([-f.slopes[:1], right])[None], start[None])])


def to_relu_network_with_identity(f: PiecewiseLinear) -> nn.Sequential:
    """f as a network of one hidden layer, exactly, with p + 3 units, two of which carry lambda_0 x = ReLU(lambda_0 x) -
    ReLU(-lambda_0 x).

    ReLU(lambda_0 x) - ReLU(-lambda_0 x) + c_0 + sum_{l=1}^{p+1} (lambda_l - lambda_{l-1}) ReLU(x - t_{l-1})
    """
    slope, one = f.slopes[:1], torch.ones_like(f.slopes[:1])
    weight, bias = (
        torch.cat([slope, -slope, torch.ones_like(f.breakpoints)]),
        torch.cat([0 * one, 0 * one, -f.breakpoints]),
    )
    return relu_network([Affine(weight[:, None], bias), Affine(torch.cat([one, -one, f.jumps])[None], f.offset[None])])
