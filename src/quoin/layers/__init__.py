"""One step of a forward pass each: dense, activation, initialisation, convolution, normalisation, attention."""

from quoin.layers.activation import relu
from quoin.layers.dense import affine_definition, dense_definition

__all__ = ["affine_definition", "dense_definition", "relu"]
