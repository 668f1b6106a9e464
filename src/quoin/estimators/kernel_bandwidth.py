"""The bandwidth of a kernel by leave-one-out: each example is predicted from all others, and the bandwidth that does so
best is taken.

The estimator needs no training, so leaving one out costs one entry of one row of weights: distances are computed once,
whatever the number of bandwidths, and a few examples at a time.
"""

import math

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from quoin.errors import UserError
from quoin.layers import FallbackRule
from quoin.tensor import SmoothingKernel, squared_distances
from quoin.tensor.blocks import rows_per_block

__all__ = ["leave_one_out_bandwidth", "leave_one_out_errors"]

PAIRS_PER_BLOCK = 2**20  # of examples
NUM_BANDWIDTHS = 25  # on a first grid from the narrowest to the widest, and as many between the neighbours of the best


def leave_one_out_errors(
    X: Float[Tensor, "examples features"],
    value: Float[Tensor, "examples values"],
    kernel: SmoothingKernel,
    bandwidth: Float[Tensor, "features"],
    factors: Float[Tensor, "factors"],
    fallback: FallbackRule,
) -> Float64[Tensor, "factors"]:
    """For each factor c the mean of ‖v_i - f_{-i}(x_i)‖², where f_{-i} pools all values but v_i with the bandwidth c
    h."""
    errors = X.new_zeros(len(factors), dtype=torch.float64)
    rows = rows_per_block(len(X), PAIRS_PER_BLOCK)
    for start in range(0, len(X), rows):
        here = torch.arange(start, min(start + rows, len(X)))
        square = squared_distances(X[here], X, bandwidth)
        square[here - start, here] = torch.inf  # no example predicts itself
        for which, factor in enumerate(factors.tolist()):
            weights = kernel.scaled_values(square / factor**2).values
            total = weights.sum(dim=-1, keepdim=True)
            alone = total == 0
            if bool(alone.any()):
                weights = torch.where(alone, fallback(square), weights)
                total = weights.sum(dim=-1, keepdim=True)
            found = weights @ value / torch.where(total == 0, 1, total)
            errors[which] += (found - value[here]).square().sum(dtype=torch.float64)
    return errors / len(X)


def leave_one_out_bandwidth(
    X: Float[Tensor, "examples features"],
    value: Float[Tensor, "examples values"],
    kernel: SmoothingKernel,
    fallback: FallbackRule,
) -> Float[Tensor, "features"]:
    """c s with the features' standard deviations s and the c of least leave-one-out error, to within a few hundredths
    of itself."""
    if len(X) < 2:
        raise UserError(
            "expected two examples or more for leave-one-out, got 1 sample; give a number as bandwidth, or more "
            "examples"
        )
    std = X.std(dim=0, correction=0)
    std = torch.where(std > 0, std, 1)
    # Narrower than this most examples see none of the others; wider, all see all of them alike.
    radius = 1.0 if kernel.radius == 1.0 else 0.2
    high = 2 * radius * float(((X - X.mean(dim=0)) / std).norm(dim=-1).max()) + 1e-6
    low = min(radius * _typical_distance(X / std), high / 10)
    chosen = high
    for _ in range(2):
        factors = torch.logspace(math.log10(low), math.log10(high), NUM_BANDWIDTHS, dtype=torch.float64)
        best = int(leave_one_out_errors(X, value, kernel, std, factors, fallback).argmin())
        low, high = float(factors[max(best - 1, 0)]), float(factors[min(best + 1, NUM_BANDWIDTHS - 1)])
        chosen = float(factors[best])
    return std * chosen


def _typical_distance(X: Tensor) -> float:
    """The median distance of an example from the nearest that is not at the same point, of at most 1000 evenly chosen
    examples.
    """
    some = X[:: -(-len(X) // 1000)]
    square = squared_distances(some, X)
    nearest = torch.where(square > 0, square, torch.inf).amin(dim=-1)
    nearest = nearest[nearest.isfinite()]
    return float(nearest.median().sqrt()) if len(nearest) else 1.0
