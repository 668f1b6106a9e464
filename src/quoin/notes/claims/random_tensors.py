"""What claims try their sentences on, sampled from the claim's own generator in float64."""

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["normal", "uniform", "uniform_tensor"]


def normal(*shape: int, generator: torch.Generator) -> Float[Tensor, "..."]:
    """Independent standard normals."""
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def uniform(low: float, high: float, generator: torch.Generator) -> float:
    return float(uniform_tensor(low, high, generator))


def uniform_tensor(low: float, high: float, generator: torch.Generator) -> Float[Tensor, ""]:
    return low + (high - low) * torch.rand((), generator=generator, dtype=torch.float64)
