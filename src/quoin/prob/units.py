"""The unit of information is the base of the logarithm: nats for e, bits for 2."""

import math

from jaxtyping import Float, Real
from torch import Tensor

from quoin.errors import UserError
from quoin.tensor.array_like import ArrayLike, number_tensor

__all__ = ["convert_base"]


def convert_base(nats: Real[Tensor, "*batch"] | ArrayLike, base: float = math.e) -> Float[Tensor, "*batch"]:
    """log_b x = ln x / ln b: nats as they are for the base e, as bits for 2, one nat being 1.4427 bits.

    >>> import torch
    >>> convert_base(torch.tensor(1.0), 2)
    tensor(1.4427)

    Notes: M16.
    """
    nats = number_tensor(nats, "nats")
    if not 1 < base < math.inf:  # NaN fails too
        raise UserError(f"expected a finite base above 1, got {base}; give 2 for bits, or leave it out for nats")
    return nats / math.log(base)  # ln e is exactly one, also in floats
