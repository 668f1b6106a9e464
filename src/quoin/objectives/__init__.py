"""A number to minimise or to watch: likelihoods, margins, accuracies, confusion."""

from quoin.objectives.cross_entropy import balanced_class_weights, cross_entropy, cross_entropy_definition
from quoin.objectives.decisions import (
    CalibrationCurve,
    Decision,
    calibration_curve,
    decide,
    expected_calibration_error,
    predictive_entropy,
)
from quoin.objectives.likelihood import conditional_nll, cross_entropy_of_probabilities, density_nll, expected_nll, nll_loss
from quoin.objectives.margins import hinge_loss, kernel_svm_objective, log_loss, log_loss_definition, svm_objective
from quoin.objectives.metrics import accuracy, confusion_matrix, r_squared, root_mean_squared_error, zero_one_loss
from quoin.objectives.powers import mae, mean_power_error, mse
from quoin.objectives.ranking import RocCurve, roc_auc, roc_auc_definition, roc_curve
from quoin.objectives.risk import empirical_risk, held_out_loss
from quoin.objectives.squared import gaussian_nll, squared_loss

__all__ = [
    "CalibrationCurve",
    "Decision",
    "RocCurve",
    "accuracy",
    "balanced_class_weights",
    "calibration_curve",
    "conditional_nll",
    "confusion_matrix",
    "cross_entropy",
    "cross_entropy_definition",
    "cross_entropy_of_probabilities",
    "decide",
    "density_nll",
    "empirical_risk",
    "expected_calibration_error",
    "expected_nll",
    "gaussian_nll",
    "held_out_loss",
    "hinge_loss",
    "kernel_svm_objective",
    "log_loss",
    "log_loss_definition",
    "mae",
    "mean_power_error",
    "mse",
    "nll_loss",
    "predictive_entropy",
    "r_squared",
    "roc_auc",
    "roc_auc_definition",
    "roc_curve",
    "root_mean_squared_error",
    "squared_loss",
    "svm_objective",
    "zero_one_loss",
]
