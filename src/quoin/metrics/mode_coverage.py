"""Whether samples come from every mode of a distribution: how often each of its modes is hit, beside how often it
should be.

A generator may give perfect samples of a few modes and none of the others: mode collapse. What a mode is, is for the
caller to say: the classes that a classifier of real examples knows, or the bumps of a distribution that was made of
bumps.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int, Integer
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.prob import check_probs, total_variation_distance
from quoin.tensor import check_floating, check_same_dtype, check_shapes

__all__ = ["ModeCoverage", "mode_coverage", "nearest_modes"]


@shown
class ModeCoverage(NamedTuple):
    """How the samples are distributed over the modes."""

    covered: int  # modes that have a sample at all
    min_ratio: float  # the fraction of the rarest mode, over what it should be: 1 at best, 0 if one has no sample
    total_variation: float  # the total variation between how often modes come and how often they should: 0 at best
    unassigned_fraction: float  # the fraction of samples that belong to no mode


def mode_coverage(modes: Integer[Tensor, "samples"], expected_probs: Float[Tensor, "modes"]) -> ModeCoverage:
    """The mode of each sample, -1 for none, beside `expected_probs`, the distribution of the modes among real examples.

    >>> mode_coverage(torch.tensor([0, 0, 0, 1, -1]), torch.tensor([0.5, 0.25, 0.25]))  # of four, one 1 and no 2
    ModeCoverage(covered=2, min_ratio=0.0, total_variation=0.25, unassigned_fraction=0.2)
    """
    check_shapes("n, q", modes=modes, expected_probs=expected_probs)
    check_probs(expected_probs, "expected_probs")
    if modes.is_floating_point() or not len(modes) or int(modes.min()) < -1 or int(modes.max()) >= len(expected_probs):
        raise UserError(
            f"expected modes from 0 to {len(expected_probs) - 1}, or -1 for none, of at least one sample, got others; "
            "count from 0"
        )
    counts = torch.bincount(modes[modes >= 0], minlength=len(expected_probs)).double()
    unassigned_fraction = int((modes < 0).sum()) / len(modes)
    if not counts.any():
        return ModeCoverage(0, 0.0, 1.0, unassigned_fraction)
    fractions, expected_probs = counts / counts.sum(), expected_probs.double() / expected_probs.double().sum()
    wanted = expected_probs > 0
    return ModeCoverage(
        covered=int((counts[wanted] > 0).sum()),
        min_ratio=min(1.0, float((fractions[wanted] / expected_probs[wanted]).min())),
        total_variation=float(total_variation_distance(fractions, expected_probs)),
        unassigned_fraction=unassigned_fraction,
    )


def nearest_modes(
    samples: Float[Tensor, "samples features"], centers: Float[Tensor, "modes features"], radius: float
) -> Int[Tensor, "samples"]:
    """The centre that each sample is nearest to, -1 where even that is farther than `radius`.

    >>> nearest_modes(torch.tensor([[0.1], [4.0], [1.9]]), torch.tensor([[0.0], [2.0]]), 0.5)
    tensor([ 0, -1,  1])
    """
    check_shapes("n d, q d", samples=samples, centers=centers)
    check_floating(samples, "samples")
    check_same_dtype(samples, centers)
    if not len(centers) or not radius > 0:
        raise UserError(
            f"expected at least one centre and a radius above 0, got {len(centers)} and {radius}; give both"
        )
    distance, mode = torch.cdist(samples, centers).min(dim=1)
    return torch.where(distance <= radius, mode, -1)
