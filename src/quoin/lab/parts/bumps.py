"""Bars of a normal density over a grid, and its descent towards two bumps by KL in either order."""

import functools
import math

import torch
from jaxtyping import Float
from torch import Tensor
from torch.distributions import Normal

from quoin.info import kl_divergence

__all__ = ["GRID", "TWO_BUMPS", "descended_bump", "normal_bars"]

GRID = torch.linspace(-6, 6, 25, dtype=torch.float64)
TWO_BUMPS = (0.5 * Normal(-2.5, 0.6).log_prob(GRID).exp() + 0.5 * Normal(2.5, 0.6).log_prob(GRID).exp()).double()
TWO_BUMPS = TWO_BUMPS / TWO_BUMPS.sum()
_RATE = 0.25


def normal_bars(mean: Float[Tensor, ""] | float, std: Float[Tensor, ""] | float) -> Float[Tensor, "25"]:
    """A normal density as a distribution over the grid."""
    return Normal(torch.as_tensor(mean), torch.as_tensor(std), validate_args=False).log_prob(GRID).softmax(dim=-1)


@functools.lru_cache(maxsize=1024)
def descended_bump(mean: float, std: float, steps: int, covers: bool) -> tuple[float, float]:
    """Mean and deviation after `steps` of descent on KL(P, Q), if it `covers`, or on KL(Q, P), in ln std."""
    if steps == 0:
        return mean, std
    mean, std = descended_bump(mean, std, steps - 1, covers)
    at = torch.tensor([mean, math.log(std)], dtype=torch.float64, requires_grad=True)
    q = normal_bars(at[0], at[1].exp())
    (gradient,) = torch.autograd.grad(kl_divergence(TWO_BUMPS, q) if covers else kl_divergence(q, TWO_BUMPS), at)
    scaled = gradient * torch.tensor([std * std, 1.0], dtype=torch.float64)  # the Fisher metric: steps of one size
    moved = at.detach() - _RATE * scaled.clamp(-1, 1)
    return float(moved[0]), float(moved[1].exp())
