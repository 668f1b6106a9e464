"""Named architectures, one family a file, flat: linear models, multilayer perceptrons and their successors."""

from quoin.models.linear import LinearFit, LinearRegression, least_squares, linear_regression_definition
from quoin.models.mlp import MLP, MLPForward, mlp_definition

__all__ = [
    "MLP",
    "LinearFit",
    "LinearRegression",
    "MLPForward",
    "least_squares",
    "linear_regression_definition",
    "mlp_definition",
]
