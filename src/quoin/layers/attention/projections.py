"""Queries, keys and values as affine maps of what stands at each position: q = f_q(x), k = f_k(x), v = f_v(x).

Two forms with one interface, called with three inputs to give three outputs: maps from one embed_dim are kept as one
matrix and are one product where the inputs are one tensor; maps from different sizes are three.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from quoin.layers.init import keeps_global_rng
from quoin.layers.onednn import Linear

__all__ = ["PackedProjections", "SeparateProjections"]


class PackedProjections(nn.Module):
    """f_q, f_k and f_v from one embed_dim, their matrices stacked: self-attention is one product.

    Args:
        out_features: Of queries, of keys and of values.

    Notes: D3-4.
    """

    @keeps_global_rng
    def __init__(
        self,
        embed_dim: int,
        out_features: Sequence[int],
        *,
        bias: bool = True,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        self.out_features = tuple(out_features)
        self.linear = Linear(embed_dim, sum(out_features), bias=bias)
        # each map is initialised by its own sizes, not by the stack's
        for rows in self.linear.weight.detach().split(self.out_features):
            nn.init.xavier_uniform_(rows, generator=generator)
        if bias:
            nn.init.zeros_(self.linear.bias)

    def forward(
        self,
        query: Float[Tensor, "*batch query embed"],
        key: Float[Tensor, "*batch key embed"],
        value: Float[Tensor, "*batch key embed"],
    ) -> tuple[
        Float[Tensor, "*batch query query_features"],
        Float[Tensor, "*batch key key_features"],
        Float[Tensor, "*batch key value_features"],
    ]:
        if query is key and key is value:
            q, k, v = self.packed(query).split(self.out_features, dim=-1)
            return q, k, v
        return self.q_proj(query), self.k_proj(key), self.v_proj(value)

    def packed(self, x: Float[Tensor, "*batch embed"]) -> Float[Tensor, "*batch all_features"]:
        """f_q(x), f_k(x) and f_v(x) side by side."""
        return self.linear(x)

    def q_proj(self, x: Float[Tensor, "*batch embed"]) -> Float[Tensor, "*batch query_features"]:
        return self._map(x, 0)

    def k_proj(self, x: Float[Tensor, "*batch embed"]) -> Float[Tensor, "*batch key_features"]:
        return self._map(x, 1)

    def v_proj(self, x: Float[Tensor, "*batch embed"]) -> Float[Tensor, "*batch value_features"]:
        return self._map(x, 2)

    def _map(self, x: Tensor, which: int) -> Tensor:
        weight, bias = self.linear.weight.split(self.out_features), self.linear.bias
        return torch.nn.functional.linear(
            x, weight[which], None if bias is None else bias.split(self.out_features)[which]
        )


class SeparateProjections(nn.Module):
    """f_q, f_k and f_v from an input size each, as three linear layers.

    Args:
        in_features: Of queries, of keys and of values.
        out_features: In the same order.

    Notes: D3-4.
    """

    @keeps_global_rng
    def __init__(
        self,
        in_features: Sequence[int],
        out_features: Sequence[int],
        *,
        bias: bool = True,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj = (
            Linear(inputs, outputs, bias=bias) for inputs, outputs in zip(in_features, out_features, strict=True)
        )
        for linear in (self.q_proj, self.k_proj, self.v_proj):
            nn.init.xavier_uniform_(linear.weight, generator=generator)
            if bias:
                nn.init.zeros_(linear.bias)

    def forward(
        self,
        query: Float[Tensor, "*batch query query_dim"],
        key: Float[Tensor, "*batch key key_dim"],
        value: Float[Tensor, "*batch key value_dim"],
    ) -> tuple[
        Float[Tensor, "*batch query query_features"],
        Float[Tensor, "*batch key key_features"],
        Float[Tensor, "*batch key value_features"],
    ]:
        return self.q_proj(query), self.k_proj(key), self.v_proj(value)
