"""The variational autoencoder: an encoder x -> q(z | x), a standard normal prior, a decoder z -> p(x | z); dense, or
convolutional.

Its loss is in quoin.losses, its decoders are in vae_decoders.py.   k latent coordinates
"""

import itertools
import math
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Real
from torch import Tensor, nn

from quoin.errors import UserError
from quoin.layers import keeps_global_rng
from quoin.models.generative import check_num_samples
from quoin.models.image_init import init_image_weights
from quoin.models.mlp import MLP
from quoin.models.vae_decoders import VAEDecoder
from quoin.prob import DiagonalNormal, LatentModel
from quoin.tensor import as_floating

__all__ = ["VAE", "VAEEncoder", "conv_vae", "mlp_vae"]

MakeDecoder = Callable[[nn.Module], VAEDecoder]  # from the decoding network to the distribution that it computes


class VAEEncoder(nn.Module):
    """q(z | x) = N(μ_φ(x), diag σ_φ(x)²): one network gives every data point, seen or new, its own approximate
    posterior.

    `net` has 2k outputs an image: first μ, then ln σ.

    Notes: D6-16, D6-30.
    """

    def __init__(self, net: nn.Module):
        super().__init__()
        self.net = net

    def forward(self, x: Float[Tensor, "batch channels height width"]) -> DiagonalNormal:
        mean, log_std = self.net(x).chunk(2, dim=-1)
        return DiagonalNormal(mean, log_std)


