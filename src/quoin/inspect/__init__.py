"""Look inside a model: intermediate outputs, feature and attention maps, kernels, saliency, receptive fields, dead
units, gradient norms."""

from typing import TYPE_CHECKING

from quoin.lazy import export_lazily

if TYPE_CHECKING:
    from quoin.inspect.activity import DeadUnits, Sparsity, activation_sparsity, dead_units
    from quoin.inspect.attention_maps import (
        AttentionMaps,
        attention_distance,
        attention_entropy,
        attention_maps,
        attentions_without_weights,
        capture_attention,
        has_attention,
        plot_attention_maps,
    )
    from quoin.inspect.confidence import confidence_along_ray
    from quoin.inspect.feature_maps import FeatureMaps, feature_maps, plot_feature_maps
    from quoin.inspect.intermediates import Intermediate, intermediates
    from quoin.inspect.jacobian import jacobian_rank
    from quoin.inspect.kernels import Kernels, kernels, pixel_weights, plot_kernels
    from quoin.inspect.patches import Patch, crop_patches, plot_patches, top_activating_patches
    from quoin.inspect.receptive_field import ReceptiveField, ReceptiveFields, receptive_fields
    from quoin.inspect.saliency import input_gradient, input_x_gradient, saliency, smoothgrad
    from quoin.inspect.stability import StabilityReport, StabilityRow, gradient_norms, stability_report
    from quoin.inspect.summary import LayerSummary, layer_summary
    from quoin.inspect.through_time import (
        GradientThroughTime,
        contraction_bound,
        gradients_through_time,
        plot_gradients_through_time,
    )
    from quoin.inspect.topology import num_connected_components

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
    "attentions_without_weights",
    "capture_attention",
    "confidence_along_ray",
    "contraction_bound",
    "crop_patches",
    "dead_units",
    "feature_maps",
    "gradient_norms",
    "gradients_through_time",
    "has_attention",
    "input_gradient",
    "input_x_gradient",
    "intermediates",
    "jacobian_rank",
    "kernels",
    "layer_summary",
    "num_connected_components",
    "pixel_weights",
    "plot_attention_maps",
    "plot_feature_maps",
    "plot_gradients_through_time",
    "plot_kernels",
    "plot_patches",
    "receptive_fields",
    "saliency",
    "smoothgrad",
    "stability_report",
    "top_activating_patches",
]

export_lazily(__name__)
