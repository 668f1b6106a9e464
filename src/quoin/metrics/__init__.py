"""Metrics: accuracy, calibration, perplexity, BLEU, sample quality, risk."""

from typing import TYPE_CHECKING

from quoin.lazy import export_lazily

if TYPE_CHECKING:
    from quoin.metrics.calibration import (
        CalibrationCurve,
        Decision,
        calibration_curve,
        expected_calibration_error,
        minimize_expected_cost,
        predictive_entropy,
    )
    from quoin.metrics.classification import (
        PrecisionRecallFscore,
        accuracy,
        balanced_accuracy,
        confusion_matrix,
        precision_recall_fscore_support,
        zero_one_loss,
    )
    from quoin.metrics.generalization import (
        GeneralizationGap,
        Population,
        RiskEstimate,
        estimate_risk,
        expected_risk,
        generalization_gap,
        monte_carlo_risk,
        population_from_density,
    )
    from quoin.metrics.language import bits_per_character, perplexity
    from quoin.metrics.mode_coverage import ModeCoverage, mode_coverage, nearest_modes
    from quoin.metrics.ranking import (
        OneVsRestAuc,
        RocCurve,
        balanced_accuracy_threshold,
        f1_threshold,
        roc_auc,
        roc_auc_definition,
        roc_auc_ovr,
        roc_curve,
    )
    from quoin.metrics.regression import r2_score, root_mean_squared_error
    from quoin.metrics.risk import empirical_risk, held_out_loss
    from quoin.metrics.sample_quality import (
        DensityAndCoverage,
        SampleQuality,
        bits_per_dimension,
        density_and_coverage,
        density_and_coverage_definition,
        nearest_distances,
        nearest_distances_definition,
        nn_distance_ratio,
        sample_quality,
    )
    from quoin.metrics.significance import (
        PermutationTest,
        StudentInterval,
        holm_correction,
        permutation_test_paired,
        permutation_test_paired_definition,
        permutation_test_unpaired,
        permutation_test_unpaired_definition,
        student_t_probability,
        student_t_quantile,
        t_interval,
    )
    from quoin.metrics.sliding_window import sliding_window_nll
    from quoin.metrics.translation import bleu, exact_match
    from quoin.metrics.validation import (
        CrossValidation,
        EarlyStop,
        LearningCurve,
        cross_validate,
        early_stop,
        learning_curve,
    )

__all__ = [
    "CalibrationCurve",
    "CrossValidation",
    "Decision",
    "DensityAndCoverage",
    "EarlyStop",
    "GeneralizationGap",
    "LearningCurve",
    "ModeCoverage",
    "OneVsRestAuc",
    "PermutationTest",
    "Population",
    "PrecisionRecallFscore",
    "RiskEstimate",
    "RocCurve",
    "SampleQuality",
    "StudentInterval",
    "accuracy",
    "balanced_accuracy",
    "balanced_accuracy_threshold",
    "bits_per_character",
    "bits_per_dimension",
    "bleu",
    "calibration_curve",
    "confusion_matrix",
    "cross_validate",
    "density_and_coverage",
    "density_and_coverage_definition",
    "early_stop",
    "empirical_risk",
    "estimate_risk",
    "exact_match",
    "expected_calibration_error",
    "expected_risk",
    "f1_threshold",
    "generalization_gap",
    "held_out_loss",
    "holm_correction",
    "learning_curve",
    "minimize_expected_cost",
    "mode_coverage",
    "monte_carlo_risk",
    "nearest_distances",
    "nearest_distances_definition",
    "nearest_modes",
    "nn_distance_ratio",
    "permutation_test_paired",
    "permutation_test_paired_definition",
    "permutation_test_unpaired",
    "permutation_test_unpaired_definition",
    "perplexity",
    "population_from_density",
    "precision_recall_fscore_support",
    "predictive_entropy",
    "r2_score",
    "roc_auc",
    "roc_auc_definition",
    "roc_auc_ovr",
    "roc_curve",
    "root_mean_squared_error",
    "sample_quality",
    "sliding_window_nll",
    "student_t_probability",
    "student_t_quantile",
    "t_interval",
    "zero_one_loss",
]

export_lazily(__name__)
