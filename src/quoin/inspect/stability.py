"""Signals and gradients through the layers of a model: do they keep their size, vanish or explode?

The adjoint of layer l is a product of the Jacobians of all layers after it, dJ/dh_l = J_{l+1}^T ... J_L^T dJ/dh_L, and
a product of many factors seldom stays near one by itself.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Real
from torch import Tensor, nn

from quoin.display import shown
from quoin.errors import UserError
from quoin.inspect.intermediates import Intermediate, intermediates
from quoin.plot import Plot, curves

__all__ = ["StabilityReport", "StabilityRow", "gradient_norms", "stability_report"]

LossFn = Callable[[Tensor], Tensor]


@shown
class StabilityRow(NamedTuple):
    """One module in a forward and backward pass."""

    layer: str
    kind: str
    output_rms: float  # root mean square of its outputs
    gradient_norm: float  # norm of the gradient of the loss with respect to its output
    weight_gradient_norm: float  # the same with respect to its own parameters; NaN if it has none


@shown
@dataclass(frozen=True)
class StabilityReport:
    """The rows of `stability_report`, input side first; `print` shows them as a table."""

    rows: tuple[StabilityRow, ...]

    @property
    def forward_factor(self) -> float:
        """The geometric mean, over the modules, of the growth of the outputs."""
        return _mean_factor([row.output_rms for row in self.rows])

    @property
    def backward_factor(self) -> float:
        """The geometric mean, over the modules, of the growth of the gradients on their way back to the input."""
        return _mean_factor([row.gradient_norm for row in reversed(self.rows)])

    def __str__(self) -> str:
        width = max(len(f"{row.layer} {row.kind}") for row in self.rows)
        lines = [f"{'module':<{width}}  output rms  gradient norm  weight gradient norm"]
        for row in self.rows:
            weights = "" if math.isnan(row.weight_gradient_norm) else f"{row.weight_gradient_norm:.3g}"
            name = f"{row.layer} {row.kind}"
            lines.append(f"{name:<{width}}  {row.output_rms:>10.3g}  {row.gradient_norm:>13.3g}  {weights:>20}")
        lines.append(f"mean factor per module: forward {self.forward_factor:.3g}, backward {self.backward_factor:.3g}")
        return "\n".join(line.rstrip() for line in lines)

    def plot(self) -> Plot:
        """Sizes by module, on a logarithmic axis: a straight line that rises or falls is a vanishing or exploding
        product.
        """
        indices = range(1, len(self.rows) + 1)
        series: dict[str, tuple[Sequence[float], Sequence[float]]] = {
            "output rms": (indices, [row.output_rms for row in self.rows]),
            "gradient norm": (indices, [row.gradient_norm for row in self.rows]),
        }
        weighted = [index for index in indices if not math.isnan(self.rows[index - 1].weight_gradient_norm)]
        if weighted:
            series["weight gradient norm"] = (
                weighted,
                [self.rows[index - 1].weight_gradient_norm for index in weighted],
            )
        return curves(series, title="Stability by layer", x_label="module, input side first", log_y=True)


def gradient_norms(model: nn.Module, x: Real[Tensor, "batch ..."], loss_fn: LossFn) -> list[float]:
    """||dJ/dh_l|| for the output h_l of every module in calling order, where J = loss_fn(model(x)).

    Notes: Z5.18.
    """
    return [row.gradient_norm for row in stability_report(model, x, loss_fn).rows]


@torch.enable_grad()
def stability_report(model: nn.Module, x: Real[Tensor, "batch ..."], loss_fn: LossFn) -> StabilityReport:
    """The size of outputs, of gradients with respect to them and to the weights, for every module of one forward and
    backward pass.

    `loss_fn` takes the model's output to one number. No `.grad` is touched.

    >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    >>> [row.kind for row in stability_report(model, torch.ones(4, 2), lambda output: output.sum()).rows]
    ['Linear', 'ReLU', 'Linear']

    Notes: Z5.17, Z5.18.
    """
    if x.ndim == 0 or len(x) == 0:
        raise UserError(f"expected a batch of at least one example, got shape {tuple(x.shape)}; give data with rows")
    outputs: list = []
    handle = model.register_forward_hook(lambda module, inputs, output: outputs.append(output))
    try:
        steps = [
            step
            for step in intermediates(model, x)
            if step.output.requires_grad and not isinstance(step.module, nn.Identity)
        ]
    finally:
        handle.remove()
    loss = loss_fn(outputs[-1])
    if loss.numel() != 1:
        raise UserError(f"expected one number from loss_fn, got shape {tuple(loss.shape)}; average or sum it")
    if not steps:
        raise UserError(
            f"expected a model with parameters to train, got {type(model).__name__} with none; unfreeze or add some"
        )
    owned = [[p for p in step.module.parameters() if p.requires_grad] for step in steps]
    wanted = [step.output for step in steps] + [p for parameters in owned for p in parameters]
    found = iter(torch.autograd.grad(loss, wanted, allow_unused=True))
    adjoints = [next(found) for _ in steps]
    gradients = [[next(found) for _ in parameters] for parameters in owned]
    return StabilityReport(tuple(map(_row, steps, adjoints, gradients)))


def _row(step: Intermediate, adjoint: Tensor | None, gradients: Sequence[Tensor | None]) -> StabilityRow:
    rms = float(step.output.detach().double().square().mean().sqrt())
    return StabilityRow(
        step.layer, type(step.module).__name__, rms, _norm([adjoint]), _norm(gradients) if gradients else math.nan
    )


def _norm(tensors: Sequence[Tensor | None]) -> float:
    # In float64: the squares of what vanishes would vanish first. What the loss does not depend on has gradient zero.
    return math.sqrt(sum(float(tensor.double().square().sum()) for tensor in tensors if tensor is not None))


def _mean_factor(sizes: list[float]) -> float:
    """(last / first)^(1 / steps), and 1 where there is no step; 0 and infinity where an end is zero or not finite."""
    first, last = sizes[0], sizes[-1]
    if len(sizes) < 2:
        return 1.0
    if first == 0 or not math.isfinite(last):
        return math.inf if last > 0 or math.isnan(last) else math.nan
    return (last / first) ** (1 / (len(sizes) - 1))
