"""Relative position as a bias added to the attention score: ALiBi, and learned biases by distance.

A bias is called with the number of queries, the number of keys and the position of the first query, and gives what is
added to the scores, (heads, queries, keys); keys stand at positions 0, 1, ...  Give it to `ExactAttention(bias=...)`.

    h heads, n queries, m keys; the distance of key j from query i is j - (i + offset), negative for what came before
"""

import bisect
import math
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor, nn

from quoin.display import shown
from quoin.errors import UserError
from quoin.layers.device_position import DevicePosition
from quoin.layers.position import check_offset
from quoin.tensor.labels import as_indices

__all__ = [
    "ALiBi",
    "BidirectionalBuckets",
    "CausalBuckets",
    "ClippedBuckets",
    "DistanceBuckets",
    "RelativePositionBias",
    "alibi_definition",
    "alibi_slopes",
    "relative_distances",
    "relative_position_bias_definition",
]


def relative_distances(
    queries: int, keys: int, offset: int | DevicePosition = 0, *, device: torch.device | None = None
) -> Int[Tensor, "{queries} {keys}"]:
    """j - (i + offset): how far key j stands from query i, whose position is i + offset; negative for what came before.

    Args:
        queries: How many there are.
        keys: How many there are.

    >>> relative_distances(2, 3, offset=1)
    tensor([[-1,  0,  1],
            [-2, -1,  0]])

    Notes: D3-9.
    """
    if isinstance(offset, DevicePosition):  # of the one new token
        return torch.arange(keys, device=device) - offset.index.unsqueeze(-1)
    _check_sizes(queries, keys, offset)
    return torch.arange(keys, device=device) - torch.arange(offset, offset + queries, device=device).unsqueeze(-1)


def alibi_slopes(num_heads: int) -> Float64[Tensor, "{num_heads}"]:
    """2^(-8i/h) for heads i = 1 ... h if h is a power of two; else those of the next lower power p, then 2^(-8i/2p) for
    i = 1, 3, 5, ...

    >>> alibi_slopes(3)
    tensor([0.0625, 0.0039, 0.2500], dtype=torch.float64)

    Notes: D3-9.
    """
    return torch.exp2(-_alibi_exponents(num_heads))


def alibi_definition(
    num_heads: int, queries: int, keys: int, offset: int = 0
) -> Float64[Tensor, "{num_heads} {queries} {keys}"]:
    """-slope |j - i|: each head lowers the score of a key in proportion to its distance, by a slope of its own; nothing
    is learned.

    Args:
        queries: How many there are.
        keys: How many there are.
        offset: The position of the first query, where the keys begin at 0.

    Notes: D3-9.
    """
    return -alibi_slopes(num_heads)[:, None, None] * relative_distances(queries, keys, offset).abs()


class ALiBi(nn.Module):
    """Attention with linear biases, for any number of heads: `alibi_definition` on the module's device.

    In float32 at least. Under a causal mask it is the bias of the paper; without one it is symmetric.

    >>> ALiBi(2)(1, 3, offset=2)
    tensor([[[-0.1250, -0.0625, -0.0000]],
    <BLANKLINE>
            [[-0.0078, -0.0039, -0.0000]]])

    Notes: D3-9.
    """

    exponents: Float[Tensor, "heads"]
    takes_device_position = True

    def __init__(self, num_heads: int):
        super().__init__()
        # Exponents and not slopes: they are multiples of powers of two, so no cast of the module, not even to bfloat16,
        # rounds them.
        self.register_buffer("exponents", _alibi_exponents(num_heads).float(), persistent=False)

    def forward(
        self, queries: int, keys: int, offset: int | DevicePosition = 0
    ) -> Float[Tensor, "heads {queries} {keys}"]:
        wide = torch.promote_types(self.exponents.dtype, torch.float32)
        slopes = torch.exp2(-self.exponents.to(wide))
        return -slopes[:, None, None] * relative_distances(queries, keys, offset, device=slopes.device).abs()

    def extra_repr(self) -> str:
        return f"{len(self.exponents)}"


@runtime_checkable
class DistanceBuckets(Protocol):
    """A rule that sorts distances into `num_buckets` kinds that share a bias."""

    @property
    def num_buckets(self) -> int: ...

    def __call__(self, distance: Int[Tensor, "*shape"]) -> Int[Tensor, "*shape"]:
        """The bucket of each distance, from 0 to num_buckets - 1."""
        ...


@shown
@dataclass(frozen=True)
class CausalBuckets:
    """T5's rule for decoders: near ones of what came before apart, far ones together, more and more, up to
    `max_distance`.

    With e = B/2, a key s steps back is in bucket s if s < e, else min(B - 1, e + ⌊(B - e) log(s/e) / log(max/e)⌋); one
    ahead in 0.

    Notes: D3-9.
    """

    num_buckets: int = 32
    max_distance: int = 128
    boundaries: tuple[int, ...] = field(init=False, repr=False)  # the first step of each bucket but bucket 0

    def __post_init__(self):
        if self.num_buckets < 2 or self.max_distance <= self.num_buckets // 2:
            raise UserError(
                "expected at least 2 buckets and a largest distance beyond the first half of them, got "
                f"{self.num_buckets} and "
                f"{self.max_distance}; T5 has 32 and 128"
            )
        object.__setattr__(self, "boundaries", _bucket_boundaries(self.num_buckets, self.max_distance))

    def __call__(self, distance: Int[Tensor, "*shape"]) -> Int[Tensor, "*shape"]:
        distance = as_indices(distance, "distance")
        return torch.bucketize(
            (-distance).clamp(min=0), torch.tensor(self.boundaries, device=distance.device), right=True
        )


