"""Group normalization: every image normalizes each group of channels by its own mean and variance.

c channels, g groups
"""

from jaxtyping import Float
from torch import Tensor

from quoin.errors import UserError
from quoin.layers.norm import EPS, NormOutput, moments
from quoin.tensor import check_floating, check_shapes

__all__ = ["group_norm_definition"]


def group_norm_definition(
    x: Float[Tensor, "batch channels *positions"],
    weight: Float[Tensor, "channels"],
    bias: Float[Tensor, "channels"],
    *,
    num_groups: int,
    eps: float = EPS,
) -> NormOutput:
    """γ_c (x - mean) / √(var + ε) + β_c, mean and variance over the c/g channels of a group and all positions, for each
    image.

    With one group it normalizes whole images, with as many as channels each channel alone. `nn.GroupNorm(num_groups,
    c)` is the fast form.

    >>> import torch
    >>> x = torch.tensor([[1.0, 3.0, 10.0, 30.0]])
    >>> group_norm_definition(x, torch.ones(4), torch.zeros(4), num_groups=2, eps=0.0).output
    tensor([[-1.,  1., -1.,  1.]])
    """
    check_floating(x)
    check_shapes("c, c", weight=weight, bias=bias)
    if x.ndim < 2 or x.shape[1] != len(weight) or num_groups < 1 or len(weight) % num_groups:
        got = f"shape {tuple(x.shape)}, {len(weight)} weights and {num_groups} groups"
        raise UserError(
            f"expected examples (b, c, ...), as many weights as channels and groups that divide them, got {got}; "
            "make them fit"
        )
    grouped = x.unflatten(1, (num_groups, -1))  # (b, g, c / g, ...)
    mean, variance = moments(grouped, range(2, grouped.ndim), keepdim=True)
    normalized = ((grouped - mean) / (variance + eps).sqrt()).flatten(1, 2)
    shape = (-1, *[1] * (x.ndim - 2))
    return NormOutput(weight.reshape(shape) * normalized + bias.reshape(shape), mean.flatten(1), variance.flatten(1))
