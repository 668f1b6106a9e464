"""The Gaussian mixture as a model: fitted to points by EM, kept as tensors that can be saved and moved, sampled from
and evaluated.

The distribution is `quoin.prob.GaussianMixtureDistribution`, the fit is in mixture_em.py.   n points
"""

import math
from collections.abc import Sequence
from typing import Self

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from quoin.errors import UserError
from quoin.models.generative import check_num_samples
from quoin.models.mixture_em import em_with_restarts
from quoin.prob import ComponentNormals, FullNormals, GaussianMixtureDistribution
from quoin.tensor.blocks import in_blocks, rows_per_block

__all__ = ["GaussianMixture", "MixtureCandidates"]

_NUMBERS_PER_BLOCK = 2**20  # numbers of points times components that are held at once


class GaussianMixture(nn.Module):
    """P[Z = i] = φ_i and X | Z = i ~ N(μ_i, Σ_i), its parameters as buffers: EM follows no gradient.

    >>> x = torch.tensor([[0.0], [0.2], [5.0], [5.2]])
    >>> model = GaussianMixture.fit(x, 2, generator=torch.Generator().manual_seed(0))
    >>> model.predict(x).unique().tolist(), model.distribution.components.means.sort(dim=0).values.flatten()
    ([0, 1], tensor([0.1000, 5.1000]))

    Notes: D6-9, D6-10.
    """

    weights: Float[Tensor, "components"]
    means: Float[Tensor, "components dim"]
    covariances: Float[Tensor, "..."]  # as the family has it

    def __init__(self, distribution: GaussianMixtureDistribution):
        super().__init__()
        self.covariance_type = type(distribution.components)
        for name, given in (
            ("weights", distribution.weights),
            ("means", distribution.components.means),
            ("covariances", distribution.components.covariances),
        ):
            self.register_buffer(name, given.detach().clone())

    @classmethod
    def fit(
        cls,
        x: Float[Tensor, "points dim"],
        num_components: int,
        covariance_type: type[ComponentNormals] = FullNormals,
        *,
        generator: torch.Generator,
        num_init: int = 5,
        max_iter: int = 500,
        tol: float = 1e-6,
        min_variance: float = 1e-6,
    ) -> Self:
        """The most probable mixture that EM reaches from `num_init` random starts, no variance of it below
        `min_variance` of the points' own.

        Without that bound the likelihood has none: a component that collapses on one point makes it as large as one
        likes.

        Notes: D6-10.
        """
        found = em_with_restarts(
            x,
            num_components,
            covariance_type,
            generator=generator,
            num_init=num_init,
            max_iter=max_iter,
            tol=tol,
            min_variance=min_variance,
        )
        return cls(found.output)

    @property
    def distribution(self) -> GaussianMixtureDistribution:
        return GaussianMixtureDistribution(self.weights, self.covariance_type(self.means, self.covariances))

    def log_prob(self, x: Float[Tensor, "points dim"]) -> Float[Tensor, "points"]:
        """ln p(x) = ln Σ_i φ_i N(x; μ_i, Σ_i), in pieces that fit into memory.

        Notes: D6-9.
        """
        distribution = self.distribution
        return torch.cat([distribution.log_prob(piece) for piece in self._pieces(x)])

    def responsibilities(self, x: Float[Tensor, "points dim"]) -> Float[Tensor, "points components"]:
        """P[Z = i | x].

        Notes: D6-9, D6-10.
        """
        distribution = self.distribution
        return torch.cat([distribution.responsibilities(piece) for piece in self._pieces(x)])

    def predict(self, x: Float[Tensor, "points dim"]) -> Int[Tensor, "points"]:
        """The component of the largest responsibility for x."""
        return self.responsibilities(x).argmax(dim=-1)

    @torch.no_grad()
    def sample(self, num_samples: int, *, generator: torch.Generator) -> Float[Tensor, "{num_samples} dim"]:
        """A component first, then a sample from it.

        Notes: D6-9.
        """
        check_num_samples(num_samples)
        return self.distribution.sample((num_samples,), generator=generator)

    def aic(self, x: Float[Tensor, "points dim"]) -> float:
        """2 p - 2 Σ_n ln p(x_n) with p free numbers, lower is better: 2 p estimates what overfitting gains."""
        return 2 * (self.distribution.num_parameters - float(self.log_prob(x).sum(dtype=torch.float64)))

    def bic(self, x: Float[Tensor, "points dim"]) -> float:
        """p ln n - 2 Σ_n ln p(x_n), lower is better: the evidence of the model, but for what does not grow with n."""
        return self.distribution.num_parameters * math.log(x.shape[0]) - 2 * float(
            self.log_prob(x).sum(dtype=torch.float64)
        )

    def _pieces(self, x: Tensor) -> tuple[Tensor, ...]:
        if x.ndim != 2 or x.shape[1] != self.means.shape[1]:
            raise UserError(
                f"expected points (n, {self.means.shape[1]}), got shape {tuple(x.shape)}; give a row for each point"
            )
        if x.dtype != self.means.dtype:
            raise UserError(f"expected points of dtype {self.means.dtype}, got {x.dtype}; convert one of them")
        return in_blocks(x, rows_per_block(self.means.numel(), _NUMBERS_PER_BLOCK))


