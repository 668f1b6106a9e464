"""Where a piecewise linear function of the plane changes slope, and why max(0, x, y) needs a second hidden layer.

The gradient of a shallow network sum_j v_j (w_j . x + c_j)_+ jumps by the same vector at every point of a line w_j . x
+ c_j = 0, from one end of the plane to the other. The breakpoints of max(0, x, y) are three rays from the origin, and a
ray is no line.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float, Real
from torch import Tensor, nn

from quoin.display import shown
from quoin.errors import UserError
from quoin.expressivity.layers_of import relu_network
from quoin.expressivity.regions import SAME, Regions
from quoin.layers import Affine
from quoin.tensor import check_shapes

__all__ = ["BreakLine", "break_lines", "gradient_jump", "max_zero_definition", "max_zero_net"]

_SAME_LINE = 1e-6  # of normals, and of offsets relative to the window


def max_zero_definition(x: Real[Tensor, "*batch 2"]) -> Real[Tensor, "*batch"]:
    """max(0, x_1, x_2).

    Notes: D1.1-5.
    """
    return x.amax(dim=-1).clamp(min=0)


def max_zero_net() -> nn.Sequential:
    """max(0, x, y) = (y_+ - (-y)_+ + (x - y)_+)_+: two hidden layers, of three units and of one.

    Notes: D1.1-5.
    """
    first = torch.tensor([[0.0, 1.0], [0.0, -1.0], [1.0, -1.0]], dtype=torch.float64)
    second, one = torch.tensor([[1.0, -1.0, 1.0]], dtype=torch.float64), torch.ones(1, 1, dtype=torch.float64)
    return relu_network([Affine(each, torch.zeros(len(each), dtype=torch.float64)) for each in (first, second, one)])


def gradient_jump(
    f: Callable[[Tensor], Tensor], points: Float[Tensor, "n d"], normal: Float[Tensor, "d"], step: float
) -> Float[Tensor, "n d"]:
    """grad f(p + step nu) - grad f(p - step nu) at each point p: what the gradient jumps by across the plane of normal
    nu.

    Args:
        normal: nu, of length one if `step` is to be a distance.
        step: Small enough that nothing else changes the gradient between p and p ± step nu.

    Notes: D1.1-5.
    """
    check_shapes("n d, d", points=points, normal=normal)

    def gradient(x: Tensor) -> Tensor:
        x = x.detach().requires_grad_()
        return torch.autograd.grad(f(x).sum(), x)[0]

    return gradient(points + step * normal) - gradient(points - step * normal)


@shown
class BreakLine(NamedTuple):
    """A line nu . x = offset on part of which the gradient jumps."""

    normal: Float[Tensor, "2"]  # of length one
    offset: float
    fraction: float  # the fraction of the line's way through the window on which the gradient jumps
    relative_variation: float  # how much the jump varies along it, relative to its size


def break_lines(regions: Regions) -> list[BreakLine]:
    """The lines on which a network of the plane changes slope, each with the fraction of it where it does.

    A network with one hidden layer gives fraction = 1 and relative_variation = 0 on all of them;
    one that does not is no shallow network's function.

    Args:
        regions: Those of a network with one output, as `regions_in_window` gives them.

    Notes: D1.1-5.
    """
    if regions.maps.weight.shape[1] != 1:
        raise UserError(f"expected a network of one output, got {regions.maps.weight.shape[1]}; choose one")
    ends, sides = regions.mesh.shared_edges()
    gradient, points = regions.maps.weight[:, 0], torch.from_numpy(regions.mesh.points)
    jump = gradient[sides[:, 1]] - gradient[sides[:, 0]]
    bent = (jump.norm(dim=1) > SAME * float(gradient.abs().max())).numpy()
    ends, jump = points[ends[bent]], jump[bent]
    inside = points[regions.mesh.corners[sides[bent][:, 0]]].mean(dim=1)  # of the polygon that the jump leaves
    # By continuity the jump is along the normal, which is then exact even where the edge is short.
    normal = jump / jump.norm(dim=1, keepdim=True)
    middle, length = ends.mean(dim=1), (ends[:, 1] - ends[:, 0]).norm(dim=1)
    upward = (normal[:, 0] > _SAME_LINE) | ((normal[:, 0].abs() <= _SAME_LINE) & (normal[:, 1] > 0))
    away = ((middle - inside) * normal).sum(dim=1) > 0
    size = torch.where(away, 1.0, -1.0) * jump.norm(dim=1)  # positive where the slope increases, from either side
    normal = torch.where(upward[:, None], normal, -normal)
    offset = (normal * middle).sum(dim=1)
    low, high = points.amin(dim=0), points.amax(dim=0)
    extent, left, found = float((high - low).norm()), torch.ones(len(jump), dtype=torch.bool), []
    while left.any():
        index = int(left.nonzero()[0])
        near = (normal - normal[index]).abs().amax(dim=1) <= _SAME_LINE
        same = left & near & ((offset - offset[index]).abs() <= _SAME_LINE * extent)
        left &= ~same
        fraction = float(length[same].sum()) / _chord(normal[index], float(offset[index]), low, high)
        relative_variation = float((size[same] - size[index]).abs().max() / size[same].abs().max())
        found.append(BreakLine(normal[index], float(offset[index]), fraction, relative_variation))
    return found


def _chord(normal: Tensor, offset: float, low: Tensor, high: Tensor) -> float:
    """The length of the line normal . x = offset inside the window."""
    foot, along = offset * normal, torch.stack([-normal[1], normal[0]])
    moves = along.abs() > 1e-12
    ways = torch.stack([(low - foot)[moves] / along[moves], (high - foot)[moves] / along[moves]])
    return float(ways.amax(dim=0).min() - ways.amin(dim=0).max())
