"""What ReLU networks can represent: exact piecewise linear networks, linear regions, depth, approximation."""

from typing import TYPE_CHECKING

from quoin.lazy import export_lazily

if TYPE_CHECKING:
    from quoin.expressivity.approximate import Approximation, approximate
    from quoin.expressivity.depth import (
        fewest_units,
        folding_net,
        folding_regions,
        follow_then_rest,
        mean_distance,
        most_regions,
        region_order,
        sawtooth_definition,
        sawtooth_gap,
        sawtooth_net,
        zigzag_net,
    )
    from quoin.expressivity.extract import from_relu_network
    from quoin.expressivity.kinks import KinkLine, gradient_jump, kink_lines, max_zero_definition, max_zero_net
    from quoin.expressivity.layers_of import affine_layers, relu_chain
    from quoin.expressivity.many_inputs import (
        ExponentialSum,
        ManyInputApproximation,
        approximate_many,
        exponential_sum_definition,
        fit_exponentials,
        interpolated_exponential,
        sup_error_in_span,
    )
    from quoin.expressivity.mesh import Mesh
    from quoin.expressivity.modulus import (
        Curvature,
        Lipschitz,
        Modulus,
        Promise,
        check_promise,
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
    from quoin.expressivity.regions import Pieces, Regions, activation_pattern, piece_maps, pieces_on_segment, regions_in_window
    from quoin.expressivity.shallow import shallow_definition
    from quoin.expressivity.stack import stack
    from quoin.expressivity.width import affine_distance, enclosed_height, max_min_definition, max_min_net, narrow_net

__all__ = [
    "Approximation",
    "Curvature",
    "ExponentialSum",
    "KinkLine",
    "Lipschitz",
    "ManyInputApproximation",
    "Mesh",
    "Modulus",
    "Pieces",
    "PiecewiseLinear",
    "Promise",
    "Regions",
    "activation_pattern",
    "affine_distance",
    "affine_layers",
    "approximate",
    "approximate_many",
    "check_promise",
    "clipped_ramp",
    "enclosed_height",
    "exponential_sum_definition",
    "fewest_units",
    "fit_exponentials",
    "folding_net",
    "folding_regions",
    "follow_then_rest",
    "from_relu_network",
    "gradient_jump",
    "interpolant",
    "interpolated_exponential",
    "kink_lines",
    "max_min_definition",
    "max_min_net",
    "max_zero_definition",
    "max_zero_net",
    "mean_distance",
    "modulus_of_continuity",
    "modulus_of_continuity_definition",
    "most_regions",
    "narrow_net",
    "piece_maps",
    "pieces_on_segment",
    "piecewise_linear_definition",
    "region_order",
    "regions_in_window",
    "relu_chain",
    "relu_form_definition",
    "sawtooth_definition",
    "sawtooth_gap",
    "sawtooth_net",
    "shallow_definition",
    "stack",
    "sup_error_in_span",
    "to_relu_network",
    "to_relu_network_with_identity",
    "zigzag_net",
]

export_lazily(__name__)
