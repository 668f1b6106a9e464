"""Random directions ω_1, ..., ω_k, each of them N(0, I): independent, orthogonal or in opposite pairs, and kept with a model.

What is made of the projections ω_i·x is in random_features.py and kernel_features.py.   k directions, d width
"""

from typing import Protocol

import torch
from torch import Tensor, nn

from quoin.errors import Mistake

__all__ = ["DirectionLaw", "DrawnDirections", "gaussian_directions", "opposite_directions", "orthogonal_directions"]

LARGEST_SEED = 2**62


class DirectionLaw(Protocol):
    """A way to draw directions, such as `gaussian_directions`."""

    def __call__(self, count: int, width: int, *, generator: torch.Generator) -> Tensor: ...


def gaussian_directions(count: int, width: int, *, generator: torch.Generator) -> Tensor:  # -> (k, d), float64
    """ω_1, ..., ω_k independent, each N(0, I).

    Notes: D4.1-8.
    """
    check_counts(width, count)
    return torch.randn(count, width, generator=generator, dtype=torch.float64, device=generator.device)


def orthogonal_directions(count: int, width: int, *, generator: torch.Generator) -> Tensor:  # -> (k, d), float64
    """Directions of which the first d are at right angles to one another, then the next d, and so on; each alone is N(0, I).

    A turn by chance (Q of a Gaussian matrix, with R's diagonal positive) makes each row uniform on the sphere, and its length is that of
    an independent N(0, I). Estimates stay unbiased, and their errors at two directions of a block cancel in part.

    Notes: D4.1-11.
    """
    check_counts(width, count)
    blocks = torch.randn(-(-count // width), width, width, generator=generator, dtype=torch.float64, device=generator.device)
    Q, R = torch.linalg.qr(blocks)
    turned = Q * R.diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-2)
    lengths = gaussian_directions(count, width, generator=generator).norm(dim=-1, keepdim=True)
    return turned.mT.reshape(-1, width)[:count] * lengths


def opposite_directions(
    count: int, width: int, *, generator: torch.Generator, law: DirectionLaw = gaussian_directions
) -> Tensor:  # -> (k, d), float64
    """ω_1, ..., ω_{k/2} drawn by `law`, then -ω_1, ..., -ω_{k/2}: every direction with its opposite.

    Notes: D4.1-9.
    """
    if count % 2:
        raise Mistake(f"expected an even number of features, two for each direction, came {count}; give {count + 1}")
    drawn = law(count // 2, width, generator=generator)
    return torch.cat([drawn, -drawn])


class DrawnDirections(nn.Module):
    """Directions as a buffer, saved with the weights; in training drawn anew after each `redraw_every` passes, or never if that is 0.

    The passes are counted in a buffer, and another holds the seed of the next draw, which each draw replaces by one of its own numbers.
    So a resumed run, and every rank that began from the same generator, sees the same directions at the same pass. Reevaluation by
    torch.utils.checkpoint counts as a pass too: do not use both.
    """

    drawn: Tensor
    seed: Tensor
    passes: Tensor

    def __init__(
        self, count: int, width: int, *, generator: torch.Generator, law: DirectionLaw = gaussian_directions, redraw_every: int = 0
    ):
        super().__init__()
        check_counts(width, count)
        if redraw_every < 0:
            raise Mistake(f"expected redraw_every of at least 0, came {redraw_every}; give the passes between two draws, or 0 for never")
        self.count, self.width, self.law, self.redraw_every = count, width, law, redraw_every
        self.register_buffer("drawn", torch.empty(count, width))
        self.register_buffer("seed", torch.randint(LARGEST_SEED, (), generator=generator, device=generator.device).cpu())
        self.register_buffer("passes", torch.zeros((), dtype=torch.int64))
        self.redraw()

    def redraw(self) -> None:
        """Directions from the seed; drawn on the CPU in float64, so that no device or dtype has others."""
        generator = torch.Generator().manual_seed(int(self.seed))
        self.seed = torch.randint(LARGEST_SEED, (), generator=generator).to(self.seed.device)
        # A new tensor, not a new content: a graph that still waits for its backward pass keeps the old one.
        self.drawn = self.law(self.count, self.width, generator=generator).to(self.drawn)

    def begin_pass(self) -> None:
        """Count a training pass, and draw first where one is due. Without a schedule nothing is counted: reading a count stalls a GPU."""
        if self.training and self.redraw_every:
            if int(self.passes) and int(self.passes) % self.redraw_every == 0:
                self.redraw()
            self.passes = self.passes + 1

    def forward(self, x: Tensor, scale: float = 1.0) -> Tensor:  # (..., d) -> (..., k), in float32 or wider
        """scale · ω_i·x for each i; in full precision, as exponentials of it will be taken."""
        if x.shape[-1:] != (self.width,):
            raise Mistake(f"expected x with {self.width} entries on its last axis, came shape {tuple(x.shape)}; make the widths equal")
        dtype = torch.promote_types(x.dtype, torch.float32)
        with torch.autocast(x.device.type, enabled=False):
            return x.to(dtype) @ (scale * self.drawn.to(dtype)).mT

    def extra_repr(self) -> str:
        return f"{self.count}, {self.width}, law={getattr(self.law, '__name__', self.law)}, redraw_every={self.redraw_every}"


def check_counts(width: int, count: int) -> None:
    """Refuse to look at nothing, or along nothing."""
    if width < 1 or count < 1:
        raise Mistake(f"expected at least one feature of a width of at least 1, came {count} of width {width}; give e.g. 256 of 64")
