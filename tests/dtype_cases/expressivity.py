"""Cases for `quoin.expressivity`: see tests/dtypes.py."""

import torch

from quoin.expressivity import (
    ContinuityModulus,
    Curvature,
    ExponentialSum,
    Lipschitz,
    PiecewiseLinear,
    activation_pattern,
    affine_distance,
    affine_layers,
    break_lines,
    check_regularity,
    clipped_ramp,
    exponential_sum_definition,
    fit_exponentials,
    from_relu_network,
    gradient_jump,
    interior_peak,
    interpolant,
    l1_distance,
    max_min_definition,
    max_min_net,
    max_zero_definition,
    modulus_of_continuity,
    modulus_of_continuity_definition,
    piece_maps,
    pieces_on_segment,
    piecewise_linear_definition,
    regions_in_window,
    relu_form_definition,
    relu_network,
    sawtooth_definition,
    shallow_definition,
    stack_networks,
    sup_error_in_span,
    to_relu_network,
    to_relu_network_with_identity,
)
from quoin.layers import Affine

# Breakpoints that stay in order as int8 and leave it when taken apart; truth values have two values only, so that these
# are refused.
BREAKS, SLOPES = [1, 20, 100], [3, 0, 100, 2]
POINTS = [0, 3, 50, 120]
PLANE, HEIGHTS = [[0, 100], [3, 2], [90, 1], [7, 50]], [3, 100, 20, 0]
LINES, UPWARD = [[[1, 2]], [[3, 100]]], torch.tensor([[True]])


def f64(numbers):
    return torch.tensor(numbers, dtype=torch.float64)


def _function(x):
    return PiecewiseLinear(x(BREAKS), x(SLOPES), x(7))


def _layers(x):
    return [Affine(x([[1, 2], [3, 100]]), x([2, 1])), Affine(x([[100, 2]]), x([3]))]


def _net(x):
    return relu_network(_layers(x))


def _line_net(x):
    return relu_network([Affine(x([[1], [3]]), x([0, 1])), Affine(x([[100, 2]]), x([3]))])


def _of_function(name, call):
    """Everything in one dtype, and the points alone beside a function in float64."""
    return {
        name: lambda x: call(x, x(BREAKS), x(SLOPES), x(7)),
        f"{name} points": lambda x: call(x, f64(BREAKS), f64(SLOPES), f64(7)),
    }


def _of_net(name, call):
    """A network whose weights are numbers of the dtype."""
    return {name: lambda x: call(_net(x))}