@shown
@dataclass(frozen=True)
class BidirectionalBuckets:
    """T5's rule for encoders: half of the buckets as `CausalBuckets` for what came before, the other half for what
    comes after.

    The first bucket of the second half stays empty, for distance 0 is in the first: so it is in T5.

    Notes: D3-9.
    """

    num_buckets: int = 32
    max_distance: int = 128
    side: CausalBuckets = field(init=False, repr=False)

    def __post_init__(self):
        if self.num_buckets % 2:
            raise UserError(
                f"expected an even number of buckets, half for each side, got {self.num_buckets}; T5 has 32"
            )
        object.__setattr__(self, "side", CausalBuckets(self.num_buckets // 2, self.max_distance))

    def __call__(self, distance: Int[Tensor, "*shape"]) -> Int[Tensor, "*shape"]:
        distance = as_indices(distance, "distance")
        after = distance > 0
        return after * (self.num_buckets // 2) + self.side(-distance.abs())


@shown
@dataclass(frozen=True)
class ClippedBuckets:
    """Shaw's rule: every distance apart up to `max_distance` on either side, and all beyond as if they were there.

    Notes: D3-9.
    """

    max_distance: int = 16

    def __post_init__(self):
        if self.max_distance < 0:
            raise UserError(f"expected a largest distance from 0 on, got {self.max_distance}; give e.g. 16")

    @property
    def num_buckets(self) -> int:
        return 2 * self.max_distance + 1

    def __call__(self, distance: Int[Tensor, "*shape"]) -> Int[Tensor, "*shape"]:
        return as_indices(distance, "distance").clamp(-self.max_distance, self.max_distance) + self.max_distance


def relative_position_bias_definition(
    table: Float[Tensor, "buckets heads"], buckets: DistanceBuckets, queries: int, keys: int, offset: int = 0
) -> Float[Tensor, "heads {queries} {keys}"]:
    """b_h[bucket(j - i)]: what is learned is one bias for each head and each kind of distance.

    Args:
        table: The learned biases b.
        buckets: Sorts distances, such as `CausalBuckets()`.
        queries: How many there are.
        keys: How many there are.
        offset: The position of the first query, where the keys begin at 0.

    Notes: D3-9.
    """
    return table[buckets(relative_distances(queries, keys, offset))].movedim(-1, 0)


class RelativePositionBias(nn.Module):
    """`relative_position_bias_definition` with a learned table; distances are sorted once and not for each pair of
    tokens.

    The biases start normal with standard deviation 0.02, sampled by `generator`.

    Args:
        buckets: Sorts distances; `BidirectionalBuckets()` unless given.

    >>> RelativePositionBias(4, CausalBuckets())(queries=2, keys=5, offset=3).shape
    torch.Size([4, 2, 5])

    Notes: D3-9.
    """

    def __init__(
        self, num_heads: int, buckets: DistanceBuckets | None = None, *, generator: torch.Generator | None = None
    ):
        super().__init__()
        _check_heads(num_heads)
        self.buckets = BidirectionalBuckets() if buckets is None else buckets
        self.table = nn.Parameter(0.02 * torch.randn(self.buckets.num_buckets, num_heads, generator=generator))

    def forward(self, queries: int, keys: int, offset: int = 0) -> Float[Tensor, "heads {queries} {keys}"]:
        _check_sizes(queries, keys, offset)
        if torch.compiler.is_exporting():  # windows of a length that is free cannot be unfolded
            own = torch.arange(offset, offset + queries, device=self.table.device)
            return self.table[self.buckets(torch.arange(keys, device=own.device) - own[:, None])].permute(2, 0, 1)
        # There are n + m - 1 distances, from the last query's to the first key up to the first query's to the last key.
        distances = torch.arange(1 - queries - offset, keys - offset, device=self.table.device)
        by_distance = self.table[self.buckets(distances)].T  # (h, n + m - 1)
        return by_distance.unfold(-1, keys, 1).flip(-2)

    def extra_repr(self) -> str:
        return f"{self.table.shape[1]}"


def _bucket_boundaries(num_buckets: int, max_distance: int) -> tuple[int, ...]:
    """Where buckets 1, 2, ... begin: in integers, for a logarithm may round to the wrong side of a whole number."""
    exact = num_buckets // 2
    far = num_buckets - exact
    steps = range(exact, max_distance + 1)

    def first(bucket: int) -> int:  # with (s/e)^far >= (max/e)^bucket
        return steps[
            bisect.bisect_left(steps, max_distance**bucket * exact**far, key=lambda step: step**far * exact**bucket)
        ]

    return (*range(1, exact + 1), *map(first, range(1, far)))


def _alibi_exponents(num_heads: int) -> Tensor:
    _check_heads(num_heads)
    power = 2 ** int(math.log2(num_heads))
    whole = torch.arange(1, power + 1, dtype=torch.float64) * (8 / power)
    between = torch.arange(1, 2 * power, 2, dtype=torch.float64) * (4 / power)
    return torch.cat([whole, between])[:num_heads]


def _check_heads(num_heads: int) -> None:
    if num_heads < 1:
        raise UserError(f"expected at least one head, got {num_heads}; give the attention's num_heads")


def _check_sizes(queries: int, keys: int, offset: int) -> None:
    check_offset(offset)
    if queries < 1 or keys < 1:
        raise UserError(
            f"expected at least one query and one key, got {queries} and {keys}; give the lengths of the sequences"
        )
