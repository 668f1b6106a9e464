"""Steps of EM on a reader's points, one by one, until a component collapses; and test digits of a trained VAE."""

import functools
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from quoin.errors import UserError
from quoin.lab.parts.run_data import test_digits
from quoin.models import em_step
from quoin.prob import FullNormals, GaussianMixtureDistribution
from quoin.runs import Run

__all__ = ["COVARIANCE", "MEANS", "EMStates", "em_states", "encoded_digits", "start_mixture"]

MEANS = ((-0.6, -0.2), (0.5, -0.6), (1.4, 1.2))
COVARIANCE = 0.3


class EMStates(NamedTuple):
    """The mixtures before the first and after each step; `collapsed` where the next one would have no variance."""

    mixtures: list[GaussianMixtureDistribution]
    log_likelihoods: list[float]  # a point's, in the mean
    collapsed: bool


def start_mixture() -> GaussianMixtureDistribution:
    """Three round components in the middle."""
    covariances = COVARIANCE * torch.eye(2, dtype=torch.float64).repeat(3, 1, 1)
    return GaussianMixtureDistribution(
        torch.full((3,), 1 / 3, dtype=torch.float64),
        FullNormals(torch.tensor(MEANS, dtype=torch.float64), covariances),
    )


@functools.lru_cache(maxsize=256)
def em_states(points: tuple[tuple[float, float], ...], num_steps: int, min_variance: float) -> EMStates:
    """`num_steps` of EM, fewer where a component collapses."""
    x = torch.tensor(points, dtype=torch.float64)
    if num_steps == 0:
        mixture = start_mixture()
        return EMStates([mixture], [float(mixture.log_prob(x).mean())], False)
    before = em_states(points, num_steps - 1, min_variance)
    if before.collapsed:
        return before
    try:
        mixture = em_step(before.mixtures[-1], x, min_variance=min_variance).output
        found = float(mixture.log_prob(x).mean())
    except UserError:  # a component without variance: EM's likelihood is infinite there
        return EMStates(before.mixtures, before.log_likelihoods, True)
    return EMStates([*before.mixtures, mixture], [*before.log_likelihoods, found], False)


class EncodedDigits(NamedTuple):
    """Test digits, their classes, and what the encoder makes of them."""

    images: Float[Tensor, "n 1 8 8"]
    classes: Int[Tensor, "n"]
    means: Float[Tensor, "n 2"]
    stds: Float[Tensor, "n 2"]


_encoded: dict[str, EncodedDigits] = {}  # by the run's folder: a run is opened again and again


@torch.no_grad()
def encoded_digits(run: Run) -> EncodedDigits:
    """The test digits of a run of `vae` and their places among its latents."""
    key = str(run.path)
    if key not in _encoded:
        test = test_digits(run)
        model: Any = run.model
        q = model.encoder(test.features)
        _encoded[key] = EncodedDigits(test.features, test.targets, q.mean, q.std)
    return _encoded[key]
