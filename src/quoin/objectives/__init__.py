"""A number to minimise or to watch: likelihoods, margins, perplexity, accuracies, confusion, BLEU."""

from quoin.objectives.cross_entropy import balanced_class_weights, cross_entropy, cross_entropy_definition
from quoin.objectives.decisions import (
    CalibrationCurve,
    Decision,
    calibration_curve,
    decide,
    expected_calibration_error,
    predictive_entropy,
)
from quoin.objectives.elbo import ElboGroupings, elbo_definition, elbo_groupings
from quoin.objectives.elbo_gradients import (
    NormalGradients,
    NormalLaw,
    elbo_by_analytic_kl,
    elbo_by_baseline,
    elbo_by_paths,
    elbo_by_score,
    elbo_by_stochastic_backprop,
    normal_gradients,
    score_gradient_definition,
)
from quoin.objectives.generalisation import (
    Gap,
    Population,
    RiskEstimate,
    estimated_risk,
    expected_risk,
    generalisation_gap,
    population_of_density,
    sampled_risk,
)
from quoin.objectives.language import bits_per_character, perplexity, token_nll, token_nll_definition
from quoin.objectives.likelihood import conditional_nll, cross_entropy_of_probabilities, density_nll, expected_nll, nll_loss
from quoin.objectives.margins import hinge_loss, kernel_svm_objective, log_loss, log_loss_definition, svm_objective
from quoin.objectives.metrics import accuracy, confusion_matrix, r_squared, root_mean_squared_error, zero_one_loss
from quoin.objectives.penalty import input_dropout_penalty, l1_penalty, l2_penalty, penalised_loss
from quoin.objectives.powers import mae, mean_power_error, mse
from quoin.objectives.ranking import RocCurve, roc_auc, roc_auc_definition, roc_curve
from quoin.objectives.risk import empirical_risk, held_out_loss
from quoin.objectives.sliding import sliding_token_nll
from quoin.objectives.squared import gaussian_nll, squared_loss
from quoin.objectives.translation import bleu, exact_match, sequence_cross_entropy, sequence_cross_entropy_definition
from quoin.objectives.validation import CrossValidation, EarlyStop, LearningCurve, cross_validate, early_stop, learning_curve

__all__ = [
    "CalibrationCurve",
    "CrossValidation",
    "Decision",
    "EarlyStop",
    "ElboGroupings",
    "Gap",
    "LearningCurve",
    "NormalGradients",
    "NormalLaw",
    "Population",
    "RiskEstimate",
    "RocCurve",
    "accuracy",
    "balanced_class_weights",
    "bits_per_character",
    "bleu",
    "calibration_curve",
    "conditional_nll",
    "confusion_matrix",
    "cross_entropy",
    "cross_entropy_definition",
    "cross_entropy_of_probabilities",
    "cross_validate",
    "decide",
    "density_nll",
    "early_stop",
    "elbo_by_analytic_kl",
    "elbo_by_baseline",
    "elbo_by_paths",
    "elbo_by_score",
    "elbo_by_stochastic_backprop",
    "elbo_definition",
    "elbo_groupings",
    "empirical_risk",
    "estimated_risk",
    "exact_match",
    "expected_calibration_error",
    "expected_nll",
    "expected_risk",
    "gaussian_nll",
    "generalisation_gap",
    "held_out_loss",
    "hinge_loss",
    "input_dropout_penalty",
    "kernel_svm_objective",
    "l1_penalty",
    "l2_penalty",
    "learning_curve",
    "log_loss",
    "log_loss_definition",
    "mae",
    "mean_power_error",
    "mse",
    "nll_loss",
    "normal_gradients",
    "penalised_loss",
    "perplexity",
    "population_of_density",
    "predictive_entropy",
    "r_squared",
    "roc_auc",
    "roc_auc_definition",
    "roc_curve",
    "root_mean_squared_error",
    "sampled_risk",
    "score_gradient_definition",
    "sequence_cross_entropy",
    "sequence_cross_entropy_definition",
    "sliding_token_nll",
    "squared_loss",
    "svm_objective",
    "token_nll",
    "token_nll_definition",
    "zero_one_loss",
]
