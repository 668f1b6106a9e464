"""Normal distributions on R^d, also those whose covariance is singular: density, samples, and all that keeps
a distribution normal.

First the density by its formula, with inverse and determinant; then the distribution, by the Cholesky factor.
Conditioning is in conditioning.py, moments of any order are in wick.py, and a single number has
torch.distributions.Normal.   d coordinates
"""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.prob.conditioning import conditioned
from quoin.prob.covariance import (
    Support,
    block,
    check_covariance,
    check_indices,
    check_regular,
    check_vectors,
    entries,
    slack_of,
    support,
)
from quoin.tensor import check_finite, check_shapes
from quoin.tensor.array_like import ArrayLike, float_tensor

__all__ = ["MultivariateNormal", "normal_log_prob_definition"]


def normal_log_prob_definition(
    x: Float[Tensor, "*#batch d"] | ArrayLike,
    mean: Float[Tensor, "*#batch d"] | ArrayLike,
    covariance: Float[Tensor, "*#batch d d"] | ArrayLike,
) -> Float[Tensor, "*#batch"]:
    """ln p(x) = -½ (x - μ)^T Σ^-1 (x - μ) - ½ ln det(2π Σ) for an invertible Σ.

    >>> normal_log_prob_definition(torch.zeros(2), torch.zeros(2), torch.eye(2)).exp()  # 1 / 2π
    tensor(0.1592)

    Notes: D5-13, D5.2-2.
    """
    x = float_tensor(x, "x", mean, covariance)
    mean = float_tensor(mean, "mean", x, covariance)
    covariance = float_tensor(covariance, "covariance", x, mean)
    away = (x - mean).unsqueeze(-1)  # (..., d, 1)
    check_regular(covariance)
    square = (away.mT @ torch.linalg.inv(covariance) @ away).squeeze((-2, -1))
    return -square / 2 - (2 * math.pi * covariance).logdet() / 2


