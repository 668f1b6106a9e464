"""Cases for `quoin.metrics`: see tests/dtypes.py."""

import torch

from dtype_cases.losses import FLOATS, KNOWN, LABELS, LAWS, RIGHT, SCORES, SEEN, constant_fit
from dtype_cases.losses_generative import LAW, OTHERS, POINTS, RESULT
from quoin import losses
from quoin import metrics as q

WORDS = "takes texts"
MANY = torch.tensor([1, 0, 2, 1])
CHANCES = [0, 1, 0.25, 0.5]

CASES = {
    "density_and_coverage": lambda x: q.density_and_coverage(x(POINTS), x(OTHERS), num_neighbors=1),
    "density_and_coverage_definition": lambda x: q.density_and_coverage_definition(
        x(POINTS), x(OTHERS), num_neighbors=1
    ),
    "nearest_distances": lambda x: q.nearest_distances(x(POINTS), x(OTHERS)),
    "nearest_distances_definition": lambda x: q.nearest_distances_definition(x(POINTS), x(OTHERS)),
    "nn_distance_ratio": lambda x: q.nn_distance_ratio(x(POINTS), x(OTHERS), x([[9, 9], [100, 50]])),
    "bits_per_dimension": lambda x: q.bits_per_dimension(x([0, -100, -120]), 3),
    "sample_quality": lambda x: q.sample_quality(
        x([*POINTS, [1, 1], [2, 30]]), x([*OTHERS, [7, 8], [90, 3], [80, 9]]), torch.clone, train=x([[9, 9], [100, 50]])
    ),
    "nearest_modes": lambda x: q.nearest_modes(x(POINTS), x(OTHERS), 50.0),
    "mode_coverage": lambda x: q.mode_coverage(torch.tensor([0, 0, 2, -1]), x(LAW)),
    "mode_coverage whole": lambda x: q.mode_coverage(x([0, 0, 2, 1]).long(), torch.tensor(LAW)),
    "zero_one_loss": lambda x: q.zero_one_loss(x([1, 2, 3]), x([1, 3, 2])),
    "accuracy": lambda x: q.accuracy(x([1, 2, 3, 0]), x([1, 3, 2, 0])),
    "predictive_entropy": lambda x: q.predictive_entropy(x(LAWS)),
    "minimize_expected_cost": lambda x: q.minimize_expected_cost(x(LAWS), x([[0, 100, 3], [1, 0, 60]])),
    "minimize_expected_cost whole costs": lambda x: q.minimize_expected_cost(
        torch.tensor(LAWS, dtype=torch.float64), x([[0, 100, 3], [1, 0, 60]])
    ),
    "calibration_curve": lambda x: q.calibration_curve(x([0.25, 0.5, 1, 0]), x([0, 1, 1, 0]), num_bins=2),
    "expected_calibration_error": lambda x: q.expected_calibration_error(x(LAWS), LABELS),
    "roc_curve": lambda x: q.roc_curve(x([0, 150, 130, 3]), torch.tensor([0, 1, 0, 1])),
    "roc_auc": lambda x: q.roc_auc(x([0, 150, 130, 3]), torch.tensor([0, 1, 0, 1])),
    "roc_auc_definition": lambda x: q.roc_auc_definition(x([0, 150, 130, 3]), torch.tensor([0, 1, 0, 1])),
    "roc_auc_ovr": lambda x: q.roc_auc_ovr(x([[0, 150, 3], [130, 3, 9], [1, 9, 100], [7, 1, 2]]), MANY),
    "balanced_accuracy_threshold": lambda x: q.balanced_accuracy_threshold(x(CHANCES), torch.tensor([0, 1, 0, 1])),
    "f1_threshold": lambda x: q.f1_threshold(x(CHANCES), torch.tensor([0, 1, 0, 1])),
    "root_mean_squared_error": lambda x: q.root_mean_squared_error(x(SEEN), x(RIGHT)),
    "root_mean_squared_error far": lambda x: q.root_mean_squared_error(x([0, 10]), x([255, 20])),
    "r2_score": lambda x: q.r2_score(x(SEEN), x(RIGHT)),
    "sliding_window_nll": lambda x: q.sliding_window_nll(
        lambda seen: x([SCORES]), torch.tensor([0, 2, 1]), window=2, stride=2
    ),
    "permutation_test_paired": lambda x: q.permutation_test_paired(x([0, 100, 3, 7])),
    "permutation_test_paired_definition": lambda x: q.permutation_test_paired_definition(x([0, 100, 3, 7])),
    "permutation_test_unpaired": lambda x: q.permutation_test_unpaired(x([0, 100, 3]), x([1, 90])),
    "permutation_test_unpaired_definition": lambda x: q.permutation_test_unpaired_definition(
        x([0, 100, 3]), x([1, 90])
    ),
    "t_interval": lambda x: q.t_interval(x([0, 100, 3, 7])),
    "perplexity": lambda x: q.perplexity(x([0, 3, 8])),
    "bits_per_character": lambda x: q.bits_per_character(x([0, 150, 255]), 3),
    "empirical_risk": lambda x: q.empirical_risk(losses.squared_loss, x(SEEN), x(RIGHT)),
    "empirical_risk whole": lambda x: q.empirical_risk(torch.maximum, x(SEEN), x(RIGHT)),
    "held_out_loss": lambda x: q.held_out_loss(torch.abs, losses.squared_loss, x([0, 100]), x([150, 20])),
    "held_out_loss whole": lambda x: q.held_out_loss(torch.clone, torch.maximum, x([0, 100]), x([150, 20])),
    "expected_risk": lambda x: q.expected_risk(
        torch.clone, losses.squared_loss, q.Population(x([0, 100]), x([150, 20]), x([0.5, 0.5]))
    ),
    "expected_risk whole": lambda x: q.expected_risk(
        torch.clone, torch.maximum, q.Population(x([0, 100]), x([150, 20]), torch.tensor([0.5, 0.5]))
    ),
    "estimate_risk": lambda x: q.estimate_risk(torch.clone, losses.squared_loss, x(SEEN), x(RIGHT)),
    "monte_carlo_risk": lambda x: q.monte_carlo_risk(
        torch.clone, torch.maximum, lambda n, _: (x(SEEN), x(RIGHT)), 4, generator=torch.Generator()
    ),
    "generalization_gap": lambda x: q.generalization_gap(
        torch.clone, torch.maximum, (x([0, 9]), x([7, 3])), (x(SEEN), x(RIGHT))
    ),
    "cross_validate": lambda x: q.cross_validate(
        constant_fit, losses.squared_loss, x(SEEN), x(RIGHT), [(torch.tensor([0, 1]), torch.tensor([2, 3]))]
    ),
    "learning_curve": lambda x: q.learning_curve(
        constant_fit, losses.squared_loss, (x(SEEN), x(RIGHT)), (x([1, 2]), x([0, 120])), [1, 3]
    ),
}

