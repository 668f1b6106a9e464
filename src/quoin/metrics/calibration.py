"""What a posterior is good for: how unsure it is, what to do about it, and whether its numbers can be believed."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Float64, Int, Integer, Real, Shaped
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.prob import check_probs, distribution_cross_entropy
from quoin.tensor import check_labels, check_shapes

__all__ = [
    "CalibrationCurve",
    "Decision",
    "calibration_curve",
    "expected_calibration_error",
    "minimize_expected_cost",
    "predictive_entropy",
]


def predictive_entropy(probabilities: Float[Tensor, "*batch classes"]) -> Float[Tensor, "*batch"]:
    """H(P(C | x)) = -sum_c P(c | x) ln P(c | x): 0 where one class is certain, ln q where all q are alike.

    Notes: D5.2-10.
    """
    return distribution_cross_entropy(probabilities, probabilities)


@shown
class Decision(NamedTuple):
    """The action for each example, and what every action is expected to cost."""

    output: Int[Tensor, "*batch"]  # numbers of actions
    expected_cost: Float[Tensor, "*batch actions"]


def minimize_expected_cost(
    probabilities: Float[Tensor, "*batch classes"], cost: Real[Tensor, "actions classes"]
) -> Decision:
    """The action of least expected cost, argmin_a sum_c P(c | x) cost(a, c); the first of equals.

    With cost 1 for every wrong class and 0 for the right one it is the most probable class.

    Notes: D5.2-10.
    """
    check_probs(probabilities, "probabilities")
    check_shapes("... q, a q", probabilities=probabilities, cost=cost)
    if len(cost) == 0 or not cost.isfinite().all():
        raise UserError(
            f"expected finite costs of at least one action, got shape {tuple(cost.shape)}; give one row for each action"
        )
    expected = probabilities @ cost.to(probabilities.dtype).mT
    return Decision(expected.argmin(dim=-1), expected)


@shown
class CalibrationCurve(NamedTuple):
    """Stated against observed, by bins of equal width on [0, 1]; an empty bin has no means (NaN)."""

    confidence: Float64[Tensor, "bins"]  # the mean probability stated
    frequency: Float64[Tensor, "bins"]  # the fraction of those events that happened
    counts: Int[Tensor, "bins"]


def calibration_curve(
    probabilities: Real[Tensor, "examples"], outcomes: Shaped[Tensor, "examples"], *, num_bins: int = 10
) -> CalibrationCurve:
    """How often what was given probability p happened, for p in each of the bins ((k - 1)/bins, k/bins]; 0 is in the
    first.

    A calibrated forecast has frequency = confidence: P[C = c | P(c | x) = p] = p.

    Args:
        outcomes: 1 or True for what happened, 0 or False for what did not.
        num_bins: Bins of equal width on [0, 1].

    Notes: D5.2-10.
    """
    check_shapes("n, n", probabilities=probabilities, outcomes=outcomes)
    if num_bins < 1 or len(probabilities) == 0:
        raise UserError(
            f"expected at least one bin and one example, got {num_bins} and {len(probabilities)}; give more"
        )
    p, true = probabilities.detach().double(), outcomes.double()
    if not ((p >= 0) & (p <= 1)).all():  # NaN fails too
        raise UserError(
            f"expected probabilities from 0 to 1, got {p.min():.3g} to {p.max():.3g}; take a softmax or sigmoid of "
            "scores"
        )
    if not ((true == 0) | (true == 1)).all():
        raise UserError(
            "expected 1 or True for what happened and 0 or False for what did not, got another value; compare "
            "labels first"
        )
    edges = torch.linspace(0, 1, num_bins + 1, dtype=torch.float64, device=p.device)
    bins = torch.bucketize(p, edges[1:-1])
    counts = torch.bincount(bins, minlength=num_bins)
    confidence, frequency = (torch.bincount(bins, weights=values, minlength=num_bins) / counts for values in (p, true))
    return CalibrationCurve(confidence, frequency, counts)


def expected_calibration_error(
    probabilities: Float[Tensor, "examples classes"], labels: Integer[Tensor, "examples"], *, num_bins: int = 15
) -> float:
    """sum_bins (fraction of examples) · |frequency - confidence| for the class each example is given, the most probable
    one.

    Args:
        num_bins: Bins of equal width on [0, 1], as in `calibration_curve`.

    Notes: D5.2-10.
    """
    check_probs(probabilities, "probabilities")
    check_shapes("n q, n", probabilities=probabilities, labels=labels)
    check_labels(labels, probabilities.shape[-1])
    stated, prediction = probabilities.max(dim=-1)
    curve = calibration_curve(
        stated.clamp(max=1), prediction == labels, num_bins=num_bins
    )  # a sum of one may round above it
    gaps = (curve.frequency - curve.confidence).abs().nan_to_num(0.0)
    return float((curve.counts * gaps).sum() / curve.counts.sum())