@shown
class MultivariateNormal:
    """N(μ, Σ), the distribution for which every a^T X is N(a^T μ, a^T Σ a), the point mass at a^T μ where that
    variance is 0.

    μ and Σ may have batch axes that broadcast; Σ must be symmetric and positive semi-definite.
    Everything is differentiable in μ and Σ, for a singular Σ along the matrices of its rank.

    >>> distribution = MultivariateNormal(torch.tensor([1.0, 2.0]), torch.tensor([[2.0, 1.0], [1.0, 2.0]]))
    >>> distribution.condition([1], torch.tensor([4.0]))
    MultivariateNormal(mean=[2.0], covariance=[[1.5]])

    Notes: D5-13, D5-20.
    """

    def __init__(
        self, mean: Float[Tensor, "*#batch d"] | ArrayLike, covariance: Float[Tensor, "*#batch d d"] | ArrayLike
    ):
        mean = float_tensor(mean, "mean", covariance)
        covariance = float_tensor(covariance, "covariance", mean)
        check_covariance(covariance)
        check_vectors(mean, covariance, covariance.shape[:-2], "mean")
        if mean.shape[-1] == 0:
            raise UserError(
                "expected at least one coordinate, got none; give a mean (..., d) and a covariance (..., d, d)"
            )
        if not torch.compiler.is_compiling():
            check_finite(mean, "mean")
        self.mean, self.covariance = mean, covariance
        self._floor = covariance.new_zeros(covariance.shape[-1])
        found = support(covariance.detach())  # raises an error for what is not positive semi-definite
        self._support: Support | None = None if covariance.requires_grad else found

    @classmethod
    def _from_moments(cls, mean: Tensor, covariance: Tensor, floor: Tensor) -> "MultivariateNormal":
        """A distribution made from distributions: its covariance is one by mathematics, up to variances of `floor`
        (..., d) that are rounding.
        """
        distribution = cls.__new__(cls)
        distribution.mean, distribution.covariance, distribution._floor, distribution._support = (
            mean,
            covariance,
            floor,
            None,
        )
        return distribution

    @property
    def dim(self) -> int:
        return self.mean.shape[-1]

    @property
    def batch_shape(self) -> torch.Size:
        return torch.broadcast_shapes(self.mean.shape[:-1], self.covariance.shape[:-2])

    def support(self) -> Support:
        """The directions that have variance; kept only for a constant Σ, since a graph can be walked back but once."""
        if self.covariance.requires_grad:
            return support(self.covariance, self._floor)
        if self._support is None:
            self._support = support(self.covariance, self._floor)
        return self._support

    def log_prob(self, x: Float[Tensor, "*#batch d"]) -> Float[Tensor, "*#batch"]:
        """ln p(x) = -½ |L^-1 (x - μ)|² - ln det L - (d/2) ln 2π with Σ = L L^T; leading axes of x beyond the
        batch are points.

        For a singular Σ of rank r this is the density on the support, where it has r in place of d and the eigenvalues
        that are not 0 in place of all, and -inf off it.

        Notes: D5-13, D5-20.
        """
        check_vectors(x, self.mean, self.batch_shape, "x")
        held = self.support()
        square = held.whiten(x - self.mean).square().sum(dim=-1)
        found = -square / 2 - held.half_log_det() - held.rank() * (math.log(2 * math.pi) / 2)
        inside = held.holds(x.detach(), self.mean.detach())
        return found if inside is None else torch.where(inside, found, -math.inf)

    def sample(self, sample_shape: Sequence[int] = (), *, generator: torch.Generator) -> Float[Tensor, "... d"]:
        """μ + F z with F F^T = Σ and z standard normal, of shape (*sample_shape, *batch, d); differentiable in μ and Σ.

        Notes: D5-13, D5-20.
        """
        size = (*sample_shape, *self.batch_shape, self.dim)
        z = torch.randn(size, generator=generator, dtype=self.mean.dtype, device=self.mean.device)
        root = self.support().root(self.covariance)
        return self.mean + (z @ root.mT if root.ndim == 2 else (root @ z.unsqueeze(-1)).squeeze(-1))

    def mgf(self, a: Float[Tensor, "*#batch d"]) -> Float[Tensor, "*#batch"]:
        """E e^⟨a,X⟩ = e^(⟨a,μ⟩ + ½ a^T Σ a).

        Notes: D5-14, DE39.
        """
        check_vectors(a, self.mean, self.batch_shape, "a")
        return torch.exp((a * self.mean).sum(dim=-1) + torch.einsum("...i,...ij,...j->...", a, self.covariance, a) / 2)

    def affine(
        self, A: Float[Tensor, "*#batch e d"], b: Float[Tensor, "*#batch e"] | None = None
    ) -> "MultivariateNormal":
        """The distribution of AX + b: N(Aμ + b, AΣA^T), singular where A has not full rank e.

        Notes: D5-16.
        """
        check_shapes(f"... e {self.dim}", A=A)
        mean = (A @ self.mean.unsqueeze(-1)).squeeze(-1)
        if b is not None:
            check_vectors(b, mean, mean.shape[:-1], "b")
            mean = mean + b
        covariance = A @ self.covariance @ A.mT
        floor = (A.detach().abs() @ self._deviations().unsqueeze(-1)).square().squeeze(-1) * slack_of(self.covariance)
        return self._from_moments(
            mean, (covariance + covariance.mT) / 2, floor
        )  # a product is symmetric only up to rounding

    def add_independent(self, other: "MultivariateNormal") -> "MultivariateNormal":
        """The distribution of X + Y for independent X, Y: N(μ + ν, Σ + Λ).

        Notes: D5-17.
        """
        if other.dim != self.dim:
            raise UserError(
                f"expected a distribution on {self.dim} coordinates to add, got one on {other.dim}; give both one "
                "dimension"
            )
        return self._from_moments(
            self.mean + other.mean, self.covariance + other.covariance, self._floor + other._floor
        )

    def join_independent(self, other: "MultivariateNormal") -> "MultivariateNormal":
        """The distribution of (X, Y) for independent X, Y: means one after the other, covariances on the diagonal
        and 0 elsewhere.

        Notes: D5-18.
        """
        batch = torch.broadcast_shapes(self.batch_shape, other.batch_shape)
        means = [distribution.mean.expand(*batch, distribution.dim) for distribution in (self, other)]
        covariance = self.covariance.new_zeros(*batch, self.dim + other.dim, self.dim + other.dim)
        covariance[..., : self.dim, : self.dim] = self.covariance
        covariance[..., self.dim :, self.dim :] = other.covariance
        floors = [distribution._floor.expand(*batch, distribution.dim) for distribution in (self, other)]
        return self._from_moments(torch.cat(means, dim=-1), covariance, torch.cat(floors, dim=-1))

    def marginal(self, indices: Sequence[int]) -> "MultivariateNormal":
        """The distribution of the coordinates at `indices`, in that order: the same entries of μ and Σ.

        Notes: D5-16.
        """
        chosen = check_indices(indices, self.dim, "indices")
        return self._from_moments(
            entries(self.mean, chosen), block(self.covariance, chosen, chosen), entries(self._floor, chosen)
        )

    def condition(self, given: Sequence[int], y: Float[Tensor, "*batch given"]) -> "MultivariateNormal":
        """The distribution of the other coordinates, in their order, once those at `given` are y:
        `condition_normal`, which see.

        Notes: D5-24.
        """
        found, floor = conditioned(self.mean, self.covariance, given, y)
        rest = [index for index in range(self.dim) if index not in given]
        return self._from_moments(found.mean, found.covariance, floor + entries(self._floor, rest))

    def _deviations(self) -> Tensor:  # (..., d)
        """The standard deviation of each coordinate, counting the rounding that the distribution was made with."""
        return (self.covariance.detach().diagonal(dim1=-2, dim2=-1).clamp(min=0) + self._floor).sqrt()

    def __repr__(self) -> str:
        if self.mean.numel() <= 4 and self.covariance.numel() <= 16:
            return f"MultivariateNormal(mean={self.mean.tolist()}, covariance={self.covariance.tolist()})"
        return f"MultivariateNormal(batch_shape={tuple(self.batch_shape)}, dim={self.dim})"
