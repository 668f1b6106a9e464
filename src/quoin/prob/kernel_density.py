"""Kernel density estimation: a distribution with the same kernel at each of n given points. No quadrature, no training.

Kernels and bandwidths are in quoin.tensor.   n points, d dimensions
"""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.tensor import (
    Bandwidth,
    SmoothingKernel,
    as_bandwidth,
    check_finite,
    check_floating,
    check_same_dtype,
    check_shapes,
    scaled_offsets,
    squared_distances,
)
from quoin.tensor.array_like import ArrayLike, float_tensor
from quoin.tensor.blocks import in_blocks, rows_per_block

__all__ = ["KernelDensity", "kernel_density_definition"]


def kernel_density_definition(
    x: Float[Tensor, "k d"] | ArrayLike,
    points: Float[Tensor, "n d"] | ArrayLike,
    kernel: SmoothingKernel,
    bandwidth: Bandwidth,
) -> Float[Tensor, "k"]:
    """p(x) = 1/(n h^d) sum_i K((x - x_i)/h) for a kernel of integral one; with a bandwidth for each coordinate, their
    product for h^d.

    >>> from quoin.tensor import BoxcarKernel
    >>> points = torch.tensor([[0.0], [1.0], [1.5], [5.0]])
    >>> x = torch.tensor([[0.75], [3.0]])
    >>> kernel_density_definition(x, points, BoxcarKernel(), 1.0)  # 3 of 4 points, in a window of length 2
    tensor([0.3750, 0.0000])

    Notes: Z11.7k.
    """
    x = float_tensor(x, "x", points)
    points = float_tensor(points, "points", x)
    bumps = kernel.density(scaled_offsets(x, points, bandwidth))
    return bumps.sum(dim=-1) / (len(points) * as_bandwidth(bandwidth, points).expand(points.shape[-1]).prod())


@shown
class KernelDensity:
    """The distribution of `kernel_density_definition`, its logarithm safe where the density is too small for a float.

    >>> from quoin.tensor import GaussianKernel
    >>> distribution = KernelDensity(torch.tensor([[-1.0], [1.0]]), GaussianKernel(), 0.5)
    >>> distribution.log_prob(torch.tensor([[0.0], [100.0]]))
    tensor([-2.2258e+00, -1.9603e+04])

    Notes: Z11.7k.
    """

    def __init__(self, points: Float[Tensor, "n d"] | ArrayLike, kernel: SmoothingKernel, bandwidth: Bandwidth):
        points = float_tensor(points, "points")
        check_shapes("n d", points=points)
        check_floating(points, "points")
        if not points.numel():
            raise UserError(
                f"expected at least one point, got shape {tuple(points.shape)}; a density needs points to stand on"
            )
        check_finite(points, "points")
        self.points, self.kernel, self.bandwidth = points, kernel, as_bandwidth(bandwidth, points)

    @property
    def dim(self) -> int:
        return self.points.shape[-1]

    def log_prob(self, x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch"]:
        """ln p(x), and -inf where no bump reaches, with gradients of zero there; a few points at a time."""
        check_shapes("... d, n d", x=x, points=self.points)
        check_same_dtype(x, self.points)
        check_finite(x)
        blocks = in_blocks(x.reshape(-1, self.dim), rows_per_block(len(self.points)))
        sums = [self._log_sum(points) for points in blocks]
        volume = (
            self.bandwidth.expand(self.dim).log().sum()
            + self.kernel.log_normalizer(self.dim)
            + math.log(len(self.points))
        )
        return (torch.cat(sums) - volume).reshape(x.shape[:-1])

    def sample(
        self, sample_shape: Sequence[int] = (), *, generator: torch.Generator
    ) -> Float[Tensor, "*sample_shape d"]:
        """A point chosen evenly, moved by an offset sampled from its kernel."""
        num_samples = math.prod(sample_shape)
        chosen = torch.randint(len(self.points), (num_samples,), generator=generator, device=generator.device)
        offsets = self.kernel.sample(num_samples, self.dim, generator=generator, dtype=self.points.dtype)
        moved = self.points[chosen.to(self.points.device)] + self.bandwidth * offsets.to(self.points.device)
        return moved.reshape(*sample_shape, self.dim)

    def _log_sum(self, x: Tensor) -> Tensor:  # (k, d) -> (k,)
        values, log_scale = self.kernel.scaled_values(squared_distances(x, self.points, self.bandwidth))
        total = values.sum(dim=-1)
        reached = total > 0
        return torch.where(reached, torch.where(reached, total, 1).log() + log_scale.squeeze(-1), -torch.inf)
