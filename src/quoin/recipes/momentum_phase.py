"""Heavy-ball momentum on a quadratic: convergence rates measured over a grid, and the spectral radius."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from quoin import train
from quoin.options import option
from quoin.tasks.options import EpochOptions
from quoin.tasks.target import Target

if TYPE_CHECKING:
    from torch import nn

NOTES = ("D1.5F", "D1.5-7", "D1.5-9")
KEYWORDS = ("heavy ball", "polyak", "convergence")
SUBJECT = "Optimization"
# The largest difference on the grid between the measured convergence rate, the factor by which a step changes the
# error, and the spectral radius that predicts it. Where the two roots meet errors fall as t ρᵗ, and a line through ln t
# over T steps rises by 3/2T: 0.00075.
TARGET = Target("validation_convergence_rate_error", at_most=0.001)
MONITOR = None  # the longest run is the best


@dataclass(frozen=True)
class Options(EpochOptions):
    dim: int = option(6, "variables of the quadratic, in a random orthogonal basis", at_least=1, at_most=200)
    condition_number: float = option(
        10.0, "condition number: its largest curvature over its smallest", at_least=1.0, at_most=1e6
    )
    grid_size: int = option(24, "learning rates, and as many momenta, of the grid", at_least=2, at_most=200)
    epochs: int = option(20, "evaluations of the convergence rates", at_least=1, at_most=10**6)
    steps_per_epoch: int = option(100, "optimizer steps between two evaluations", at_least=1, at_most=10**6)


def model(options: Options, data_info: None) -> "nn.ParameterDict":
    """The state of every pair of the grid: its point and its velocity, of norm one together, at first at rest and equal
    along every axis."""
    import torch
    from torch import nn

    from quoin.tasks.momentum_phase import random_quadratic

    axes = random_quadratic(options.dim, options.condition_number, options.seed).axes
    points = (
        axes.mean(dim=1).mul(options.dim**0.5).repeat(options.grid_size, options.grid_size, 1)
    )  # (momenta, rates, dim)
    both = {"points": points, "velocities": torch.zeros_like(points)}
    return nn.ParameterDict({name: nn.Parameter(each, requires_grad=False) for name, each in both.items()})


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    from quoin.tasks.momentum_phase import MomentumPhase, random_quadratic

    return MomentumPhase(
        model(options, None), random_quadratic(options.dim, options.condition_number, options.seed), options
    )