# Labels, tokens and modes: whole numbers, held against int64.
MARKED = {
    "confusion_matrix": lambda x: q.confusion_matrix(x([0, 1, 1, 99]), x([1, 1, 0, 99]), 100),
    "precision_recall_fscore_support": lambda x: q.precision_recall_fscore_support(
        x([0, 1, 1, 99]), x([1, 1, 0, 99]), 100
    ),
    "balanced_accuracy": lambda x: q.balanced_accuracy(x([0, 1, 1, 99]), x([1, 1, 0, 99]), 100),
    "roc_auc_ovr labels": lambda x: q.roc_auc_ovr(torch.tensor([[0.0, 3.0], [1.0, 2.0], [4.0, 0.0]]), x([1, 0, 0])),
    "balanced_accuracy_threshold labels": lambda x: q.balanced_accuracy_threshold(
        torch.tensor(CHANCES), x([0, 1, 0, 1])
    ),
    "f1_threshold labels": lambda x: q.f1_threshold(torch.tensor(CHANCES), x([0, 1, 0, 1])),
    "expected_calibration_error labels": lambda x: q.expected_calibration_error(KNOWN, x([2, 1])),
    "roc_curve labels": lambda x: q.roc_curve(torch.tensor([0.0, 3.0, 1.0, 2.0]), x([0, 1, 0, 1])),
    "roc_auc labels": lambda x: q.roc_auc(torch.tensor([0.0, 3.0, 1.0, 2.0]), x([0, 1, 0, 1])),
    "roc_auc_definition labels": lambda x: q.roc_auc_definition(torch.tensor([0.0, 3.0, 1.0, 2.0]), x([0, 1, 0, 1])),
    "sliding_window_nll tokens": lambda x: q.sliding_window_nll(
        lambda seen: FLOATS[None], x([0, 2, 1]), window=2, stride=2
    ),
    "cross_validate rows": lambda x: q.cross_validate(
        constant_fit, losses.squared_loss, torch.tensor([0.0, 3.0]), torch.tensor([1.0, 7.0]), [(x([0]), x([1]))]
    ),
    "mode_coverage modes": lambda x: q.mode_coverage(x([0, 0, 2, 1]), torch.tensor([0.5, 0.25, 0.25])),
}
CASES |= MARKED
WHOLE = set(MARKED)

ROUNDINGS: dict[str, float] = {}

NO_NUMBERS = {
    "DensityAndCoverage": RESULT,
    "ModeCoverage": RESULT,
    "SampleQuality": RESULT,
    "CalibrationCurve": RESULT,
    "CrossValidation": RESULT,
    "Decision": RESULT,
    "GeneralizationGap": RESULT,
    "LearningCurve": RESULT,
    "RiskEstimate": RESULT,
    "RocCurve": RESULT,
    "OneVsRestAuc": RESULT,
    "PrecisionRecallFscore": RESULT,
    "EarlyStop": RESULT,
    "PermutationTest": RESULT,
    "StudentInterval": RESULT,
    "student_t_probability": "takes Python numbers",
    "student_t_quantile": "takes Python numbers",
    "holm_correction": "takes a list of Python floats",
    "Population": "tensors held by name; expected_risk is what computes with them",
    "early_stop": "takes a list of Python floats",
    "population_from_density": "takes a function and Python floats; its nodes are float64",
    "bleu": WORDS,
    "exact_match": WORDS,
}
