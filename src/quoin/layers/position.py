"""Absolute positions added to the tokens: sinusoidal positional encodings, and learned positional embeddings.

Attention alone does not see the order of its tokens. Encodings added to the tokens say where each stands; rotary
embeddings of queries and keys are in rotary.py, and relative position biases, which are added to the scores, in
position_bias.py.

    n positions counted from 0, d features a token
"""

import functools
import math
from collections.abc import Callable
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Float64, Real
from torch import Tensor, nn

from quoin.display import shown
from quoin.errors import UserError
from quoin.layers.device_position import DevicePosition
from quoin.tensor import as_floating, check_floating, check_shapes

__all__ = [
    "LearnedPositionalEmbedding",
    "PositionalQKV",
    "SinusoidalPositionalEncoding",
    "additive_position_definition",
    "build_position_tables",
    "position_angles",
    "positional_qkv_definition",
    "sinusoidal_encoding",
    "sinusoidal_encoding_definition",
]

BASE = 10000.0  # the slowest pair of features rotates once in about 2π · 10000 positions


@shown
class PositionalQKV(NamedTuple):
    """Queries, keys and values of the tokens of one sequence."""

    query: Float[Tensor, "seq head_dim"]
    key: Float[Tensor, "seq head_dim"]
    value: Float[Tensor, "seq value_dim"]


def positional_qkv_definition(
    x: Float[Tensor, "seq embed"],
    query_map: Callable[[Tensor, int], Tensor],
    key_map: Callable[[Tensor, int], Tensor],
    value_map: Callable[[Tensor, int], Tensor],
) -> PositionalQKV:
    """q_m = f_q(x_m, m), k_m = f_k(x_m, m) and v_m = f_v(x_m, m): each map is given the token and the position it
    stands at.

    A map that makes no use of m knows nothing of the order. All three are applied to the token: the value is no
    function of itself.

    >>> positional_qkv_definition(torch.ones(3, 1), lambda x, m: x, lambda x, m: m * x, lambda x, m: -x).key.flatten()
    tensor([0., 1., 2.])

    Notes: D3-5.
    """
    check_shapes("n d", x=x)
    return PositionalQKV(
        *(torch.stack([f(token, m) for m, token in enumerate(x)]) for f in (query_map, key_map, value_map))
    )


def additive_position_definition(
    x: Real[Tensor, "*batch seq embed"], weight: Real[Tensor, "out_features embed"], encoding: Real[Tensor, "seq embed"]
) -> Float[Tensor, "*batch seq out_features"]:
    """f(x_m, m) = W (x_m + pe_m): the encoding of its position is added to a token before it is projected.

    The fast form is `nn.Linear` behind `SinusoidalPositionalEncoding` or `LearnedPositionalEmbedding`, one addition for
    queries, keys and values.

    Notes: D3-5, D3-6.
    """
    check_shapes("... n d, k d, n d", x=x, weight=weight, encoding=encoding)
    x, weight, encoding = (as_floating(each, x, weight, encoding) for each in (x, weight, encoding))
    return torch.stack([(token + encoding[m]) @ weight.T for m, token in enumerate(x.unbind(-2))], dim=-2)