class MixtureCandidates(nn.Module):
    """Mixtures that were fitted from several starts, and which of them is sampled from: the most probable, once
    `select_best` has seen points.

    The mixtures are of y = (x - loc)/scale, so that columns in units of their own count alike; `sample` and `log_prob`
    are of x. Both buffers are the identity until they are set.
    """

    chosen: Int[Tensor, ""]
    loc: Float[Tensor, "dim"]
    scale: Float[Tensor, "dim"]

    def __init__(self, candidates: Sequence[GaussianMixture]):
        super().__init__()
        if not candidates:
            raise UserError("expected at least one mixture to choose from, got none; give one for each start")
        self.candidates = nn.ModuleList(candidates)
        self.register_buffer("chosen", torch.tensor(0))
        self.register_buffer("loc", torch.zeros_like(candidates[0].means[0]))
        self.register_buffer("scale", torch.ones_like(candidates[0].means[0]))

    @property
    def best(self) -> GaussianMixture:
        """The one that was chosen."""
        return self.candidates[int(self.chosen)]  # pyright: ignore[reportReturnType]

    @torch.no_grad()
    def select_best(self, x: Float[Tensor, "points dim"]) -> None:
        """Take the one that makes the points most probable."""
        found = [each.log_prob(self.normalize(x)).sum(dtype=torch.float64) for each in self.candidates]  # pyright: ignore[reportCallIssue]
        self.chosen.copy_(torch.stack(found).argmax())

    def sample(self, num_samples: int, *, generator: torch.Generator) -> Float[Tensor, "{num_samples} dim"]:
        """Samples of the best."""
        return self.loc + self.scale * self.best.sample(num_samples, generator=generator)

    def normalize(self, x: Float[Tensor, "points dim"]) -> Float[Tensor, "points dim"]:
        """Points on the scale of the mixtures."""
        return (x - self.loc) / self.scale

    def log_prob(self, x: Float[Tensor, "points dim"]) -> Float[Tensor, "points"]:
        """ln p(x) under the best."""
        return self.best.log_prob(self.normalize(x)) - self.scale.log().sum()

    def responsibilities(self, x: Float[Tensor, "points dim"]) -> Float[Tensor, "points components"]:
        """P[Z = i | x] under the best."""
        return self.best.responsibilities(self.normalize(x))

    def means(self) -> Float[Tensor, "components dim"]:
        """Those of the best, on the scale of the points."""
        return self.loc + self.scale * self.best.means

    def covariance_matrices(self) -> Float[Tensor, "components dim dim"]:
        """Those of the best, on the scale of the points."""
        return self.scale[:, None] * self.best.distribution.components.covariance_matrices * self.scale
