"""One step of a forward pass each: dense, activation, initialisation, convolution, normalisation, attention."""

from quoin.layers.activation import (
    elu,
    elu_derivative,
    gelu,
    gelu_derivative,
    relu,
    relu_derivative,
    sigmoid,
    sigmoid_derivative,
    tanh,
    tanh_derivative,
)
from quoin.layers.dense import Affine, affine_definition, collapse, dense_definition
from quoin.layers.dropout import dropout_definition, dropout_mask
from quoin.layers.init import framework_default, he, initialise, small_normal, xavier
from quoin.layers.structured import convolution_as_dense, graph_as_dense, recurrence_as_dense

__all__ = [
    "Affine",
    "affine_definition",
    "collapse",
    "convolution_as_dense",
    "dense_definition",
    "dropout_definition",
    "dropout_mask",
    "elu",
    "elu_derivative",
    "framework_default",
    "gelu",
    "gelu_derivative",
    "graph_as_dense",
    "he",
    "initialise",
    "recurrence_as_dense",
    "relu",
    "relu_derivative",
    "sigmoid",
    "sigmoid_derivative",
    "small_normal",
    "tanh",
    "tanh_derivative",
    "xavier",
]
