"""Generative adversarial networks: one network turns noise into examples, another tells them from real ones, each learning from the other.

What they play for is in quoin.losses.adversarial. The generator alone is the model of the data: it can be drawn from, and its
density is not known. `generator` is the network G in a GAN, and the source of chance in the arguments of its functions.

    k latent coordinates, n examples
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from quoin.errors import Mistake
from quoin.layers import keeps_global_rng
from quoin.models.generative_model import check_sample_count
from quoin.models.image_start import ImageShape, check_image_model, start_image_weights
from quoin.models.mlp import MLP
from quoin.tensor import check_image_batch

__all__ = ["GAN", "ImageDiscriminator", "conv_gan", "mlp_gan"]

LEAK = 0.2  # the slope of a discriminator's units below 0: a dead unit would tell the generator nothing
GROUPS = 8  # of channels that are normalised together


class GAN(nn.Module):
    """x = G(z) with z ~ N(0, I_k), and D(x), the logit of the chance that x is real; calling the model is G.

    G maps (n, k) to (n, *shape), D maps that to (n,).

    >>> model = mlp_gan(2, latent_dim=3, generator=torch.Generator().manual_seed(0))
    >>> model.sample(5, generator=torch.Generator().manual_seed(1)).shape
    torch.Size([5, 2])

    Notes: D5.2-7.
    """

    def __init__(self, generator: nn.Module, discriminator: nn.Module, latent_dim: int):
        super().__init__()
        _check_latent(latent_dim)
        self.generator, self.discriminator, self.latent_dim = generator, discriminator, latent_dim

    def forward(self, z: Tensor) -> Tensor:  # (n, k) -> (n, *shape)
        if z.ndim != 2 or z.shape[1] != self.latent_dim:
            raise Mistake(f"expected noise (n, {self.latent_dim}), came shape {tuple(z.shape)}; draw it with `noise`")
        return self.generator(z)

    def decode_mean(self, latent: Tensor) -> Tensor:  # (n, k) -> (n, *shape)
        """G(z): given z, nothing is left to chance."""
        return self(latent)

    def noise(self, count: int, *, generator: torch.Generator) -> Tensor:  # -> (count, k)
        """z, as many times."""
        check_sample_count(count)
        like = next(self.parameters())
        return torch.randn(count, self.latent_dim, generator=generator, dtype=like.dtype, device=like.device)

    @torch.no_grad()
    def sample(self, count: int, *, generator: torch.Generator) -> Tensor:  # -> (count, *shape)
        """New examples, independent.

        Notes: D5.2-7.
        """
        return self(self.noise(count, generator=generator))


class OneLogit(nn.Module):
    """A network with one output as a number for each example."""

    def __init__(self, net: nn.Module):
        super().__init__()
        self.net = net

    def forward(self, x: Tensor) -> Tensor:  # (n, ...) -> (n,)
        return self.net(x).squeeze(-1)


def mlp_gan(data_dim: int, *, latent_dim: int = 2, hidden: Sequence[int] = (64, 64), generator: torch.Generator | None = None) -> GAN:
    """Perceptrons with the same hidden widths on both sides, for rows of `data_dim` numbers of any size.

    Notes: D5.2-7.
    """
    _check_latent(latent_dim)
    forger = MLP([latent_dim, *hidden, data_dim], generator=generator)
    critic = MLP([data_dim, *hidden, 1], activation=lambda: nn.LeakyReLU(LEAK), generator=generator)
    return GAN(forger, OneLogit(critic), latent_dim)


class ImageDiscriminator(nn.Module):
    """The logit of being real for images in [0, 1]: convolutions with stride 2 to a quarter of the sides, and one dense unit.

    No normalisation: a penalty on ∇D(x) needs a D that looks at one image at a time.
    """

    def __init__(self, image_shape: ImageShape, *, width: int):
        super().__init__()
        channels, height, right = image_shape
        self.image_shape = image_shape
        self.features = nn.Sequential(
            nn.Conv2d(channels, width, 3, padding=1), nn.LeakyReLU(LEAK),
            nn.Conv2d(width, 2 * width, 4, stride=2, padding=1), nn.LeakyReLU(LEAK),
            nn.Conv2d(2 * width, 4 * width, 4, stride=2, padding=1), nn.LeakyReLU(LEAK), nn.Flatten(),
        )  # fmt: skip
        self.head = nn.Linear(width * height * right // 4, 1)

    def forward(self, images: Tensor) -> Tensor:  # (n, c, h, w) -> (n,)
        check_image_batch(images, self.image_shape)
        return self.head(self.features(2 * images - 1)).squeeze(-1)


@keeps_global_rng
def conv_gan(image_shape: ImageShape, *, latent_dim: int = 32, width: int = 16, generator: torch.Generator | None = None) -> GAN:
    """A small convolutional pair for images in [0, 1] whose sides are multiples of 4; `width` channels at full size, twice that at half.

    G: a dense layer to a quarter of the sides, two doublings with a convolution each, a sigmoid. D: `ImageDiscriminator`.

    >>> model = conv_gan((1, 8, 8), generator=torch.Generator().manual_seed(0))
    >>> images = model.sample(3, generator=torch.Generator().manual_seed(1))
    >>> images.shape, bool(((images >= 0) & (images <= 1)).all()), model.discriminator(images).shape
    (torch.Size([3, 1, 8, 8]), True, torch.Size([3]))

    Notes: D5.2-7.
    """
    check_image_model(image_shape, 1, smallest=4)
    channels, height, right = image_shape
    if height % 4 or right % 4:
        raise Mistake(f"expected images whose sides are multiples of 4, came {height} x {right} pixels; pad or crop them")
    if width < GROUPS or width % GROUPS:
        raise Mistake(f"expected a width that is a multiple of {GROUPS}, to be normalised in groups, came {width}; give e.g. 16")
    _check_latent(latent_dim)
    low = (4 * width, height // 4, right // 4)
    forger = nn.Sequential(
        nn.Linear(latent_dim, low[0] * low[1] * low[2]), nn.Unflatten(1, low), nn.GroupNorm(GROUPS, low[0]), nn.ReLU(),
        *_doubled(4 * width, 2 * width), *_doubled(2 * width, width), nn.Conv2d(width, channels, 3, padding=1), nn.Sigmoid(),
    )  # fmt: skip
    return start_image_weights(GAN(forger, ImageDiscriminator(image_shape, width=width), latent_dim), generator)


def _doubled(inputs: int, outputs: int) -> list[Any]:
    """Twice the sides: every pixel four times, then a convolution; one with stride would print a chequerboard."""
    return [
        nn.Upsample(scale_factor=2, mode="nearest"),
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
        nn.GroupNorm(GROUPS, outputs),
        nn.ReLU(),
    ]


def _check_latent(latent_dim: int) -> None:
    if latent_dim < 1:
        raise Mistake(f"expected at least one latent coordinate, came {latent_dim}; noise of no width makes one example only")
