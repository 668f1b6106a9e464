"""Performer: softmax attention at linear cost, by positive random features.   d width, m features"""

import torch

from quoin.layers.attention.directions import DirectionLaw, orthogonal_directions
from quoin.layers.attention.feature_map import FeatureMapAttention
from quoin.layers.attention.linear_forms import CHUNK
from quoin.layers.attention.random_features import PerformerFeatures

__all__ = ["PerformerAttention"]


class PerformerAttention(FeatureMapAttention):
    """r_i = Σ_m φ_m(q_i) S_m / Σ_m φ_m(q_i) E_m with S_m = Σ_j φ_m(k_j) v_j and E_m = Σ_j φ_m(k_j): near softmax attention.

    φ are `PerformerFeatures`, by default along orthogonal directions, drawn anew in training after each `redraw_every` passes if that
    is not 0. For hyperbolic features let the law give opposite directions: `partial(opposite_directions, law=orthogonal_directions)`.
    The cost is in proportion to the length times the number of features, and the error falls as one over the root of that number.

    >>> attend = PerformerAttention(16, 64, generator=torch.Generator().manual_seed(0))
    >>> attend(*torch.randn(3, 2, 4, 10, 16), causal=True).shape
    torch.Size([2, 4, 10, 16])

    Notes: D4.1-11, D4.1-12.
    """

    def __init__(
        self,
        width: int,
        num_features: int,
        *,
        generator: torch.Generator,
        law: DirectionLaw = orthogonal_directions,
        redraw_every: int = 0,
        chunk: int = CHUNK,
    ):
        features = PerformerFeatures(width, num_features, generator=generator, law=law, redraw_every=redraw_every)
        super().__init__(features, chunk=chunk)
