"""Softmax and log-sum-exp from their definitions, safe for any finite input.

The fast forms are `torch.softmax` and `torch.logsumexp`. Over what a mask shows, softmax is in masked.py.
"""

import torch
from jaxtyping import Float, Real
from torch import Tensor

from quoin.tensor.entries import as_floating

__all__ = ["logsumexp", "softargmax", "softmax"]


def softmax(x: Real[Tensor, "*shape"], dim: int = -1) -> Float[Tensor, "*shape"]:
    """Positive numbers that sum to one along `dim`: exp(x_i) / sum_j exp(x_j).

    The largest entry is subtracted first: the quotient does not feel it, and no exponential can overflow.

    Notes: Z4.5, D2.1-5.
    """
    x = as_floating(x)
    weights = (x - _largest(x, dim)).exp()
    return weights / weights.sum(dim=dim, keepdim=True)


# What softmax softens is the argmax, as a one-hot vector; the smooth stand-in for the maximum itself is logsumexp.
softargmax = softmax


def logsumexp(x: Real[Tensor, "..."], dim: int = -1) -> Float[Tensor, "..."]:
    """log sum_j exp(x_j) along `dim`, computed as m + log sum_j exp(x_j - m) with m the largest entry.

    Notes: Z4.8n.
    """
    x = as_floating(x)
    largest = _largest(x, dim)
    largest = torch.where(
        largest.isfinite(), largest, 0
    )  # inf - inf is no number; shifting by nothing gives the right limit
    return largest.squeeze(dim) + (x - largest).exp().sum(dim=dim).log()


def _largest(x: Tensor, dim: int) -> Tensor:
    # Both functions are the same for every shift, so the shift has no gradient to carry.
    return x.detach().amax(dim=dim, keepdim=True)
