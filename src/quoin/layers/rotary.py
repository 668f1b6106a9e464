"""Rotary embeddings (RoPE): queries and keys are rotated by angles that grow with their position, so scores see only
how far apart they are.

Features are rotated in pairs. Which two make a pair is a convention that lives in the trained weights: neighbours (2i,
2i+1) here, in the notes, RoFormer and GPT-J, or halves (i, i + d/2) in Llama and GPT-NeoX; converters lead from one to
the other. The sense of the rotation is another: RoFormer rotates counter-clockwise, the notes print clockwise, and
scores mirror the offset. Values are not rotated.

    n positions, d features of a query or key, even
"""

import functools
from collections.abc import Callable

import torch
from jaxtyping import Float, Float64, Int, Real, Shaped
from torch import Tensor, nn

from quoin.errors import UserError
from quoin.layers.device_position import DevicePosition
from quoin.layers.position import BASE, PositionTable, check_offset, check_rotary_dim, position_angles
from quoin.tensor import check_floating, check_shapes

__all__ = [
    "HalfSplitRotaryEmbedding",
    "RotaryEmbedding",
    "apply_half_split_rotary",
    "apply_half_split_rotary_definition",
    "apply_rotary",
    "apply_rotary_definition",
    "rotary_matrix",
    "rotary_position_definition",
    "to_half_split",
    "to_interleaved",
]


def rotary_matrix(
    position: float, head_dim: int, *, base: float = BASE, clockwise: bool = False
) -> Float64[Tensor, "{head_dim} {head_dim}"]:
    """R_m, block diagonal with the rotations (cos mθ_i, -sin mθ_i; sin mθ_i, cos mθ_i), θ_i = base^(-2i/d) for i = 0
    ... d/2-1.

    R_mᵀ R_n = R_{n-m}.

    Args:
        clockwise: Gives R_{-m}, as the notes print it.

    Notes: D3-8.
    """
    angles = position_angles(torch.tensor(-position if clockwise else position), head_dim, base=base)
    return torch.block_diag(
        *(torch.stack([torch.stack([a.cos(), -a.sin()]), torch.stack([a.sin(), a.cos()])]) for a in angles)
    )


def apply_rotary_definition(
    x: Float[Tensor, "*batch seq head_dim"],
    positions: Real[Tensor, "seq"],
    *,
    base: float = BASE,
    clockwise: bool = False,
) -> Float[Tensor, "*batch seq head_dim"]:
    """R_m x_m at each position m, with the rotation matrix written out.

    Args:
        base: Of the frequencies θ_i = base^(-2i/d); Hugging Face's `rope_theta`.
        clockwise: Whether to rotate the other way, by R_{-m}.

    Notes: D3-8.
    """
    check_shapes("... n d, n", x=x, positions=positions)
    check_floating(x)
    table = torch.stack([rotary_matrix(m, x.shape[-1], base=base, clockwise=clockwise) for m in positions.tolist()])
    return torch.einsum("nij,...nj->...ni", table.to(x.dtype), x)


def apply_half_split_rotary_definition(
    x: Float[Tensor, "*batch seq head_dim"],
    positions: Real[Tensor, "seq"],
    *,
    base: float = BASE,
    clockwise: bool = False,
) -> Float[Tensor, "*batch seq head_dim"]:
    """P R_m Pᵀ x_m, where P takes features 2i and 2i+1 to i and i + d/2: the same rotations, of pairs that lie half a
    head_dim apart.

    Args:
        base: Of the frequencies θ_i = base^(-2i/d); Hugging Face's `rope_theta`.
        clockwise: Whether to rotate the other way, by R_{-m}.

    Notes: D3-8.
    """
    order = half_split_order(x.shape[-1])
    return apply_rotary_definition(x[..., order.argsort()], positions, base=base, clockwise=clockwise)[..., order]


def rotary_position_definition(
    x: Float[Tensor, "*batch seq in_features"],
    weight: Float[Tensor, "head_dim in_features"],
    positions: Real[Tensor, "seq"],
    *,
    base: float = BASE,
    clockwise: bool = False,
) -> Float[Tensor, "*batch seq head_dim"]:
    """f(x_m, m) = R_m W x_m: a query or key is projected and then rotated by its position; a value is only projected.

    Args:
        base: Of the frequencies θ_i = base^(-2i/d); Hugging Face's `rope_theta`.
        clockwise: Whether to rotate the other way, by R_{-m}.

    Notes: D3-5, D3-8.
    """
    check_shapes("... n d, k d, n", x=x, weight=weight, positions=positions)
    check_floating(x)
    return apply_rotary_definition(x @ weight.T, positions, base=base, clockwise=clockwise)


