"""How good the samples of a generative model are: how close their distribution is to that of real examples they were
not learnt from.

No single number says it all. The discrepancy and the Fréchet distance compare whole distributions; density falls when
samples look like nothing real, coverage when some real examples have nothing like them; and a model that only repeats
what it was shown is found by how near its samples lie to its training examples.   n real examples, m samples, d numbers
or features each
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float, Real
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.prob import median_heuristic, squared_frechet_of_samples, squared_mmd
from quoin.tensor import check_finite, check_floating, check_same_dtype, check_shapes
from quoin.tensor.blocks import rows_per_block

__all__ = [
    "DensityAndCoverage",
    "SampleQuality",
    "bits_per_dimension",
    "density_and_coverage",
    "density_and_coverage_definition",
    "nearest_distances",
    "nearest_distances_definition",
    "nn_distance_ratio",
    "sample_quality",
]

BANDWIDTHS = (0.25, 0.5, 1.0)  # of the kernel that samples are compared by, in median distances between real examples
NUM_NEIGHBORS = 5  # that a real example's ball reaches
MOST_MEASURED = 2000  # real examples whose median distance is taken


@shown
class DensityAndCoverage(NamedTuple):
    """For each real example the ball that reaches its k-th nearest other real example; what samples do with these
    balls."""

    # how many balls a sample lies in, over k: about 1 for samples of the same distribution, 0 far from everything real
    density: float
    coverage: float  # the fraction of balls that hold a sample


def density_and_coverage_definition(
    real: Float[Tensor, "n d"], samples: Float[Tensor, "m d"], num_neighbors: int = NUM_NEIGHBORS
) -> DensityAndCoverage:
    """density = 1/(km) Σ_j Σ_i [y_j ∈ B_i], coverage = 1/n Σ_i [some y_j ∈ B_i], for (n, d) and (m, d), pair by pair.

    B_i is the closed ball about x_i whose radius is the distance to the k-th nearest of the other real examples.

    Args:
        num_neighbors: k.

    Notes: D5.2-9.
    """
    _check_balls(real, samples, num_neighbors)
    inside, held = 0, 0
    for i, center in enumerate(real):
        others = [float(torch.dist(center, x)) for other, x in enumerate(real) if other != i]
        radius = sorted(others)[num_neighbors - 1]
        near = sum(float(torch.dist(center, y)) <= radius for y in samples)
        inside, held = inside + near, held + (near > 0)
    return DensityAndCoverage(inside / (num_neighbors * len(samples)), held / len(real))


def density_and_coverage(
    real: Float[Tensor, "n d"], samples: Float[Tensor, "m d"], num_neighbors: int = NUM_NEIGHBORS
) -> DensityAndCoverage:
    """`density_and_coverage_definition` on torch's kernels, a block of balls at a time.

    Args:
        num_neighbors: k: a real example's ball reaches its k-th nearest other one.

    >>> real = torch.tensor([[0.0], [1.0], [2.0], [10.0]])
    >>> density_and_coverage(real, torch.tensor([[0.5], [9.0]]), num_neighbors=1)  # radii 1, 1, 1 and 8
    DensityAndCoverage(density=1.5, coverage=0.75)

    Notes: D5.2-9.
    """
    _check_balls(real, samples, num_neighbors)
    inside, held = 0, 0
    for centers in real.split(rows_per_block(len(real) + len(samples))):
        # The nearest of all is the example itself, at 0: the k-th other one is the one after k.
        radii = _distances(centers, real).kthvalue(num_neighbors + 1, dim=1, keepdim=True).values
        near = (_distances(centers, samples) <= radii).sum(dim=1)
        inside, held = inside + int(near.sum()), held + int((near > 0).sum())
    return DensityAndCoverage(inside / (num_neighbors * len(samples)), held / len(real))


def nearest_distances_definition(samples: Float[Tensor, "m d"], references: Float[Tensor, "n d"]) -> Float[Tensor, "m"]:
    """min_i ‖y_j - x_i‖ for each sample y_j.

    Notes: D5.2-9.
    """
    _check_pair(samples, references)
    return torch.stack([torch.stack([torch.dist(y, x) for x in references]).min() for y in samples])


def nearest_distances(samples: Float[Tensor, "m d"], references: Float[Tensor, "n d"]) -> Float[Tensor, "m"]:
    """`nearest_distances_definition`, a block of samples at a time.

    Notes: D5.2-9.
    """
    _check_pair(samples, references)
    return torch.cat(
        [_distances(some, references).amin(dim=1) for some in samples.split(rows_per_block(len(references)))]
    )


def nn_distance_ratio(samples: Float[Tensor, "m d"], real: Float[Tensor, "n d"], train: Float[Tensor, "t d"]) -> float:
    """The median distance of a sample to its nearest training example, over that of new real examples.

    About 1 for samples of the same distribution, near 0 for a model that repeats its training examples; above 1 the
    samples lie outside the distribution.

    Notes: D5.2-9.
    """
    usual = float(nearest_distances(real, train).median())
    if not usual > 0:
        raise UserError(
            "expected real examples that are not among the training ones, got mostly copies of them; hold some back"
        )
    return float(nearest_distances(samples, train).median()) / usual


def bits_per_dimension(log_prob: Float[Tensor, "n"], num_dimensions: int) -> float:
    """-(1/n) Σ_i ln p(x_i) / (d ln 2): what a code made for the model spends on a pixel, where p is the probability of
    an exact image.

    Args:
        log_prob: ln p(x_i), in nats.
        num_dimensions: d, the numbers of an example: channels × height × width of an image.
    """
    check_floating(log_prob, "log_prob")
    if log_prob.numel() == 0 or num_dimensions < 1:
        raise UserError(
            f"expected examples of at least one number, got {log_prob.numel()} of {num_dimensions}; give both"
        )
    return -float(log_prob.detach().double().mean()) / (num_dimensions * math.log(2))


@shown
class SampleQuality(NamedTuple):
    """The measures that all generative models are held against one another by; what is best stands beside each."""

    mmd: float  # squared and unbiased, of pixels, bandwidths ¼, ½ and 1 median distance of real examples: 0
    frechet: float  # squared, between normal distributions fitted to features: near 0, never below it
    density: float  # of features: 1
    coverage: float  # of features: 1
    nn_distance_ratio: float  # to training examples, of pixels: 1


def sample_quality(
    samples: Real[Tensor, "m *shape"],
    real: Real[Tensor, "n *shape"],
    features: Callable[[Tensor], Tensor],
    *,
    train: Real[Tensor, "t *shape"],
) -> SampleQuality:
    """Fréchet distance, density, coverage and distances to neighbours of a generative model's `samples`.

    They are measured beside `real` examples that the model did not learn from, and beside those of its training set.

    `features` takes examples to (n, d) numbers in which what matters of them lies near the surface, such as the last
    hidden layer of a classifier; distances of pixels see a digit moved by one pixel as another digit. Measures depend
    on how many samples there are: compare models by equal numbers.

    Notes: D5.2-9.
    """
    for name, given in (("samples", samples), ("train", train)):
        if given.shape[1:] != real.shape[1:]:
            raise UserError(
                f"expected {name} of shape (n, {', '.join(map(str, real.shape[1:]))}), got {tuple(given.shape)}"
            )
    pixels, truth, known = (each.detach().flatten(1).float().cpu() for each in (samples, real, train))
    with torch.no_grad():
        seen, true_seen = (features(each).detach().flatten(1).float().cpu() for each in (samples, real))
    middle = median_heuristic(truth[:MOST_MEASURED])
    balls = density_and_coverage(true_seen, seen)
    return SampleQuality(
        mmd=float(squared_mmd(pixels, truth, [factor * middle for factor in BANDWIDTHS])),
        frechet=float(squared_frechet_of_samples(seen, true_seen)),
        density=balls.density,
        coverage=balls.coverage,
        nn_distance_ratio=nn_distance_ratio(pixels, truth, known),
    )


def _distances(first: Tensor, second: Tensor) -> Tensor:  # (n, d), (m, d) -> (n, m)
    # From differences: equal points are at distance 0, which a product of matrices would miss by rounding.
    return torch.cdist(first, second, compute_mode="donot_use_mm_for_euclid_dist")


def _check_pair(first: Tensor, second: Tensor) -> None:
    check_shapes("n d, m d", first=first, second=second)
    check_same_dtype(first, second)
    for each in (first, second):
        check_floating(each)
        check_finite(each)
        if len(each) == 0:
            raise UserError(
                f"expected at least one example on each side, got shapes {tuple(first.shape)} and {tuple(second.shape)}"
            )


def _check_balls(real: Tensor, samples: Tensor, num_neighbors: int) -> None:
    _check_pair(real, samples)
    if not 1 <= num_neighbors < len(real):
        raise UserError(
            f"expected from 1 to {len(real) - 1} neighbours among {len(real)} real examples, got {num_neighbors}; "
            "give more"
        )
