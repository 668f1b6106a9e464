"""A run's optimizer, by the name that options give it. The update rules are in quoin.optim."""

from collections.abc import Iterable
from typing import Any, Protocol

from jaxtyping import Float
from torch import Tensor, nn, optim

from quoin.optim import LionOptimizer
from quoin.own_code import is_code_reference
from quoin.tasks.options import OptimizerName
from quoin.tasks.own_training import own_optimizer

__all__ = ["OptimizerChoice", "make_optimizer", "weight_decay_groups"]


class OptimizerChoice(Protocol):
    """What is read of a recipe's options to make its optimizer: `GradientOptions` has it all."""

    @property
    def optimizer(self) -> OptimizerName: ...

    @property
    def has_own_optimizer(self) -> bool: ...

    @property
    def lr(self) -> float: ...

    @property
    def weight_decay(self) -> float: ...

    @property
    def momentum(self) -> float | None: ...

    @property
    def beta1(self) -> float | None: ...

    @property
    def beta2(self) -> float | None: ...

    @property
    def alpha(self) -> float | None: ...

    @property
    def rho(self) -> float | None: ...


def make_optimizer(
    parameters: Iterable[Float[Tensor, "..."]] | Iterable[dict[str, Any]],
    options: OptimizerChoice,
    *,
    fused: bool = False,
) -> optim.Optimizer:
    """The optimizer that `options` name, in the fused form where torch has one for all devices.

    Args:
        parameters: Tensors, or groups of them; a group without a weight decay has that of `options`.
        fused: Whether the recipe's own optimizer is fused too. The fused form rounds otherwise, and a recipe keeps the
            bits it has always had.
    """
    name, lr, weight_decay = options.optimizer, options.lr, options.weight_decay
    if is_code_reference(name):
        asked = weight_decay != getattr(type(options), "weight_decay", weight_decay)
        return own_optimizer(name, parameters, lr=lr, weight_decay=weight_decay, asked_weight_decay=asked)
    kernel = True if fused or not options.has_own_optimizer else None  # None: torch chooses the loop
    momentum = _given(options.momentum, 0.9)
    betas = _given(options.beta1, 0.9), _given(options.beta2, 0.99 if name == "lion" else 0.999)
    match name:
        case "sgd":
            return optim.SGD(parameters, lr, weight_decay=weight_decay, fused=kernel)
        case "momentum" | "nesterov":
            # Without momentum both are plain SGD, and torch has no Nesterov of that name.
            nesterov = name == "nesterov" and momentum > 0
            return optim.SGD(parameters, lr, momentum, weight_decay=weight_decay, nesterov=nesterov, fused=kernel)
        case "adagrad":  # torch fuses it on the CPU alone, and a run may be resumed elsewhere
            return optim.Adagrad(parameters, lr, weight_decay=weight_decay)
        case "rmsprop":
            return optim.RMSprop(parameters, lr, _given(options.alpha, 0.99), weight_decay=weight_decay)
        case "adadelta":
            return optim.Adadelta(parameters, lr, _given(options.rho, 0.9), weight_decay=weight_decay)
        case "adam":
            return optim.Adam(parameters, lr, betas, weight_decay=weight_decay, fused=kernel)
        case "adamw":
            return optim.AdamW(parameters, lr, betas, weight_decay=weight_decay, fused=kernel)
        case "lion":
            return LionOptimizer(parameters, lr, betas, weight_decay)
        case _:
            raise AssertionError(f"options take no optimizer {name}")


def weight_decay_groups(model: nn.Module, options: OptimizerChoice) -> list[dict[str, Any]]:
    """The parameters in two groups, frozen ones in none: weight decay is for weights that multiply inputs; biases and
    the scales of normalisations, all vectors, have none."""
    trained = [each for each in model.parameters() if each.requires_grad]
    decayed = [each for each in trained if each.ndim > 1]
    free = [each for each in trained if each.ndim <= 1]
    groups = [{"params": decayed, "weight_decay": options.weight_decay}, {"params": free, "weight_decay": 0.0}]
    return [group for group in groups if group["params"]]


def _given(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else value