def apply_rotary(
    x: Float[Tensor, "*batch seq head_dim"],
    positions: Real[Tensor, "*#batch seq"],
    *,
    base: float = BASE,
    clockwise: bool = False,
) -> Float[Tensor, "*batch seq head_dim"]:
    """`apply_rotary_definition` without its matrices, for positions (n,) or of each sequence its own, as far as they
    broadcast.

    Args:
        base: Of the frequencies θ_i = base^(-2i/d); Hugging Face's `rope_theta`.
        clockwise: Whether to rotate the other way, by R_{-m}.

    >>> apply_rotary(torch.tensor([[2.0, 0.0]]), torch.tensor([torch.pi / 6]))
    tensor([[1.7321, 1.0000]])

    Notes: D3-8.
    """
    return _rotate_pairs(x, _cos_sin_at(x, positions, base, clockwise))


def apply_half_split_rotary(
    x: Float[Tensor, "*batch seq head_dim"],
    positions: Real[Tensor, "*#batch seq"],
    *,
    base: float = BASE,
    clockwise: bool = False,
) -> Float[Tensor, "*batch seq head_dim"]:
    """`apply_half_split_rotary_definition` without its matrices: `apply_rotary` for weights trained with pairs (i, i +
    d/2), such as Llama's.

    Args:
        base: Of the frequencies θ_i = base^(-2i/d); Hugging Face's `rope_theta`.
        clockwise: Whether to rotate the other way, by R_{-m}.

    Notes: D3-8.
    """
    return _rotate_halves(x, _cos_sin_at(x, positions, base, clockwise))


class RotaryEmbedding(nn.Module):
    """`apply_rotary` of queries or keys (..., n, d) at positions offset ... offset + n-1, the angles kept from call to
    call.

    The rotation is computed in float32 at least, and returned in the input's dtype.

    Args:
        base: Of the frequencies θ_i = base^(-2i/d); Hugging Face's `rope_theta`.
        clockwise: Whether to rotate the other way, by R_{-m}.

    >>> rotary = RotaryEmbedding(8)
    >>> x = torch.ones(1, 2, 5, 8)
    >>> torch.allclose(rotary(x)[..., 3:, :], rotary(x[..., 3:, :], offset=3))
    True

    Notes: D3-8.
    """

    takes_device_position = True

    def __init__(self, head_dim: int, *, base: float = BASE, clockwise: bool = False):
        super().__init__()
        self.table = _RotaryTable(head_dim, base, clockwise)

    def forward(
        self, x: Float[Tensor, "*batch seq head_dim"], offset: int | DevicePosition = 0
    ) -> Float[Tensor, "*batch seq head_dim"]:
        return _rotate_pairs(x, self.table(x, offset))

    def build_table(self, num_positions: int, dtype: torch.dtype, device: torch.device) -> None:
        """Compute the angles of the first positions now, for inputs of this dtype on this device."""
        self.table.build(num_positions, dtype, device)

    def extra_repr(self) -> str:
        return str(self.table)


class HalfSplitRotaryEmbedding(nn.Module):
    """`apply_half_split_rotary` of queries or keys (..., n, d) at positions offset ... offset + n-1, the angles kept
    from call to call.

    Args:
        base: Of the frequencies θ_i = base^(-2i/d); Hugging Face's `rope_theta`.
        clockwise: Whether to rotate the other way, by R_{-m}.

    Notes: D3-8.
    """

    takes_device_position = True

    def __init__(self, head_dim: int, *, base: float = BASE, clockwise: bool = False):
        super().__init__()
        self.table = _RotaryTable(head_dim, base, clockwise)

    def forward(
        self, x: Float[Tensor, "*batch seq head_dim"], offset: int | DevicePosition = 0
    ) -> Float[Tensor, "*batch seq head_dim"]:
        return _rotate_halves(x, self.table(x, offset))

    def build_table(self, num_positions: int, dtype: torch.dtype, device: torch.device) -> None:
        """Compute the angles of the first positions now, for inputs of this dtype on this device."""
        self.table.build(num_positions, dtype, device)

    def extra_repr(self) -> str:
        return str(self.table)


def to_half_split(weight: Shaped[Tensor, "rows *columns"], num_heads: int) -> Shaped[Tensor, "rows *columns"]:
    """The weight or bias of a query or key projection for `HalfSplitRotaryEmbedding`, from one for `RotaryEmbedding`:
    scores stay as they are.

    In each head rows 2i and 2i+1 go to i and i + d/2.
    """
    return _reordered(weight, num_heads, half_split_order)


def to_interleaved(weight: Shaped[Tensor, "rows *columns"], num_heads: int) -> Shaped[Tensor, "rows *columns"]:
    """The weight or bias of a query or key projection for `RotaryEmbedding`, from one for `HalfSplitRotaryEmbedding`:
    undoes `to_half_split`.
    """
    return _reordered(weight, num_heads, lambda dim: half_split_order(dim).argsort())


