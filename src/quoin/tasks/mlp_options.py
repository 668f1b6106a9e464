"""The options of a multilayer perceptron. Imports no torch."""

from dataclasses import dataclass
from typing import Literal

from quoin.options import OwnPart, ValidatedOptions, option

__all__ = ["ActivationName", "InitName", "MLPOptions", "NormName"]

ActivationName = Literal["relu", "leaky-relu", "elu", "gelu", "silu", "tanh", "sigmoid"] | OwnPart
InitName = Literal["kaiming", "xavier", "normal", "torch"]
NormName = Literal["none", "batch", "layer"] | OwnPart


@dataclass(frozen=True)
class MLPOptions(ValidatedOptions):
    """What the recipes of multilayer perceptrons share: the hidden layers, and what stands in them."""

    hidden_dims: tuple[int, ...] = option(
        (128,), "units of each hidden layer, from input to output", at_least=1, at_most=1_000_000
    )
    activation: ActivationName = option(
        "relu",
        "activation of the hidden layers; your own: a class of nn.Module made without arguments, or a function",
    )
    init: InitName = option(
        "kaiming",
        "initial weights: normal of variance 2 / fan_in (kaiming) or 2 / (fan_in + fan_out) (xavier), of standard "
        "deviation 0.01 (normal), or uniform as torch.nn.Linear has them (torch)",
    )
    norm: NormName = option(
        "none",
        "batch or layer norm between each hidden layer and its activation; your own: a class of nn.Module made with "
        "the number of units",
    )
    dropout: float = option(0.0, "dropout probability after each hidden layer", at_least=0.0, below=1.0)
