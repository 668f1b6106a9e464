"""Several normal distributions side by side, the components of a mixture, by what their covariances may be: full, tied,
diagonal or spherical.

Each class is a family: k distributions N(μ_i, Σ_i), how many numbers choose one, and which of them is the most probable
for weighted moments. The covariances are bounded below where those moments leave a direction without variance, for
there the likelihood has no maximum. The mixture is in mixture.py.   k components, d coordinates
"""

import math
from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple, Self

import torch
from jaxtyping import Float, Int, Real
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.prob.covariance import check_covariance
from quoin.tensor import check_finite, check_floating, check_same_dtype, check_shapes
from quoin.tensor.array_like import ArrayLike, float_tensor

__all__ = ["ComponentNormals", "DiagonalNormals", "FullNormals", "SphericalNormals", "TiedNormals", "WeightedMoments"]


@shown
class WeightedMoments(NamedTuple):
    """What weighted points say of k distributions: how many belong to each, their mean, and their second moments
    about that mean.
    """

    totals: Float[Tensor, "k"]
    means: Float[Tensor, "k d"]
    scatter_matrices: Float[Tensor, "k d d"] | Float[Tensor, "k d"]  # the diagonals where only variances are asked for


@shown
class ComponentNormals(ABC):
    """N(μ_i, Σ_i) for i = 1, ..., k, with Σ_i positive definite and of the family's form; differentiable
    in all parameters.
    """

    legend: ClassVar[str]  # the shape of `covariances` beside the means k d
    only_variances: ClassVar[bool]  # whether a fit asks for second moments of single coordinates only

    def __init__(self, means: Float[Tensor, "k d"] | ArrayLike, covariances: Float[Tensor, "..."] | ArrayLike):
        means = float_tensor(means, "means", covariances)
        covariances = float_tensor(covariances, "covariances", means)
        check_shapes(f"k d, {self.legend}", means=means, covariances=covariances)
        check_floating(means, "means")
        check_same_dtype(means, covariances)
        if means.numel() == 0:
            raise UserError(
                f"expected at least one component and one coordinate, got means {tuple(means.shape)}; give (k, d)"
            )
        check_finite(means, "means")
        self.means, self.covariances = means, covariances

    @property
    def num_components(self) -> int:
        return len(self.means)

    @property
    def dim(self) -> int:
        return self.means.shape[1]

    @property
    @abstractmethod
    def covariance_matrices(self) -> Float[Tensor, "k d d"]:
        """Σ_i, written out."""

    @property
    @abstractmethod
    def precisions(self) -> Float[Tensor, "k d d"] | Float[Tensor, "k d"]:
        """Σ_i^-1, or its diagonal where the covariances are diagonal."""

    @property
    @abstractmethod
    def num_parameters(self) -> int:
        """How many numbers are free: means, and those of the covariances."""

    @abstractmethod
    def whiten(self, centered: Float[Tensor, "*batch k d"]) -> Float[Tensor, "*batch k d"]:
        """F_i^-1 (x - μ_i) with F_i F_i^T = Σ_i."""

    @abstractmethod
    def half_log_dets(self) -> Float[Tensor, "k"]:
        """½ ln det Σ_i."""

    @abstractmethod
    def transform(self, noise: Float[Tensor, "n d"], which: Int[Tensor, "n"]) -> Float[Tensor, "n d"]:
        """μ_i + F_i ε for the component i of each row."""

    @abstractmethod
    def affine(self, shift: Float[Tensor, "d"], scale: Float[Tensor, "d"]) -> Self:
        """The distributions of shift + scale · X, coordinate by coordinate; whether the scales keep the family
        is not checked.
        """

    @abstractmethod
    def m_step(self, moments: WeightedMoments, min_variance: float) -> Self:
        """The most probable of the family for such moments among those with no variance below `min_variance`
        in any direction.

        A component that has no points stays as it is.
        """

    @classmethod
    @abstractmethod
    def isotropic_at(cls, means: Float[Tensor, "k d"]) -> Self:
        """N(μ_i, I)."""

    @classmethod
    def scale_of(cls, deviations: Float[Tensor, "d"]) -> Float[Tensor, "d"]:
        """By which scales points may be divided and the family be the same."""
        return deviations

    def log_prob(self, x: Real[Tensor, "*batch #k d"]) -> Float[Tensor, "*batch k"]:
        """-½ |F_i^-1 (x - μ_i)|² - ½ ln det Σ_i - (d/2) ln 2π, x broadcast over the components."""
        if x.ndim < 2 or x.shape[-1] != self.dim or x.shape[-2] not in (1, self.num_components):
            expected = f"points of {self.dim} coordinates for each of {self.num_components} components"
            raise UserError(
                f"expected {expected}, got shape {tuple(x.shape)}; give (..., {self.num_components}, {self.dim})"
            )
        square = self.whiten(x - self.means).square().sum(dim=-1)
        return -square / 2 - self.half_log_dets() - self.dim * math.log(2 * math.pi) / 2

    def _kept(self, moments: WeightedMoments) -> tuple[Tensor, Tensor]:  # (k, d), (k,)
        """The new means, and who has points."""
        some = moments.totals > 0
        return torch.where(some.unsqueeze(-1), moments.means, self.means), some


