"""The error on all data there could be, and how near a sample comes to it: exact for a distribution we know, estimated
otherwise.

The error on the examples at hand is `empirical_risk`.   n examples
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.metrics.risk import held_out_losses
from quoin.prob import check_probs

__all__ = [
    "GeneralizationGap",
    "Population",
    "RiskEstimate",
    "estimate_risk",
    "expected_risk",
    "generalization_gap",
    "monte_carlo_risk",
    "population_from_density",
]

Model = Callable[[Tensor], Tensor]
Loss = Callable[[Tensor, Tensor], Tensor]

_LOST = 1e-6  # of the mass of a density that may lie outside the rectangle, or between the nodes


@shown
class Population(NamedTuple):
    """A distribution P of (x, y) as weighted points: those of a finite distribution, or the nodes of a quadrature rule
    with weight times density.
    """

    x: Shaped[Tensor, "n ..."]
    y: Shaped[Tensor, "n ..."]
    probability: Float[Tensor, "n"]


@shown
class RiskEstimate(NamedTuple):
    """A mean loss with its standard error, sd / sqrt(n): twice that either way holds the true error in about 95 of 100
    samples."""

    output: float
    standard_error: float


@shown
class GeneralizationGap(NamedTuple):
    """The errors on training and on unseen data, and how far the second exceeds the first."""

    output: float
    training_error: float
    test_error: float
    standard_error: float  # of the test error

    @property
    def overfits(self) -> bool:
        """Whether the gap is more than three standard errors of the test: too much to be the luck of the test
        examples."""
        return self.output > 3 * self.standard_error

    def __str__(self) -> str:
        verdict = "overfits" if self.overfits else "no more than chance explains"
        return (
            f"training error {self.training_error:.4g}, test error {self.test_error:.4g} ± "
            f"{self.standard_error:.2g}: {verdict}"
        )


def expected_risk(model: Model, loss: Loss, population: Population) -> float:
    """The generalisation error R = E_{(x,y)~P} l(f(x), y) = sum_k p_k l(f(x_k), y_k).

    Exact for a finite distribution, and for a density as exact as the rule of `population_from_density`; to be had only
    where P is known.

    Args:
        loss: Takes predictions and targets to one number for each example, not to their mean.

    Notes: Z3.23.
    """
    x, y, probability = population
    if probability.shape != y.shape[:1] or len(x) != len(y) or len(y) == 0:
        shapes = ", ".join(str(tuple(each.shape)) for each in population)
        raise UserError(f"expected a probability for each of n >= 1 points x, y, got shapes {shapes}; pair them up")
    check_probs(probability, "the probabilities of the population")
    losses = _losses(model, loss, x, y)
    return float((losses * probability.to(losses)).sum())


def population_from_density(
    density: Callable[[Tensor, Tensor], Tensor],
    x_range: tuple[float, float],
    y_range: tuple[float, float],
    *,
    num_nodes: int = 200,
) -> Population:
    """A density p(x, y) of two numbers as weighted points, so that sums over them are the integral of l p over a
    rectangle.

    Gauss-Legendre nodes on each axis: for smooth p and l the error falls faster than any power of `num_nodes`. The
    rectangle must hold all but a millionth of the mass; the weights are those of the rule, not divided by their sum.

    Args:
        x_range: Low and high end of the rectangle in x, both finite.
        y_range: The same in y.
        num_nodes: On each axis.

    Notes: Z3.23.
    """
    if num_nodes < 1:
        raise UserError(f"expected at least one node on each axis, got {num_nodes}; 200 do for smooth densities")
    lines = []
    nodes, weights = (torch.from_numpy(each) for each in np.polynomial.legendre.leggauss(num_nodes))
    for low, high in (x_range, y_range):
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise UserError(
                f"expected a finite interval from low to high, got ({low}, {high}); cut it where the density is "
                "nearly zero"
            )
        lines.append((low + (high - low) * (nodes + 1) / 2, (high - low) / 2 * weights))
    (x, along_x), (y, along_y) = lines
    x, y = (each.flatten() for each in torch.meshgrid(x, y, indexing="ij"))
    probability = density(x, y) * torch.outer(along_x, along_y).flatten()
    mass = float(probability.sum())
    if not (bool((probability >= 0).all()) and abs(mass - 1) <= _LOST):
        raise UserError(
            f"expected a density of at least 0 with its mass of 1 inside the rectangle, got {mass:.8g}; widen it, "
            "or add nodes"
        )
    return Population(x, y, probability)


def estimate_risk(model: Model, loss: Loss, x: Shaped[Tensor, "n ..."], y: Shaped[Tensor, "n ..."]) -> RiskEstimate:
    """The mean loss over examples that the model has not seen, with its standard error: an unbiased estimate of R.

    Args:
        loss: Takes predictions and targets to one number for each example, not to their mean.

    Notes: Z3.24, D1.3-6.
    """
    losses = _losses(model, loss, x, y)
    if len(losses) < 2:
        raise UserError(f"expected at least two examples, to see how they differ, got {len(losses)}; hold out more")
    return RiskEstimate(float(losses.mean()), float(losses.std()) / math.sqrt(len(losses)))


def monte_carlo_risk(
    model: Model,
    loss: Loss,
    sample: Callable[[int, torch.Generator], tuple[Tensor, Tensor]],
    num_examples: int,
    *,
    generator: torch.Generator,
) -> RiskEstimate:
    """R by Monte-Carlo, for a distribution that can be sampled though not written down: `estimate_risk` of
    `num_examples` fresh samples.

    Args:
        loss: Takes predictions and targets to one number for each example, not to their mean.
        sample: Takes a number of examples and a generator to that many x and y.

    Notes: Z3.23.
    """
    return estimate_risk(model, loss, *sample(num_examples, generator))


def generalization_gap(
    model: Model,
    loss: Loss,
    train: tuple[Shaped[Tensor, "train ..."], Shaped[Tensor, "train ..."]],
    test: tuple[Shaped[Tensor, "test ..."], Shaped[Tensor, "test ..."]],
) -> GeneralizationGap:
    """Test error minus training error of a fitted model, for (x, y) that it was fitted to and (x, y) that it was not.

    Args:
        loss: Takes predictions and targets to one number for each example, not to their mean.

    Notes: Z3.20.
    """
    seen = _losses(model, loss, *train)
    unseen = estimate_risk(model, loss, *test)
    training_error = float(seen.mean())
    return GeneralizationGap(unseen.output - training_error, training_error, unseen.output, unseen.standard_error)


def _losses(model: Model, loss: Loss, x: Tensor, y: Tensor) -> Tensor:
    """One loss for each example, and no NaN among them."""
    losses = held_out_losses(model, loss, x, y)
    if losses.ndim != 1:
        raise UserError(
            f"expected one loss for each of {len(y)} examples, got shape {tuple(losses.shape)}; average over the "
            "other axes"
        )
    if losses.isnan().any():
        raise UserError("expected losses that are numbers, got NaN; look for NaN in the examples or the model")
    return losses
