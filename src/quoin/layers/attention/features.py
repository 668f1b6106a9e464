"""Feature maps: a kernel κ(q, k) = φ(q)·φ(k) as a product of finitely many features, which attention of linear cost
needs.

A feature map is an nn.Module called as `feature_map(x, is_query=...)` on (..., positions, head_dim), in float32 or
wider, and gives `Features`. It maps each position alone and must take no position at all, too. Here is elu + 1; random
ones are in random_features.py.
"""

from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from quoin.display import shown
from quoin.tensor import check_floating

__all__ = ["EluPlusOne", "FeatureMap", "Features", "Redrawn", "elu_plus_one", "elu_plus_one_definition"]


@shown
class Features(NamedTuple):
    """φ(x) = values · exp(log_scale): what is too large or too small for a float stands in the logarithm, one a
    position.

    A query's scale cancels between numerator and denominator, so it is never used. The scales of keys are taken
    relative to the largest that a query may attend to, so that none overflows; where log_scale is None it is zero
    everywhere.
    """

    values: Float[Tensor, "*batch seq features"]
    log_scale: Float[Tensor, "*batch seq 1"] | None = None


@runtime_checkable
class FeatureMap(Protocol):
    """φ: a position's m features from its d entries; queries and keys may be scaled for safety in different ways."""

    def __call__(self, x: Float[Tensor, "*batch seq head_dim"], *, is_query: bool) -> Features: ...


@runtime_checkable
class Redrawn(Protocol):
    """A feature map that changes between passes, never within one: attention calls it where each begins."""

    def begin_pass(self) -> None: ...


def elu_plus_one_definition(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """φ(x) = elu(x) + 1 = x + 1 where x > 0, else e^x: positive for every x.

    Adding 1 to a rounded e^x - 1 would give 0 from x = -18 on in float32, and attention 0 / 0; e^x itself stays
    positive to -87.

    >>> float(elu_plus_one_definition(torch.tensor(-40.0))) > 0
    True

    Notes: D4.1-3, D4.1-5.
    """
    check_floating(x)
    return torch.where(x > 0, x + 1, x.clamp(max=0).exp())  # clamped, as a gradient of 0 times an infinite e^x is NaN


def elu_plus_one(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """`elu_plus_one_definition` without a choice: max(x, 0) + e^min(x, 0), exactly equal to it.

    Notes: D4.1-3, D4.1-5.
    """
    return x.relu() + x.clamp(max=0).exp()


class EluPlusOne(nn.Module):
    """The feature map φ(x) = elu(x) + 1 of "Transformers are RNNs", entry by entry: head_dim features, no guarantee.

    A query of negative entries is scaled so that its largest feature is 1, whatever its norm. Keys are not: in float32
    one whose entries all lie below -58 counts for nothing.

    Notes: D4.1-3, D4.1-5.
    """

    def forward(self, x: Float[Tensor, "*batch seq head_dim"], *, is_query: bool) -> Features:
        if not is_query:
            return Features(elu_plus_one(x))
        largest = (
            x.detach().amax(dim=-1, keepdim=True).clamp(max=0)
        )  # φ(x) / φ(largest) is e^(x - largest) where all of x is negative
        return Features(x.relu() + (x.clamp(max=0) - largest).exp(), largest)
