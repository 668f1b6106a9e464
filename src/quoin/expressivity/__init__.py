"""What ReLU networks can represent: exact piecewise linear networks, linear regions, depth, approximation."""

from typing import TYPE_CHECKING

from quoin.lazy import export_lazily

if TYPE_CHECKING:
    from quoin.expressivity.approximate import Approximation, approximate_1d
    from quoin.expressivity.break_lines import BreakLine, break_lines, gradient_jump, max_zero_definition, max_zero_net
    from quoin.expressivity.depth import (
        folding_net,
        l1_distance,
        max_regions,
        min_units,
        num_folding_regions,
        partial_sawtooth_net,
        region_growth_order,
        sawtooth_definition,
        sawtooth_l1_lower_bound,
        sawtooth_net,
        zigzag_net,
    )
    from quoin.expressivity.extract import from_relu_network
    from quoin.expressivity.layers_of import affine_layers, relu_network
    from quoin.expressivity.many_inputs import (
        ExponentialSum,
        ManyInputApproximation,
        approximate_nd,
        exponential_sum_definition,
        fit_exponentials,
        interpolated_exponential,
        sup_error_in_span,
    )
    from quoin.expressivity.mesh import Mesh
    from quoin.expressivity.modulus import (
        ContinuityModulus,
        Curvature,
        Lipschitz,
        Regularity,
        check_regularity,
        modulus_of_continuity,
        modulus_of_continuity_definition,
    )
    from quoin.expressivity.piecewise import (
        PiecewiseLinear,
        clipped_ramp,
        interpolant,
        piecewise_linear_definition,
        relu_form_definition,
        to_relu_network,
        to_relu_network_with_identity,
    )
    from quoin.expressivity.regions import (
        Pieces,
        Regions,
        activation_pattern,
        piece_maps,
        pieces_on_segment,
        regions_in_window,
    )
    from quoin.expressivity.shallow import shallow_definition
    from quoin.expressivity.stack import stack_networks
    from quoin.expressivity.width import (
        affine_distance,
        interior_peak,
        max_min_definition,
        max_min_net,
        narrow_convex_net,
        narrow_net,
    )

__all__ = [
    "Approximation",
    "BreakLine",
    "ContinuityModulus",
    "Curvature",
    "ExponentialSum",
    "Lipschitz",
    "ManyInputApproximation",
    "Mesh",
    "Pieces",
    "PiecewiseLinear",
    "Regions",
    "Regularity",
    "activation_pattern",
    "affine_distance",
    "affine_layers",
    "approximate_1d",
    "approximate_nd",
    "break_lines",
    "check_regularity",
    "clipped_ramp",
    "exponential_sum_definition",
    "fit_exponentials",
    "folding_net",
    "from_relu_network",
    "gradient_jump",
    "interior_peak",
    "interpolant",
    "interpolated_exponential",
    "l1_distance",
    "max_min_definition",
    "max_min_net",
    "max_regions",
    "max_zero_definition",
    "max_zero_net",
    "min_units",
    "modulus_of_continuity",
    "modulus_of_continuity_definition",
    "narrow_convex_net",
    "narrow_net",
    "num_folding_regions",
    "partial_sawtooth_net",
    "piece_maps",
    "pieces_on_segment",
    "piecewise_linear_definition",
    "region_growth_order",
    "regions_in_window",
    "relu_form_definition",
    "relu_network",
    "sawtooth_definition",
    "sawtooth_l1_lower_bound",
    "sawtooth_net",
    "shallow_definition",
    "stack_networks",
    "sup_error_in_span",
    "to_relu_network",
    "to_relu_network_with_identity",
    "zigzag_net",
]

export_lazily(__name__)