class FullNormals(ComponentNormals):
    """A covariance of its own for each component: `covariances` is Σ (k, d, d).

    Notes: D6-9, DE54.
    """

    legend, only_variances = "k d d", False

    def __init__(
        self,
        means: Float[Tensor, "k d"] | ArrayLike,
        covariances: Float[Tensor, "k d d"] | Float[Tensor, "d d"] | ArrayLike,
    ):
        means = float_tensor(means, "means", covariances)
        covariances = float_tensor(covariances, "covariances", means)
        super().__init__(means, covariances)
        self._factor = _factor(covariances)  # also the tied one's, without its axis k

    @classmethod
    def isotropic_at(cls, means: Float[Tensor, "k d"]) -> Self:
        return cls(means, torch.eye(means.shape[1], dtype=means.dtype, device=means.device).repeat(len(means), 1, 1))

    @property
    def covariance_matrices(self) -> Float[Tensor, "k d d"]:
        return self.covariances

    @property
    def precisions(self) -> Float[Tensor, "k d d"]:
        return torch.cholesky_inverse(self._factor).expand(len(self.means), -1, -1)

    @property
    def num_parameters(self) -> int:
        return self.means.numel() + self.num_components * self.dim * (self.dim + 1) // 2

    def whiten(self, centered: Float[Tensor, "*batch k d"]) -> Float[Tensor, "*batch k d"]:
        columns = centered.reshape(-1, *centered.shape[-2:]).permute(
            1, 2, 0
        )  # one factor solves for all points at once: (k, d, n)
        solved = torch.linalg.solve_triangular(self._factor.expand(len(columns), -1, -1), columns, upper=False)
        return solved.permute(2, 0, 1).reshape(centered.shape)

    def half_log_dets(self) -> Float[Tensor, "k"]:
        return self._factor.diagonal(dim1=-2, dim2=-1).log().sum(dim=-1).expand(len(self.means))

    def transform(self, noise: Float[Tensor, "n d"], which: Int[Tensor, "n"]) -> Float[Tensor, "n d"]:
        transformed = self.means[which]
        # a factor for each row would not fit in memory
        for i, factor in enumerate(self._factor.expand(len(self.means), -1, -1)):
            mine = which == i
            transformed = torch.where(mine.unsqueeze(-1), transformed + noise @ factor.mT, transformed)
        return transformed

    def affine(self, shift: Float[Tensor, "d"], scale: Float[Tensor, "d"]) -> Self:
        return type(self)(shift + scale * self.means, self.covariances * (scale.unsqueeze(-1) * scale))

    def m_step(self, moments: WeightedMoments, min_variance: float) -> Self:
        means, some = self._kept(moments)
        return type(self)(
            means, torch.where(some[:, None, None], _bounded(moments.scatter_matrices, min_variance), self.covariances)
        )


class TiedNormals(FullNormals):
    """One covariance for all components: `covariances` is Σ (d, d).

    Notes: D6-9.
    """

    legend = "d d"

    @classmethod
    def isotropic_at(cls, means: Float[Tensor, "k d"]) -> Self:
        return cls(means, torch.eye(means.shape[1], dtype=means.dtype, device=means.device))

    @property
    def covariance_matrices(self) -> Float[Tensor, "k d d"]:
        return self.covariances.expand(self.num_components, -1, -1)

    @property
    def num_parameters(self) -> int:
        return self.means.numel() + self.dim * (self.dim + 1) // 2

    def m_step(self, moments: WeightedMoments, min_variance: float) -> Self:
        means, some = self._kept(moments)
        weights = torch.where(some, moments.totals, 0) / moments.totals[some].sum()
        pooled = (weights[:, None, None] * torch.where(some[:, None, None], moments.scatter_matrices, 0)).sum(dim=0)
        return type(self)(means, _bounded(pooled, min_variance))


