"""A multilayer perceptron as options describe it."""

from torch import nn

from quoin.data import keyed_generator
from quoin.layers import Tanh, init_weights, kaiming_normal, small_normal, torch_default, xavier_normal
from quoin.models import MLP
from quoin.own_code import is_code_reference
from quoin.tasks.mlp_options import MLPOptions
from quoin.tasks.own_training import own_activation, own_norm

__all__ = ["make_mlp"]

ACTIVATIONS = {
    "relu": nn.ReLU,
    "leaky-relu": nn.LeakyReLU,
    "elu": nn.ELU,
    "gelu": nn.GELU,
    "silu": nn.SiLU,
    "tanh": Tanh,
    "sigmoid": nn.Sigmoid,
}
INITS = {"kaiming": kaiming_normal, "xavier": xavier_normal, "normal": small_normal, "torch": torch_default}
NORMS = {"none": None, "batch": nn.BatchNorm1d, "layer": nn.LayerNorm}


def make_mlp(in_features: int, out_features: int, options: MLPOptions, *, seed: int) -> MLP:
    """The multilayer perceptron that `options` describe, its weights sampled by `seed`."""
    activation, norm = options.activation, options.norm
    model = MLP(
        [in_features, *options.hidden_dims, out_features],
        activation=own_activation(activation) if is_code_reference(activation) else ACTIVATIONS[activation],
        norm=own_norm(norm) if is_code_reference(norm) else NORMS[norm],
        dropout=options.dropout,
        generator=keyed_generator("weights", seed),
    )
    if options.init != "kaiming":  # which the model has already
        init_weights(model, INITS[options.init], generator=keyed_generator("weights", seed))
    return model
