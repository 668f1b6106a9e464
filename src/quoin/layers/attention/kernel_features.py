"""Random features of the Gaussian kernel, e^{-γ‖x-y‖²} = E[ψ(x)·ψ(y)]: cosines of random waves, and positive exponentials.

Learning on ψ(x) stands in for learning with the kernel, whose own feature space has infinitely many dimensions; attention on ψ pools
with Gaussian weights at linear cost.   n positions, d width, k directions
"""

import math

import torch
from torch import Tensor, nn

from quoin.layers.attention.directions import DirectionLaw, DrawnDirections, gaussian_directions
from quoin.layers.attention.features import Features
from quoin.layers.attention.random_features import performer_features_definition, squared_length, stabilised
from quoin.tensor import check_gamma, check_shapes

__all__ = [
    "PositiveRandomFeatures",
    "RandomFourierFeatures",
    "fourier_features_definition",
    "positive_features_definition",
]


def fourier_features_definition(
    x: Tensor, directions: Tensor, phases: Tensor, gamma: float
) -> Tensor:  # (..., d), (k, d), (k,) -> (..., k)
    """ψ(x) = √(2/k) (cos(√(2γ) ω_i·x + b_i))_i; for ω_i of law N(0, I) and b_i uniform on [0, 2π] the mean of ψ(x)·ψ(y) is e^{-γ‖x-y‖²}.

    Notes: D4.1-13, DE34.
    """
    check_shapes("... d, k d, k", x=x, directions=directions, phases=phases)
    check_gamma(gamma)
    return math.sqrt(2 / len(directions)) * (math.sqrt(2 * gamma) * x @ directions.mT + phases).cos()


def positive_features_definition(x: Tensor, directions: Tensor, gamma: float) -> Tensor:  # (..., d), (k, d) -> (..., k)
    """ψ(x) = e^{-2γ‖x‖²} / √k · (e^{√(2γ) ω_i·x})_i, from e^{-γ‖x-y‖²} = e^{-γ‖x‖²} e^{-γ‖y‖²} e^{2γ⟨x,y⟩}.

    Notes: D4.1-13, DE34.
    """
    check_gamma(gamma)
    decay = (-gamma * x.square().sum(dim=-1, keepdim=True)).exp()
    return decay * performer_features_definition(math.sqrt(2 * gamma) * x, directions)


class RandomFourierFeatures(nn.Module):
    """The feature map of `fourier_features_definition`, its directions drawn once: bounded, of either sign.

    In attention a weight may come out negative, and so may their sum where keys are far from the query: use many features, or
    `PositiveRandomFeatures`.

    Notes: D4.1-13.
    """

    phases: Tensor

    def __init__(self, width: int, num_features: int, *, gamma: float, generator: torch.Generator, law: DirectionLaw = gaussian_directions):
        super().__init__()
        check_gamma(gamma)
        self.directions = DrawnDirections(num_features, width, generator=generator, law=law)
        uniform = torch.rand(num_features, generator=generator, dtype=torch.float64, device=generator.device)
        self.register_buffer("phases", (2 * math.pi * uniform).to(self.directions.drawn))
        self.gamma, self.num_features = gamma, num_features

    def forward(self, x: Tensor, *, is_query: bool) -> Features:  # (..., n, d) -> (..., n, k)
        turned = self.directions(x, math.sqrt(2 * self.gamma))
        return Features(math.sqrt(2 / self.num_features) * turned.add_(self.phases.to(turned)).cos())


class PositiveRandomFeatures(nn.Module):
    """The feature map of `positive_features_definition`, its directions drawn once: positive, so that attention's weights are.

    Notes: D4.1-13.
    """

    def __init__(self, width: int, num_features: int, *, gamma: float, generator: torch.Generator, law: DirectionLaw = gaussian_directions):
        super().__init__()
        check_gamma(gamma)
        self.directions = DrawnDirections(num_features, width, generator=generator, law=law)
        self.gamma, self.num_features = gamma, num_features

    def forward(self, x: Tensor, *, is_query: bool) -> Features:  # (..., n, d) -> (..., n, k)
        return stabilised(self.directions(x, math.sqrt(2 * self.gamma)), 2 * self.gamma * squared_length(x))
