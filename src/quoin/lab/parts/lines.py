"""Lines through points for the pages: the one of least absolute error, how sure least squares is of its own, and the
way of minibatch SGD to it."""

from __future__ import annotations

import functools
import itertools
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.data import make_linear
from quoin.errors import UserError
from quoin.lab.parts.claim_forms import form_of
from quoin.losses import mae, squared_loss
from quoin.metrics import student_t_quantile
from quoin.models import LinearFit, linear_regression_definition, normal_equations
from quoin.notes.claims.linear_models import Problem, bias_update_starts_from_the_bias
from quoin.optim import sgd_step_definition

__all__ = [
    "RANGE",
    "START",
    "STEPS",
    "FitWithErrors",
    "examples",
    "fit_with_errors",
    "least_absolute_line",
    "loss_over_the_plane",
    "sgd_path",
]

STEPS, START, RANGE = 30, (-1.5, 1.8), (-2.5, 3.5)  # of the path of SGD, and of w and b in its picture


def least_absolute_line(x: Float[Tensor, " n"], y: Float[Tensor, " n"]) -> LinearFit:
    """The line of least mean absolute error. Some such line passes through two of the points: all pairs are tried."""
    pairs = [(i, j) for i, j in itertools.combinations(range(len(x)), 2) if x[i] != x[j]]
    if not pairs:
        return LinearFit(x.new_zeros(1), y.median())
    i, j = torch.tensor(pairs).unbind(dim=1)
    slope = (y[j] - y[i]) / (x[j] - x[i])
    bias = y[i] - slope * x[i]
    errors = mae(slope.unsqueeze(1) * x + bias.unsqueeze(1), y.expand(len(pairs), -1))
    best = int(errors.argmin())
    return LinearFit(slope[best].reshape(1), bias[best])


class FitWithErrors(NamedTuple):
    """Least squares with the standard errors that independent noise of one variance gives its weights."""

    fit: LinearFit
    standard_errors: Float[Tensor, " features"]
    noise: float  # the estimated standard deviation of the noise
    t: float  # a weight plus or minus t standard errors covers the true one with probability 0.95


def fit_with_errors(X: Float[Tensor, "examples features"], y: Float[Tensor, " examples"]) -> FitWithErrors:
    """Least squares, s² = Σ r² / (n - d - 1), and s² times the diagonal of ([X, 1]ᵀ[X, 1])⁻¹."""
    free = len(y) - X.shape[1] - 1
    if free < 1:
        raise UserError(f"expected more rows than the {X.shape[1] + 1} weights, got {len(y)}; add rows")
    fit = normal_equations(X, y)
    variance = float((y - fit.predict(X)).square().sum()) / free
    design = torch.cat([X, torch.ones_like(X[:, :1])], dim=1)
    spread = torch.linalg.inv(design.mT @ design).diagonal()[:-1]
    return FitWithErrors(fit, (variance * spread).sqrt(), variance**0.5, student_t_quantile(0.95, free))


@functools.lru_cache(maxsize=1)
def examples() -> tuple[Float[Tensor, "16 1"], Float[Tensor, 16]]:
    """Sixteen examples of y = 2x - 1 + noise."""
    data = make_linear(16, [2.0], -1.0, noise=0.5, generator=torch.Generator().manual_seed(1))
    return data.features.double(), data.targets.double()


@functools.lru_cache(maxsize=1)
def loss_over_the_plane(size: int = 60) -> Float[Tensor, "{size} {size}"]:
    """The mean loss at each (w, b) of a grid; the first row is the largest b."""
    X, y = examples()
    w = torch.linspace(*RANGE, size, dtype=torch.float64).expand(size, size)
    b = torch.linspace(RANGE[1], -RANGE[1], size, dtype=torch.float64).unsqueeze(1).expand(size, size)
    predicted = w.unsqueeze(-1) * X[:, 0] + b.unsqueeze(-1)
    return squared_loss(predicted, y.expand_as(predicted)).mean(dim=-1)


@functools.lru_cache(maxsize=64)
def sgd_path(batch: int, rate: float, printed: bool) -> list[tuple[float, float]]:
    """(w, b) before and after each step, over minibatches taken in turn."""
    form = form_of(bias_update_starts_from_the_bias, printed)
    X, y = examples()
    parts, (w, b) = torch.arange(len(y)).split(batch), torch.tensor(START, dtype=torch.float64).unbind()
    path = [START]
    for step in range(STEPS):
        rows = parts[step % len(parts)]
        weight = w.reshape(1).requires_grad_()
        losses = squared_loss(linear_regression_definition(X[rows], weight, b), y[rows])
        given = Problem(X[rows], y[rows], weight.detach(), b, rate, 0.0)
        w, b = sgd_step_definition([weight], losses, rate)[0].detach()[0], form(given).reshape(())
        path.append((float(w), float(b)))
    return path
