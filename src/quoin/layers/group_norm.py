"""Group normalisation: channels are parted into groups, and every image normalises each group by its own mean and spread.

b images, c channels, g groups
"""

from torch import Tensor

from quoin.errors import Mistake
from quoin.layers.norm import EPS, Normalised, moments
from quoin.tensor import check_floating, check_shapes

__all__ = ["group_norm_definition"]


def group_norm_definition(x: Tensor, weight: Tensor, bias: Tensor, *, groups: int, eps: float = EPS) -> Normalised:  # (b, c, ...)
    """γ_c (x - mean) / √(var + ε) + β_c, mean and variance over the c/g channels of a group and all positions, for each image.

    With one group it normalises whole images, with as many as channels each channel alone. `nn.GroupNorm(groups, c)` is the fast form.

    >>> import torch
    >>> group_norm_definition(torch.tensor([[1.0, 3.0, 10.0, 30.0]]), torch.ones(4), torch.zeros(4), groups=2, eps=0.0).output
    tensor([[-1.,  1., -1.,  1.]])
    """
    check_floating(x)
    check_shapes("c, c", weight=weight, bias=bias)
    if x.ndim < 2 or x.shape[1] != len(weight) or groups < 1 or len(weight) % groups:
        came = f"shape {tuple(x.shape)}, {len(weight)} weights and {groups} groups"
        raise Mistake(f"expected examples (b, c, ...), as many weights as channels and groups that divide them, came {came}; make them fit")
    parted = x.unflatten(1, (groups, -1))  # (b, g, c / g, ...)
    mean, variance = moments(parted, range(2, parted.ndim), keepdim=True)
    normalised = ((parted - mean) / (variance + eps).sqrt()).flatten(1, 2)
    shape = (-1, *[1] * (x.ndim - 2))
    return Normalised(weight.reshape(shape) * normalised + bias.reshape(shape), mean.flatten(1), variance.flatten(1))
