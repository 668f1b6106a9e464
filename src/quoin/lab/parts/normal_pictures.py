"""Curves of equal density of a normal in the plane, and moments of normals that are not centred."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.prob import MultivariateNormal, wick

__all__ = ["ellipse", "exact_moment"]

RING = torch.linspace(0, 2 * math.pi, 73)


def ellipse(joint: MultivariateNormal, radius: float) -> Float[Tensor, "point 2"]:
    """Points of the curve on which the joint density is constant, so many standard deviations out."""
    circle = torch.stack([RING.cos(), RING.sin()])
    return (joint.mean.unsqueeze(-1) + radius * torch.linalg.cholesky(joint.covariance) @ circle).T


def exact_moment(covariance: Float[Tensor, "d d"], indices: list[int], mean: float) -> float:
    """E of the product where every factor has this mean: the sum over which factors contribute their mean."""
    total = 0.0
    for chosen in range(2 ** len(indices)):
        left = [index for at, index in enumerate(indices) if not chosen >> at & 1]
        total += mean ** (len(indices) - len(left)) * float(wick(covariance, left))
    return total
