"""Look inside a model: every intermediate, sparsity and dead units, confidence along rays, gradient norms, stability by layer."""

from quoin.inspect.activity import DeadUnits, Sparsity, activation_sparsity, dead_units
from quoin.inspect.confidence import confidence_along_ray
from quoin.inspect.intermediates import Intermediate, intermediates
from quoin.inspect.jacobian import jacobian_rank
from quoin.inspect.stability import StabilityReport, StabilityRow, gradient_norms, stability_report
from quoin.inspect.topology import num_components

__all__ = [
    "DeadUnits",
    "Intermediate",
    "Sparsity",
    "StabilityReport",
    "StabilityRow",
    "activation_sparsity",
    "confidence_along_ray",
    "dead_units",
    "gradient_norms",
    "intermediates",
    "jacobian_rank",
    "num_components",
    "stability_report",
]
