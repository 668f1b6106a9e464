"""Random features of the Gaussian kernel, e^{-γ‖x-y‖²} = E[ψ(x)·ψ(y)]: cosines of random waves, and positive
exponentials.

Learning on ψ(x) stands in for learning with the kernel, whose own feature space has infinitely many dimensions;
attention on ψ pools
with Gaussian weights at linear cost.   k projections
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from quoin.layers.attention.features import Features
from quoin.layers.attention.random_features import performer_features_definition, squared_length, stabilized
from quoin.layers.attention.random_projection import RandomMatrixSampler, RandomProjection, gaussian_random_matrix
from quoin.tensor import check_gamma, check_shapes

__all__ = [
    "PositiveRandomFeatures",
    "RandomFourierFeatures",
    "fourier_features_definition",
    "positive_features_definition",
]


def fourier_features_definition(
    x: Float[Tensor, "*batch in_features"],
    projection: Float[Tensor, "projections in_features"],
    phases: Float[Tensor, "projections"],
    gamma: float,
) -> Float[Tensor, "*batch projections"]:
    """ψ(x) = √(2/k) (cos(√(2γ) ω_i·x + b_i))_i; for ω_i of distribution N(0, I) and b_i uniform on [0, 2π] the mean of
    ψ(x)·ψ(y) is e^{-γ‖x-y‖²}.

    Notes: D4.1-13, DE34.
    """
    check_shapes("... d, k d, k", x=x, projection=projection, phases=phases)
    check_gamma(gamma)
    return math.sqrt(2 / len(projection)) * (math.sqrt(2 * gamma) * x @ projection.mT + phases).cos()


def positive_features_definition(
    x: Float[Tensor, "*batch in_features"], projection: Float[Tensor, "projections in_features"], gamma: float
) -> Float[Tensor, "*batch projections"]:
    """ψ(x) = e^{-2γ‖x‖²} / √k · (e^{√(2γ) ω_i·x})_i, from e^{-γ‖x-y‖²} = e^{-γ‖x‖²} e^{-γ‖y‖²} e^{2γ⟨x,y⟩}.

    Notes: D4.1-13, DE34.
    """
    check_gamma(gamma)
    decay = (-gamma * x.square().sum(dim=-1, keepdim=True)).exp()
    return decay * performer_features_definition(math.sqrt(2 * gamma) * x, projection)


class RandomFourierFeatures(nn.Module):
    """The feature map of `fourier_features_definition`, its random projection sampled once: bounded, of either sign.

    In attention a weight may come out negative, and so may their sum where keys are far from the query: use many
    features, or `PositiveRandomFeatures`.

    Args:
        gamma: γ of the kernel e^{-γ‖x-y‖²} that products of features estimate.
        random_matrix: How the directions ω_i are sampled: independently, or by `orthogonal_random_matrix` for instance.

    Notes: D4.1-13.
    """

    phases: Float[Tensor, "projections"]

    def __init__(
        self,
        in_features: int,
        num_features: int,
        *,
        gamma: float,
        generator: torch.Generator,
        random_matrix: RandomMatrixSampler = gaussian_random_matrix,
    ):
        super().__init__()
        check_gamma(gamma)
        self.projection = RandomProjection(num_features, in_features, generator=generator, random_matrix=random_matrix)
        uniform = torch.rand(num_features, generator=generator, dtype=torch.float64, device=generator.device)
        self.register_buffer("phases", (2 * math.pi * uniform).to(self.projection.matrix))
        self.gamma, self.num_features = gamma, num_features

    def forward(self, x: Float[Tensor, "*batch seq in_features"], *, is_query: bool) -> Features:
        projected = self.projection(x, math.sqrt(2 * self.gamma))
        return Features(math.sqrt(2 / self.num_features) * projected.add_(self.phases.to(projected)).cos())


class PositiveRandomFeatures(nn.Module):
    """The feature map of `positive_features_definition`, its random projection sampled once: positive, so that
    attention's weights are.

    Args:
        gamma: γ of the kernel e^{-γ‖x-y‖²} that products of features estimate.
        random_matrix: How the directions ω_i are sampled: independently, or by `orthogonal_random_matrix` for instance.

    Notes: D4.1-13.
    """

    def __init__(
        self,
        in_features: int,
        num_features: int,
        *,
        gamma: float,
        generator: torch.Generator,
        random_matrix: RandomMatrixSampler = gaussian_random_matrix,
    ):
        super().__init__()
        check_gamma(gamma)
        self.projection = RandomProjection(num_features, in_features, generator=generator, random_matrix=random_matrix)
        self.gamma, self.num_features = gamma, num_features

    def forward(self, x: Float[Tensor, "*batch seq in_features"], *, is_query: bool) -> Features:
        return stabilized(self.projection(x, math.sqrt(2 * self.gamma)), 2 * self.gamma * squared_length(x))
