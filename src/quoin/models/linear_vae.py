"""A linear variational autoencoder: probabilistic PCA as the decoder, a linear encoder beside it.

What the bound of the pair says can be held against the decoder's exact evidence.   n examples, d numbers each, k latent
coordinates
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from quoin.models.deep_latent import scale_tril_from_entries
from quoin.models.generative import check_num_samples
from quoin.models.ppca import PPCA
from quoin.prob import TriangularNormal

__all__ = ["LinearVAE"]


class LinearVAE(nn.Module):
    """q(z | y) = N(encoder(y), L L^T) with one covariance for all y, and p(y | z) of the decoder; y = (x - loc)/scale.

    `entries` are the numbers of L, that of `scale_tril_from_entries`, zero at first.

    Notes: D6-17, D6-19.
    """

    loc: Float[Tensor, "features"]
    scale: Float[Tensor, "features"]

    def __init__(self, decoder: PPCA, encoder: nn.Linear):
        super().__init__()
        self.decoder, self.encoder = decoder, encoder
        num_features, k = decoder.weight.shape
        self.entries = nn.Parameter(decoder.weight.new_zeros(k * (k + 1) // 2))
        self.register_buffer("loc", decoder.bias.detach().new_zeros(num_features))
        self.register_buffer("scale", decoder.bias.detach().new_ones(num_features))

    def normalize(self, x: Float[Tensor, "batch features"]) -> Float[Tensor, "batch features"]:
        """Examples on the scale of encoder and decoder."""
        return (x - self.loc) / self.scale

    def posterior(self, y: Float[Tensor, "batch features"]) -> TriangularNormal:
        """q(z | y), its mean linear in y and its covariance the same for all: what the exact posterior is."""
        return TriangularNormal(self.encoder(y), scale_tril_from_entries(self.entries, self.decoder.weight.shape[1]))

    @torch.no_grad()
    def sample(self, num_samples: int, *, generator: torch.Generator) -> Float[Tensor, "{num_samples} features"]:
        """New examples of the decoder, on the scale of x."""
        check_num_samples(num_samples)
        return self.loc + self.scale * self.decoder.sample(num_samples, generator=generator)
