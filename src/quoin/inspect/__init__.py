"""Look inside a model: intermediates, feature and attention maps, kernels, saliency, receptive fields, dead units, gradient norms."""

from typing import TYPE_CHECKING

from quoin.lazy import export_lazily

if TYPE_CHECKING:
    from quoin.inspect.activity import DeadUnits, Sparsity, activation_sparsity, dead_units
    from quoin.inspect.attention_maps import (
        AttentionMaps,
        attention_distance,
        attention_entropy,
        attention_maps,
        draw_attention_maps,
        has_attention,
        watching_attention,
    )
    from quoin.inspect.confidence import confidence_along_ray
    from quoin.inspect.feature_maps import FeatureMaps, draw_feature_maps, feature_maps
    from quoin.inspect.intermediates import Intermediate, intermediates
    from quoin.inspect.jacobian import jacobian_rank
    from quoin.inspect.kernels import Kernels, draw_kernels, kernels, pixel_weights
    from quoin.inspect.patches import Patch, crop_patches, draw_patches, strongest_patches
    from quoin.inspect.receptive_field import ReceptiveField, ReceptiveFields, receptive_fields
    from quoin.inspect.saliency import gradient_times_input, input_gradient, saliency, smooth_gradient
    from quoin.inspect.stability import StabilityReport, StabilityRow, gradient_norms, stability_report
    from quoin.inspect.summary import LayerSummary, layer_summary
    from quoin.inspect.through_time import GradientThroughTime, contraction_bound, draw_gradients_through_time, gradients_through_time
    from quoin.inspect.topology import num_components

__all__ = [
    "AttentionMaps",
    "DeadUnits",
    "FeatureMaps",
    "GradientThroughTime",
    "Intermediate",
    "Kernels",
    "LayerSummary",
    "Patch",
    "ReceptiveField",
    "ReceptiveFields",
    "Sparsity",
    "StabilityReport",
    "StabilityRow",
    "activation_sparsity",
    "attention_distance",
    "attention_entropy",
    "attention_maps",
    "confidence_along_ray",
    "contraction_bound",
    "crop_patches",
    "dead_units",
    "draw_attention_maps",
    "draw_feature_maps",
    "draw_gradients_through_time",
    "draw_kernels",
    "draw_patches",
    "feature_maps",
    "gradient_norms",
    "gradient_times_input",
    "gradients_through_time",
    "has_attention",
    "input_gradient",
    "intermediates",
    "jacobian_rank",
    "kernels",
    "layer_summary",
    "num_components",
    "pixel_weights",
    "receptive_fields",
    "saliency",
    "smooth_gradient",
    "stability_report",
    "strongest_patches",
    "watching_attention",
]

export_lazily(__name__)
