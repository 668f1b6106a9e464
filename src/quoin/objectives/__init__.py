"""A number to minimise or to watch: likelihoods, margins, accuracies, confusion."""

from quoin.objectives.cross_entropy import cross_entropy, cross_entropy_definition
from quoin.objectives.metrics import accuracy, confusion_matrix, r_squared, root_mean_squared_error, zero_one_loss
from quoin.objectives.risk import empirical_risk
from quoin.objectives.squared import gaussian_nll, squared_loss

__all__ = [
    "accuracy",
    "confusion_matrix",
    "cross_entropy",
    "cross_entropy_definition",
    "empirical_risk",
    "gaussian_nll",
    "r_squared",
    "root_mean_squared_error",
    "squared_loss",
    "zero_one_loss",
]
