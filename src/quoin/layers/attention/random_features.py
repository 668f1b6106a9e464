"""Random features of softmax's kernel, e^⟨x,y⟩ = E[ψ(x)·ψ(y)]: Performer's, and their hyperbolic form of lower
variance.

First each as its definition, a function of given directions; then as the feature map that `FeatureMapAttention` takes,
safe for long vectors. How far from e^⟨x,y⟩ the features are is in feature_error.py; features of other kernels are in
kernel_features.py.

    d head_dim, k projections, m features
"""

import math
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn

from quoin.errors import UserError
from quoin.layers.attention.features import Features
from quoin.layers.attention.random_projection import (
    RandomMatrixSampler,
    RandomProjection,
    antithetic_random_matrix,
    gaussian_random_matrix,
)
from quoin.tensor import check_floating, check_shapes

__all__ = [
    "HyperbolicFeatures",
    "PerformerFeatures",
    "hyperbolic_features_definition",
    "performer_features_definition",
    "stabilized",
]


def performer_features_definition(
    x: Float[Tensor, "*batch head_dim"], projection: Float[Tensor, "projections head_dim"]
) -> Float[Tensor, "*batch projections"]:
    """ψ(x) = e^{-‖x‖²/2} / √k · (e^{ω_1·x}, ..., e^{ω_k·x}), positive; for ω_i of distribution N(0, I) the mean of
    ψ(x)·ψ(y) is e^⟨x,y⟩.

    Notes: D4.1-8.
    """
    check_shapes("... d, k d", x=x, projection=projection)
    check_floating(x)
    half = x.square().sum(dim=-1, keepdim=True) / 2
    return (-half).exp() / math.sqrt(len(projection)) * (x @ projection.mT).exp()


def hyperbolic_features_definition(
    x: Float[Tensor, "*batch head_dim"], projection: Float[Tensor, "projections head_dim"]
) -> Float[Tensor, "*batch 2*projections"]:
    """ψ(x) = e^{-‖x‖²/2} / √(2k) · (e^{ω_i·x}, e^{-ω_i·x})_i, so that ψ(x)·ψ(y) averages e^{-(‖x‖²+‖y‖²)/2} cosh(ω_i·(x
    + y)).

    Both signs are needed: cosh(a + b) is not cosh(a) cosh(b), and no single feature for each direction gives it.

    Notes: D4.1-9, DE65.
    """
    return performer_features_definition(x, torch.cat([projection, -projection]))


class PerformerFeatures(nn.Module):
    """The feature map ψ(√s x) of `performer_features_definition`, whose products ψ(q)·ψ(k) estimate e^{s⟨q,k⟩}; s is
    1/√d if not given.

    The random projection is sampled from `generator` by `random_matrix` (`orthogonal_random_matrix` serves, too), and
    again in training after each `redraw_interval` passes, if that is not 0. Whoever attends with these features says
    where a pass begins, as `PerformerAttention` does.

    Notes: D4.1-8.
    """

    def __init__(
        self,
        head_dim: int,
        num_features: int,
        *,
        generator: torch.Generator,
        random_matrix: RandomMatrixSampler = gaussian_random_matrix,
        redraw_interval: int = 0,
        scale: float | None = None,
    ):
        super().__init__()
        self.projection = RandomProjection(
            num_features, head_dim, generator=generator, random_matrix=random_matrix, redraw_interval=redraw_interval
        )
        self.scale, self.num_features = checked_scale(scale, head_dim), num_features

    def begin_pass(self) -> None:
        """To be called once before the queries and keys of a pass, which must all be seen along the same directions."""
        self.projection.begin_pass()

    def forward(self, x: Float[Tensor, "*batch seq head_dim"], *, is_query: bool) -> Features:
        projected = self.projection(x, math.sqrt(self.scale))
        return stabilized(projected, self.scale / 2 * squared_length(x))


class HyperbolicFeatures(PerformerFeatures):
    """The feature map ψ(√s x) of `hyperbolic_features_definition`: two features for each direction, and always less
    variance than Performer's.

    The ratio of the variances at equally many features is 1 - e^{-s‖q+k‖²}.

    Args:
        num_features: An even number, two for each direction.
        random_matrix: How the directions are sampled, to which their opposites are added.
        redraw_interval: Training passes after which the directions are sampled anew; 0 keeps them.
        scale: s; 1/√d unless given.

    Notes: D4.1-9, D4.1-10.
    """

    def __init__(
        self,
        head_dim: int,
        num_features: int,
        *,
        generator: torch.Generator,
        random_matrix: RandomMatrixSampler = gaussian_random_matrix,
        redraw_interval: int = 0,
        scale: float | None = None,
    ):
        both = partial(antithetic_random_matrix, random_matrix=random_matrix)
        super().__init__(
            head_dim,
            num_features,
            generator=generator,
            random_matrix=both,
            redraw_interval=redraw_interval,
            scale=scale,
        )


def stabilized(projected: Float[Tensor, "*batch seq features"], loss: Float[Tensor, "*batch seq 1"]) -> Features:
    """e^{projected - loss} / √m as values of at most 1, the largest of each position exactly 1, and the logarithm of
    the rest.

    The scale is a constant to the gradient, which flows through the values alone: right wherever values and scale are
    multiplied together, and where the scale cancels. `projected` is overwritten.
    """
    largest = projected.detach().amax(dim=-1, keepdim=True)
    log_scale = largest - loss.detach() - math.log(projected.shape[-1]) / 2
    # loss - loss is zero and has a gradient: the exponent of the largest stays exactly 0.
    return Features(projected.sub_(largest + (loss - loss.detach())).exp_(), log_scale)


def squared_length(x: Float[Tensor, "*batch seq head_dim"]) -> Float[Tensor, "*batch seq 1"]:
    """‖x‖² at each position, in float32 or wider."""
    return x.to(torch.promote_types(x.dtype, torch.float32)).square().sum(dim=-1, keepdim=True)


def checked_scale(scale: float | None, head_dim: int) -> float:
    scale = 1 / math.sqrt(head_dim) if scale is None else scale
    if not (math.isfinite(scale) and scale > 0):
        raise UserError(f"expected a scale of scores above 0, got {scale}; leave it out for 1/√head_dim")
    return scale
