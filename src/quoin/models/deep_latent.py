"""The deep latent Gaussian model: Z ~ N(0, I), and X | Z normal with a mean and a covariance that networks compute from z.

What a network gives out is no covariance: it must be made symmetric and positive definite. Here it is the Cholesky factor that
is computed, its diagonal by softplus and above a floor.   k latent coordinates, d numbers an example
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from quoin.errors import Mistake
from quoin.models.mlp import MLP
from quoin.prob import DiagonalNormal, LatentModel, NormalDistribution, TriangularNormal
from quoin.tensor import as_floating

__all__ = ["DeepLatentGaussian", "DiagonalNormalNet", "TriangularNormalNet", "covariance_definition", "triangular_factor"]

FLOOR = 1e-3  # the least standard deviation a network may claim: a density that grows without bound would be the best fit


def triangular_factor(entries: Tensor, dim: int, *, floor: float = FLOOR) -> Tensor:  # (..., d (d + 1) / 2) -> (..., d, d)
    """Any numbers as a Cholesky factor L: row by row into the lower triangle, the diagonal as floor + ln(1 + e^a) > 0.

    >>> triangular_factor(torch.zeros(3), 2, floor=0.0)  # ln 2 on the diagonal
    tensor([[0.6931, 0.0000],
            [0.0000, 0.6931]])

    Notes: D6-11, DE71.
    """
    count = dim * (dim + 1) // 2
    if dim < 1 or entries.ndim == 0 or entries.shape[-1] != count:
        raise Mistake(
            f"expected {count} entries for a triangle of {dim} rows, came shape {tuple(entries.shape)}; give d (d + 1) / 2 of them"
        )
    rows, columns = torch.tril_indices(dim, dim, device=entries.device)
    values = torch.where(rows == columns, softplus(entries) + floor, entries)
    factor = values.new_zeros(*entries.shape[:-1], dim, dim)
    factor[..., rows, columns] = values
    return factor


def covariance_definition(entries: Tensor, dim: int, *, floor: float = FLOOR) -> Tensor:  # (..., d (d + 1) / 2) -> (..., d, d)
    """Σ = L L^T with L = `triangular_factor`: symmetric, and positive definite whatever the entries are.

    Notes: D6-11, DE71.
    """
    factor = triangular_factor(entries, dim, floor=floor)
    return factor @ factor.mT


class DiagonalNormalNet(nn.Module):
    """From z to N(μ(z), diag σ(z)²), both halves of the output of one perceptron: σ = floor + ln(1 + e^a).

    `sizes` are the widths from the input through the hidden layers to the number of coordinates.

    Notes: D6-11, DE71.
    """

    def __init__(self, sizes: Sequence[int], *, floor: float = FLOOR, generator: torch.Generator | None = None):
        super().__init__()
        _check_sizes(sizes, floor)
        self.dim, self.floor = sizes[-1], floor
        self.net = MLP([*sizes[:-1], 2 * self.dim], activation=nn.Tanh, generator=generator)

    def forward(self, z: Tensor) -> DiagonalNormal:  # (..., k) -> law on (..., d)
        mean, entries = _rows(self.net, z).chunk(2, dim=-1)
        return DiagonalNormal(mean, (softplus(entries) + self.floor).log())


class TriangularNormalNet(nn.Module):
    """From z to N(μ(z), L(z) L(z)^T) with `triangular_factor`: every covariance can be reached, at d (d + 3) / 2 outputs.

    Notes: D6-11, DE71.
    """

    def __init__(self, sizes: Sequence[int], *, floor: float = FLOOR, generator: torch.Generator | None = None):
        super().__init__()
        _check_sizes(sizes, floor)
        self.dim, self.floor = sizes[-1], floor
        self.net = MLP([*sizes[:-1], self.dim * (self.dim + 3) // 2], activation=nn.Tanh, generator=generator)

    def forward(self, z: Tensor) -> TriangularNormal:  # (..., k) -> law on (..., d)
        outputs = _rows(self.net, z)
        return TriangularNormal(outputs[..., : self.dim], triangular_factor(outputs[..., self.dim :], self.dim, floor=self.floor))


class DeepLatentGaussian(nn.Module, LatentModel):
    """Z ~ N(0, I_k) and X | Z = z from the normal law that a network makes of z; its evidence has no closed form.

    >>> model = DeepLatentGaussian(2, DiagonalNormalNet([2, 16, 5], generator=torch.Generator().manual_seed(0)))
    >>> model.sample(3, generator=torch.Generator().manual_seed(0)).shape
    torch.Size([3, 5])

    Notes: D6-11.
    """

    def __init__(self, latent_dim: int, decoder: DiagonalNormalNet | TriangularNormalNet):
        super().__init__()
        if latent_dim < 1 or decoder.net.sizes[0] != latent_dim:
            came = f"{latent_dim} and a network of {decoder.net.sizes[0]} inputs"
            raise Mistake(f"expected as many latent coordinates, at least one, as the decoder has inputs, came {came}; make them equal")
        self.latent_dim, self.decoder = latent_dim, decoder

    def forward(self, z: Tensor) -> NormalDistribution:  # (..., k) -> law on (..., d)
        """The law of x given z."""
        return self.decoder(z)

    def log_prior(self, z: Tensor) -> Tensor:  # (..., k) -> (...)
        return -as_floating(z).square().sum(dim=-1) / 2 - self.latent_dim * math.log(2 * math.pi) / 2

    def log_likelihood(self, x: Tensor, z: Tensor) -> Tensor:  # (..., d), (m, ..., k) -> (m, ...)
        """ln N(x; μ(z), Σ(z)).

        Notes: D6-11.
        """
        if x.ndim == 0 or x.shape[-1] != self.decoder.dim:
            raise Mistake(f"expected examples of {self.decoder.dim} numbers on the last axis, came shape {tuple(x.shape)}; reshape them")
        return self(z).log_prob(x)

    def sample_prior(self, shape: Sequence[int] = (), *, generator: torch.Generator) -> Tensor:  # -> (*shape, k)
        start = next(self.parameters())
        return torch.randn((*shape, self.latent_dim), generator=generator, dtype=start.dtype, device=start.device)

    @torch.no_grad()
    def sample(self, count: int, *, generator: torch.Generator) -> Tensor:  # -> (count, d)
        """New examples: z from the prior, then x given z."""
        return self(self.sample_prior((count,), generator=generator)).sample(generator=generator)


def _rows(net: MLP, z: Tensor) -> Tensor:
    """The network on the last axis alone; MLP itself flattens an example, which here has leading axes of draws."""
    outputs = net.head(net.features(z.reshape(-1, z.shape[-1])))
    return outputs.reshape(*z.shape[:-1], outputs.shape[-1])


def _check_sizes(sizes: Sequence[int], floor: float) -> None:
    if len(sizes) < 2 or min(sizes) < 1:
        raise Mistake(f"expected widths from input to output, each at least 1, came {list(sizes)}; give e.g. [2, 32, 10]")
    if not 0 <= floor < math.inf:
        raise Mistake(f"expected a floor of at least 0 for standard deviations, came {floor}; give e.g. {FLOOR}")
