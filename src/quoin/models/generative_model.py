"""What every generative model offers: from samples of an unknown law Q it holds a law Q̂ ≈ Q, and draws new examples from it.

Where Q̂ has a density that can be computed, the model is a `DensityModel` too. Nothing is said here of how Q̂ is learnt: a likelihood,
a bound on one, a game or a score; how close Q̂ came to Q is measured in quoin.metrics.   n examples of any shape
"""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from quoin.errors import Mistake
from quoin.prob import KernelDensity
from quoin.tensor import GaussianWindow, check_finite, check_floating

__all__ = ["DecoderModel", "DensityModel", "GenerativeModel", "SmoothedSamples", "check_sample_count", "draw_in_pieces", "latent_traversal"]

SAMPLE_BATCH = 1000  # examples that are drawn together
TRAVERSAL_RADIUS = 2.5  # standard deviations of the prior that a traversal goes to either side


@runtime_checkable
class GenerativeModel(Protocol):
    """A law Q̂ that can be drawn from; of images, its draws are (count, channels, height, width) with entries from 0 to 1.

    A model that can be steered declares its choices as further arguments by name, each with a default. Those that `quoin generate`
    knows are `labels`, whole numbers (count,), the class of each draw; `steps`, how many the sampler takes; `guidance`, how strongly
    the class is asked for; `sampler`, a function of quoin.generate.

    Notes: D5.2-5.
    """

    def sample(self, count: int, *, generator: torch.Generator) -> Tensor:
        """`count` independent draws from Q̂, (count, *shape)."""
        ...


@runtime_checkable
class DensityModel(GenerativeModel, Protocol):
    """A law Q̂ that can be drawn from and whose probability, or density, is known.

    Notes: D5.2-5.
    """

    def log_prob(self, x: Tensor) -> Tensor:
        """ln q̂(x) of each example, (n, *shape) to (n,)."""
        ...


@runtime_checkable
class DecoderModel(GenerativeModel, Protocol):
    """A law that is drawn from by decoding a latent z ~ N(0, I)."""

    @property
    def latent_dim(self) -> int:
        """Numbers of a latent."""
        ...

    def decode_mean(self, latent: Tensor) -> Tensor:
        """E[x | z] of each latent, (n, latent_dim) to (n, *shape), in [0, 1] of images."""
        ...


def check_sample_count(count: int) -> None:
    """Refuse to draw nothing, which every measure of the draws would fail on later."""
    if count < 1:
        raise Mistake(f"expected at least one example to draw, came {count}; ask for 1 or more")


def draw_in_pieces(draw: Callable[[int], Tensor], count: int) -> Tensor:  # -> (count, *shape)
    """`count` examples by calls of `draw`, a thousand at a time: many more at once would not fit into memory."""
    check_sample_count(count)
    return torch.cat([draw(min(SAMPLE_BATCH, count - start)) for start in range(0, count, SAMPLE_BATCH)])


def latent_traversal(latent: Tensor, coordinates: Tensor, num_values: int) -> tuple[Tensor, Tensor]:  # (k,), (r,) -> (c,), (r, c, k)
    """The values that coordinates of a latent take in turn, from one end of the prior to the other, and the latents that have them.

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


class SmoothedSamples(nn.Module):
    """The plainest model of all: Q̂ = (1/n) Σ_i N(x_i, s² I), every example it was shown blurred by the same noise s.

    It works for examples of any shape, such as pictures 3 × 100 × 100, and is what a trained model has to beat: with a small s it copies.

    >>> model = SmoothedSamples(torch.tensor([[0.0, 0.0], [3.0, 4.0]]), 0.1)
    >>> model.sample(1000, generator=torch.Generator().manual_seed(0)).shape
    torch.Size([1000, 2])

    Notes: D5.2-5.
    """

    examples: Tensor  # (n, *shape)

    def __init__(self, examples: Tensor, noise: float):
        super().__init__()
        check_floating(examples, "examples")
        if examples.ndim < 2 or not examples.numel():
            raise Mistake(f"expected examples (n, ...), came shape {tuple(examples.shape)}; give at least one, of at least one number")
        self.register_buffer("examples", examples)
        self.noise = noise
        self._law()  # refuses a noise that is not above 0

    @classmethod
    def fit(cls, x: Tensor, held_out: Tensor, noises: Tensor) -> "SmoothedSamples":  # (n, *shape), (m, *shape), (k,)
        """The model of the examples x with that of the `noises` under which other examples of the same law are likeliest.

        Under x itself the likeliest noise would be 0, whatever the law.
        """
        check_finite(held_out, "held_out")
        tried = [cls(x, float(noise)) for noise in noises]
        if not tried or not len(held_out):
            raise Mistake(f"expected noises to try and examples to try them on, came {len(tried)} and {len(held_out)}; give some of both")
        return max(tried, key=lambda model: float(model.log_prob(held_out).mean()))

    @torch.no_grad()
    def sample(self, count: int, *, generator: torch.Generator) -> Tensor:  # -> (count, *shape)
        """An example chosen evenly, and noise on it.

        Notes: D5.2-5.
        """
        check_sample_count(count)
        return self._law().sample((count,), generator=generator).reshape(count, *self.examples.shape[1:])

    def log_prob(self, x: Tensor) -> Tensor:  # (n, *shape) -> (n,)
        """ln q̂(x) = ln (1/n) Σ_i N(x; x_i, s² I).

        Notes: D5.2-5.
        """
        if x.shape[1:] != self.examples.shape[1:]:
            raise Mistake(f"expected examples of shape (n, {', '.join(map(str, self.examples.shape[1:]))}), came {tuple(x.shape)}")
        return self._law().log_prob(x.flatten(1))

    def _law(self) -> KernelDensity:
        return KernelDensity(self.examples.flatten(1), GaussianWindow(), self.noise)
