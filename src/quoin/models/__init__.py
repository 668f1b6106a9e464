"""Named architectures, one family a file, flat: linear models, multilayer perceptrons and their successors."""

from quoin.models.dropout_mlp import DropoutMLP
from quoin.models.exchange import export_dense, import_dense
from quoin.models.linear import LinearFit, LinearRegression, least_squares, linear_regression_definition
from quoin.models.mlp import MLP, MLPForward, mlp_definition, one_hidden_layer_definition
from quoin.models.parametrised import num_parameters, parameter_vector, realisation
from quoin.models.tied import TiedMLP

__all__ = [
    "MLP",
    "DropoutMLP",
    "LinearFit",
    "LinearRegression",
    "MLPForward",
    "TiedMLP",
    "export_dense",
    "import_dense",
    "least_squares",
    "linear_regression_definition",
    "mlp_definition",
    "num_parameters",
    "one_hidden_layer_definition",
    "parameter_vector",
    "realisation",
]
