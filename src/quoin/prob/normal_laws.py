"""Normal laws as networks give them out: a mean and a scale that is positive by construction, drawn from by moving standard noise.

`MultivariateNormal` checks the covariance that a user brings and may be singular; these two are built anew at every step of a
training run, check nothing that costs a factorisation, and are made to be differentiated.   d coordinates
"""

import math
from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from quoin.errors import Mistake
from quoin.prob.covariance import check_covariance, check_semi_definite
from quoin.prob.matrix_root import symmetric_root
from quoin.tensor import check_floating

__all__ = ["DiagonalNormal", "NormalDistribution", "Proposal", "ReparametrisedLaw", "TriangularNormal", "reparametrise_definition"]


class Proposal(Protocol):
    """A law to draw latent variables from, one for each example: its batch axes are those of the examples."""

    def sample(self, shape: Sequence[int] = (), *, generator: torch.Generator) -> Tensor:
        """Draws (*shape, *batch, ...)."""
        ...

    def log_prob(self, z: Tensor) -> Tensor:
        """ln q(z), leading axes of z beyond the batch being draws."""
        ...


class ReparametrisedLaw(Proposal, Protocol):
    """A law whose draws are z = g(ε): noise ε that no parameter touches, put in place by a map g that all parameters are in."""

    def noise(self, shape: Sequence[int] = (), *, generator: torch.Generator) -> Tensor:
        """ε (*shape, *batch, ...), from a law without parameters."""
        ...

    def place(self, noise: Tensor) -> Tensor:
        """z = g(ε), differentiable in the parameters."""
        ...


class NormalDistribution(ReparametrisedLaw, Protocol):
    """A normal law that knows its moments: `DiagonalNormal`, `TriangularNormal`."""

    mean: Tensor  # (..., d)

    @property
    def covariance(self) -> Tensor:  # (..., d, d)
        ...

    def entropy(self) -> Tensor:  # (...)
        ...


def reparametrise_definition(mean: Tensor, covariance: Tensor, noise: Tensor) -> Tensor:  # (..., d), (..., d, d), (..., d) -> (..., d)
    """z = μ + Σ^(1/2) ε with the symmetric root, by eigenvectors: ~ N(μ, Σ) for ε ~ N(0, I), as it is with every other root.

    Σ may be singular. The gradient in Σ is then right for every change that keeps its rank (matrix_root.py).

    Notes: D6-25.
    """
    check_covariance(covariance)
    check_semi_definite(covariance)
    return mean + (symmetric_root(covariance) @ noise.unsqueeze(-1)).squeeze(-1)


class _Normal:
    """What both laws draw from, and what they share once they can place noise."""

    mean: Tensor  # (..., d)

    def place(self, noise: Tensor) -> Tensor:
        raise NotImplementedError

    @property
    def batch_shape(self) -> torch.Size:
        return self.mean.shape[:-1]

    @property
    def dim(self) -> int:
        return self.mean.shape[-1]

    def noise(self, shape: Sequence[int] = (), *, generator: torch.Generator) -> Tensor:  # -> (*shape, *batch, d)
        """ε ~ N(0, I)."""
        size = (*shape, *self.batch_shape, self.dim)
        return torch.randn(size, generator=generator, dtype=self.mean.dtype, device=self.mean.device)

    def sample(self, shape: Sequence[int] = (), *, generator: torch.Generator) -> Tensor:  # -> (*shape, *batch, d)
        """Noise, placed: differentiable in the parameters."""
        return self.place(self.noise(shape, generator=generator))


class DiagonalNormal(_Normal):
    """N(μ, diag σ²) with σ = e^log_std, both (..., d): what an encoder of independent coordinates gives out.

    >>> law = DiagonalNormal(torch.tensor([1.0, 2.0]), torch.zeros(2))
    >>> law.place(torch.tensor([0.5, -1.0]))
    tensor([1.5000, 1.0000])
    """

    def __init__(self, mean: Tensor, log_std: Tensor):
        check_floating(mean, "mean")
        check_floating(log_std, "log_std")
        if mean.ndim == 0 or mean.shape != log_std.shape:
            came = f"{tuple(mean.shape)} and {tuple(log_std.shape)}"
            raise Mistake(f"expected a mean and a log_std of one shape (..., d), came {came}; give one for each coordinate")
        self.mean, self.log_std = mean, log_std

    @property
    def std(self) -> Tensor:  # (..., d)
        return self.log_std.exp()

    @property
    def covariance(self) -> Tensor:  # (..., d, d)
        return torch.diag_embed(torch.exp(2 * self.log_std))

    def place(self, noise: Tensor) -> Tensor:  # (..., d) -> (..., d)
        """μ + σ ε, with the deviation σ and not the variance.

        Notes: D6-25.
        """
        return torch.addcmul(self.mean, self.std, noise)

    def log_prob(self, z: Tensor) -> Tensor:  # (..., d) -> (...)
        """-½ |(z - μ)/σ|² - Σ ln σ - (d/2) ln 2π."""
        square = ((z - self.mean) * torch.exp(-self.log_std)).square()
        return -(square / 2 + self.log_std).sum(dim=-1) - self.dim * math.log(2 * math.pi) / 2

    def entropy(self) -> Tensor:  # (...)
        """Σ ln σ + (d/2) ln 2πe."""
        return self.log_std.sum(dim=-1) + self.dim * (math.log(2 * math.pi) + 1) / 2


class TriangularNormal(_Normal):
    """N(μ, L L^T) with μ (..., d) and L (..., d, d) lower triangular, its diagonal positive; the batches of the two broadcast."""

    def __init__(self, mean: Tensor, factor: Tensor):
        check_floating(mean, "mean")
        check_floating(factor, "factor")
        if mean.ndim == 0 or factor.ndim < 2 or factor.shape[-2:] != (mean.shape[-1], mean.shape[-1]):
            came = f"{tuple(mean.shape)} and {tuple(factor.shape)}"
            raise Mistake(f"expected a mean (..., d) and a factor (..., d, d), came {came}; make the sizes equal")
        looked_at = factor.device.type == "cpu" and not torch.compiler.is_compiling()  # on a GPU a look would stall the queue
        if looked_at and not bool((factor.detach().diagonal(dim1=-2, dim2=-1) > 0).all()):
            raise Mistake("expected a factor with a positive diagonal, came one without; a singular law is a MultivariateNormal")
        self.mean = mean.expand(*torch.broadcast_shapes(mean.shape[:-1], factor.shape[:-2]), mean.shape[-1])
        self.factor = factor

    @property
    def covariance(self) -> Tensor:  # (..., d, d)
        return self.factor @ self.factor.mT

    def place(self, noise: Tensor) -> Tensor:  # (..., d) -> (..., d)
        """μ + L ε.

        Notes: D6-25.
        """
        return self.mean + (self.factor @ noise.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, z: Tensor) -> Tensor:  # (..., d) -> (...)
        """-½ |L^-1 (z - μ)|² - ln det L - (d/2) ln 2π."""
        white = torch.linalg.solve_triangular(self.factor, (z - self.mean).unsqueeze(-1), upper=False).squeeze(-1)
        return -white.square().sum(dim=-1) / 2 - self._log_volume() - self.dim * math.log(2 * math.pi) / 2

    def entropy(self) -> Tensor:  # (...)
        """ln det L + (d/2) ln 2πe."""
        return self._log_volume().expand(self.batch_shape) + self.dim * (math.log(2 * math.pi) + 1) / 2

    def _log_volume(self) -> Tensor:
        return self.factor.diagonal(dim1=-2, dim2=-1).log().sum(dim=-1)
