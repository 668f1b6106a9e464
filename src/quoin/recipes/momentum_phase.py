"""Momentum on a quadratic, run at every pair of rate and momentum of a grid: the measured rates beside those of two eigenvalues."""

from dataclasses import dataclass

from quoin import train
from quoin.options import option
from quoin.tasks.options import RunOptions
from quoin.tasks.target import Target

NOTES = ("D1.5F", "D1.5-7", "D1.5-9")
# The largest difference on the grid between the factor by which an update shrinks (or stretches) the error, as measured, and the spectral
# radius that predicts it. Where the two roots meet errors fall as t ρᵗ, and a line through ln t over T updates rises by 3/2T: 0.00075.
TARGET = Target("validation_rate_off", at_most=0.001)
MONITOR = None  # the longest look is the best


@dataclass(frozen=True)
class Options(RunOptions):
    dim: int = option(6, "variables of the quadratic, turned at random", at_least=1, at_most=200)
    condition: float = option(10.0, "its largest curvature over its least", at_least=1.0, at_most=1e6)
    cells: int = option(24, "learning rates, and as many momenta, to run at", at_least=2, at_most=200)
    epochs: int = option(20, "looks at the rates", at_least=1, at_most=10**6)
    steps: int = option(100, "updates between two looks", at_least=1, at_most=10**6)


def model(options: Options, facts):
    """Where every pair stands: its point and its velocity, of length one together, at first at rest and as far along every axis."""
    import torch
    from torch import nn

    from quoin.tasks.momentum_phase import random_quadratic

    axes = random_quadratic(options.dim, options.condition, options.seed).axes
    points = axes.mean(dim=1).mul(options.dim**0.5).repeat(options.cells, options.cells, 1)  # (momenta, rates, dim)
    both = {"points": points, "velocities": torch.zeros_like(points)}
    return nn.ParameterDict({name: nn.Parameter(each, requires_grad=False) for name, each in both.items()})


def build(options: Options, place: "train.Place"):
    from quoin.tasks.momentum_phase import MomentumPhase, random_quadratic

    return MomentumPhase(model(options, None), random_quadratic(options.dim, options.condition, options.seed), options)
