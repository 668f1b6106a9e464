"""Mixtures of normal distributions: density, responsibilities, samples and modes.

First the density and the responsibilities by their formulas; then the distribution, in logs. How a mixture is fitted to
points is in quoin.models.   n points, k components, d coordinates
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.display import fields_table, line_chart, shown_fields
from quoin.errors import UserError
from quoin.prob.checks import check_probs
from quoin.prob.component_normals import ComponentNormals
from quoin.prob.latent import FiniteLatentModel
from quoin.prob.normal import normal_log_prob_definition
from quoin.tensor import check_shapes
from quoin.tensor.array_like import ArrayLike, float_tensor

__all__ = ["GaussianMixtureDistribution", "mixture_density_definition", "modes_1d", "responsibilities_definition"]


def mixture_density_definition(
    x: Float[Tensor, "*batch d"] | ArrayLike,
    weights: Float[Tensor, "k"] | ArrayLike,
    means: Float[Tensor, "k d"] | ArrayLike,
    covariances: Float[Tensor, "k d d"] | ArrayLike,
) -> Float[Tensor, "*batch"]:
    """p(x) = Σ_i φ_i N(x; μ_i, Σ_i) for φ of the simplex, with one matrix a component.

    >>> two = torch.tensor([[-1.0], [1.0]]), torch.ones(2, 1, 1)
    >>> mixture_density_definition(torch.zeros(1), torch.tensor([0.5, 0.5]), *two)  # e^-½ / √2π
    tensor(0.2420)

    Notes: D6-9, DE54.
    """
    x = float_tensor(x, "x", weights, means, covariances)
    weights = float_tensor(weights, "weights", x, means, covariances)
    means = float_tensor(means, "means", x, weights, covariances)
    covariances = float_tensor(covariances, "covariances", x, weights, means)
    check_shapes("... d, k, k d, k d d", x=x, weights=weights, means=means, covariances=covariances)
    check_probs(weights, "weights")
    return (weights * normal_log_prob_definition(x.unsqueeze(-2), means, covariances).exp()).sum(dim=-1)


def responsibilities_definition(
    x: Float[Tensor, "*batch d"] | ArrayLike,
    weights: Float[Tensor, "k"] | ArrayLike,
    means: Float[Tensor, "k d"] | ArrayLike,
    covariances: Float[Tensor, "k d d"] | ArrayLike,
) -> Float[Tensor, "*batch k"]:
    """P[Z = i | x] = φ_i N(x; μ_i, Σ_i) / p(x): the fraction of component i in x.

    Notes: D6-9, D6-10.
    """
    x = float_tensor(x, "x", weights, means, covariances)
    weights = float_tensor(weights, "weights", x, means, covariances)
    means = float_tensor(means, "means", x, weights, covariances)
    covariances = float_tensor(covariances, "covariances", x, weights, means)
    joint = weights * normal_log_prob_definition(x.unsqueeze(-2), means, covariances).exp()
    return joint / mixture_density_definition(x, weights, means, covariances).unsqueeze(-1)


class GaussianMixtureDistribution(FiniteLatentModel):
    """P[Z = i] = φ_i and X | Z = i ~ N(μ_i, Σ_i): `mixture_density_definition` in logs, where no density underflows.

    >>> from quoin.prob import SphericalNormals
    >>> components = SphericalNormals(torch.tensor([[-1.0], [1.0]]), torch.ones(2))
    >>> distribution = GaussianMixtureDistribution(torch.tensor([0.5, 0.5]), components)
    >>> distribution.responsibilities(torch.tensor([[0.0], [0.5], [500.0]]))
    tensor([[0.5000, 0.5000],
            [0.2689, 0.7311],
            [0.0000, 1.0000]])

    Notes: D6-9, D6-10, DE54.
    """

    components: ComponentNormals

    def __init__(self, weights: Float[Tensor, "k"] | ArrayLike, components: ComponentNormals):
        weights = float_tensor(weights, "weights")
        super().__init__(weights, components)
        if len(weights) != components.num_components:
            raise UserError(
                f"expected a weight for each of {components.num_components} components, got {len(weights)}; give "
                "as many"
            )

    def __repr__(self) -> str:
        return f"GaussianMixtureDistribution({len(self.weights)} components, dim={self.dim})"

    def _repr_html_(self) -> str:
        parts = {"weights": self.weights, **shown_fields(self.components)}
        table = fields_table(repr(self), {name: each.detach() for name, each in parts.items()})
        if self.dim > 1:
            return table
        mean, std = float(self.mean.detach()), float(self.covariance.detach().sqrt())
        x = torch.linspace(mean - 4 * std, mean + 4 * std, 200, dtype=self.weights.dtype).unsqueeze(-1)
        density = self.log_prob(x.to(self.weights.device)).exp().detach()
        return f"{line_chart(x.squeeze(-1).tolist(), density.tolist(), title='density')}{table}"

    @property
    def weights(self) -> Float[Tensor, "k"]:
        """φ, the probability of each component."""
        return self.prior

    @property
    def dim(self) -> int:
        return self.components.dim

    @property
    def num_parameters(self) -> int:
        """How many numbers are free: those of the components, and k - 1 weights."""
        return self.components.num_parameters + len(self.weights) - 1

    @property
    def mean(self) -> Float[Tensor, "d"]:
        """E X = Σ_i φ_i μ_i."""
        return self.weights @ self.components.means

    @property
    def covariance(self) -> Float[Tensor, "d d"]:
        """Cov X = Σ_i φ_i (Σ_i + (μ_i - E X)(μ_i - E X)^T): within the components, and between them."""
        away = self.components.means - self.mean
        return (
            torch.einsum("k,kij->ij", self.weights, self.components.covariance_matrices)
            + (self.weights * away.mT) @ away
        )

    def log_likelihoods(self, x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch k"]:
        """ln N(x; μ_i, Σ_i) for every i."""
        if x.ndim == 0 or x.shape[-1] != self.dim:
            raise UserError(
                f"expected points of {self.dim} coordinates on the last axis, got shape {tuple(x.shape)}; reshape them"
            )
        return self.components.log_prob(x.unsqueeze(-2))

    def log_prob(self, x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch"]:
        """ln p(x) = ln Σ_i exp(ln φ_i + ln N(x; μ_i, Σ_i)).

        Notes: D6-9.
        """
        return self.log_evidence(x)

    def responsibilities(self, x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch k"]:
        """P[Z = i | x], the softmax of ln φ_i + ln N(x; μ_i, Σ_i).

        Notes: D6-9, D6-10.
        """
        return (self.log_likelihoods(x) + self.weights.log()).softmax(dim=-1)

    def sample(
        self, sample_shape: Sequence[int] = (), *, generator: torch.Generator
    ) -> Float[Tensor, "*sample_shape d"]:
        """A component first, then a sample from it; differentiable in means and covariances for the components sampled.

        Notes: D6-9.
        """
        means = self.components.means
        which = self.sample_prior(sample_shape, generator=generator).flatten()
        noise = torch.randn(len(which), self.dim, generator=generator, dtype=means.dtype, device=means.device)
        return self.components.transform(noise, which).reshape(*sample_shape, self.dim)

    def affine(self, shift: Float[Tensor, "d"], scale: Float[Tensor, "d"]) -> "GaussianMixtureDistribution":
        """The distribution of shift + scale · X, coordinate by coordinate."""
        return GaussianMixtureDistribution(self.weights, self.components.affine(shift, scale))

    def to(self, dtype: torch.dtype) -> "GaussianMixtureDistribution":
        """The same distribution in numbers of another kind."""
        parts = self.components
        return GaussianMixtureDistribution(
            self.weights.to(dtype), type(parts)(parts.means.to(dtype), parts.covariances.to(dtype))
        )


def modes_1d(distribution: GaussianMixtureDistribution, *, num_points: int = 2001) -> Float[Tensor, "peaks"]:
    """Where a mixture's density on the line is larger than near by, in order: p' = Σ_i φ_i N(x; μ_i, σ_i²)
    (μ_i - x)/σ_i² falls to 0.

    Farther than σ_i from every μ_i the density is convex and has no peak: p' is evaluated at `num_points` evenly spaced
    points within a standard deviation of each mean, and peaks closer than these count as one.

    >>> from quoin.prob import SphericalNormals
    >>> components = SphericalNormals(torch.tensor([[-3.0], [3.0]]), torch.ones(2))
    >>> apart = GaussianMixtureDistribution(torch.tensor([0.5, 0.5]), components)
    >>> modes_1d(apart)
    tensor([-3.,  3.])

    Notes: D6-9c.
    """
    if distribution.dim != 1:
        raise UserError(
            f"expected a mixture on the line, got one on {distribution.dim} coordinates; peaks of those need a search"
        )
    if num_points < 3:
        raise UserError(
            f"expected at least 3 points within a standard deviation of each mean, got {num_points}; give more"
        )
    means, variances = distribution.components.means[:, 0], distribution.components.covariance_matrices[:, 0, 0]
    within = torch.linspace(-1, 1, num_points, dtype=means.dtype, device=means.device)
    x = (means.unsqueeze(-1) + variances.sqrt().unsqueeze(-1) * within).flatten().sort().values
    # Places of two windows may differ by rounding alone, where p' has no sign to speak of.
    x = x[torch.cat([x.new_ones(1).bool(), x.diff() > 1e-3 * variances.min().sqrt() / num_points])]
    slope = (distribution.responsibilities(x.unsqueeze(-1)) * (means - x.unsqueeze(-1)) / variances).sum(dim=-1)  # p'/p
    turns = ((slope[:-1] > 0) & (slope[1:] <= 0)).nonzero()[:, 0]
    fraction = slope[turns] / (slope[turns] - slope[turns + 1])
    return x[turns] + fraction * (x[turns + 1] - x[turns])
