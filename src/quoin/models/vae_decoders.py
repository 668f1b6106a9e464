"""From a latent z to a distribution of images x: Gaussian with one standard deviation for all pixels, given or learnt,
or counts of coin tosses.

Each decoder wraps a network from z to one number a pixel, and knows the mean of x given z (`forward`), ln p(x | z) and
how to sample x.

    k latent coordinates; leading axes are examples, or samples and examples
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from jaxtyping import Float, Real
from torch import Tensor, nn
from torch.nn import functional

from quoin.errors import UserError, format_value
from quoin.tensor import as_floating

__all__ = ["BinomialDecoder", "GaussianDecoder", "LearnedGaussianDecoder", "VAEDecoder"]


class VAEDecoder(nn.Module, ABC):
    """p(x | z) on images of `image_shape`, from the outputs (n, ...) that `net` makes of z (n, k)."""

    def __init__(self, net: nn.Module, image_shape: Sequence[int]):
        super().__init__()
        if len(image_shape) != 3 or min(image_shape) < 1:
            raise UserError(
                f"expected image_shape as (channels, height, width), got {format_value(image_shape)}; give e.g. "
                "(1, 28, 28)"
            )
        self.net, self.image_shape = net, tuple(image_shape)

    def outputs(self, z: Float[Tensor, "*batch latent"]) -> Float[Tensor, "*batch channels height width"]:
        """What the network makes of z, an image each."""
        rows = z if z.ndim == 2 else z.reshape(-1, z.shape[-1])
        return self.net(rows).reshape(*z.shape[:-1], *self.image_shape)

    @abstractmethod
    def forward(self, z: Float[Tensor, "*batch latent"]) -> Float[Tensor, "*batch channels height width"]:
        """E[X | z]."""

    @abstractmethod
    def log_likelihood(
        self, x: Float[Tensor, "batch channels height width"], z: Float[Tensor, "*samples batch latent"]
    ) -> Float[Tensor, "*samples batch"]:
        """ln p(x | z), summed over pixels."""

    @abstractmethod
    def sample(
        self, z: Float[Tensor, "*batch latent"], *, generator: torch.Generator
    ) -> Float[Tensor, "*batch channels height width"]:
        """x ~ p(x | z)."""

    def _check(self, x: Tensor) -> None:
        if x.shape[-3:] != self.image_shape:
            raise UserError(
                f"expected images (..., {', '.join(map(str, self.image_shape))}), got {tuple(x.shape)}; reshape them"
            )


class _GaussianDecoder(VAEDecoder):
    """N(μ_θ(z), s² I); where s comes from is left open."""

    @abstractmethod
    def log_std_like(self, x: Float[Tensor, "..."]) -> Float[Tensor, ""]:
        """ln s, where x is and as it is stored."""

    def forward(self, z: Float[Tensor, "*batch latent"]) -> Float[Tensor, "*batch channels height width"]:
        return self.outputs(z)

    def log_likelihood(
        self, x: Real[Tensor, "batch channels height width"], z: Float[Tensor, "*samples batch latent"]
    ) -> Float[Tensor, "*samples batch"]:
        """-‖x - μ_θ(z)‖² / (2s²) - (d/2) ln 2πs².

        Notes: D6-28, D6-30.
        """
        self._check(x)
        x = as_floating(x)
        log_std = self.log_std_like(x)
        error = (x - self.outputs(z)).flatten(-3).square().sum(dim=-1)
        return error * (-0.5 * torch.exp(-2 * log_std)) - math.prod(self.image_shape) * (
            log_std + math.log(2 * math.pi) / 2
        )

    def sample(
        self, z: Float[Tensor, "*batch latent"], *, generator: torch.Generator
    ) -> Float[Tensor, "*batch channels height width"]:
        mean = self.outputs(z)
        noise = torch.randn(mean.shape, generator=generator, dtype=mean.dtype, device=mean.device)
        return mean + self.log_std_like(mean).exp() * noise


class GaussianDecoder(_GaussianDecoder):
    """N(μ_θ(z), s² I) with a given standard deviation s, the vanilla choice: up to constants ln p(x | z) = -‖x -
    μ_θ(z)‖² / (2s²).

    A small s asks for sharp reconstructions and pays for them in divergence, a large one for a simple latent
    distribution.

    Args:
        net: From z (n, k) to as many numbers as an image has, the means.
        image_shape: (channels, height, width).
        std: s.

    Notes: D6-28, D6-30.
    """

    def __init__(self, net: nn.Module, image_shape: Sequence[int], std: float):
        super().__init__(net, image_shape)
        _check_std(std)
        self.std = std

    def log_std_like(self, x: Float[Tensor, "..."]) -> Float[Tensor, ""]:
        return x.new_tensor(math.log(self.std))


class LearnedGaussianDecoder(_GaussianDecoder):
    """`GaussianDecoder` whose one standard deviation s is learnt: at its best, the root mean square of what
    reconstructions miss.

    Args:
        net: From z (n, k) to as many numbers as an image has, the means.
        image_shape: (channels, height, width).
        std: Where s starts.
    """

    def __init__(self, net: nn.Module, image_shape: Sequence[int], std: float):
        super().__init__(net, image_shape)
        _check_std(std)
        self.log_std = nn.Parameter(torch.tensor(math.log(std)))

    def log_std_like(self, x: Float[Tensor, "..."]) -> Float[Tensor, ""]:
        return self.log_std


class BinomialDecoder(VAEDecoder):
    """Each pixel is the fraction of heads in `num_levels` - 1 tosses of a coin that falls heads with probability π(z) =
    1 / (1 + e^-a).

    With two levels it is the usual decoder of binary images, and minus ln p(x | z) is the binary cross-entropy. With
    more it is a distribution on grey levels (binomial), so that images have probabilities, not densities, and models
    can be compared by them.

    Args:
        net: From z (n, k) to as many numbers as an image has, the logits a.
        image_shape: (channels, height, width).
        num_levels: How many values a pixel can have, from 0 to 1 at equal distances.

    Notes: DE63.
    """

    def __init__(self, net: nn.Module, image_shape: Sequence[int], *, num_levels: int = 2):
        super().__init__(net, image_shape)
        if num_levels < 2:
            raise UserError(
                f"expected at least the two levels 0 and 1, got {num_levels}; give the number of grey values an "
                "image can have"
            )
        self.num_levels = num_levels

    def forward(self, z: Float[Tensor, "*batch latent"]) -> Float[Tensor, "*batch channels height width"]:
        return self.outputs(z).sigmoid()

    def log_likelihood(
        self, x: Float[Tensor, "batch channels height width"], z: Float[Tensor, "*samples batch latent"]
    ) -> Float[Tensor, "*samples batch"]:
        """Σ_pixels ln C(n, nx) + n [x ln π + (1 - x) ln(1 - π)] for n = num_levels - 1; of binary images the first term
        is 0.

        Notes: DE63.
        """
        self._check(x)
        if x.device.type == "cpu" and not torch.compiler.is_compiling():  # on a GPU a check would stall the queue
            _check_range(x)
        logits, tosses = (
            self.outputs(z).flatten(-3),
            self.num_levels - 1,
        )  # one axis of pixels: sums over three are slower
        crossed = functional.binary_cross_entropy_with_logits(
            logits, x.flatten(-3).expand_as(logits), reduction="none"
        ).sum(dim=-1)
        return -crossed if tosses == 1 else self.log_binomial_coefficient(x) - tosses * crossed

    def log_binomial_coefficient(self, x: Float[Tensor, "*batch channels height width"]) -> Float[Tensor, "*batch"]:
        """Σ_pixels ln C(n, nx): in how many orders the tosses make the image; no parameter is in it."""
        tosses = self.num_levels - 1
        full = torch.lgamma(torch.tensor(tosses + 1.0, dtype=x.dtype, device=x.device))
        return (full - torch.lgamma(tosses * x + 1) - torch.lgamma(tosses * (1 - x) + 1)).sum(dim=(-3, -2, -1))

    def check_images(self, x: Float[Tensor, "*batch channels height width"]) -> None:
        """Raise an error for images outside the distribution's support: to be checked once, before a run."""
        _check_range(x)
        counts = x.detach() * (self.num_levels - 1)
        if not torch.allclose(counts, counts.round(), rtol=0, atol=1e-3):
            wanted = "0 and 1" if self.num_levels == 2 else f"multiples of 1/{self.num_levels - 1}"
            raise UserError(
                f"expected only the values {wanted} for a Bernoulli decoder, got others; round them, or use a "
                "Gaussian one"
            )

    def sample(
        self, z: Float[Tensor, "*batch latent"], *, generator: torch.Generator
    ) -> Float[Tensor, "*batch channels height width"]:
        tosses = self.num_levels - 1
        probability = self(z).expand(tosses, *z.shape[:-1], *self.image_shape)
        return torch.bernoulli(probability, generator=generator).mean(dim=0)


def _check_std(std: float) -> None:
    if not 0 < std < math.inf:
        raise UserError(f"expected a standard deviation above 0 for the decoder, got {std}; give e.g. 0.1")


def _check_range(x: Tensor) -> None:
    low, high = (float(end) for end in torch.aminmax(x.detach()))
    if not 0 <= low <= high <= 1:  # NaN fails too
        got = f"{low:.4g} to {high:.4g}"
        raise UserError(
            f"expected images in [0, 1] for a Bernoulli decoder, got {got}; rescale them, or use a Gaussian decoder"
        )
