"""Queries, keys and values as affine maps of what stands at each position: q = f_q(x), k = f_k(x), v = f_v(x).

Two forms with one face, called with three inputs to give three outputs: maps that read one width are kept as one matrix and are
one product where the inputs are one tensor; maps of different widths are three.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from quoin.layers.direct import direct, part
from quoin.layers.init import keeps_global_rng

__all__ = ["JointProjections", "SeparateProjections"]


class JointProjections(nn.Module):
    """f_q, f_k and f_v from one width, their matrices stacked: self-attention is one product of three times the rows.

    Notes: D3-4.
    """

    linear: nn.Linear = part()

    @keeps_global_rng
    def __init__(self, width: int, features: Sequence[int], *, bias: bool = True, generator: torch.Generator | None = None):
        super().__init__()
        self.features = tuple(features)
        self.linear = nn.Linear(width, sum(features), bias=bias)
        for rows in self.linear.weight.detach().split(self.features):  # each map starts by its own sizes, not by the stack's
            nn.init.xavier_uniform_(rows, generator=generator)
        if bias:
            nn.init.zeros_(self.linear.bias)

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        if query is key and key is value:
            q, k, v = self.together(query).split(self.features, dim=-1)
            return q, k, v
        return self.f_q(query), self.f_k(key), self.f_v(value)

    def together(self, x: Tensor) -> Tensor:
        """f_q(x), f_k(x) and f_v(x) side by side."""
        return direct(self.linear, x)

    def f_q(self, x: Tensor) -> Tensor:
        return self._map(x, 0)

    def f_k(self, x: Tensor) -> Tensor:
        return self._map(x, 1)

    def f_v(self, x: Tensor) -> Tensor:
        return self._map(x, 2)

    def _map(self, x: Tensor, which: int) -> Tensor:
        weight, bias = self.linear.weight.split(self.features), self.linear.bias
        return torch.nn.functional.linear(x, weight[which], None if bias is None else bias.split(self.features)[which])


class SeparateProjections(nn.Module):
    """f_q, f_k and f_v from a width each, as three linear layers.

    Notes: D3-4.
    """

    @keeps_global_rng
    def __init__(self, widths: Sequence[int], features: Sequence[int], *, bias: bool = True, generator: torch.Generator | None = None):
        super().__init__()
        self.f_q, self.f_k, self.f_v = (nn.Linear(inputs, outputs, bias=bias) for inputs, outputs in zip(widths, features, strict=True))
        for linear in (self.f_q, self.f_k, self.f_v):
            nn.init.xavier_uniform_(linear.weight, generator=generator)
            if bias:
                nn.init.zeros_(linear.bias)

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.f_q(query), self.f_k(key), self.f_v(value)
