"""The output of every module of a model, for any torch module, by hooks.

The whole graph with each operation and its adjoint is quoin.autodiff's work.
"""

from typing import NamedTuple

from jaxtyping import Shaped
from torch import Tensor, nn

from quoin.display import shown
from quoin.errors import UserError

__all__ = ["Intermediate", "intermediates"]


@shown
class Intermediate(NamedTuple):
    """The output of one call of one innermost module."""

    layer: str  # the module's name in the model, as in named_modules()
    module: nn.Module
    output: Shaped[Tensor, "..."]


def intermediates(model: nn.Module, x: Shaped[Tensor, "..."]) -> list[Intermediate]:
    """The outputs of all innermost modules, in the order in which `model(x)` calls them; a module called twice is there
    twice.

    The tensors are still part of the graph, so gradients with respect to them can be taken. The model is left as it
    was.

    >>> import torch
    >>> model = nn.Sequential(nn.Linear(2, 5), nn.ReLU())
    >>> [(step.layer, tuple(step.output.shape)) for step in intermediates(model, torch.ones(1, 2))]
    [('0', (1, 5)), ('1', (1, 5))]

    Notes: D0-3.
    """
    found: list[Intermediate] = []
    versions: list[int] = []
    inner = {name: module for name, module in model.named_modules() if not any(module.children())}

    def record(layer: str):
        def hook(module: nn.Module, _, output: object) -> None:
            if isinstance(output, Tensor):
                found.append(Intermediate(layer, module, output))
                versions.append(output._version)

        return hook

    handles = [module.register_forward_hook(record(name)) for name, module in inner.items()]
    try:
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    for step, version in zip(found, versions, strict=True):
        if step.output._version != version:
            raise UserError(
                "expected modules that leave their input as it is, got one that wrote over the output of "
                f"{step.layer!r}; "
                "build the model with inplace=False"
            )
    return found
