"""How narrow a deep network may be: d + m units a layer are enough for m outputs of d inputs, and d units are not.

Enough: such a network carries its input along in d units and takes a maximum or minimum with one more affine function
in every layer. Not enough: with d units no value is enclosed, the highest one in a window stands on the window's
border, so that a bump is out of reach.

d inputs, m outputs, K affine functions
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float, Real
from torch import Tensor, nn

from quoin.errors import UserError, format_value
from quoin.expressivity.layers_of import affine_layers, relu_network
from quoin.expressivity.regions import pieces_on_segment, regions_in_window
from quoin.layers import Affine
from quoin.tensor import check_floating, check_same_dtype, check_shapes

__all__ = ["affine_distance", "interior_peak", "max_min_definition", "max_min_net", "narrow_convex_net", "narrow_net"]


_MOST_TANGENTS = 4096  # one layer for each


def max_min_definition(
    x: Float[Tensor, "n d"], weight: Float[Tensor, "K m d"], bias: Float[Tensor, "K m"], maximum: Bool[Tensor, "K-1 m"]
) -> Float[Tensor, "n m"]:
    """g_K of g_1 = l_1 and g_k = max(g_{k-1}, l_k) where `maximum` is true, else min(g_{k-1}, l_k), with l_k(x) = A_k x
    + b_k.

    Notes: D1.1-13.
    """
    check_shapes("n d, k m d, k m, j m", x=x, weight=weight, bias=bias, maximum=maximum)
    check_same_dtype(x, weight, bias)
    lines = torch.einsum("kmd,nd->knm", weight, x) + bias[:, None]
    g = lines[0]
    for line, upward in zip(lines[1:], maximum, strict=True):
        g = torch.where(upward, torch.maximum(g, line), torch.minimum(g, line))
    return g


def max_min_net(
    weight: Float[Tensor, "K m d"],
    bias: Float[Tensor, "K m"],
    maximum: Bool[Tensor, "K-1 m"],
    low: Real[Tensor, "d"] | Sequence[float],
) -> nn.Sequential:
    """`max_min_definition` as a network of K - 1 hidden layers of width d + m, exact wherever x >= low in every
    coordinate.

    A layer holds x - low and u = (s (g - l))_+ with s = 1 for a maximum and -1 for a minimum; then the next g is l + s
    u.

    Notes: D1.1-13, DE12.
    """
    check_shapes("k m d, k m, j m", weight=weight, bias=bias, maximum=maximum)
    check_floating(weight, "weight")
    if len(weight) < 2 or len(maximum) != len(weight) - 1:
        raise UserError(
            f"expected K >= 2 affine functions and K - 1 choices, got {len(weight)} and {len(maximum)}; pair them up"
        )
    out_features, in_features = weight.shape[1:]
    low = torch.as_tensor(low, dtype=weight.dtype)
    check_shapes("d, k m d", low=low, weight=weight)
    eye, still = torch.eye(in_features, dtype=weight.dtype), torch.zeros(in_features, out_features, dtype=weight.dtype)
    side = torch.where(maximum, 1.0, -1.0).to(weight.dtype)
    shifted = bias + weight @ low  # the same functions of x - low
    difference, fall = -side[..., None] * weight.diff(dim=0), -side * shifted.diff(dim=0)  # s (l_{k-1} - l_k)
    layers = [Affine(torch.cat([eye, difference[0]]), torch.cat([-low, fall[0] - difference[0] @ low]))]
    for k in range(1, len(side)):
        carried = torch.cat([eye, still], dim=1)
        folded = torch.cat([difference[k], torch.diag(side[k] * side[k - 1])], dim=1)
        layers.append(Affine(torch.cat([carried, folded]), torch.cat([torch.zeros_like(low), fall[k]])))
    return relu_network([*layers, Affine(torch.cat([weight[-1], torch.diag(side[-1])], dim=1), shifted[-1])])


def narrow_net(
    g: Callable[[Tensor], Tensor], eps: float, interval: tuple[float, float], *, lipschitz: float
) -> nn.Sequential:
    """A network of width 1 + m within eps of g: R -> R^m on the interval, m read from what g gives: (n,) to (n,) or (n,
    m).

    It goes up and down between g - eps and g + eps, twice as steeply as g ever is: each change of direction is one
    maximum or minimum with a line that leaves everything before it alone. |network - g| <= eps is certain if g obeys
    its Lipschitz constant.

    Args:
        lipschitz: K with |g_j(x) - g_j(y)| <= K |x - y| for each of the m outputs.

    Notes: D1.1-13, DE12.
    """
    left, right = interval
    if not (eps > 0 and lipschitz > 0 and left < right):
        raise UserError(
            f"expected eps > 0, lipschitz > 0 and left < right, got {eps}, {lipschitz} and {format_value(interval)}; "
            "change them"
        )

    def at(t: Tensor) -> Tensor:  # (n,) -> (n, m)
        return g(t).reshape(len(t), -1)

    def output(j: int) -> Callable[[float], float]:
        return lambda t: float(at(torch.tensor([t], dtype=torch.float64))[0, j])

    out_features = at(torch.tensor([left], dtype=torch.float64)).shape[1]
    band = eps * (1 - 1e-9)  # what rounding may take away is left to it
    strings = [_zigzag(output(j), band, left, right, 2 * lipschitz) for j in range(out_features)]
    length = max(2, *(len(each) for each in strings))
    # A maximum with the line that was last taken changes nothing, so short strings are repeated at their end.
    lines = torch.tensor(
        [[*each, *[each[-1]] * (length - len(each))] for each in strings], dtype=torch.float64
    )  # (m, K, 2)
    weight, bias = lines[..., 0].T[..., None], lines[..., 1].T
    return max_min_net(weight, bias, weight[1:, :, 0] > 0, [left])


def narrow_convex_net(
    g: Callable[[Tensor], Tensor], eps: float, box: Sequence[tuple[float, float]], *, curvature: float
) -> nn.Sequential:
    """A network of width d + 1 within eps of a convex or concave g: R^d -> R on a box, as the maximum (or minimum) of
    its tangents at the centres of cells.

    A tangent at c misses g by at most M |x - c|² / 2, so cells whose half diagonal is √(2 eps / M) are small enough:
    |network - g| <= eps is certain if g is convex or concave, and its second derivatives obey M.

    Args:
        g: Takes (n, d) to (n,), by operations that torch can differentiate.
        box: (low, high) of each input.
        curvature: M with |v·g''(x) v| <= M |v|² on the box.

    Notes: D1.1-13.
    """
    low, high = torch.tensor(box, dtype=torch.float64).T
    if not (eps > 0 and curvature > 0 and bool((low < high).all())):
        raise UserError(
            f"expected eps > 0, curvature > 0 and low < high, got {eps}, {curvature} and "
            f"{format_value(box)}; change them"
        )
    # (1 - 1e-9): what rounding may take away is left to it.
    side = 2 * math.sqrt(2 * eps * (1 - 1e-9) / (curvature * len(low)))
    counts = [max(1, math.ceil(width / side)) for width in (high - low).tolist()]
    if math.prod(counts) > _MOST_TANGENTS:
        raise UserError(
            f"expected at most {_MOST_TANGENTS} tangents, got {math.prod(counts)}; ask for a larger eps or a "
            "smaller box"
        )
    lines = [a + (b - a) * (torch.arange(n).double() + 0.5) / n for a, b, n in zip(low, high, counts)]
    centers = torch.cartesian_prod(*lines).reshape(-1, len(low)).requires_grad_()
    values = g(centers)
    (weight,) = torch.autograd.grad(values.sum(), centers)
    centers, values = centers.detach(), values.detach()
    bias = values - (weight * centers).sum(dim=1)
    above = centers @ weight.T + bias - values[:, None]  # (n, n): tangents less g, at every centre
    slack = 1e-9 * (1 + float(values.abs().max()))
    if not (bool((above <= slack).all()) or bool((above >= -slack).all())):
        raise UserError("expected a convex or concave g, got tangents on both sides of it; see max_min_net for others")
    weight, bias = (torch.cat([each, each])[: max(2, len(each))] for each in (weight, bias))  # K >= 2
    maximum = torch.full((len(weight) - 1, 1), bool((above <= slack).all()))
    return max_min_net(weight[:, None], bias[:, None], maximum, low)


def _zigzag(
    g: Callable[[float], float], eps: float, left: float, right: float, slope: float
) -> list[tuple[float, float]]:
    """The lines (slope, offset) that run up and down between g - eps and g + eps."""
    lines, t, value, steep = [], left, g(left), slope
    while True:
        lines.append((steep, value - steep * t))
        end = _leaves_band(g, lines[-1], eps, t, right)
        if end is None:
            return lines
        if end <= t or abs(g(end) - g(t)) > slope / 2 * (end - t) + 1e-9 * eps:
            raise UserError(
                f"expected |g(s) - g(t)| <= {slope / 2:g} |s - t|, got more between {t:g} and {end:g}; "
                "give a larger lipschitz"
            )
        value, t, steep = value + steep * (end - t), end, -steep


def _leaves_band(
    g: Callable[[float], float], line: tuple[float, float], eps: float, start: float, stop: float
) -> float | None:
    """The last point before the line is eps ahead of g, or None where that is beyond `stop`: being the steeper, it gets
    ahead once."""
    side = 1 if line[0] > 0 else -1

    def inside(s: float) -> bool:
        return side * (line[0] * s + line[1] - g(s)) < eps

    if inside(stop):
        return None
    for _ in range(48):
        middle = (start + stop) / 2
        start, stop = (middle, stop) if inside(middle) else (start, middle)
    return start


def interior_peak(net: nn.Module, low: Sequence[float], high: Sequence[float]) -> float:
    """How far the highest value of a network in a window rises above all values on the window's border: max_K f -
    max_dK f.

    For one or two inputs, exactly: the highest value stands at a corner of a region. Zero for every network whose
    hidden layers are no wider than its input; so it stays at least half the enclosed height of a target away from it,
    somewhere.

    Args:
        low: Lower left corner of the window, a number for each input.
        high: Its upper right corner.

    Notes: D1.1-13.
    """
    in_features, out_features = affine_layers(net)[0].weight.shape[1], affine_layers(net)[-1].weight.shape[0]
    if in_features not in (1, 2) or out_features != 1:
        raise UserError(
            f"expected a network of one or two inputs and one output, got {in_features} and {out_features}; choose "
            "an output"
        )
    if in_features == 1:
        values = pieces_on_segment(net, low, high).values[:, 0]
        return float(values.max() - values[[0, -1]].max())
    regions = regions_in_window(net, low, high)
    corners = torch.from_numpy(regions.mesh.points[regions.mesh.corners])  # (P, K, 2)
    values = (corners @ regions.maps.weight.mT + regions.maps.bias[:, None])[..., 0].numpy()
    border = ((corners == torch.tensor(low)) | (corners == torch.tensor(high))).any(dim=2).numpy()
    return float(values.max() - np.where(border, values, -np.inf).max())


def affine_distance(values: Float[Tensor, "n m"], dim: int) -> float:
    """The root mean square distance of points from the affine space of `dim` dimensions that is nearest to them.

    The outputs of a network lie in such a space, of the dimension of its last hidden layer: no training takes it closer
    than this.

    Notes: DE12.
    """
    centered = values - values.mean(dim=0)
    return float(torch.linalg.svdvals(centered)[dim:].square().sum().div(len(values)).sqrt())
