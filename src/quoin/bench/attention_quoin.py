"""The benchmarks `attention`, on Quoin: exact, and of linear cost with elu + 1 and with Performer's features."""

import torch
from torch import nn

from quoin.bench.attention_problem import HEAD_DIM, NUM_FEATURES, time_attention
from quoin.bench.worker import Repeats
from quoin.layers import EluPlusOne, ExactAttention, FeatureMapAttention, PerformerFeatures, orthogonal_random_matrix

__all__ = ["elu", "elu_causal", "exact", "performer", "performer_causal"]


def exact(repeats: Repeats, length: str, work: str) -> dict[str, float]:
    return _time_attention(repeats, length, work, ExactAttention(), causal=True)


def elu(repeats: Repeats, length: str, work: str) -> dict[str, float]:
    return _time_attention(repeats, length, work, FeatureMapAttention(EluPlusOne()), causal=False)


def elu_causal(repeats: Repeats, length: str, work: str) -> dict[str, float]:
    return _time_attention(repeats, length, work, FeatureMapAttention(EluPlusOne()), causal=True)


def performer(repeats: Repeats, length: str, work: str) -> dict[str, float]:
    return _time_attention(repeats, length, work, FeatureMapAttention(_features()), causal=False)


def performer_causal(repeats: Repeats, length: str, work: str) -> dict[str, float]:
    return _time_attention(repeats, length, work, FeatureMapAttention(_features()), causal=True)


def _features() -> PerformerFeatures:
    return PerformerFeatures(  # as the peer has
        HEAD_DIM, NUM_FEATURES, generator=torch.Generator().manual_seed(1), random_matrix=orthogonal_random_matrix
    )


def _time_attention(
    repeats: Repeats, length: str, work: str, inner_attention: nn.Module, *, causal: bool
) -> dict[str, float]:
    return time_attention(
        repeats,
        length,
        work,
        lambda query, key, value: inner_attention(query, key, value, causal=causal),
        causal=causal,
    )
