"""Smoothing kernels: functions K(u) of the offset u = (q - k)/h of a query from a key, in bandwidths.

They depend on ‖u‖ alone, are largest at 0, and are one there: divide by the integral over R^d for a density. Offsets
and bandwidths are in distances.py; attention.nadaraya_watson pools values with these kernels, prob.KernelDensity adds
them up.   d dimensions
"""

import math
from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Float, Real
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.tensor.entries import as_floating, check_floating

__all__ = [
    "BoxcarKernel",
    "EpanechnikovKernel",
    "GaussianKernel",
    "ScaledValues",
    "SmoothingKernel",
    "TriangularKernel",
]


@shown
class ScaledValues(NamedTuple):
    """Kernel values along the last axis: the true ones are values * exp(log_scale), and a ratio of them needs no
    scale."""

    values: Float[Tensor, "*batch m"]
    log_scale: Float[Tensor, "*batch 1"]


@shown
class SmoothingKernel(ABC):
    """A kernel K(u) >= 0 of an offset u, as a function of ‖u‖²; it is zero where ‖u‖ > `radius`."""

    radius: ClassVar[float]

    def __call__(self, u: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch"]:
        """K(u)."""
        check_floating(u, "u")
        return self.from_squared_distance(u.square().sum(dim=-1))

    def density(self, u: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch"]:
        """K(u) / ∫K, a density on R^d."""
        return self(u) * math.exp(-self.log_normalizer(u.shape[-1]))

    @abstractmethod
    def from_squared_distance(self, square: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """K as a function of s = ‖u‖²."""

    def scaled_values(self, square: Float[Tensor, "*batch m"]) -> ScaledValues:
        """K at each s of the last axis, up to a factor for them all that keeps the largest from vanishing by
        rounding."""
        return ScaledValues(self.from_squared_distance(square), square.new_zeros(*square.shape[:-1], 1))

    @abstractmethod
    def log_normalizer(self, dim: int) -> float:
        """ln ∫ K(u) du over R^dim."""

    @abstractmethod
    def sample(
        self, num_samples: int, dim: int, *, generator: torch.Generator, dtype: torch.dtype | None = None
    ) -> Float[Tensor, "{num_samples} {dim}"]:
        """Offsets sampled from the density K / ∫K."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class GaussianKernel(SmoothingKernel):
    """K(u) = exp(-‖u‖²/2), with integral (2π)^(d/2): every key counts a little.

    Notes: Z11.8.
    """

    radius = math.inf

    def from_squared_distance(self, square: Real[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        return torch.exp(-as_floating(square) / 2)

    def scaled_values(self, square: Real[Tensor, "*batch m"]) -> ScaledValues:
        square = as_floating(square)
        # Relative to the nearest key, whose own value vanishes in float32 beyond 13 bandwidths.
        least = square.detach().amin(dim=-1, keepdim=True)
        least = torch.where(least.isfinite(), least, 0)
        return ScaledValues(torch.exp((least - square) / 2), -least / 2)

    def log_normalizer(self, dim: int) -> float:
        return _dimensions(dim) / 2 * math.log(2 * math.pi)

    def sample(
        self, num_samples: int, dim: int, *, generator: torch.Generator, dtype: torch.dtype | None = None
    ) -> Float[Tensor, "{num_samples} {dim}"]:
        return torch.randn(num_samples, dim, generator=generator, dtype=dtype, device=generator.device)


class BoxcarKernel(SmoothingKernel):
    """K(u) = 1 where ‖u‖ <= 1 and 0 elsewhere, with the volume V_d of the unit ball as its integral: keys in the window
    count alike.

    Notes: Z11.8, ZE23.
    """

    radius = 1.0

    def from_squared_distance(self, square: Real[Tensor, "*batch"]) -> Real[Tensor, "*batch"]:
        return (square <= 1).to(square.dtype)

    def log_normalizer(self, dim: int) -> float:
        return _log_ball(dim)

    def sample(
        self, num_samples: int, dim: int, *, generator: torch.Generator, dtype: torch.dtype | None = None
    ) -> Float[Tensor, "{num_samples} {dim}"]:
        radius = _uniform(num_samples, generator, dtype) ** (1 / dim)  # ‖u‖^d is uniform
        return radius * _directions(num_samples, dim, generator, dtype)


class TriangularKernel(SmoothingKernel):
    """K(u) = max(0, 1 - ‖u‖), with integral V_d / (d + 1): a cone, whose gradient at its tip is taken as zero.

    Notes: Z11.8, ZE22.
    """

    radius = 1.0

    def from_squared_distance(self, square: Real[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        positive = square > 0
        length = torch.where(positive, torch.where(positive, square, 1).sqrt(), 0)  # the root of 0 has no derivative
        return (1 - length).clamp(min=0)

    def log_normalizer(self, dim: int) -> float:
        return _log_ball(dim) - math.log(dim + 1)

    def sample(
        self, num_samples: int, dim: int, *, generator: torch.Generator, dtype: torch.dtype | None = None
    ) -> Float[Tensor, "{num_samples} {dim}"]:
        radius = _beta_two(dim, num_samples, generator, dtype)
        return radius * _directions(num_samples, dim, generator, dtype)


class EpanechnikovKernel(SmoothingKernel):
    """K(u) = max(0, 1 - ‖u‖²), with integral 2 V_d / (d + 2), which is 4/3 on the line.

    Of all kernels it gives the density estimate of least mean squared error as the points become many.

    Notes: Z11.8, ZE22.
    """

    radius = 1.0

    def from_squared_distance(self, square: Real[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        return (1 - as_floating(square)).clamp(min=0)

    def log_normalizer(self, dim: int) -> float:
        return _log_ball(dim) + math.log(2 / (dim + 2))

    def sample(
        self, num_samples: int, dim: int, *, generator: torch.Generator, dtype: torch.dtype | None = None
    ) -> Float[Tensor, "{num_samples} {dim}"]:
        radius = _beta_two(dim / 2, num_samples, generator, dtype).sqrt()
        return radius * _directions(num_samples, dim, generator, dtype)


def _log_ball(dim: int) -> float:
    """ln of the volume π^(d/2) / Γ(d/2 + 1) of the unit ball."""
    return _dimensions(dim) / 2 * math.log(math.pi) - math.lgamma(dim / 2 + 1)


def _dimensions(dim: int) -> int:
    if dim < 1:
        raise UserError(f"expected at least one dimension, got {dim}; give points with coordinates")
    return dim


def _uniform(num_samples: int, generator: torch.Generator, dtype: torch.dtype | None) -> Tensor:
    return torch.rand(num_samples, 1, generator=generator, dtype=dtype, device=generator.device)


def _beta_two(a: float, num_samples: int, generator: torch.Generator, dtype: torch.dtype | None) -> Tensor:
    """Samples of Beta(a, 2), the product of a Beta(a, 1) and a Beta(a + 1, 1), each a root of a uniform."""
    return _uniform(num_samples, generator, dtype) ** (1 / a) * _uniform(num_samples, generator, dtype) ** (1 / (a + 1))


def _directions(num_samples: int, dim: int, generator: torch.Generator, dtype: torch.dtype | None) -> Tensor:
    return torch.nn.functional.normalize(
        torch.randn(num_samples, dim, generator=generator, dtype=dtype, device=generator.device), dim=-1
    )