class DiagonalNormals(ComponentNormals):
    """Independent coordinates within each component: `covariances` is the variances (k, d).

    Notes: D6-9.
    """

    legend, only_variances = "k d", True

    def __init__(
        self,
        means: Float[Tensor, "k d"] | ArrayLike,
        covariances: Float[Tensor, "k d"] | Float[Tensor, "k"] | ArrayLike,
    ):
        means = float_tensor(means, "means", covariances)
        covariances = float_tensor(covariances, "covariances", means)
        super().__init__(means, covariances)
        if not bool(((covariances > 0) & covariances.isfinite()).all()):  # NaN fails too
            raise UserError(
                f"expected variances above 0, got one of {float(covariances.min()):.3g}; raise the least variance "
                "that is allowed"
            )

    @classmethod
    def isotropic_at(cls, means: Float[Tensor, "k d"]) -> Self:
        return cls(means, torch.ones_like(means))

    def _variances(self) -> Tensor:  # (k, d), or (k, 1) for one number each
        return self.covariances

    @property
    def covariance_matrices(self) -> Float[Tensor, "k d d"]:
        return torch.diag_embed(self._variances().expand(self.means.shape))

    @property
    def precisions(self) -> Float[Tensor, "k d"]:
        return (1 / self._variances()).expand(self.means.shape)

    @property
    def num_parameters(self) -> int:
        return self.means.numel() + self.covariances.numel()

    def whiten(self, centered: Float[Tensor, "*batch k d"]) -> Float[Tensor, "*batch k d"]:
        return centered / self._variances().sqrt()

    def half_log_dets(self) -> Float[Tensor, "k"]:
        return self._variances().expand(self.means.shape).log().sum(dim=-1) / 2

    def transform(self, noise: Float[Tensor, "n d"], which: Int[Tensor, "n"]) -> Float[Tensor, "n d"]:
        return self.means[which] + noise * self._variances().sqrt()[which]

    def affine(self, shift: Float[Tensor, "d"], scale: Float[Tensor, "d"]) -> Self:
        return type(self)(shift + scale * self.means, self.covariances * scale.square())

    def m_step(self, moments: WeightedMoments, min_variance: float) -> Self:
        means, some = self._kept(moments)
        return type(self)(
            means, torch.where(some.unsqueeze(-1), moments.scatter_matrices.clamp(min=min_variance), self.covariances)
        )


class SphericalNormals(DiagonalNormals):
    """One variance for all coordinates of a component: `covariances` is (k,).

    Notes: D6-9.
    """

    legend = "k"

    @classmethod
    def isotropic_at(cls, means: Float[Tensor, "k d"]) -> Self:
        return cls(means, means.new_ones(len(means)))

    def _variances(self) -> Tensor:
        return self.covariances.unsqueeze(-1)

    def affine(self, shift: Float[Tensor, "d"], scale: Float[Tensor, "d"]) -> Self:
        return type(self)(shift + scale * self.means, self.covariances * scale[0].square())

    def m_step(self, moments: WeightedMoments, min_variance: float) -> Self:
        means, some = self._kept(moments)
        return type(self)(
            means, torch.where(some, moments.scatter_matrices.mean(dim=-1).clamp(min=min_variance), self.covariances)
        )

    @classmethod
    def scale_of(cls, deviations: Float[Tensor, "d"]) -> Float[Tensor, "d"]:
        """One for all coordinates: a sphere that is stretched along one is none."""
        return deviations.square().mean().sqrt().expand(deviations.shape)


def _factor(covariance_matrices: Tensor) -> Tensor:  # (..., d, d) -> (..., d, d)
    check_covariance(covariance_matrices, "covariances")
    factor, failed = torch.linalg.cholesky_ex(covariance_matrices)
    if not torch.compiler.is_compiling() and bool(failed.any()):
        raise UserError(
            "expected positive definite covariances, got one with no variance in some direction; "
            "raise the least variance that is allowed, or take fewer components"
        )
    return factor


def _bounded(scatter_matrices: Tensor, min_variance: float) -> Tensor:  # (..., d, d) -> (..., d, d)
    """Eigenvalues below the bound lifted to it: what maximises -½ ln det Σ - ½ tr(Σ^-1 S) over Σ >= min_variance I.

    Adding something to all variances would also keep Σ off 0, but is the maximum of nothing: the likelihood could fall.
    """
    symmetric = (scatter_matrices + scatter_matrices.mT) / 2
    values, vectors = torch.linalg.eigh(symmetric)
    low = values[..., :1] < min_variance
    lifted = (vectors * values.clamp(min=min_variance).unsqueeze(-2)) @ vectors.mT
    return torch.where(
        low.unsqueeze(-1), (lifted + lifted.mT) / 2, symmetric
    )  # a matrix within the bound stays to the last digit
