"""Normal distributions as networks give them out: a mean and a scale that is positive by construction, sampled by
moving standard noise.

`MultivariateNormal` checks the covariance that a user brings and may be singular; these two are built anew at every
step of a training run, check nothing that costs a factorisation, and are made to be differentiated.   d coordinates
"""

import math
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Real
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.prob.covariance import check_covariance, check_semi_definite
from quoin.prob.matrix_root import symmetric_root
from quoin.tensor import check_floating
from quoin.tensor.array_like import ArrayLike, float_tensor

__all__ = [
    "DiagonalNormal",
    "NormalDistribution",
    "Proposal",
    "ReparameterizedDistribution",
    "TriangularNormal",
    "reparameterize_definition",
]


@runtime_checkable
class Proposal(Protocol):
    """A distribution to sample latent variables from, one for each example: its batch axes are those of the
    examples."""

    def sample(self, sample_shape: Sequence[int] = (), *, generator: torch.Generator) -> Real[Tensor, "..."]:
        """Draws (*shape, *batch, ...)."""
        ...

    def log_prob(self, z: Real[Tensor, "..."]) -> Float[Tensor, "..."]:
        """ln q(z), leading axes of z beyond the batch being samples."""
        ...


@runtime_checkable
class ReparameterizedDistribution(Proposal, Protocol):
    """A distribution whose samples are z = g(ε): noise ε without parameters, moved by a map g that has them all."""

    def sample_noise(self, sample_shape: Sequence[int] = (), *, generator: torch.Generator) -> Float[Tensor, "..."]:
        """ε (*shape, *batch, ...), from a distribution without parameters."""
        ...

    def transform(self, noise: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """z = g(ε), differentiable in the parameters."""
        ...


@runtime_checkable
class NormalDistribution(ReparameterizedDistribution, Protocol):
    """A normal distribution that knows its moments: `DiagonalNormal`, `TriangularNormal`."""

    mean: Float[Tensor, "*batch d"]

    @property
    def covariance(self) -> Float[Tensor, "*batch d d"]: ...

    def entropy(self) -> Float[Tensor, "*batch"]: ...


def reparameterize_definition(
    mean: Float[Tensor, "*#batch d"] | ArrayLike,
    covariance: Float[Tensor, "*#batch d d"] | ArrayLike,
    noise: Float[Tensor, "*#batch d"] | ArrayLike,
) -> Float[Tensor, "*#batch d"]:
    """z = μ + Σ^(1/2) ε with the symmetric root, by eigenvectors: ~ N(μ, Σ) for ε ~ N(0, I), as it is with
    every other root.

    Σ may be singular. The gradient in Σ is then right for every change that keeps its rank (matrix_root.py).

    Notes: D6-25.
    """
    mean = float_tensor(mean, "mean", covariance, noise)
    covariance = float_tensor(covariance, "covariance", mean, noise)
    noise = float_tensor(noise, "noise", mean, covariance)
    check_covariance(covariance)
    check_semi_definite(covariance)
    return mean + (symmetric_root(covariance) @ noise.unsqueeze(-1)).squeeze(-1)


class _Normal:
    """The noise of both distributions, and what they have in common once they transform it."""

    mean: Float[Tensor, "*batch d"]

    def transform(self, noise: Float[Tensor, "*#batch d"]) -> Float[Tensor, "*#batch d"]:
        raise NotImplementedError

    @property
    def batch_shape(self) -> torch.Size:
        return self.mean.shape[:-1]

    @property
    def dim(self) -> int:
        return self.mean.shape[-1]

    def sample_noise(self, sample_shape: Sequence[int] = (), *, generator: torch.Generator) -> Float[Tensor, "... d"]:
        """ε ~ N(0, I), of shape (*sample_shape, *batch, d)."""
        size = (*sample_shape, *self.batch_shape, self.dim)
        return torch.randn(size, generator=generator, dtype=self.mean.dtype, device=self.mean.device)

    def sample(self, sample_shape: Sequence[int] = (), *, generator: torch.Generator) -> Float[Tensor, "... d"]:
        """Noise, placed: differentiable in the parameters."""
        return self.transform(self.sample_noise(sample_shape, generator=generator))


@shown
class DiagonalNormal(_Normal):
    """N(μ, diag σ²) with σ = e^log_std: what an encoder of independent coordinates gives out.

    >>> distribution = DiagonalNormal(torch.tensor([1.0, 2.0]), torch.zeros(2))
    >>> distribution.transform(torch.tensor([0.5, -1.0]))
    tensor([1.5000, 1.0000])
    """

    def __init__(self, mean: Float[Tensor, "*batch d"] | ArrayLike, log_std: Float[Tensor, "*batch d"] | ArrayLike):
        mean = float_tensor(mean, "mean", log_std)
        log_std = float_tensor(log_std, "log_std", mean)
        check_floating(mean, "mean")
        check_floating(log_std, "log_std")
        if mean.ndim == 0 or mean.shape != log_std.shape:
            got = f"{tuple(mean.shape)} and {tuple(log_std.shape)}"
            raise UserError(
                f"expected a mean and a log_std of one shape (..., d), got {got}; give one for each coordinate"
            )
        self.mean, self.log_std = mean, log_std

    @property
    def std(self) -> Float[Tensor, "*batch d"]:
        return self.log_std.exp()

    @property
    def covariance(self) -> Float[Tensor, "*batch d d"]:
        return torch.diag_embed(torch.exp(2 * self.log_std))

    def transform(self, noise: Float[Tensor, "*#batch d"]) -> Float[Tensor, "*#batch d"]:
        """μ + σ ε, with the standard deviation σ and not the variance.

        Notes: D6-25.
        """
        return torch.addcmul(self.mean, self.std, noise)

    def log_prob(self, z: Float[Tensor, "*#batch d"]) -> Float[Tensor, "*#batch"]:
        """-½ |(z - μ)/σ|² - Σ ln σ - (d/2) ln 2π."""
        square = ((z - self.mean) * torch.exp(-self.log_std)).square()
        return -(square / 2 + self.log_std).sum(dim=-1) - self.dim * math.log(2 * math.pi) / 2

    def entropy(self) -> Float[Tensor, "*batch"]:
        """Σ ln σ + (d/2) ln 2πe."""
        return self.log_std.sum(dim=-1) + self.dim * (math.log(2 * math.pi) + 1) / 2


@shown
class TriangularNormal(_Normal):
    """N(μ, L L^T) with L lower triangular, its diagonal positive; the batches of
    the two broadcast.
    """

    def __init__(
        self, mean: Float[Tensor, "*#batch d"] | ArrayLike, scale_tril: Float[Tensor, "*#batch d d"] | ArrayLike
    ):
        mean = float_tensor(mean, "mean", scale_tril)
        scale_tril = float_tensor(scale_tril, "scale_tril", mean)
        check_floating(mean, "mean")
        check_floating(scale_tril, "scale_tril")
        if mean.ndim == 0 or scale_tril.ndim < 2 or scale_tril.shape[-2:] != (mean.shape[-1], mean.shape[-1]):
            got = f"{tuple(mean.shape)} and {tuple(scale_tril.shape)}"
            raise UserError(f"expected a mean (..., d) and a factor (..., d, d), got {got}; make the sizes equal")
        checked = (
            scale_tril.device.type == "cpu" and not torch.compiler.is_compiling()
        )  # on a GPU reading values would stall the queue
        if checked and not bool((scale_tril.detach().diagonal(dim1=-2, dim2=-1) > 0).all()):
            raise UserError(
                "expected a factor with a positive diagonal, got one without; a singular distribution is a "
                "MultivariateNormal"
            )
        self.mean = mean.expand(*torch.broadcast_shapes(mean.shape[:-1], scale_tril.shape[:-2]), mean.shape[-1])
        self.scale_tril = scale_tril

    @property
    def covariance(self) -> Float[Tensor, "*batch d d"]:
        return self.scale_tril @ self.scale_tril.mT

    def transform(self, noise: Float[Tensor, "*#batch d"]) -> Float[Tensor, "*#batch d"]:
        """μ + L ε.

        Notes: D6-25.
        """
        return self.mean + (self.scale_tril @ noise.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, z: Float[Tensor, "*#batch d"]) -> Float[Tensor, "*#batch"]:
        """-½ |L^-1 (z - μ)|² - ln det L - (d/2) ln 2π."""
        white = torch.linalg.solve_triangular(self.scale_tril, (z - self.mean).unsqueeze(-1), upper=False).squeeze(-1)
        return -white.square().sum(dim=-1) / 2 - self._half_log_det() - self.dim * math.log(2 * math.pi) / 2

    def entropy(self) -> Float[Tensor, "*batch"]:
        """ln det L + (d/2) ln 2πe."""
        return self._half_log_det().expand(self.batch_shape) + self.dim * (math.log(2 * math.pi) + 1) / 2

    def _half_log_det(self) -> Tensor:
        return self.scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(dim=-1)
