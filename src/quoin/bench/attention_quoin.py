"""The rows `attention`, on Quoin: exact, and of linear cost with elu + 1 and with Performer's features."""

import torch
from torch import nn

from quoin.bench.attention_problem import FEATURES, WIDTH, attention_laps
from quoin.bench.worker import Laps
from quoin.layers import EluPlusOne, ExactAttention, FeatureMapAttention, PerformerFeatures, orthogonal_directions

__all__ = ["elu", "elu_causal", "exact", "performer", "performer_causal"]


def exact(laps: Laps, length: str, work: str) -> dict[str, float]:
    return _laps(laps, length, work, ExactAttention(), causal=True)


def elu(laps: Laps, length: str, work: str) -> dict[str, float]:
    return _laps(laps, length, work, FeatureMapAttention(EluPlusOne()), causal=False)


def elu_causal(laps: Laps, length: str, work: str) -> dict[str, float]:
    return _laps(laps, length, work, FeatureMapAttention(EluPlusOne()), causal=True)


def performer(laps: Laps, length: str, work: str) -> dict[str, float]:
    return _laps(laps, length, work, FeatureMapAttention(_features()), causal=False)


def performer_causal(laps: Laps, length: str, work: str) -> dict[str, float]:
    return _laps(laps, length, work, FeatureMapAttention(_features()), causal=True)


def _features() -> PerformerFeatures:
    return PerformerFeatures(WIDTH, FEATURES, generator=torch.Generator().manual_seed(1), law=orthogonal_directions)  # as the peer has


def _laps(laps: Laps, length: str, work: str, core: nn.Module, *, causal: bool) -> dict[str, float]:
    return attention_laps(laps, length, work, lambda query, key, value: core(query, key, value, causal=causal), causal=causal)
