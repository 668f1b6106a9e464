"""What every generative model offers: from samples of an unknown distribution Q it holds a distribution Q̂ ≈ Q, and
samples new examples from it.

Where Q̂ has a density that can be computed, the model is a `DensityModel` too. Nothing is said here of how Q̂ is
learnt: a likelihood, a bound on one, a game or a score; how close Q̂ is to Q is measured in quoin.metrics.

n examples of any shape
"""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int, Real, Shaped
from torch import Tensor, nn

from quoin.errors import UserError
from quoin.prob import KernelDensity
from quoin.tensor import GaussianKernel, check_finite, check_floating

__all__ = [
    "DecoderModel",
    "DensityModel",
    "GaussianKDE",
    "GenerativeModel",
    "check_num_samples",
    "latent_traversal",
    "sample_in_batches",
]

SAMPLE_BATCH = 1000  # examples that are sampled together
TRAVERSAL_RADIUS = 2.5  # standard deviations of the prior that a traversal goes to either side


@runtime_checkable
class GenerativeModel(Protocol):
    """A distribution Q̂ that can be sampled from; of images, its samples are (num_samples, channels, height, width)
    with entries from 0 to 1.

    A model that can be steered declares its choices as further arguments by name, each with a default. Those that
    `quoin generate` knows are `labels`, whole numbers (num_samples,), the class of each sample; `num_steps`, how many
    the sampler takes; `guidance_scale`, that of classifier-free guidance; `sampler`, a function of quoin.generate.

    Notes: D5.2-5.
    """

    def sample(self, num_samples: int, *, generator: torch.Generator) -> Float[Tensor, "{num_samples} ..."]:
        """`num_samples` independent samples from Q̂."""
        ...


@runtime_checkable
class DensityModel(GenerativeModel, Protocol):
    """A distribution Q̂ that can be sampled from and whose probability, or density, is known.

    Notes: D5.2-5.
    """

    def log_prob(self, x: Float[Tensor, "batch ..."]) -> Float[Tensor, "batch"]:
        """ln q̂(x) of each example."""
        ...


@runtime_checkable
class DecoderModel(GenerativeModel, Protocol):
    """A distribution that is sampled from by decoding a latent z ~ N(0, I)."""

    @property
    def latent_dim(self) -> int:
        """Numbers of a latent."""
        ...

    def decode_mean(self, latent: Float[Tensor, "batch latent"]) -> Float[Tensor, "batch ..."]:
        """E[x | z] of each latent, in [0, 1] of images."""
        ...


def check_num_samples(num_samples: int) -> None:
    """Raise an error for no samples, on which every metric would fail later."""
    if num_samples < 1:
        raise UserError(f"expected at least one example to sample, got {num_samples}; ask for 1 or more")


def sample_in_batches(sample: Callable[[int], Tensor], num_samples: int) -> Shaped[Tensor, "{num_samples} ..."]:
    """`num_samples` examples by calls of `sample`, a thousand at a time: many more at once would not fit into
    memory."""
    check_num_samples(num_samples)
    return torch.cat([sample(min(SAMPLE_BATCH, num_samples - start)) for start in range(0, num_samples, SAMPLE_BATCH)])


def latent_traversal(
    latent: Float[Tensor, "latent"], coordinates: Int[Tensor, "coordinates"], num_values: int
) -> tuple[Float[Tensor, "{num_values}"], Float[Tensor, "coordinates {num_values} latent"]]:
    """The values that coordinates of a latent take in turn, from one end of the prior to the other, and the latents
    that have them.

    >>> values, latents = latent_traversal(torch.tensor([1.0, 7.0]), torch.tensor([1]), 3)
    >>> latents
    tensor([[[ 1.0000, -2.5000],
             [ 1.0000,  0.0000],
             [ 1.0000,  2.5000]]])
    """
    values = torch.linspace(-TRAVERSAL_RADIUS, TRAVERSAL_RADIUS, num_values, device=latent.device)
    latents = latent.repeat(len(coordinates), num_values, 1)
    latents[torch.arange(len(coordinates)), :, coordinates] = values
    return values, latents


class GaussianKDE(nn.Module):
    """The plainest model of all: Q̂ = (1/n) Σ_i N(x_i, s² I), every example it was shown blurred by the same noise s.

    It works for examples of any shape, such as images 3 × 100 × 100, and is what a trained model has to beat: with a
    small s it copies.

    Args:
        bandwidth: s, the standard deviation of the noise.

    >>> model = GaussianKDE(torch.tensor([[0.0, 0.0], [3.0, 4.0]]), 0.1)
    >>> model.sample(1000, generator=torch.Generator().manual_seed(0)).shape
    torch.Size([1000, 2])

    Notes: D5.2-5.
    """

    examples: Float[Tensor, "examples ..."]

    def __init__(self, examples: Float[Tensor, "examples ..."], bandwidth: float):
        super().__init__()
        check_floating(examples, "examples")
        if examples.ndim < 2 or not examples.numel():
            raise UserError(
                f"expected examples (n, ...), got shape {tuple(examples.shape)}; give at least one, of at least "
                "one number"
            )
        self.register_buffer("examples", examples)
        self.bandwidth = bandwidth
        self._distribution()  # raises an error for a bandwidth that is not above 0

    @classmethod
    def fit(
        cls,
        x: Float[Tensor, "examples *shape"],
        held_out: Float[Tensor, "held_out *shape"],
        bandwidths: Real[Tensor, "bandwidths"],
    ) -> "GaussianKDE":
        """The model of the examples x with that of the `bandwidths` under which other examples of the same distribution
        are most probable.

        Under x itself the most probable noise would be 0, whatever the distribution.
        """
        check_finite(held_out, "held_out")
        tried = [cls(x, float(bandwidth)) for bandwidth in bandwidths]
        if not tried or not len(held_out):
            raise UserError(
                f"expected noises to try and examples to try them on, got {len(tried)} and {len(held_out)}; give "
                "some of both"
            )
        return max(tried, key=lambda model: float(model.log_prob(held_out).mean()))

    @torch.no_grad()
    def sample(self, num_samples: int, *, generator: torch.Generator) -> Float[Tensor, "{num_samples} ..."]:
        """An example chosen evenly, and noise on it.

        Notes: D5.2-5.
        """
        check_num_samples(num_samples)
        return (
            self._distribution()
            .sample((num_samples,), generator=generator)
            .reshape(num_samples, *self.examples.shape[1:])
        )

    def log_prob(self, x: Float[Tensor, "batch ..."]) -> Float[Tensor, "batch"]:
        """ln q̂(x) = ln (1/n) Σ_i N(x; x_i, s² I).

        Notes: D5.2-5.
        """
        if x.shape[1:] != self.examples.shape[1:]:
            raise UserError(
                f"expected examples of shape (n, {', '.join(map(str, self.examples.shape[1:]))}), got {tuple(x.shape)}"
            )
        return self._distribution().log_prob(x.flatten(1))

    def _distribution(self) -> KernelDensity:
        return KernelDensity(self.examples.flatten(1), GaussianKernel(), self.bandwidth)
