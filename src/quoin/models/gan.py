"""Generative adversarial networks: one network turns noise into examples, another distinguishes them from real ones,
each learning from the other.

Their losses are in quoin.losses.adversarial. The generator alone is the model of the data: it can be sampled from, and
its density is not known. `generator` is the network G in a GAN, and the source of randomness in the arguments of its
functions.

    k latent coordinates, n examples
"""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from quoin.errors import UserError
from quoin.layers import keeps_global_rng
from quoin.models.generative import check_num_samples
from quoin.models.image_init import ImageShape, check_image_model, init_image_weights
from quoin.models.mlp import MLP
from quoin.tensor import check_image_batch

__all__ = ["GAN", "ImageDiscriminator", "conv_gan", "mlp_gan"]

LEAK = 0.2  # the slope of a discriminator's units below 0: a dead unit would give the generator no gradient
GROUPS = 8  # of channels that are normalized together


class GAN(nn.Module):
    """x = G(z) with z ~ N(0, I_k), and D(x), the logit of the probability that x is real; calling the model is G.

    Args:
        generator: G, from (n, k) to (n, *shape).
        discriminator: D, from that to (n,).
        latent_dim: k.

    >>> model = mlp_gan(2, latent_dim=3, generator=torch.Generator().manual_seed(0))
    >>> model.sample(5, generator=torch.Generator().manual_seed(1)).shape
    torch.Size([5, 2])

    Notes: D5.2-7.
    """

    def __init__(self, generator: nn.Module, discriminator: nn.Module, latent_dim: int):
        super().__init__()
        _check_latent(latent_dim)
        self.generator, self.discriminator, self.latent_dim = generator, discriminator, latent_dim

    def forward(self, z: Float[Tensor, "batch latent"]) -> Float[Tensor, "batch ..."]:
        if z.ndim != 2 or z.shape[1] != self.latent_dim:
            raise UserError(
                f"expected noise (n, {self.latent_dim}), got shape {tuple(z.shape)}; sample it with `sample_latent`"
            )
        return self.generator(z)

    def decode_mean(self, latent: Float[Tensor, "batch latent"]) -> Float[Tensor, "batch ..."]:
        """G(z), deterministic given z."""
        return self(latent)

    def sample_latent(self, num_samples: int, *, generator: torch.Generator) -> Float[Tensor, "{num_samples} latent"]:
        """z, as many times."""
        check_num_samples(num_samples)
        like = next(self.parameters())
        return torch.randn(num_samples, self.latent_dim, generator=generator, dtype=like.dtype, device=like.device)

    @torch.no_grad()
    def sample(self, num_samples: int, *, generator: torch.Generator) -> Float[Tensor, "{num_samples} ..."]:
        """New examples, independent.

        Notes: D5.2-7.
        """
        return self(self.sample_latent(num_samples, generator=generator))


class LogitHead(nn.Module):
    """A network with one output as a number for each example."""

    def __init__(self, net: nn.Module):
        super().__init__()
        self.net = net

    def forward(self, x: Float[Tensor, "batch ..."]) -> Float[Tensor, "batch"]:
        return self.net(x).squeeze(-1)


def mlp_gan(
    data_dim: int,
    *,
    latent_dim: int = 2,
    hidden_dims: Sequence[int] = (64, 64),
    generator: torch.Generator | None = None,
) -> GAN:
    """MLPs with the same hidden sizes on both sides, for rows of `data_dim` numbers of any size.

    Notes: D5.2-7.
    """
    _check_latent(latent_dim)
    forger = MLP([latent_dim, *hidden_dims, data_dim], generator=generator)
    critic = MLP([data_dim, *hidden_dims, 1], activation=lambda: nn.LeakyReLU(LEAK), generator=generator)
    return GAN(forger, LogitHead(critic), latent_dim)


class ImageDiscriminator(nn.Module):
    """The logit of being real for images in [0, 1]: convolutions with stride 2 to a quarter of the sides, and one dense
    unit.

    No normalization: a penalty on ∇D(x) needs a D that sees one image at a time.

    Args:
        image_shape: (channels, height, width).
        base_channels: Channels at full size; twice that at half, four times at a quarter.
    """

    def __init__(self, image_shape: ImageShape, *, base_channels: int):
        super().__init__()
        channels, height, right = image_shape
        self.image_shape = image_shape
        self.features = nn.Sequential(
            nn.Conv2d(channels, base_channels, 3, padding=1), nn.LeakyReLU(LEAK),
            nn.Conv2d(base_channels, 2 * base_channels, 4, stride=2, padding=1), nn.LeakyReLU(LEAK),
            nn.Conv2d(2 * base_channels, 4 * base_channels, 4, stride=2, padding=1), nn.LeakyReLU(LEAK), nn.Flatten(),
        )  # fmt: skip
        self.head = nn.Linear(base_channels * height * right // 4, 1)

    def forward(self, images: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch"]:
        check_image_batch(images, self.image_shape)
        return self.head(self.features(2 * images - 1)).squeeze(-1)


@keeps_global_rng
def conv_gan(
    image_shape: ImageShape, *, latent_dim: int = 32, base_channels: int = 16, generator: torch.Generator | None = None
) -> GAN:
    """A small convolutional pair for images in [0, 1] whose sides are multiples of 4.

    G: a dense layer to a quarter of the sides, two doublings with a convolution each, a sigmoid. D:
    `ImageDiscriminator`.

    Args:
        base_channels: Channels at full size, a multiple of 8; twice that at half.

    >>> model = conv_gan((1, 8, 8), generator=torch.Generator().manual_seed(0))
    >>> images = model.sample(3, generator=torch.Generator().manual_seed(1))
    >>> images.shape, bool(((images >= 0) & (images <= 1)).all()), model.discriminator(images).shape
    (torch.Size([3, 1, 8, 8]), True, torch.Size([3]))

    Notes: D5.2-7.
    """
    check_image_model(image_shape, 1, smallest=4)
    channels, height, right = image_shape
    if height % 4 or right % 4:
        raise UserError(
            f"expected images whose sides are multiples of 4, got {height} x {right} pixels; pad or crop them"
        )
    if base_channels < GROUPS or base_channels % GROUPS:
        raise UserError(
            f"expected base_channels that are a multiple of {GROUPS}, to be normalized in groups, got "
            f"{base_channels}; give e.g. 16"
        )
    _check_latent(latent_dim)
    low = (4 * base_channels, height // 4, right // 4)
    forger = nn.Sequential(
        nn.Linear(latent_dim, low[0] * low[1] * low[2]), nn.Unflatten(1, low), nn.GroupNorm(GROUPS, low[0]), nn.ReLU(),
        *_doubled(4 * base_channels, 2 * base_channels), *_doubled(2 * base_channels, base_channels),
        nn.Conv2d(base_channels, channels, 3, padding=1), nn.Sigmoid(),
    )  # fmt: skip
    return init_image_weights(
        GAN(forger, ImageDiscriminator(image_shape, base_channels=base_channels), latent_dim), generator
    )


def _doubled(in_channels: int, out_channels: int) -> list[Any]:
    """Twice the sides: every pixel four times, then a convolution; one with stride would print a chequerboard."""
    return [
        nn.Upsample(scale_factor=2, mode="nearest"),
        nn.Conv2d(in_channels, out_channels, 3, padding=1, bias=False),
        nn.GroupNorm(GROUPS, out_channels),
        nn.ReLU(),
    ]


def _check_latent(latent_dim: int) -> None:
    if latent_dim < 1:
        raise UserError(
            f"expected at least one latent coordinate, got {latent_dim}; noise without coordinates makes one "
            "example only"
        )