def sinusoidal_encoding_definition(
    num_positions: int, embed_dim: int, *, base: float = BASE
) -> Float64[Tensor, "{num_positions} {embed_dim}"]:
    """pe[m, 2i] = sin(m / base^(2i/d)) and pe[m, 2i+1] = cos(m / base^(2i/d)), for positions m = 0 ... n-1 and i = 0
    ... d/2-1.

    Notes: D3-7.
    """
    check_rotary_dim(embed_dim, base)
    encoding = [
        [wave(position / base ** (2 * i / embed_dim)) for i in range(embed_dim // 2) for wave in (math.sin, math.cos)]
        for position in range(num_positions)
    ]
    return torch.tensor(encoding, dtype=torch.float64).reshape(num_positions, embed_dim)


def position_angles(
    positions: Real[Tensor, "*batch"], embed_dim: int, *, base: float = BASE
) -> Float64[Tensor, "*batch {embed_dim}//2"]:
    """m θ_i with θ_i = base^(-2i/d) for i = 0 ... d/2-1: the angle by which position m rotates each pair of features,
    in radians.

    In float64 whatever the input: at position 100,000 a float32 angle is off by a hundredth, and a bfloat16 one by
    whole revolutions.

    Notes: D3-7, D3-8.
    """
    check_rotary_dim(embed_dim, base)
    speeds = base ** (-torch.arange(0, embed_dim, 2, dtype=torch.float64, device=positions.device) / embed_dim)
    return positions.double().unsqueeze(-1) * speeds


def sinusoidal_encoding(
    num_positions: int, embed_dim: int, *, start: int = 0, base: float = BASE, device: torch.device | None = None
) -> Float64[Tensor, "{num_positions} {embed_dim}"]:
    """`sinusoidal_encoding_definition` all at once, for the positions start ... start + n-1.

    Two encodings have the inner product Σ_i cos((m - n) θ_i), which depends on their distance alone.

    >>> sinusoidal_encoding(2, 4, base=100.0)
    tensor([[0.0000, 1.0000, 0.0000, 1.0000],
            [0.8415, 0.5403, 0.0998, 0.9950]], dtype=torch.float64)

    Notes: D3-7.
    """
    check_offset(start)
    if num_positions < 0:
        raise UserError(
            f"expected a number of positions from 0 on, got {num_positions}; give the length of the sequence"
        )
    angles = position_angles(torch.arange(start, start + num_positions, device=device), embed_dim, base=base)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)


class PositionTable:
    """Rows start ... stop-1 of a table of positions that `rows(stop)` computes, kept and doubled as longer sequences
    come.

    No buffer: the table is a function of the position, kept at the precision that is asked for, and `.to(bfloat16)`
    must not round it.
    """

    def __init__(self, rows: Callable[..., Tensor]):
        self.rows, self.kept = rows, torch.empty(0)

    def has(self, stop: int, dtype: torch.dtype, device: torch.device) -> bool:
        """Whether the rows up to `stop` are kept at this precision on this device."""
        return len(self.kept) >= stop and self.kept.dtype == dtype and self.kept.device == device

    def __call__(
        self, start: int, stop: int, dtype: torch.dtype, device: torch.device
    ) -> Float[Tensor, "{stop}-{start} ..."]:
        kept = self.kept
        if torch.compiler.is_exporting() or (torch.compiler.is_compiling() and not self.has(stop, dtype, device)):
            # A compiled graph would compute the table anew in every call, and on the CPU with kernels of a C++
            # compiler; where nobody built it first (`build_position_tables`) it is at least computed where it is used.
            return self.rows(stop, device=device)[start:stop].to(dtype)
        if not self.has(stop, dtype, device):
            length = max(stop, 2 * len(kept)) if len(kept) < stop else len(kept)
            with torch.inference_mode(False):  # or no later training step could use it
                kept = self.rows(length).to(dtype).to(device)
            if type(kept) is Tensor:  # what a tracer sees in its place is not worth keeping
                self.kept = kept
        return kept[start:stop]

    def at(self, position: DevicePosition, dtype: torch.dtype, device: torch.device) -> Float[Tensor, "1 ..."]:
        """The row of a position on the device, from a table of all that may come."""
        return position.row_of(self(0, position.limit, dtype, device))


@runtime_checkable
class HasPositionTable(Protocol):
    """A module that computes a table of positions when it is first called, and keeps it."""

    def build_table(self, num_positions: int, dtype: torch.dtype, device: torch.device) -> None: ...


def build_position_tables(model: nn.Module, num_positions: int, device: torch.device) -> None:
    """Have all modules of `model` compute their tables of the first positions now, for inputs of its parameters' dtype.

    Before the model is compiled: it then reads them as they are, where it would otherwise compute them in every call.
    """
    dtype = next((each.dtype for each in model.parameters()), torch.get_default_dtype())
    for module in model.modules():
        if isinstance(module, HasPositionTable):
            module.build_table(num_positions, dtype, device)


class SinusoidalPositionalEncoding(nn.Module):
    """x_m + pe_m with sinusoidal encodings, for sequences of any length; `offset` is the position of the first token.

    >>> SinusoidalPositionalEncoding(4)(torch.zeros(2, 3, 4), offset=7).shape
    torch.Size([2, 3, 4])

    Notes: D3-6, D3-7.
    """

    takes_device_position = True

    def __init__(self, embed_dim: int, *, base: float = BASE):
        super().__init__()
        check_rotary_dim(embed_dim, base)
        self.embed_dim, self.base = embed_dim, base
        self.encoding = PositionTable(functools.partial(sinusoidal_encoding, embed_dim=embed_dim, base=base))

    def forward(
        self, x: Float[Tensor, "*batch seq embed"], offset: int | DevicePosition = 0
    ) -> Float[Tensor, "*batch seq embed"]:
        _check_tokens(x, self.embed_dim)
        if isinstance(offset, DevicePosition):
            return x + self.encoding.at(offset, x.dtype, x.device)
        check_offset(offset)
        return x + self.encoding(offset, offset + x.shape[-2], x.dtype, x.device)

    def build_table(self, num_positions: int, dtype: torch.dtype, device: torch.device) -> None:
        """Compute the encodings of the first positions now, for inputs of this dtype on this device."""
        self.encoding(0, num_positions, dtype, device)

    def extra_repr(self) -> str:
        return f"{self.embed_dim}, base={self.base:g}"


class LearnedPositionalEmbedding(nn.Module):
    """x_m + pe_m with a learned embedding for each of `num_positions` positions; `offset` is that of the first token.

    The embeddings start normal with standard deviation 0.02, small beside tokens, sampled by `generator`.

    Notes: D3-6.
    """

    takes_device_position = True

    def __init__(self, num_positions: int, embed_dim: int, *, generator: torch.Generator | None = None):
        super().__init__()
        if num_positions < 1 or embed_dim < 1:
            raise UserError(
                f"expected a positive number of positions and features, got {num_positions} and {embed_dim}; give "
                "the table's sizes"
            )
        self.weight = nn.Parameter(0.02 * torch.randn(num_positions, embed_dim, generator=generator))

    def forward(
        self, x: Float[Tensor, "*batch seq embed"], offset: int | DevicePosition = 0
    ) -> Float[Tensor, "*batch seq embed"]:
        known, embed_dim = self.weight.shape
        _check_tokens(x, embed_dim)
        if isinstance(offset, DevicePosition):
            return x + offset.row_of(self.weight)
        check_offset(offset)
        stop = offset + x.shape[-2]
        if torch.compiler.is_exporting():  # a slice would bind the lengths; rows that are taken one by one do not
            return x + self.weight[torch.arange(offset, stop, device=x.device)]
        if stop > known:
            raise UserError(
                f"expected positions among the {known} that were learned, got {offset} to {stop - 1}; "
                "cut the sequence, or learn a longer table"
            )
        return x + self.weight[offset:stop]

    def extra_repr(self) -> str:
        return "{}, {}".format(*self.weight.shape)


def check_rotary_dim(embed_dim: int, base: float = BASE) -> None:
    """Raise an error for a number of features that cannot be taken in pairs, or a base that gives no frequencies."""
    if embed_dim < 2 or embed_dim % 2:
        raise UserError(f"expected an even number of features, to rotate them in pairs, got {embed_dim}; make it even")
    if not 0 < base < math.inf:
        raise UserError(f"expected a positive base of the frequencies, got {base}; 10000 is the usual one")


def check_offset(offset: int) -> None:
    """Raise an error for positions before the first."""
    if offset < 0:
        raise UserError(
            f"expected positions from 0 on, got {offset} for the first; give the number of tokens already seen"
        )


def _check_tokens(x: Tensor, embed_dim: int) -> None:
    check_floating(x)
    if x.ndim < 2 or x.shape[-1] != embed_dim:
        raise UserError(
            f"expected tokens of {embed_dim} features on the last axis, got shape {tuple(x.shape)}; the order is "
            "(..., n, d)"
        )
