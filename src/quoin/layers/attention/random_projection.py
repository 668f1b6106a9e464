"""Random directions ω_1, ..., ω_k, each of them N(0, I): independent, orthogonal or in opposite pairs, and kept with a
model.

What is made of the projections ω_i·x is in random_features.py and kernel_features.py.   k projections, d features
"""

from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor, nn

from quoin.errors import UserError
from quoin.layers.checkpointing import is_recomputing

__all__ = [
    "RandomMatrixSampler",
    "RandomProjection",
    "antithetic_random_matrix",
    "gaussian_random_matrix",
    "orthogonal_random_matrix",
]

LARGEST_SEED = 2**62


@runtime_checkable
class RandomMatrixSampler(Protocol):
    """A way to sample a random matrix, such as `gaussian_random_matrix`."""

    def __call__(
        self, num_projections: int, in_features: int, *, generator: torch.Generator
    ) -> Float[Tensor, "{num_projections} {in_features}"]: ...


def gaussian_random_matrix(
    num_projections: int, in_features: int, *, generator: torch.Generator
) -> Float64[Tensor, "{num_projections} {in_features}"]:
    """ω_1, ..., ω_k independent, each N(0, I).

    Notes: D4.1-8.
    """
    check_counts(in_features, num_projections)
    return torch.randn(num_projections, in_features, generator=generator, dtype=torch.float64, device=generator.device)


def orthogonal_random_matrix(
    num_projections: int, in_features: int, *, generator: torch.Generator
) -> Float64[Tensor, "{num_projections} {in_features}"]:
    """Directions of which the first d are at right angles to one another, then the next d, and so on; each alone is
    N(0, I).

    A random rotation (Q of a Gaussian matrix, with R's diagonal positive) makes each row uniform on the sphere, and its
    length is that of an independent N(0, I). Estimates stay unbiased, and their errors at two directions of a block
    cancel in part.

    Notes: D4.1-11.
    """
    check_counts(in_features, num_projections)
    blocks = torch.randn(
        -(-num_projections // in_features),
        in_features,
        in_features,
        generator=generator,
        dtype=torch.float64,
        device=generator.device,
    )
    Q, R = torch.linalg.qr(blocks)
    rotated = Q * R.diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-2)
    lengths = gaussian_random_matrix(num_projections, in_features, generator=generator).norm(dim=-1, keepdim=True)
    return rotated.mT.reshape(-1, in_features)[:num_projections] * lengths


def antithetic_random_matrix(
    num_projections: int,
    in_features: int,
    *,
    generator: torch.Generator,
    random_matrix: RandomMatrixSampler = gaussian_random_matrix,
) -> Float64[Tensor, "{num_projections} {in_features}"]:
    """ω_1, ..., ω_{k/2} sampled by `random_matrix`, then -ω_1, ..., -ω_{k/2}: every direction with its opposite.

    Args:
        num_projections: k, an even number.

    Notes: D4.1-9.
    """
    if num_projections % 2:
        raise UserError(
            f"expected an even number of features, two for each direction, got {num_projections}; give "
            f"{num_projections + 1}"
        )
    matrix = random_matrix(num_projections // 2, in_features, generator=generator)
    return torch.cat([matrix, -matrix])


class RandomProjection(nn.Module):
    """Directions as a buffer, saved with the weights; in training resampled after each `redraw_interval` passes, or
    never if that is 0.

    The passes are counted in a buffer, and another holds the seed of the next sample, which each sample replaces by one
    of its own numbers. So a resumed run, and every rank that began from the same generator, sees the same directions at
    the same pass. Reevaluation by torch.utils.checkpoint counts as a pass too: do not use both.
    """

    matrix: Float[Tensor, "projections in_features"]
    seed: Int[Tensor, ""]
    passes: Int[Tensor, ""]

    def __init__(
        self,
        num_projections: int,
        in_features: int,
        *,
        generator: torch.Generator,
        random_matrix: RandomMatrixSampler = gaussian_random_matrix,
        redraw_interval: int = 0,
    ):
        super().__init__()
        check_counts(in_features, num_projections)
        if redraw_interval < 0:
            raise UserError(
                f"expected redraw_interval of at least 0, got {redraw_interval}; give the passes between two "
                "samples, or 0 for never"
            )
        self.num_projections, self.in_features, self.random_matrix, self.redraw_interval = (
            num_projections,
            in_features,
            random_matrix,
            redraw_interval,
        )
        self.register_buffer("matrix", torch.empty(num_projections, in_features))
        self.register_buffer(
            "seed", torch.randint(LARGEST_SEED, (), generator=generator, device=generator.device).cpu()
        )
        self.register_buffer("passes", torch.zeros((), dtype=torch.int64))
        self.redraw()

    def redraw(self) -> None:
        """A random matrix from the seed; sampled on the CPU in float64, so that no device or dtype has others."""
        generator = torch.Generator().manual_seed(int(self.seed))
        self.seed = torch.randint(LARGEST_SEED, (), generator=generator).to(self.seed.device)
        # A new tensor, not a new content: a graph that still waits for its backward pass keeps the old one.
        self.matrix = self.random_matrix(self.num_projections, self.in_features, generator=generator).to(self.matrix)

    def begin_pass(self) -> None:
        """Count a training pass, and resample first where it is due. Without a schedule nothing is counted: reading a
        count stalls a GPU.
        """
        if self.training and self.redraw_interval and not is_recomputing():
            if int(self.passes) and int(self.passes) % self.redraw_interval == 0:
                self.redraw()
            self.passes = self.passes + 1

    def forward(
        self, x: Float[Tensor, "*batch in_features"], scale: float = 1.0
    ) -> Float[Tensor, "*batch projections"]:
        """scale · ω_i·x for each i; in float32 or wider, as exponentials of it will be taken."""
        if x.shape[-1:] != (self.in_features,):
            raise UserError(
                f"expected x with {self.in_features} entries on its last axis, got shape {tuple(x.shape)}; give it "
                "in_features entries"
            )
        dtype = torch.promote_types(x.dtype, torch.float32)
        with torch.autocast(x.device.type, enabled=False):
            return x.to(dtype) @ (scale * self.matrix.to(dtype)).mT

    def extra_repr(self) -> str:
        sampler = getattr(self.random_matrix, "__name__", self.random_matrix)
        sizes = f"{self.num_projections}, {self.in_features}"
        return f"{sizes}, random_matrix={sampler}, redraw_interval={self.redraw_interval}"


def check_counts(in_features: int, num_projections: int) -> None:
    """Raise an error unless there is a projection, and a feature to project."""
    if in_features < 1 or num_projections < 1:
        raise UserError(
            f"expected at least one projection of at least one feature, got {num_projections} of {in_features}; "
            "give e.g. 256 of 64"
        )
