"""Which ReLU units are at work: how many outputs are exactly zero, and which units are zero on all the data."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Real
from torch import Tensor, nn

from quoin.display import shown
from quoin.errors import UserError
from quoin.inspect.intermediates import Intermediate, intermediates

__all__ = ["DeadUnits", "Sparsity", "activation_sparsity", "dead_units"]


@shown
class Sparsity(NamedTuple):
    """The fraction of exact zeros among the outputs of one ReLU."""

    layer: str
    fraction: float


@shown
class DeadUnits(NamedTuple):
    """The units of one ReLU that are zero for every example."""

    layer: str
    dead: Bool[Tensor, "*units"]  # True where dead


def activation_sparsity(model: nn.Module, x: Real[Tensor, "batch ..."]) -> list[Sparsity]:
    """For each `torch.nn.ReLU` of the model, the fraction of its outputs on the batch `x` that are exactly zero.

    Notes: D1-9.
    """
    return [Sparsity(step.layer, float((step.output == 0).double().mean())) for step in _rectified(model, x)]


def dead_units(model: nn.Module, x: Real[Tensor, "batch ..."]) -> list[DeadUnits]:
    """For each `torch.nn.ReLU` of the model, its units that are zero on all examples of `x`.

    Such a unit has no gradient on this data, in any weight that enters or leaves it, and stays as it is.

    Notes: D1-12.
    """
    return [DeadUnits(step.layer, (step.output == 0).all(dim=0)) for step in _rectified(model, x)]


@torch.no_grad()
def _rectified(model: nn.Module, x: Tensor) -> list[Intermediate]:
    if x.ndim == 0 or len(x) == 0:
        raise UserError(f"expected a batch of at least one example, got shape {tuple(x.shape)}; give data with rows")
    found = [step for step in intermediates(model, x) if isinstance(step.module, nn.ReLU)]
    if not found:
        raise UserError(
            f"expected a model with torch.nn.ReLU modules, got {type(model).__name__} that calls none; build it "
            "with them"
        )
    if any(step.output.isnan().any() for step in found):
        raise UserError("expected finite activations, got NaN; check the input and the weights first")
    return found
