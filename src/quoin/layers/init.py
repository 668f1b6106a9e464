"""Initial weights: rules that sample a matrix, and `init_weights`, which applies one to every linear layer of a model.

The fast forms are torch.nn.init's (`normal_`, `xavier_normal_`, `kaiming_normal_`, `kaiming_uniform_` with a = sqrt 5).
With weights of variance v a linear layer multiplies the mean square of its n_in inputs by n_in v, and in the backward
pass that of its n_out adjoints by n_out v; ReLU halves both, for a symmetric distribution. Whether such factors are
near one decides at depth.
"""

import functools
import math
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from quoin.errors import UserError

__all__ = ["init_weights", "kaiming_normal", "keeps_global_rng", "small_normal", "torch_default", "xavier_normal"]

Parameters = ParamSpec("Parameters")
Made = TypeVar("Made")
Rule = Callable[[int, int, torch.Generator | None], Tensor]


def small_normal(
    fan_out: int, fan_in: int, generator: torch.Generator | None = None
) -> Float[Tensor, "{fan_out} {fan_in}"]:
    """Weights from N(0, 0.01^2) whatever the sizes: enough for a few layers, but a factor n 10^-4 a layer vanishes.

    Notes: Z5.20.
    """
    _check(fan_out, fan_in)
    return 0.01 * _normal(fan_out, fan_in, generator)


def torch_default(
    fan_out: int, fan_in: int, generator: torch.Generator | None = None
) -> Float[Tensor, "{fan_out} {fan_in}"]:
    """Weights uniform on [-1, 1] / sqrt(fan_in), of variance 1 / (3 fan_in): what `torch.nn.Linear` starts with.

    Notes: Z5.20.
    """
    _check(fan_out, fan_in)
    return (2 * torch.rand(fan_out, fan_in, generator=generator, device=_device(generator)) - 1) / math.sqrt(fan_in)


def xavier_normal(
    fan_out: int, fan_in: int, generator: torch.Generator | None = None
) -> Float[Tensor, "{fan_out} {fan_in}"]:
    """Weights from N(0, 2 / (fan_in + fan_out)): forward and backward factors with mean one, for slopes near one.

    Notes: Z5.19.
    """
    _check(fan_out, fan_in)
    return math.sqrt(2 / (fan_in + fan_out)) * _normal(fan_out, fan_in, generator)


def kaiming_normal(
    fan_out: int, fan_in: int, generator: torch.Generator | None = None
) -> Float[Tensor, "{fan_out} {fan_in}"]:
    """Weights from N(0, 2 / fan_in): twice the variance of a linear layer, as ReLU passes half of the mean square.

    Notes: Z5.19.
    """
    _check(fan_out, fan_in)
    return math.sqrt(2 / fan_in) * _normal(fan_out, fan_in, generator)


def init_weights(model: nn.Module, init: Rule, *, generator: torch.Generator | None = None) -> None:
    """Give every `torch.nn.Linear` of `model` weights sampled by `init`, in the order of `modules()`, and zero biases.

    Args:
        init: From fan_out, fan_in and the generator to a weight (fan_out, fan_in), such as `kaiming_normal`.

    >>> model = nn.Sequential(nn.Linear(50, 200), nn.ReLU(), nn.Linear(200, 10))
    >>> init_weights(model, kaiming_normal, generator=torch.Generator().manual_seed(0))

    Notes: Z5.19, Z5.20.
    """
    layers = [module for module in model.modules() if isinstance(module, nn.Linear)]
    if not layers:
        raise UserError(
            f"expected a model with at least one torch.nn.Linear, got {type(model).__name__} with none; build its "
            "layers first"
        )
    if any(isinstance(layer, nn.LazyLinear) for layer in layers):
        raise UserError("expected linear layers of known sizes, got a lazy one; send one batch through the model first")
    with torch.no_grad():
        for layer in layers:
            layer.weight.copy_(init(layer.out_features, layer.in_features, generator))
            if layer.bias is not None:
                layer.bias.zero_()


def keeps_global_rng(make: Callable[Parameters, Made]) -> Callable[Parameters, Made]:
    """`make`, which leaves torch's own generator as it was wherever it is handed another.

    torch's layers sample their weights when they are made, whether or not others then replace them.

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
        # of the CPU, where all weights are made; the others' state would be costly to ask for
        with torch.random.fork_rng([]):
            return make(*given, **named)

    return made


def _normal(fan_out: int, fan_in: int, generator: torch.Generator | None) -> Tensor:
    return torch.randn(fan_out, fan_in, generator=generator, device=_device(generator))


def _device(generator: torch.Generator | None) -> torch.device | None:
    return generator.device if generator is not None else None


def _check(fan_out: int, fan_in: int) -> None:
    if fan_out < 1 or fan_in < 1:
        raise UserError(
            f"expected a positive number of outputs and inputs, got {fan_out} and {fan_in}; give the layer's "
            "out_features and in_features"
        )