class VAE(nn.Module, LatentModel):
    """Z ~ N(0, I_k), X | Z from `decoder`, and `encoder` for the posterior that has no closed form.

    A `LatentModel`: quoin.prob estimates its evidence, quoin.losses its bound. Training maximises the sum of the bounds
    of all examples over both networks: see `quoin.losses.vae_losses` and `quoin train vae`.

    Args:
        latent_dim: k, the numbers of a latent z.

    >>> from quoin.models import BinomialDecoder
    >>> rng = torch.Generator().manual_seed(0)
    >>> model = mlp_vae((1, 4, 4), 2, lambda net: BinomialDecoder(net, (1, 4, 4)), generator=rng)
    >>> model.sample(3, generator=torch.Generator().manual_seed(0)).shape
    torch.Size([3, 1, 4, 4])

    Notes: D6-23, D6-30, D5.2-6.
    """

    def __init__(self, encoder: VAEEncoder, decoder: VAEDecoder, latent_dim: int):
        super().__init__()
        _check_latent(latent_dim)
        self.encoder, self.decoder, self.latent_dim = encoder, decoder, latent_dim

    def forward(self, x: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch channels height width"]:
        """Reconstructions: the mean of x given the mean of z given x."""
        return self.decoder(self.encoder(x).mean)

    def log_prior(self, z: Real[Tensor, "*batch latent"]) -> Float[Tensor, "*batch"]:
        return -as_floating(z).square().sum(dim=-1) / 2 - self.latent_dim * math.log(2 * math.pi) / 2

    def log_likelihood(
        self, x: Float[Tensor, "batch channels height width"], z: Float[Tensor, "*samples batch latent"]
    ) -> Float[Tensor, "*samples batch"]:
        return self.decoder.log_likelihood(x, z)

    def sample_prior(
        self, sample_shape: Sequence[int] = (), *, generator: torch.Generator
    ) -> Float[Tensor, "*sample latent"]:
        start = next(self.parameters())
        return torch.randn(
            (*sample_shape, self.latent_dim), generator=generator, dtype=start.dtype, device=start.device
        )

    @torch.no_grad()
    def sample(
        self, num_samples: int, *, generator: torch.Generator, pixel_noise: bool = False
    ) -> Float[Tensor, "{num_samples} channels height width"]:
        """z from the prior, then through the decoder: E[X | z], as is usual to show, or with `pixel_noise` x ~ p(x | z)
        itself; in [0, 1].

        Notes: D5.2-6.
        """
        check_num_samples(num_samples)
        z = self.sample_prior((num_samples,), generator=generator)
        return self.decoder.sample(z, generator=generator).clamp(0, 1) if pixel_noise else self.decode_mean(z)

    def decode_mean(self, latent: Float[Tensor, "*batch latent"]) -> Float[Tensor, "*batch channels height width"]:
        """E[X | z], as an image in [0, 1]."""
        return self.decoder(latent).clamp(0, 1)


def mlp_vae(
    image_shape: Sequence[int],
    latent_dim: int,
    decoder: MakeDecoder,
    *,
    hidden_dims: Sequence[int] = (256,),
    generator: torch.Generator | None = None,
) -> VAE:
    """A VAE of two MLPs.

    Args:
        image_shape: (channels, height, width).
        latent_dim: k, the numbers of a latent z.
        decoder: Makes the distribution of images from the decoding network, such as `lambda net: BinomialDecoder(net,
            image_shape)`.
        hidden_dims: Sizes of the encoder's hidden layers, and from back to front of the decoder's.
    """
    _check_latent(latent_dim)
    pixels = math.prod(image_shape)
    encoder = MLP([pixels, *hidden_dims, 2 * latent_dim], generator=generator)
    net = MLP([latent_dim, *reversed(hidden_dims), pixels], generator=generator)
    _quieten(encoder.head, net.features[0] if hidden_dims else net.head, net.head)
    return VAE(VAEEncoder(encoder), decoder(net), latent_dim)


@keeps_global_rng
def conv_vae(
    image_shape: Sequence[int],
    latent_dim: int,
    decoder: MakeDecoder,
    *,
    channels: Sequence[int] = (32, 64),
    generator: torch.Generator | None = None,
) -> VAE:
    """Convolutions of stride 2 down to a small map of many channels, a dense layer to the latent; upsampled and
    convolved back up.

    Args:
        image_shape: (channels, height, width).
        latent_dim: k, the numbers of a latent z.
        decoder: Makes the distribution of images from the decoding network, such as `lambda net: BinomialDecoder(net,
            image_shape)`.
        channels: Each entry halves the sides, rounding up, so that images of any size go through.
    """
    _check_latent(latent_dim)
    sizes = [tuple(image_shape[1:])]
    down: list[nn.Module] = []
    up: list[nn.Module] = []
    for in_channels, out_channels in itertools.pairwise([image_shape[0], *channels]):
        down += [nn.Conv2d(in_channels, out_channels, 3, stride=2, padding=1), nn.SiLU()]
        up = [nn.SiLU(), nn.Upsample(size=sizes[-1]), nn.Conv2d(out_channels, in_channels, 3, padding=1), *up]
        sizes.append(tuple(-(-size // 2) for size in sizes[-1]))
    area = channels[-1] * math.prod(sizes[-1])
    head = nn.Linear(area, 2 * latent_dim)
    encoder = init_image_weights(nn.Sequential(*down, nn.Flatten(), head), generator)
    smallest = nn.Unflatten(1, (channels[-1], *sizes[-1]))
    first = nn.Linear(latent_dim, area)
    net = init_image_weights(nn.Sequential(first, smallest, *up), generator)
    _quieten(head, first, net[-1])
    return VAE(VAEEncoder(encoder), decoder(net), latent_dim)


@torch.no_grad()
def _quieten(*layers: nn.Module) -> None:
    """Layers at both ends of the latent that begin at a tenth: latents near the prior at first.

    Large latents are shrunk and shifted by training for good, and samples from the prior then miss all that was learnt.
    """
    for layer in layers:
        assert isinstance(layer, nn.Linear | nn.Conv2d)
        layer.weight *= 0.1


def _check_latent(latent_dim: int) -> None:
    if latent_dim < 1:
        raise UserError(f"expected at least one latent coordinate, got {latent_dim}; give e.g. 2")
