"""Mixup: training on convex combinations of pairs of examples and of their targets."""

from typing import NamedTuple

import numpy
import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor

from quoin.display import shown
from quoin.errors import UserError

__all__ = ["MixedExamples", "mixup", "sample_mixup"]


@shown
class MixedExamples(NamedTuple):
    """Examples mixed in pairs, with targets mixed alike."""

    features: Float[Tensor, "batch ..."]
    targets: Float[Tensor, "batch classes"]


def mixup(
    features: Float[Tensor, "batch ..."], targets: Float[Tensor, "batch classes"], generator: Generator, alpha: float
) -> MixedExamples:
    """x'_i = λ x_i + (1 - λ) x_j and y'_i = λ y_i + (1 - λ) y_j with j = π(i) for a random permutation π of the batch
    (Zhang et al. 2018).

    λ is one sample of Beta(alpha, alpha) for the whole batch, as in the paper's code. The samples depend on the
    generator, alpha and the batch's size alone; the generator lives on the CPU wherever the examples are.

    Args:
        targets: One-hot rows, or other distributions over the classes.
        alpha: Both parameters of the Beta distribution: near 0 hardly anything is mixed, at 1 λ is uniform.
    """
    if targets.ndim != 2 or len(targets) != len(features):
        raise UserError(
            f"expected a row of class probabilities for each of {len(features)} examples, got targets of shape "
            f"{tuple(targets.shape)}; take one_hot of labels"
        )
    partners, weight = sample_mixup(len(features), generator, alpha)
    partners = partners.to(features.device)
    return MixedExamples(
        torch.lerp(features[partners], features, weight), torch.lerp(targets[partners], targets, weight)
    )


def sample_mixup(num_rows: int, generator: Generator, alpha: float) -> tuple[Int[Tensor, "{num_rows}"], float]:
    """Each row's partner, π, and λ, of a batch of so many rows."""
    if not alpha > 0:
        raise UserError(f"expected an alpha of mixup above 0, got {alpha}; leave mixup out for none")
    partners = torch.randperm(num_rows, generator=generator)
    # torch's own Beta distribution takes no generator.
    seed = int(torch.randint(2**62, (), generator=generator))
    return partners, float(numpy.random.default_rng(seed).beta(alpha, alpha))