CASES = {
    "clipped_ramp": lambda x: clipped_ramp(x(POINTS), x(20), x(100)),
    "clipped_ramp points": lambda x: clipped_ramp(x(POINTS), f64(20), f64(100)),
    **_of_function("piecewise_linear_definition", lambda x, b, s, c: piecewise_linear_definition(x(POINTS), b, s, c)),
    **_of_function("relu_form_definition", lambda x, b, s, c: relu_form_definition(x(POINTS), b, s, c)),
    **_of_function("PiecewiseLinear", lambda x, b, s, c: PiecewiseLinear(b, s, c)(x(POINTS))),
    "PiecewiseLinear affine": lambda x: PiecewiseLinear(x([]), x([100]), x(7))(x(POINTS)),
    "PiecewiseLinear.offsets": lambda x: [_function(x).offsets, _function(x).values, _function(x).jumps],
    "interpolant": lambda x: interpolant(x(BREAKS), x([3, 200, 0]))(x(POINTS)),
    "interpolant points": lambda x: interpolant(f64(BREAKS), f64([3, 200, 0]))(x(POINTS)),
    "to_relu_network": lambda x: to_relu_network(_function(x))(x([[0], [3], [50]])),
    "to_relu_network_with_identity": lambda x: to_relu_network_with_identity(_function(x))(x([[0], [3], [50]])),
    "from_relu_network": lambda x: from_relu_network(_line_net(x))(f64(POINTS)),
    "shallow_definition": lambda x: shallow_definition(x(PLANE), *_layers(x)),
    "shallow_definition points": lambda x: shallow_definition(x(PLANE), *_layers(f64)),
    "relu_network": lambda x: _net(x)(x(PLANE)),
    "affine_layers": lambda x: affine_layers(_net(x)),
    "stack_networks": lambda x: stack_networks([_net(x), _net(x)])(x(PLANE)),
    **_of_net("activation_pattern", lambda net: activation_pattern(net, f64(PLANE).to(net[0].weight.dtype))),
    "activation_pattern points": lambda x: activation_pattern(_net(f64), x(PLANE)),
    "piece_maps": lambda x: piece_maps(_layers(x), torch.tensor([[True, False], [True, True]])),
    "piece_maps patterns": lambda x: piece_maps(_layers(f64), x([[1, 0], [1, 1]])),
    **_of_net("pieces_on_segment", lambda net: pieces_on_segment(net, (-1.0, -1.0), (1.0, 2.0)).values),
    "pieces_on_segment ends": lambda x: pieces_on_segment(_net(f64), x([0, 0]), x([3, 100])).values,
    **_of_net("regions_in_window", lambda net: len(regions_in_window(net))),
    "regions_in_window corners": lambda x: len(regions_in_window(_net(f64), x([0, 0]), x([3, 100]))),
    **_of_net("break_lines", lambda net: [line.offset for line in break_lines(regions_in_window(net))]),
    **_of_net("interior_peak", lambda net: interior_peak(net, (-1.0, -1.0), (1.0, 1.0))),
    "l1_distance": lambda x: l1_distance(_line_net(x), _line_net(f64)),
    "exponential_sum_definition": lambda x: exponential_sum_definition(
        x([[0, 1], [2, 1]]), x([[1, 2], [0, 1]]), x([100, 3])
    ),
    "ExponentialSum": lambda x: ExponentialSum(x([[1, 2], [0, 1]]), x([100, 3]), x([1, 2]))(x([[0, 1], [2, 1]])),
    "ExponentialSum points": lambda x: ExponentialSum(f64([[1, 2], [0, 1]]), f64([100, 3]), f64([1, 2]))(
        x([[0, 1], [2, 1]])
    ),
    "fit_exponentials": lambda x: (
        fit_exponentials(x([[0], [1], [2]]), x([3, 100, 20]), x([[0], [1]]), x([1])).coefficients
    ),
    "fit_exponentials center": lambda x: (
        fit_exponentials(f64([[0], [1], [2]]), f64([3, 100, 20]), f64([[0], [1]]), x([1])).coefficients
    ),
    "sup_error_in_span": lambda x: sup_error_in_span(x([[1, 0], [1, 1], [1, 200]]), x([3, 100, 20])),
    "modulus_of_continuity": lambda x: modulus_of_continuity(
        lambda z: z.square(), tuple(x([0, 1]).tolist()), x([0, 1]).tolist()
    ),
    "modulus_of_continuity_definition": lambda x: modulus_of_continuity_definition(x(POINTS), x(HEIGHTS), 50.0),
    "check_regularity": lambda x: check_regularity(Lipschitz(300.0), x(POINTS), x(HEIGHTS)),
    "Lipschitz.violation": lambda x: len(Lipschitz(4.0).violation(x([0, 1, 2, 3]), x([3, 100, 20, 0]))) > 0,
    "ContinuityModulus.violation": lambda x: (
        len(ContinuityModulus(lambda distance: 98 * distance).violation(x([0, 1, 2, 3]), x([3, 100, 20, 0]))) > 0
    ),
    "Curvature.violation": lambda x: len(Curvature(4.0).violation(x([0, 1, 2, 3]), x([3, 67, 131, 67]))) > 0,
    "Curvature.violation kept": lambda x: len(Curvature(4.0).violation(x([0, 1, 2, 3]), x([0, 60, 120, 180]))) > 0,
    "max_min_definition": lambda x: max_min_definition(x(PLANE), x(LINES), x([[2], [1]]), UPWARD),
    "max_min_definition points": lambda x: max_min_definition(x(PLANE), f64(LINES), f64([[2], [1]]), UPWARD),
    "max_min_net": lambda x: max_min_net(x(LINES), x([[2], [1]]), UPWARD, [0.0, 0.0])(x(PLANE)),
    "max_min_net low": lambda x: max_min_net(x(LINES), x([[2], [1]]), UPWARD, [-2.5, -2.5])(x(PLANE)),
    "max_zero_definition": lambda x: max_zero_definition(x(PLANE)),
    "gradient_jump": lambda x: gradient_jump(max_zero_definition, x([[0, 3], [3, 0]]), x([1, 0]), 0.5),
    "affine_distance": lambda x: affine_distance(x(PLANE), 1),
    "sawtooth_definition": lambda x: sawtooth_definition(x([0, 1, 0.25, 0.75]), 2),
}

# name -> how many roundings it may lose, where the mathematics makes it worse than dtypes.ROUNDINGS
ROUNDINGS: dict[str, float] = {}

RESULT = "holds the answer of a function that has a case"
PLAIN = "takes plain Python numbers"
FLOATS = "takes a function, which it asks at float64 points of its own"

# Public names that take no numbers in tensors, each with its reason.
NO_NUMBERS: dict[str, str] = {
    "Approximation": RESULT,
    "BreakLine": RESULT,
    "ManyInputApproximation": RESULT,
    "Pieces": RESULT,
    "Regions": RESULT,
    "Mesh": "polygons in numpy's float64, made by regions_in_window",
    "Regularity": "abstract: each promise has its cases",
    "approximate_1d": FLOATS,
    "approximate_nd": FLOATS,
    "narrow_net": FLOATS,
    "narrow_convex_net": FLOATS,
    "min_units": PLAIN,
    "folding_net": PLAIN,
    "num_folding_regions": PLAIN,
    "partial_sawtooth_net": PLAIN,
    "interpolated_exponential": PLAIN,
    "max_zero_net": PLAIN,
    "max_regions": PLAIN,
    "region_growth_order": PLAIN,
    "sawtooth_l1_lower_bound": PLAIN,
    "sawtooth_net": PLAIN,
    "zigzag_net": PLAIN,
}
