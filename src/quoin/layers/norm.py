"""Normalization: take a mean away, divide by a standard deviation, let γ and β set a new scale and shift; the kinds
differ in what the mean is over.

    batch norm    over the examples and all positions: one mean and variance a feature or channel, the same for the
    whole batch
    layer norm    over the last axes of one example: a mean and variance of its own for each, whatever else the batch
    holds
    RMS norm      over the last axis of one example: a mean square only, nothing is taken away

The fast forms are torch.nn's `BatchNorm1d`, `BatchNorm2d`, `LayerNorm` and `RMSNorm`. How a model is given batch norm,
and how a batch
too small for it raises an error, is in batch_norm.py.   b examples, c features or channels, n positions
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from jaxtyping import Float, Real
from torch import Tensor

from quoin.display import shown
from quoin.errors import UserError
from quoin.layers.activation import relu
from quoin.layers.dense import affine_definition
from quoin.tensor import as_floating, check_floating, check_shapes

__all__ = [
    "Moments",
    "NormOutput",
    "batch_norm_definition",
    "batch_norm_eval_definition",
    "dense_batch_norm_definition",
    "layer_norm_definition",
    "moments",
    "position_batch_norm_definition",
    "rms_norm_definition",
    "update_running_stats",
]

EPS = 1e-5  # what torch.nn adds to a variance


@shown
class Moments(NamedTuple):
    """A mean and a variance; the variance divides by the number of entries unless given."""

    mean: Float[Tensor, "*statistics"]
    variance: Float[Tensor, "*statistics"]


@shown
class NormOutput(NamedTuple):
    """What a normalization gives, with the statistics it took from its input (ε is not in the variance)."""

    output: Float[Tensor, "..."]
    mean: Float[Tensor, "*statistics"]
    variance: Float[Tensor, "*statistics"]


def moments(x: Float[Tensor, "..."], dims: Sequence[int] | None = None, *, keepdim: bool = False) -> Moments:
    """mean = (1/|x|) Σ x_i and var = (1/|x|) Σ (x_i - mean)², of all entries or over `dims`; `torch.var_mean(x,
    correction=0)` is as fast.

    >>> import torch
    >>> moments(torch.tensor([1.0, 2.0, 3.0, 6.0]))
    Moments(mean=tensor(3.), variance=tensor(3.5000))

    Notes: D1.6-10, Z8.2.
    """
    check_floating(x)
    dims = tuple(range(x.ndim) if dims is None else dims)
    if x.numel() == 0:
        raise UserError(
            f"expected at least one entry to take a mean of, got shape {tuple(x.shape)}; leave out the empty axis"
        )
    mean = x.mean(dims, keepdim=True)
    variance = (x - mean).square().mean(dims, keepdim=True)
    return Moments(mean, variance) if keepdim else Moments(mean.squeeze(dims), variance.squeeze(dims))


def batch_norm_definition(
    x: Float[Tensor, "batch *features"],
    weight: Float[Tensor, "channels"],
    bias: Float[Tensor, "channels"],
    *,
    channel_dim: int = 1,
    eps: float = EPS,
) -> NormOutput:
    """γ_c (x - mean_c) / √(var_c + ε) + β_c in training, the statistics of channel c over the batch and all positions.

    A (b, n, c) tensor has its channels last: say `channel_dim=-1`. The fast forms `nn.BatchNorm1d` and `nn.BatchNorm2d`
    want them second.

    >>> import torch
    >>> x = torch.tensor([[1.0, 10.0], [3.0, 30.0]])
    >>> batch_norm_definition(x, torch.ones(2), torch.zeros(2), eps=0.0).output
    tensor([[-1., -1.],
            [ 1.,  1.]])

    Notes: Z8.1, Z8.2, Z8.7, D1.6-11.
    """
    rows = _channels_last(x, weight, bias, channel_dim)
    found = _normalized(rows, range(rows.ndim - 1), weight, bias, eps)
    return found._replace(output=found.output.movedim(-1, channel_dim))


def position_batch_norm_definition(
    x: Float[Tensor, "batch *features"],
    weight: Float[Tensor, "*features"],
    bias: Float[Tensor, "*features"],
    *,
    eps: float = EPS,
) -> NormOutput:
    """γ_nc (T_bnc - mean T_•nc) / √(var T_•nc + ε) + β_nc: statistics for each position, over the batch alone.

    On (b, c) this is `batch_norm_definition`. With positions no framework does it so; `nn.BatchNorm1d(n * c)` on
    `x.flatten(1)` does.

    Notes: D1.6-11.
    """
    if x.ndim < 2:
        raise UserError(f"expected a batch of at least two axes, got shape {tuple(x.shape)}; put the examples first")
    _check_parameters(x, weight, bias, tuple(x.shape[1:]))
    return _normalized(x, (0,), weight, bias, eps)


def batch_norm_eval_definition(
    x: Float[Tensor, "batch *features"],
    running: Moments,
    weight: Float[Tensor, "channels"],
    bias: Float[Tensor, "channels"],
    *,
    channel_dim: int = 1,
    eps: float = EPS,
) -> Float[Tensor, "batch *features"]:
    """γ_c (x - μ_c) / √(σ_c² + ε) + β_c with the running averages of training: one affine map for each channel,
    whatever the batch.

    Notes: D1.6-12.
    """
    rows = _channels_last(x, weight, bias, channel_dim)
    for name, each in running._asdict().items():
        if each.shape != weight.shape:
            raise UserError(
                f"expected a running {name} of shape {tuple(weight.shape)}, got {tuple(each.shape)}; give one "
                "number a channel"
            )
    return _rescaled(rows, running.mean, running.variance, weight, bias, eps).movedim(-1, channel_dim)


def update_running_stats(running: Moments, batch: Moments, count: int, *, momentum: float = 0.1) -> Moments:
    """μ ← (1 - m) μ + m μ̂ and σ² ← (1 - m) σ² + m σ̂² count / (count - 1), after a batch with `count` values in each
    channel.

    So torch does it: training divides by the biased variance σ̂², testing by an average of unbiased ones. Keras
    averages the biased ones, and calls 1 - m the momentum.

    Args:
        batch: Moments of this batch, the variance the biased one, as `moments` gives it.
        momentum: m, the weight of this batch.

    Notes: D1.6-12.
    """
    if count < 2:
        raise UserError(
            f"expected at least 2 values a channel for an unbiased variance, got {count}; give a larger batch"
        )
    if not 0 <= momentum <= 1:
        raise UserError(f"expected a momentum from 0 to 1, got {momentum}; torch's default is 0.1")
    unbiased = as_floating(batch.variance) * count / (count - 1)
    return Moments(
        (1 - momentum) * running.mean + momentum * batch.mean,
        (1 - momentum) * running.variance + momentum * unbiased,
    )


def dense_batch_norm_definition(
    x: Real[Tensor, "batch in_features"],
    weight: Real[Tensor, "out_features in_features"],
    bias: Real[Tensor, "out_features"],
    scale: Float[Tensor, "out_features"],
    shift: Float[Tensor, "out_features"],
    activation: Callable[[Tensor], Tensor] = relu,
    *,
    eps: float = EPS,
) -> Float[Tensor, "batch out_features"]:
    """φ(BN(W x + b)): batch norm between a dense layer and its activation, where b cancels and the shift β takes its
    place.

    Hence the fast form is `nn.Sequential(nn.Linear(d, c, bias=False), nn.BatchNorm1d(c), nn.ReLU())`.

    Args:
        scale: γ of the batch norm.
        shift: β of the batch norm.

    Notes: Z8.6.
    """
    return activation(batch_norm_definition(affine_definition(x, weight, bias), scale, shift, eps=eps).output)


def layer_norm_definition(
    x: Float[Tensor, "..."],
    weight: Float[Tensor, "*normalized"],
    bias: Float[Tensor, "*normalized"],
    *,
    eps: float = EPS,
) -> NormOutput:
    """γ (x - mean) / √(var + ε) + β with a mean and variance for each example, over as many of its last axes as γ has.

    A γ of shape (c,) normalizes every position of a (b, n, c) tensor by itself, as transformers do; one of shape (n, c)
    each example whole. `nn.LayerNorm(weight.shape)` is the fast form. No statistic leaves the example: training and
    testing are the same.

    Notes: D1.6-13, D1.6-13b, Z8.8.
    """
    if not 1 <= weight.ndim <= x.ndim:
        raise UserError(
            f"expected a weight of one to {x.ndim} axes, got shape {tuple(weight.shape)}; give the shape to "
            "normalize over"
        )
    _check_parameters(x, weight, bias, tuple(x.shape[-weight.ndim :]))
    return _normalized(x, range(x.ndim - weight.ndim, x.ndim), weight, bias, eps)


def rms_norm_definition(
    x: Float[Tensor, "*batch features"], weight: Float[Tensor, "features"], *, eps: float = EPS
) -> Float[Tensor, "*batch features"]:
    """γ x / √(mean x² + ε), the mean over the last axis; `nn.RMSNorm(c, eps)` is the fast form.

    >>> import torch
    >>> rms_norm_definition(torch.tensor([3.0, 4.0]), torch.ones(2), eps=0.0) * 12.5**0.5
    tensor([3., 4.])
    """
    check_floating(x)
    check_shapes("... c, c", x=x, weight=weight)
    return weight * x / (x.square().mean(-1, keepdim=True) + eps).sqrt()


def _normalized(x: Tensor, dims: Sequence[int], weight: Tensor, bias: Tensor, eps: float) -> NormOutput:
    mean, variance = moments(x, dims, keepdim=True)
    output = _rescaled(x, mean, variance, weight, bias, eps)
    return NormOutput(output, mean.squeeze(tuple(dims)), variance.squeeze(tuple(dims)))


def _rescaled(x: Tensor, mean: Tensor, variance: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    if not 0 <= eps < float("inf"):
        raise UserError(f"expected an eps of at least 0, got {eps}; give e.g. 1e-5")
    return weight * (x - mean) / (variance + eps).sqrt() + bias


def _channels_last(x: Tensor, weight: Tensor, bias: Tensor, channel_dim: int) -> Tensor:
    if not (x.ndim >= 2 and channel_dim != 0 and -x.ndim < channel_dim < x.ndim):
        raise UserError(
            f"expected examples on axis 0 and channels on another, got shape {tuple(x.shape)} with channels on "
            f"axis {channel_dim}; "
            "say which with channel_dim"
        )
    _check_parameters(x, weight, bias, (x.shape[channel_dim],))
    return x.movedim(channel_dim, -1)


def _check_parameters(x: Tensor, weight: Tensor, bias: Tensor, shape: tuple[int, ...]) -> None:
    check_floating(x)
    for name, each in (("weight", weight), ("bias", bias)):
        if tuple(each.shape) != shape:
            raise UserError(
                f"expected a {name} of shape {shape} for x of shape {tuple(x.shape)}, got {tuple(each.shape)}; "
                "make them fit"
            )
