"""A model's layers at a glance: shapes, parameters, and how much of each ReLU is at work."""

from typing import NamedTuple

import torch
from jaxtyping import Real
from torch import Tensor, nn

from quoin.display import Listing, shown
from quoin.errors import UserError
from quoin.inspect.intermediates import intermediates
from quoin.tensor.eval_mode import eval_mode

__all__ = ["LayerSummary", "layer_summary"]


@shown
class LayerSummary(NamedTuple):
    """One call of one innermost module."""

    layer: str
    kind: str
    output_shape: tuple[int, ...]  # of one example
    num_parameters: int
    zeros: float | None  # of a ReLU, the fraction of its outputs that are exactly zero
    dead: int | None  # of a ReLU, the units or channels that are zero for all the examples


@torch.no_grad()
def layer_summary(model: nn.Module, x: Real[Tensor, "batch ..."]) -> list[LayerSummary]:
    """The innermost modules in the order in which the model calls them, as they answer the batch `x`.

    >>> model = nn.Sequential(nn.Linear(2, 5), nn.ReLU())
    >>> [(row.kind, row.output_shape, row.num_parameters) for row in layer_summary(model, torch.ones(1, 2))]
    [('Linear', (5,), 15), ('ReLU', (5,), 0)]
    """
    if x.ndim == 0 or len(x) == 0:
        raise UserError(f"expected a batch of at least one example, got shape {tuple(x.shape)}; give data with rows")
    with eval_mode(model):
        steps = intermediates(model, x)
    return Listing(_row(step.layer, step.module, step.output) for step in steps)


def _row(layer: str, module: nn.Module, output: Tensor) -> LayerSummary:
    parameters = sum(parameter.numel() for parameter in module.parameters())
    zeros = dead = None
    if isinstance(module, nn.ReLU) and output.ndim > 1:
        zero = output == 0
        zeros = float(zero.double().mean())
        dead = int(zero.transpose(0, 1).flatten(1).all(dim=1).sum())
    return LayerSummary(layer, type(module).__name__, tuple(output.shape[1:]), parameters, zeros, dead)
