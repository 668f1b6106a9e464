"""A network of a point and a time: what diffusion and flow matching learn for data of a few numbers."""

import torch
from torch import Tensor, nn

from quoin.errors import Mistake
from quoin.layers import keeps_global_rng, position_angles

__all__ = ["TimeMLP", "time_code"]


def time_code(t: Tensor, dim: int) -> Tensor:  # (b,) -> (b, dim), float64
    """sin and cos of t / 10000^(2i/d), i = 0 ... d/2 - 1, the codes of positions at times that need not be whole.

    >>> time_code(torch.tensor([0.0, 0.5]), 2)
    tensor([[0.0000, 1.0000],
            [0.4794, 0.8776]], dtype=torch.float64)

    Notes: D0-T.
    """
    angles = position_angles(t, dim)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)


class TimeMLP(nn.Module):
    """(x, t) to a vector like x: every hidden layer adds its own image of the time's code, h ← SiLU(A h + B code(t) + b), then h + before.

    `time_unit` is the time that counts as 1/1000 of the way: T/1000 for a diffusion of T steps, 1/1000 for times from 0 to 1. The last
    layer starts at zero, so that the first answer is 0 everywhere.

    Notes: D0-T.
    """

    @keeps_global_rng
    def __init__(
        self,
        dim: int,
        *,
        hidden: int = 128,
        depth: int = 3,
        time_dim: int = 64,
        time_unit: float = 1.0,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        if min(dim, hidden, depth) < 1 or not time_unit > 0:
            raise Mistake(f"expected positive sizes and time unit, came {dim}, {hidden}, {depth} and {time_unit}; give at least 1 each")
        self.time_dim, self.time_unit = time_dim, time_unit
        layers = [nn.Linear(hidden, hidden) for _ in range(depth)]
        times = [nn.Linear(time_dim, hidden, bias=False) for _ in range(depth)]
        self.first, self.last = nn.Linear(dim, hidden), nn.Linear(hidden, dim)
        self.layers, self.times = nn.ModuleList(layers), nn.ModuleList(times)
        for layer in (self.first, *layers, *times):
            nn.init.normal_(layer.weight, std=layer.in_features**-0.5, generator=generator)
        for layer in (self.first, *layers, self.last):
            nn.init.zeros_(layer.bias)
        nn.init.zeros_(self.last.weight)

    def forward(self, x: Tensor, t: Tensor) -> Tensor:  # (b, dim), (b,) -> (b, dim)
        code = time_code(t / self.time_unit, self.time_dim).to(x.dtype)
        h = self.first(x)
        for layer, time in zip(self.layers, self.times):
            h = h + nn.functional.silu(layer(h) + time(code))
        return self.last(h)
