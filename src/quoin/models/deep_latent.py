"""The deep latent Gaussian model: Z ~ N(0, I), and X | Z normal with a mean and a covariance that networks compute from
z.

What a network gives out is no covariance: it must be made symmetric and positive definite. Here it is the Cholesky
factor that is computed, its diagonal by softplus and above a floor.   k latent coordinates, d numbers an example
"""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float, Real
from torch import Tensor, nn
from torch.nn.functional import softplus

from quoin.errors import UserError
from quoin.models.mlp import MLP
from quoin.prob import DiagonalNormal, LatentModel, NormalDistribution, TriangularNormal
from quoin.tensor import as_floating

__all__ = [
    "DeepLatentGaussian",
    "DiagonalNormalNet",
    "TriangularNormalNet",
    "covariance_definition",
    "scale_tril_from_entries",
]

MIN_STD = (
    1e-3  # the least standard deviation a network may give: a density that grows without bound would be the best fit
)


def scale_tril_from_entries(
    entries: Float[Tensor, "*batch entries"], dim: int, *, min_std: float = MIN_STD
) -> Float[Tensor, "*batch {dim} {dim}"]:
    """Any d (d + 1) / 2 numbers as a Cholesky factor L: row by row into the lower triangle, the diagonal as min_std +
    ln(1 + e^a) > 0.

    >>> scale_tril_from_entries(torch.zeros(3), 2, min_std=0.0)  # ln 2 on the diagonal
    tensor([[0.6931, 0.0000],
            [0.0000, 0.6931]])

    Notes: D6-11, DE71.
    """
    count = dim * (dim + 1) // 2
    if dim < 1 or entries.ndim == 0 or entries.shape[-1] != count:
        raise UserError(
            f"expected {count} entries for a triangle of {dim} rows, got shape {tuple(entries.shape)}; give d (d + "
            "1) / 2 of them"
        )
    rows, columns = torch.tril_indices(dim, dim, device=entries.device)
    values = torch.where(rows == columns, softplus(entries) + min_std, entries)
    factor = values.new_zeros(*entries.shape[:-1], dim, dim)
    factor[..., rows, columns] = values
    return factor


def covariance_definition(
    entries: Float[Tensor, "*batch entries"], dim: int, *, min_std: float = MIN_STD
) -> Float[Tensor, "*batch {dim} {dim}"]:
    """Σ = L L^T with L = `scale_tril_from_entries`: symmetric, and positive definite whatever the entries are.

    Args:
        min_std: Added to the diagonal of L.

    Notes: D6-11, DE71.
    """
    factor = scale_tril_from_entries(entries, dim, min_std=min_std)
    return factor @ factor.mT


class DiagonalNormalNet(nn.Module):
    """From z to N(μ(z), diag σ(z)²), both halves of the output of one MLP: σ = min_std + ln(1 + e^a).

    `sizes` are the layer sizes from the input through the hidden layers to the number of coordinates.

    Notes: D6-11, DE71.
    """

    def __init__(self, sizes: Sequence[int], *, min_std: float = MIN_STD, generator: torch.Generator | None = None):
        super().__init__()
        _check_sizes(sizes, min_std)
        self.dim, self.min_std = sizes[-1], min_std
        self.net = MLP([*sizes[:-1], 2 * self.dim], activation=nn.Tanh, generator=generator)

    def forward(self, z: Float[Tensor, "*batch latent"]) -> DiagonalNormal:
        mean, entries = _rows(self.net, z).chunk(2, dim=-1)
        return DiagonalNormal(mean, (softplus(entries) + self.min_std).log())


