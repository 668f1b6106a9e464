"""Perceptrons of random sizes for claims to be tried on."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from quoin.models import MLP
from quoin.notes.claims.rounding import randint, roundings

__all__ = ["CASES", "ROUNDING", "ROUNDING_SOURCE", "inputs_of", "linears", "random_mlp"]

CASES = 30
ROUNDING = roundings(256)
ROUNDING_SOURCE = "256 float64 roundings, for sums of at most 8 terms through at most 4 layers"


def random_mlp(generator: torch.Generator, *, activation: type[nn.Module] = nn.ReLU, least_input: int = 1) -> MLP:
    """An MLP of random sizes in float64, its biases random too."""
    sizes = [
        randint(least_input, 8, generator),
        *(randint(1, 8, generator) for _ in range(randint(1, 3, generator))),
        3,
    ]
    model = MLP(sizes, activation=activation, generator=generator).double()
    for layer in linears(model):
        nn.init.normal_(layer.bias, generator=generator)
    return model


def linears(model: nn.Module) -> list[nn.Linear]:
    return [module for module in model.modules() if isinstance(module, nn.Linear)]


def inputs_of(model: MLP, generator: torch.Generator) -> Float[Tensor, "n d"]:
    return torch.randn(16, model.sizes[0], generator=generator, dtype=torch.float64)
