"""Named architectures, one family a file, flat: linear models, multilayer perceptrons and their successors."""

from quoin.models.binary import LinearScore
from quoin.models.classifiers import SoftmaxRegression, one_hot_regression, softmax_regression_definition
from quoin.models.closed_form import LinearFit, least_squares, least_squares_by_qr, normal_equations, ridge
from quoin.models.dropout_mlp import DropoutMLP
from quoin.models.exchange import export_dense, import_dense
from quoin.models.generative import Drawn, GenerativeClassifier, bayes_rule_definition, gaussian_log_density_definition
from quoin.models.interpolant import relu_interpolant
from quoin.models.linear import LinearGaussian, LinearRegression, linear_regression_definition
from quoin.models.mlp import MLP, MLPForward, mlp_definition, one_hidden_layer_definition
from quoin.models.monomials import monomial_features, num_monomials, num_monomials_up_to
from quoin.models.parametrised import num_parameters, parameter_vector, realisation
from quoin.models.polynomial import PolynomialRegression, fit_polynomial, polynomial_features
from quoin.models.population import best_affine_predictor, conditional_expectation
from quoin.models.tied import TiedMLP

__all__ = [
    "MLP",
    "Drawn",
    "DropoutMLP",
    "GenerativeClassifier",
    "LinearFit",
    "LinearGaussian",
    "LinearRegression",
    "LinearScore",
    "MLPForward",
    "PolynomialRegression",
    "SoftmaxRegression",
    "TiedMLP",
    "bayes_rule_definition",
    "best_affine_predictor",
    "conditional_expectation",
    "export_dense",
    "fit_polynomial",
    "gaussian_log_density_definition",
    "import_dense",
    "least_squares",
    "least_squares_by_qr",
    "linear_regression_definition",
    "mlp_definition",
    "monomial_features",
    "normal_equations",
    "num_monomials",
    "num_monomials_up_to",
    "num_parameters",
    "one_hidden_layer_definition",
    "one_hot_regression",
    "parameter_vector",
    "polynomial_features",
    "realisation",
    "relu_interpolant",
    "ridge",
    "softmax_regression_definition",
]
