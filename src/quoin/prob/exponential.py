"""A latent-variable model to work out by hand: Z ~ Exp(θ), X | Z ~ N(Z, 1), and Exp(φ) in place of the posterior.

Evidence, lower bound and the bound's maximum all have closed forms. What maximises the bound does not maximise the
evidence: the posterior is a normal distribution cut off at 0, which no exponential distribution is.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Real
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.prob.latent import TractableLatentModel
from quoin.tensor import as_floating, check_floating
from quoin.tensor.array_like import ArrayLike, float_tensor, number_tensor

__all__ = ["Exponential", "ExponentialLatent", "ExponentialOptimum", "exponential_elbo", "exponential_elbo_optimum"]


@shown
class Exponential:
    """Exp(φ) on [0, ∞), of mean 1/φ, for any batch of rates; a sample is standard noise divided by the rate.

    Notes: D6-25.
    """

    def __init__(self, rate: Float[Tensor, "*batch"] | ArrayLike):
        rate = float_tensor(rate, "rate")
        _check_rate(rate)
        self.rate = rate

    def sample_noise(self, sample_shape: Sequence[int] = (), *, generator: torch.Generator) -> Float[Tensor, "..."]:
        """ε ~ Exp(1), of the shape (*sample_shape, *batch)."""
        return torch.empty(
            (*sample_shape, *self.rate.shape), dtype=self.rate.dtype, device=self.rate.device
        ).exponential_(generator=generator)

    def transform(self, noise: Real[Tensor, "*#batch"]) -> Float[Tensor, "*#batch"]:
        return noise / self.rate

    def sample(self, sample_shape: Sequence[int] = (), *, generator: torch.Generator) -> Float[Tensor, "..."]:
        return self.transform(self.sample_noise(sample_shape, generator=generator))

    def log_prob(self, z: Real[Tensor, "*#batch"]) -> Float[Tensor, "*#batch"]:
        """ln φ - φ z for z >= 0, else -inf."""
        return torch.where(z >= 0, self.rate.log() - self.rate * z, -math.inf)


class ExponentialLatent(TractableLatentModel):
    """Z ~ Exp(θ) and X | Z ~ N(Z, 1) for one rate θ: all are single numbers, so that x, z and every result
    have one shape.

    >>> model = ExponentialLatent(torch.tensor(1.0))
    >>> model.log_evidence(torch.tensor(1.0))  # ln (e^-½ / 2)
    tensor(-1.1931)

    Notes: D6-7, D6-21.
    """

    def __init__(self, rate: Float[Tensor, ""] | ArrayLike):
        rate = float_tensor(rate, "rate")
        _check_rate(rate)
        if rate.ndim != 0:
            raise UserError(f"expected one rate for the model, got shape {tuple(rate.shape)}; build a model for each")
        self.prior = Exponential(rate)

    def log_prior(self, z: Real[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        return self.prior.log_prob(z)

    def log_likelihood(self, x: Real[Tensor, "*#batch"], z: Real[Tensor, "*#batch"]) -> Float[Tensor, "*#batch"]:
        return -(as_floating(x) - as_floating(z)).square() / 2 - math.log(2 * math.pi) / 2

    def sample_prior(
        self, sample_shape: Sequence[int] = (), *, generator: torch.Generator
    ) -> Float[Tensor, "*samples"]:
        return self.prior.sample(sample_shape, generator=generator)

    def log_evidence(self, x: Real[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """ln p(x) = ln θ + θ²/2 - θx + ln ½ erfc((θ - x)/√2), the last as the log of the normal distribution's tail,
        which does not underflow.

        Notes: D6-7, D6-21.
        """
        rate = self.prior.rate
        return rate.log() + rate**2 / 2 - rate * x + torch.special.log_ndtr(x - rate)


def exponential_elbo(
    prior_rate: Float[Tensor, "*#batch"] | ArrayLike,
    rate: Float[Tensor, "*#batch"] | ArrayLike,
    x: Real[Tensor, "*#batch"] | ArrayLike,
) -> Float[Tensor, "*#batch"]:
    """L(θ, φ; x) = ln θ - θ/φ - ½ ln 2π - ½ (x² - 2x/φ + 2/φ²) - ln φ + 1, since E Z = 1/φ and E
    Z² = 2/φ² under Exp(φ).

    Args:
        prior_rate: θ.
        rate: φ.

    Notes: D6-21, DE57.
    """
    prior_rate = float_tensor(prior_rate, "prior_rate", rate, x)
    rate = float_tensor(rate, "rate", prior_rate, x)
    x = number_tensor(x, "x", prior_rate, rate)
    _check_rate(prior_rate)
    _check_rate(rate)
    x = as_floating(x)
    square = x**2 - 2 * x / rate + 2 / rate**2
    return prior_rate.log() - prior_rate / rate - math.log(2 * math.pi) / 2 - square / 2 - rate.log() + 1


@shown
class ExponentialOptimum(NamedTuple):
    """Where the bound is largest, and how large."""

    output: Float[Tensor, "*batch"]  # L = -½ ln 2π - x²/4
    rate: Float[Tensor, "*batch"]  # θ = φ = 2/x


def exponential_elbo_optimum(x: Float[Tensor, "*batch"] | ArrayLike) -> ExponentialOptimum:
    """The maximum of `exponential_elbo` over both rates: θ = φ = 2/x for x > 0. For x <= 0 the bound grows as φ does,
    and has none.

    The θ that is most probable is another one, as the gap to the evidence depends on θ.

    Notes: D6-21, DE57, DE62.
    """
    x = float_tensor(x, "x")
    check_floating(x, "x")
    if not bool((x > 0).all()):  # NaN fails too
        raise UserError(
            f"expected x above 0, got {float(x.min()):.3g}; for x <= 0 the bound grows with its rates and has no "
            "maximum"
        )
    return ExponentialOptimum(-(x**2) / 4 - math.log(2 * math.pi) / 2, 2 / x)


def _check_rate(rate: Tensor) -> None:
    check_floating(rate, "rate")
    if not torch.compiler.is_compiling() and not bool((rate > 0).all()):  # NaN fails too
        raise UserError(f"expected rates above 0, got {float(rate.min()):.3g}; a mean of m is a rate of 1/m")
