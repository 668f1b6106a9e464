"""Performer: softmax attention at linear cost, by positive random features.   d head_dim, m features"""

import torch

from quoin.layers.attention.feature_map import FeatureMapAttention
from quoin.layers.attention.linear_forms import CHUNK
from quoin.layers.attention.random_features import PerformerFeatures
from quoin.layers.attention.random_projection import RandomMatrixSampler, orthogonal_random_matrix

__all__ = ["PerformerAttention"]


class PerformerAttention(FeatureMapAttention):
    """r_i = Σ_m φ_m(q_i) S_m / Σ_m φ_m(q_i) E_m with S_m = Σ_j φ_m(k_j) v_j and E_m = Σ_j φ_m(k_j): near softmax
    attention.

    φ are `PerformerFeatures`, by default of orthogonal projections. The cost is in proportion to the length times the
    number of features, and the error falls as one over the root of that number.

    Args:
        random_matrix: How the random directions are sampled; for hyperbolic features each with its opposite, by
            `partial(antithetic_random_matrix, random_matrix=orthogonal_random_matrix)`.
        redraw_interval: Training passes after which the directions are sampled anew; 0 keeps them.
        chunk_size: Positions worked on at a time; it changes time and memory, and the result by rounding alone.

    >>> attend = PerformerAttention(16, 64, generator=torch.Generator().manual_seed(0))
    >>> attend(*torch.randn(3, 2, 4, 10, 16), causal=True).shape
    torch.Size([2, 4, 10, 16])

    Notes: D4.1-11, D4.1-12.
    """

    def __init__(
        self,
        head_dim: int,
        num_features: int,
        *,
        generator: torch.Generator,
        random_matrix: RandomMatrixSampler = orthogonal_random_matrix,
        redraw_interval: int = 0,
        chunk_size: int = CHUNK,
    ):
        features = PerformerFeatures(
            head_dim, num_features, generator=generator, random_matrix=random_matrix, redraw_interval=redraw_interval
        )
        super().__init__(features, chunk_size=chunk_size)
