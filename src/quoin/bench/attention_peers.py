"""The benchmarks `attention`, on others: torch's own kernel, the package performer-pytorch, and linear attention as it
is usually written.

performer-pytorch has the same number of features, with orthogonal directions, its default. Without a GPU its causal
form is the one of cumulative sums in 128 pieces, which it chooses itself.
"""

import torch
from torch import Tensor
from torch.nn import functional

from quoin.bench.attention_problem import HEAD_DIM, NUM_FEATURES, time_attention
from quoin.bench.worker import Repeats

__all__ = ["cumulative", "performer_pytorch", "performer_pytorch_causal", "sdpa"]


def sdpa(repeats: Repeats, length: str, work: str) -> dict[str, float]:
    return time_attention(
        repeats,
        length,
        work,
        lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, is_causal=True),
        causal=True,
    )


def performer_pytorch(repeats: Repeats, length: str, work: str) -> dict[str, float]:
    return _package(repeats, length, work, causal=False)


def performer_pytorch_causal(repeats: Repeats, length: str, work: str) -> dict[str, float]:
    return _package(repeats, length, work, causal=True)


def cumulative(repeats: Repeats, length: str, work: str) -> dict[str, float]:
    """Causal linear attention with elu + 1, one einsum and one cumulative sum each for numerator and denominator."""

    def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        query, key = functional.elu(query) + 1, functional.elu(key) + 1
        states = torch.einsum("bhnd,bhnv->bhndv", key, value).cumsum(dim=2)
        gathered = torch.einsum("bhnd,bhndv->bhnv", query, states)
        return gathered / torch.einsum("bhnd,bhnd->bhn", query, key.cumsum(dim=2)).unsqueeze(-1)

    return time_attention(repeats, length, work, attend, causal=True)


def _package(repeats: Repeats, length: str, work: str, *, causal: bool) -> dict[str, float]:
    from performer_pytorch import FastAttention  # pyright: ignore[reportMissingImports]

    return time_attention(repeats, length, work, FastAttention(HEAD_DIM, NUM_FEATURES, causal=causal), causal=causal)
