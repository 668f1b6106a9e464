"""The variational autoencoder: an encoder x -> q(z | x), a standard normal prior, a decoder z -> p(x | z); dense, or convolutional.

Its loss is in quoin.losses, its decoders are in vae_decoders.py.   n images of (c, h, w), k latent coordinates
"""

import itertools
import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from quoin.errors import Mistake
from quoin.layers import keeps_global_rng
from quoin.models.generative_model import check_sample_count
from quoin.models.image_start import start_image_weights
from quoin.models.mlp import MLP
from quoin.models.vae_decoders import Decoder
from quoin.prob import DiagonalNormal, LatentModel
from quoin.tensor import as_floating

__all__ = ["VAE", "Encoder", "conv_vae", "mlp_vae"]

MakeDecoder = Callable[[nn.Module], Decoder]  # from the decoding network to the law that it computes


class Encoder(nn.Module):
    """q(z | x) = N(μ_φ(x), diag σ_φ(x)²): one network gives every data point, seen or new, its own approximate posterior.

    `net` has 2k outputs an image: first μ, then ln σ.

    Notes: D6-16, D6-30.
    """

    def __init__(self, net: nn.Module):
        super().__init__()
        self.net = net

    def forward(self, x: Tensor) -> DiagonalNormal:  # (n, c, h, w) -> law on (n, k)
        mean, log_std = self.net(x).chunk(2, dim=-1)
        return DiagonalNormal(mean, log_std)


class VAE(nn.Module, LatentModel):
    """Z ~ N(0, I_k), X | Z from `decoder`, and `encoder` for the posterior that has no closed form.

    A `LatentModel`: quoin.prob estimates its evidence, quoin.losses its bound. Training maximises the sum of the bounds of all
    examples over both networks: see `quoin.losses.vae_losses` and `quoin train vae`.

    >>> from quoin.models import BernoulliDecoder
    >>> model = mlp_vae((1, 4, 4), 2, lambda net: BernoulliDecoder(net, (1, 4, 4)), generator=torch.Generator().manual_seed(0))
    >>> model.sample(3, generator=torch.Generator().manual_seed(0)).shape
    torch.Size([3, 1, 4, 4])

    Notes: D6-23, D6-30, D5.2-6.
    """

    def __init__(self, encoder: Encoder, decoder: Decoder, latent_dim: int):
        super().__init__()
        _check_latent(latent_dim)
        self.encoder, self.decoder, self.latent_dim = encoder, decoder, latent_dim

    def forward(self, x: Tensor) -> Tensor:  # (n, c, h, w) -> (n, c, h, w)
        """Reconstructions: the mean of x given the mean of z given x."""
        return self.decoder(self.encoder(x).mean)

    def log_prior(self, z: Tensor) -> Tensor:  # (..., k) -> (...)
        return -as_floating(z).square().sum(dim=-1) / 2 - self.latent_dim * math.log(2 * math.pi) / 2

    def log_likelihood(self, x: Tensor, z: Tensor) -> Tensor:  # (n, c, h, w), (..., n, k) -> (..., n)
        return self.decoder.log_likelihood(x, z)

    def sample_prior(self, shape: Sequence[int] = (), *, generator: torch.Generator) -> Tensor:  # -> (*shape, k)
        start = next(self.parameters())
        return torch.randn((*shape, self.latent_dim), generator=generator, dtype=start.dtype, device=start.device)

    @torch.no_grad()
    def sample(self, count: int, *, generator: torch.Generator, pixel_noise: bool = False) -> Tensor:  # -> (count, c, h, w) in [0, 1]
        """z from the prior, then through the decoder: E[X | z], as is usual to show, or with `pixel_noise` x ~ p(x | z) itself.

        Notes: D5.2-6.
        """
        check_sample_count(count)
        z = self.sample_prior((count,), generator=generator)
        return self.decoder.sample(z, generator=generator).clamp(0, 1) if pixel_noise else self.decode_mean(z)

    def decode_mean(self, latent: Tensor) -> Tensor:  # (..., k) -> (..., c, h, w)
        """E[X | z], as an image in [0, 1]."""
        return self.decoder(latent).clamp(0, 1)


def mlp_vae(
    image_shape: Sequence[int],
    latent_dim: int,
    decoder: MakeDecoder,
    *,
    hidden: Sequence[int] = (256,),
    generator: torch.Generator | None = None,
) -> VAE:
    """Perceptrons: `hidden` are the widths of the encoder's layers, and from back to front of the decoder's."""
    _check_latent(latent_dim)
    pixels = math.prod(image_shape)
    encoder = MLP([pixels, *hidden, 2 * latent_dim], generator=generator)
    net = MLP([latent_dim, *reversed(hidden), pixels], generator=generator)
    _quieten(encoder.head, net.features[0] if hidden else net.head, net.head)
    return VAE(Encoder(encoder), decoder(net), latent_dim)


@keeps_global_rng
def conv_vae(
    image_shape: Sequence[int],
    latent_dim: int,
    decoder: MakeDecoder,
    *,
    channels: Sequence[int] = (32, 64),
    generator: torch.Generator | None = None,
) -> VAE:
    """Convolutions of stride 2 down to a small map of many channels, a dense layer to the code; enlarged and convolved back up.

    Every entry of `channels` halves the sides, rounding up, so that images of any size go through.
    """
    _check_latent(latent_dim)
    sizes = [tuple(image_shape[1:])]
    down: list[nn.Module] = []
    up: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise([image_shape[0], *channels]):
        down += [nn.Conv2d(inputs, outputs, 3, stride=2, padding=1), nn.SiLU()]
        up = [nn.SiLU(), nn.Upsample(size=sizes[-1]), nn.Conv2d(outputs, inputs, 3, padding=1), *up]
        sizes.append(tuple(-(-size // 2) for size in sizes[-1]))
    area = channels[-1] * math.prod(sizes[-1])
    head = nn.Linear(area, 2 * latent_dim)
    encoder = start_image_weights(nn.Sequential(*down, nn.Flatten(), head), generator)
    smallest = nn.Unflatten(1, (channels[-1], *sizes[-1]))
    first = nn.Linear(latent_dim, area)
    net = start_image_weights(nn.Sequential(first, smallest, *up), generator)
    _quieten(head, first, net[-1])
    return VAE(Encoder(encoder), decoder(net), latent_dim)


@torch.no_grad()
def _quieten(*layers: nn.Module) -> None:
    """Layers at both ends of the code that begin at a tenth: codes near the prior, of which little is made at first.

    From loud codes training shrinks and shifts them for good, and draws from the prior then fall beside all that was learnt.
    """
    for layer in layers:
        assert isinstance(layer, nn.Linear | nn.Conv2d)
        layer.weight *= 0.1


def _check_latent(latent_dim: int) -> None:
    if latent_dim < 1:
        raise Mistake(f"expected at least one latent coordinate, came {latent_dim}; give e.g. 2")
