"""A number to watch: accuracy, calibration, perplexity, BLEU, sample quality, risk."""

from typing import TYPE_CHECKING

from quoin.lazy import export_lazily

if TYPE_CHECKING:
    from quoin.metrics.calibration import (
        CalibrationCurve,
        Decision,
        calibration_curve,
        decide,
        expected_calibration_error,
        predictive_entropy,
    )
    from quoin.metrics.classification import accuracy, confusion_matrix, zero_one_loss
    from quoin.metrics.generalization import (
        Gap,
        Population,
        RiskEstimate,
        estimated_risk,
        expected_risk,
        generalisation_gap,
        population_of_density,
        sampled_risk,
    )
    from quoin.metrics.language import bits_per_character, perplexity
    from quoin.metrics.mode_coverage import ModeCoverage, mode_coverage, nearest_modes
    from quoin.metrics.ranking import RocCurve, roc_auc, roc_auc_definition, roc_curve
    from quoin.metrics.regression import r_squared, root_mean_squared_error
    from quoin.metrics.risk import empirical_risk, held_out_loss
    from quoin.metrics.sample_quality import (
        DensityAndCoverage,
        SampleQuality,
        bits_per_dimension,
        density_and_coverage,
        density_and_coverage_definition,
        nearest_distances,
        nearest_distances_definition,
        nearness,
        sample_quality,
    )
    from quoin.metrics.sliding_window import sliding_token_nll
    from quoin.metrics.translation import bleu, exact_match
    from quoin.metrics.validation import CrossValidation, EarlyStop, LearningCurve, cross_validate, early_stop, learning_curve

__all__ = [
    "CalibrationCurve",
    "CrossValidation",
    "Decision",
    "DensityAndCoverage",
    "EarlyStop",
    "Gap",
    "LearningCurve",
    "ModeCoverage",
    "Population",
    "RiskEstimate",
    "RocCurve",
    "SampleQuality",
    "accuracy",
    "bits_per_character",
    "bits_per_dimension",
    "bleu",
    "calibration_curve",
    "confusion_matrix",
    "cross_validate",
    "decide",
    "density_and_coverage",
    "density_and_coverage_definition",
    "early_stop",
    "empirical_risk",
    "estimated_risk",
    "exact_match",
    "expected_calibration_error",
    "expected_risk",
    "generalisation_gap",
    "held_out_loss",
    "learning_curve",
    "mode_coverage",
    "nearest_distances",
    "nearest_distances_definition",
    "nearest_modes",
    "nearness",
    "perplexity",
    "population_of_density",
    "predictive_entropy",
    "r_squared",
    "roc_auc",
    "roc_auc_definition",
    "roc_curve",
    "root_mean_squared_error",
    "sample_quality",
    "sampled_risk",
    "sliding_token_nll",
    "zero_one_loss",
]

export_lazily(__name__)
