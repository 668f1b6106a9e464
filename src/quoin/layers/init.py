"""Starting weights: rules that draw a matrix, and `initialise`, which applies one to every linear layer of a model.

The fast forms are torch.nn.init's (`normal_`, `xavier_normal_`, `kaiming_normal_`, `kaiming_uniform_` with a = sqrt 5). With
weights of variance v a linear layer multiplies the mean square of its n_in inputs by n_in v, and on the way back that of
its n_out adjoints by n_out v; ReLU halves both, for a symmetric law. Whether such factors are near one decides at depth.
"""

import functools
import math
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import torch
from torch import Tensor, nn

from quoin.errors import Mistake

__all__ = ["framework_default", "he", "initialise", "keeps_global_rng", "small_normal", "xavier"]

Parameters = ParamSpec("Parameters")
Made = TypeVar("Made")
Rule = Callable[[int, int, torch.Generator | None], Tensor]


def small_normal(outputs: int, inputs: int, generator: torch.Generator | None = None) -> Tensor:  # (outputs, inputs)
    """Weights from N(0, 0.01^2) whatever the widths: enough for a few layers, for a factor n 10^-4 a layer soon vanishes.

    Notes: Z5.20.
    """
    _check(outputs, inputs)
    return 0.01 * _normal(outputs, inputs, generator)


def framework_default(outputs: int, inputs: int, generator: torch.Generator | None = None) -> Tensor:  # (outputs, inputs)
    """Weights uniform on [-1, 1] / sqrt(inputs), of variance 1 / (3 inputs): what `torch.nn.Linear` starts with.

    Notes: Z5.20.
    """
    _check(outputs, inputs)
    return (2 * torch.rand(outputs, inputs, generator=generator, device=_device(generator)) - 1) / math.sqrt(inputs)


def xavier(outputs: int, inputs: int, generator: torch.Generator | None = None) -> Tensor:  # (outputs, inputs)
    """Weights from N(0, 2 / (inputs + outputs)): forward and backward factors with mean one, for slopes near one.

    Notes: Z5.19.
    """
    _check(outputs, inputs)
    return math.sqrt(2 / (inputs + outputs)) * _normal(outputs, inputs, generator)


def he(outputs: int, inputs: int, generator: torch.Generator | None = None) -> Tensor:  # (outputs, inputs)
    """Weights from N(0, 2 / inputs): twice the variance of a linear layer, as ReLU passes half of the mean square.

    Notes: Z5.19.
    """
    _check(outputs, inputs)
    return math.sqrt(2 / inputs) * _normal(outputs, inputs, generator)


def initialise(model: nn.Module, rule: Rule, *, generator: torch.Generator | None = None) -> None:
    """Give every `torch.nn.Linear` of `model` weights drawn by `rule`, in the order of `modules()`, and zero biases.

    >>> model = nn.Sequential(nn.Linear(50, 200), nn.ReLU(), nn.Linear(200, 10))
    >>> initialise(model, he, generator=torch.Generator().manual_seed(0))

    Notes: Z5.19, Z5.20.
    """
    layers = [module for module in model.modules() if isinstance(module, nn.Linear)]
    if not layers:
        raise Mistake(f"expected a model with at least one torch.nn.Linear, came {type(model).__name__} with none; build its layers first")
    if any(isinstance(layer, nn.LazyLinear) for layer in layers):
        raise Mistake("expected linear layers of known widths, came a lazy one; send one batch through the model first")
    with torch.no_grad():
        for layer in layers:
            layer.weight.copy_(rule(layer.out_features, layer.in_features, generator))
            if layer.bias is not None:
                layer.bias.zero_()


def keeps_global_rng(make: Callable[Parameters, Made]) -> Callable[Parameters, Made]:
    """`make`, which leaves torch's own generator as it was wherever it is handed another.

    torch's layers draw their first weights when they are made, whether or not others are then put into their place.

    >>> state = torch.get_rng_state()
    >>> make = keeps_global_rng(lambda generator: nn.Linear(2, 2).weight.data.normal_(generator=generator))
    >>> _ = make(torch.Generator().manual_seed(0))
    >>> torch.equal(torch.get_rng_state(), state)
    True
    """

    @functools.wraps(make)
    def made(*given: Parameters.args, **named: Parameters.kwargs) -> Made:
        if not any(isinstance(each, torch.Generator) for each in (*given, *named.values())):
            return make(*given, **named)
        with torch.random.fork_rng([]):  # of the CPU, where all weights are made; the others' state would be costly to ask for
            return make(*given, **named)

    return made


def _normal(outputs: int, inputs: int, generator: torch.Generator | None) -> Tensor:
    return torch.randn(outputs, inputs, generator=generator, device=_device(generator))


def _device(generator: torch.Generator | None) -> torch.device | None:
    return generator.device if generator is not None else None


def _check(outputs: int, inputs: int) -> None:
    if outputs < 1 or inputs < 1:
        raise Mistake(f"expected a positive number of outputs and inputs, came {outputs} and {inputs}; give the layer's widths")