class TriangularNormalNet(nn.Module):
    """From z to N(μ(z), L(z) L(z)^T) with `scale_tril_from_entries`: every covariance can be reached, at d (d + 3) / 2
    outputs.

    Args:
        sizes: Layer sizes from the input through the hidden layers to the number of coordinates.
        min_std: Added to the diagonal of L.

    Notes: D6-11, DE71.
    """

    def __init__(self, sizes: Sequence[int], *, min_std: float = MIN_STD, generator: torch.Generator | None = None):
        super().__init__()
        _check_sizes(sizes, min_std)
        self.dim, self.min_std = sizes[-1], min_std
        self.net = MLP([*sizes[:-1], self.dim * (self.dim + 3) // 2], activation=nn.Tanh, generator=generator)

    def forward(self, z: Float[Tensor, "*batch latent"]) -> TriangularNormal:
        outputs = _rows(self.net, z)
        return TriangularNormal(
            outputs[..., : self.dim], scale_tril_from_entries(outputs[..., self.dim :], self.dim, min_std=self.min_std)
        )


class DeepLatentGaussian(nn.Module, LatentModel):
    """Z ~ N(0, I_k) and X | Z = z from the normal distribution that a network makes of z; its evidence has no closed
    form.

    Args:
        latent_dim: k, as many as the decoder has inputs.
        decoder: The network from z to the distribution of x.

    >>> model = DeepLatentGaussian(2, DiagonalNormalNet([2, 16, 5], generator=torch.Generator().manual_seed(0)))
    >>> model.sample(3, generator=torch.Generator().manual_seed(0)).shape
    torch.Size([3, 5])

    Notes: D6-11.
    """

    def __init__(self, latent_dim: int, decoder: DiagonalNormalNet | TriangularNormalNet):
        super().__init__()
        if latent_dim < 1 or decoder.net.sizes[0] != latent_dim:
            got = f"{latent_dim} and a network of {decoder.net.sizes[0]} inputs"
            raise UserError(
                f"expected as many latent coordinates, at least one, as the decoder has inputs, got {got}; make "
                "them equal"
            )
        self.latent_dim, self.decoder = latent_dim, decoder

    def forward(self, z: Float[Tensor, "*batch latent"]) -> NormalDistribution:
        """The distribution of x given z."""
        return self.decoder(z)

    def log_prior(self, z: Real[Tensor, "*batch latent"]) -> Float[Tensor, "*batch"]:
        return -as_floating(z).square().sum(dim=-1) / 2 - self.latent_dim * math.log(2 * math.pi) / 2

    def log_likelihood(
        self, x: Float[Tensor, "*#batch features"], z: Float[Tensor, "*#batch latent"]
    ) -> Float[Tensor, "*#batch"]:
        """ln N(x; μ(z), Σ(z)).

        Notes: D6-11.
        """
        if x.ndim == 0 or x.shape[-1] != self.decoder.dim:
            raise UserError(
                f"expected examples of {self.decoder.dim} numbers on the last axis, got shape {tuple(x.shape)}; "
                "reshape them"
            )
        return self(z).log_prob(x)

    def sample_prior(
        self, sample_shape: Sequence[int] = (), *, generator: torch.Generator
    ) -> Float[Tensor, "*sample latent"]:
        start = next(self.parameters())
        return torch.randn(
            (*sample_shape, self.latent_dim), generator=generator, dtype=start.dtype, device=start.device
        )

    @torch.no_grad()
    def sample(self, num_samples: int, *, generator: torch.Generator) -> Float[Tensor, "{num_samples} features"]:
        """New examples: z from the prior, then x given z."""
        return self(self.sample_prior((num_samples,), generator=generator)).sample(generator=generator)


def _rows(net: MLP, z: Tensor) -> Tensor:
    """The network on the last axis alone; MLP itself flattens an example, which here has leading axes of samples."""
    outputs = net.head(net.features(z.reshape(-1, z.shape[-1])))
    return outputs.reshape(*z.shape[:-1], outputs.shape[-1])


def _check_sizes(sizes: Sequence[int], min_std: float) -> None:
    if len(sizes) < 2 or min(sizes) < 1:
        raise UserError(
            f"expected layer sizes from input to output, each at least 1, got {list(sizes)}; give e.g. [2, 32, 10]"
        )
    if not 0 <= min_std < math.inf:
        raise UserError(f"expected min_std of at least 0, got {min_std}; give e.g. {MIN_STD}")
