"""Dropout: in training each unit is dropped with probability p, in evaluation none is.

The fast form is `torch.nn.Dropout(p)`: it samples the mask and applies the definition in training mode, and is the
identity in evaluation mode. Here the mask is an argument, so that what was dropped can be seen, enumerated and used
again.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from quoin.errors import UserError
from quoin.tensor import check_floating, check_shapes

__all__ = ["dropout_definition", "dropout_mask"]


def dropout_definition(
    x: Float[Tensor, "*shape"], mask: Bool[Tensor, "*shape"], probability: float
) -> Float[Tensor, "*shape"]:
    """x_j / (1 - p) where the mask is true and 0 where it is false; with masks of true entries of probability 1 - p the
    mean is x.

    At test there is no mask: the layer is the identity, to which this function with a probability of 0 and a full mask
    is equal.

    >>> dropout_definition(torch.tensor([3.0, 4.0]), torch.tensor([True, False]), 0.5)
    tensor([6., 0.])

    Notes: D1.6-1, Z5.22.
    """
    check_shapes("..., ...", x=x, mask=mask)
    check_floating(x)
    check_probability(probability)
    if mask.dtype != torch.bool:
        raise UserError(
            f"expected a mask of true and false, got {mask.dtype}; sample one with dropout_mask, or compare: mask > 0"
        )
    return x * (mask.to(x.dtype) / (1 - probability))  # multiplied even if false, so that a NaN is not hidden


def dropout_mask(
    shape: Sequence[int], probability: float, *, generator: torch.Generator | None = None
) -> Bool[Tensor, "..."]:
    """A mask whose entries are independent: false with probability p, else true; not a fixed fraction p of them.

    A generator in the state of torch's own gives, on the CPU, the mask that `torch.nn.Dropout(p)` would use.

    Notes: D1.6-1.
    """
    check_probability(probability)
    device = generator.device if generator is not None else None
    return torch.empty(tuple(shape), dtype=torch.bool, device=device).bernoulli_(1 - probability, generator=generator)


def check_probability(probability: float) -> None:
    """Raise an error for what is no dropout probability; 1 would leave nothing to scale up."""
    if not 0 <= probability < 1:
        raise UserError(f"expected a dropout probability of at least 0 and below 1, got {probability}; give e.g. 0.2")