def half_split_order(head_dim: int) -> Int[Tensor, "{head_dim}"]:
    """Which of the features paired as neighbours stands where when they are paired by halves: 0, 2, ..., d-2, 1, 3,
    ..., d-1."""
    check_rotary_dim(head_dim)
    return torch.arange(head_dim).reshape(-1, 2).T.flatten()


def _reordered(weight: Tensor, num_heads: int, order: Callable[[int], Tensor]) -> Tensor:
    rows = weight.shape[0] if weight.ndim else 0
    if num_heads < 1 or rows == 0 or rows % num_heads:
        raise UserError(
            f"expected num_heads that divide the {rows} rows, got {num_heads}; give the projection's own num_heads"
        )
    heads = weight.unflatten(0, (num_heads, -1))
    return heads[:, order(heads.shape[1]).to(weight.device)].flatten(0, 1)


class _RotaryTable:
    """cos mθ_i and sin mθ_i for the positions of a call, kept."""

    def __init__(self, head_dim: int, base: float, clockwise: bool):
        check_rotary_dim(head_dim, base)
        self.head_dim, self.base, self.clockwise = head_dim, base, clockwise
        self.rows = PositionTable(functools.partial(_cos_sin_rows, head_dim=head_dim, base=base, clockwise=clockwise))

    def __call__(self, x: Tensor, offset: int | DevicePosition) -> Tensor:  # (..., n, d) -> (n, d/2, 2)
        check_floating(x)
        if x.ndim < 2 or x.shape[-1] != self.head_dim:
            raise UserError(
                f"expected queries or keys of {self.head_dim} features, got shape {tuple(x.shape)}; give the "
                "rotary embedding the head_dim"
            )
        if isinstance(offset, DevicePosition):
            return self.rows.at(offset, _wide(x.dtype), x.device)
        check_offset(offset)
        return self.rows(offset, offset + x.shape[-2], _wide(x.dtype), x.device)

    def build(self, num_positions: int, dtype: torch.dtype, device: torch.device) -> None:
        self.rows(0, num_positions, _wide(dtype), device)

    def __str__(self) -> str:
        return f"{self.head_dim}, base={self.base:g}" + ", clockwise=True" * self.clockwise


def _cos_sin_rows(
    stop: int, head_dim: int, base: float, clockwise: bool, device: torch.device | None = None
) -> Tensor:  # (stop, d/2, 2)
    return _cos_sin(position_angles(torch.arange(stop, device=device), head_dim, base=base), clockwise)


def _cos_sin_at(x: Tensor, positions: Tensor, base: float, clockwise: bool) -> Tensor:  # -> (..., n, d/2, 2)
    check_floating(x)
    if x.ndim < 2 or positions.ndim < 1 or positions.shape[-1] != x.shape[-2]:
        raise UserError(
            f"expected one position for each token, got {tuple(positions.shape)} for x of shape {tuple(x.shape)}; "
            "match them"
        )
    angles = position_angles(positions, x.shape[-1], base=base)
    return _cos_sin(angles, clockwise).to(_wide(x.dtype)).to(x.device)


def _cos_sin(angles: Tensor, clockwise: bool) -> Tensor:
    return torch.stack([angles.cos(), -angles.sin() if clockwise else angles.sin()], dim=-1)


def _wide(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype == torch.float64 else torch.float32


def _rotate_pairs(x: Tensor, cos_sin: Tensor) -> Tensor:
    """A pair is a complex number, and a rotation is a product with one: several times as fast as every other
    feature.
    """
    pairs = x.to(cos_sin.dtype).unflatten(-1, (-1, 2))
    if torch.compiler.is_compiling():  # the compiler fuses real numbers, and has no code for complex ones
        return torch.stack(_rotated(pairs[..., 0], pairs[..., 1], cos_sin), dim=-1).flatten(-2).to(x.dtype)
    if pairs.stride(-1) != 1 or pairs.storage_offset() % 2 or any(step % 2 for step in pairs.stride()[:-1]):
        pairs = pairs.contiguous()
    rotated = torch.view_as_complex(pairs) * torch.view_as_complex(cos_sin)
    return torch.view_as_real(rotated).flatten(-2).to(x.dtype)


def _rotate_halves(x: Tensor, cos_sin: Tensor) -> Tensor:
    first, second = x.to(cos_sin.dtype).chunk(2, dim=-1)
    return torch.cat(_rotated(first, second, cos_sin), dim=-1).to(x.dtype)


def _rotated(first: Tensor, second: Tensor, cos_sin: Tensor) -> tuple[Tensor, Tensor]:
    cos, sin = cos_sin.unbind(-1)
    return first * cos - second * sin, first * sin + second * cos
