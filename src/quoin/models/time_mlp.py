"""A network of a point and a time: what diffusion and flow matching learn for data of a few numbers."""

import torch
from jaxtyping import Float, Float64, Real
from torch import Tensor, nn

from quoin.errors import UserError
from quoin.layers import keeps_global_rng, position_angles

__all__ = ["TimeMLP", "timestep_embedding"]


def timestep_embedding(t: Real[Tensor, "batch"], embed_dim: int) -> Float64[Tensor, "batch {embed_dim}"]:
    """sin and cos of t / 10000^(2i/d), i = 0 ... d/2 - 1, sinusoidal encodings of times that need not be whole.

    >>> timestep_embedding(torch.tensor([0.0, 0.5]), 2)
    tensor([[0.0000, 1.0000],
            [0.4794, 0.8776]], dtype=torch.float64)

    Notes: D0-T.
    """
    angles = position_angles(t, embed_dim)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)


class TimeMLP(nn.Module):
    """(x, t) to a vector like x: every hidden layer adds its own map of the timestep embedding e, h ← SiLU(A h + B e(t)
    + b), then h + before.

    The last layer starts at zero, so that the first output is 0 everywhere.

    Args:
        time_dim: Features of the timestep embedding, an even number.
        time_unit: The time that counts as 1/1000 of the way: T/1000 for a diffusion of T steps, 1/1000 for times from 0
            to 1.

    Notes: D0-T.
    """

    @keeps_global_rng
    def __init__(
        self,
        data_dim: int,
        *,
        hidden_dim: int = 128,
        num_layers: int = 3,
        time_dim: int = 64,
        time_unit: float = 1.0,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        if min(data_dim, hidden_dim, num_layers) < 1 or not time_unit > 0:
            raise UserError(
                f"expected positive sizes and time unit, got {data_dim}, {hidden_dim}, {num_layers} and "
                f"{time_unit}; give at least 1 each"
            )
        self.time_dim, self.time_unit = time_dim, time_unit
        layers = [nn.Linear(hidden_dim, hidden_dim) for _ in range(num_layers)]
        times = [nn.Linear(time_dim, hidden_dim, bias=False) for _ in range(num_layers)]
        self.first, self.last = nn.Linear(data_dim, hidden_dim), nn.Linear(hidden_dim, data_dim)
        self.layers, self.times = nn.ModuleList(layers), nn.ModuleList(times)
        for layer in (self.first, *layers, *times):
            nn.init.normal_(layer.weight, std=layer.in_features**-0.5, generator=generator)
        for layer in (self.first, *layers, self.last):
            nn.init.zeros_(layer.bias)
        nn.init.zeros_(self.last.weight)

    def forward(self, x: Float[Tensor, "batch data"], t: Real[Tensor, "batch"]) -> Float[Tensor, "batch data"]:
        embedding = timestep_embedding(t / self.time_unit, self.time_dim).to(x.dtype)
        h = self.first(x)
        for layer, time in zip(self.layers, self.times):
            h = h + nn.functional.silu(layer(h) + time(embedding))
        return self.last(h)
