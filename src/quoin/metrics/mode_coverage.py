"""Whether samples come from every part of a law: how often each of its modes is hit, beside how often it should be.

A generator may draw perfect examples of a few kinds and never any of the others. What a mode is, is for the caller to say: the classes
that a classifier of real examples knows, or the bumps of a law that was made of bumps.   n samples, q modes, d numbers a sample
"""

from typing import NamedTuple

import torch
from torch import Tensor

from quoin.errors import Mistake
from quoin.prob import check_law, total_variation
from quoin.tensor import check_floating, check_same_dtype, check_shapes

__all__ = ["ModeCoverage", "mode_coverage", "nearest_modes"]


class ModeCoverage(NamedTuple):
    """How the samples spread over the modes."""

    covered: int  # modes that have a sample at all
    least: float  # the share of the most forgotten mode, over what it should be: 1 at best, 0 if one has no sample
    distance: float  # the total variation between how often modes come and how often they should: 0 at best
    strays: float  # the share of samples that belong to no mode


def mode_coverage(modes: Tensor, due: Tensor) -> ModeCoverage:  # (n,) whole numbers, (q,)
    """The mode of each sample, -1 for none, beside `due`, the law of the modes among real examples.

    >>> mode_coverage(torch.tensor([0, 0, 0, 1, -1]), torch.tensor([0.5, 0.25, 0.25]))  # of four, one 1 and no 2
    ModeCoverage(covered=2, least=0.0, distance=0.25, strays=0.2)
    """
    check_shapes("n, q", modes=modes, due=due)
    check_law(due, "due")
    if modes.is_floating_point() or not len(modes) or int(modes.min()) < -1 or int(modes.max()) >= len(due):
        raise Mistake(f"expected modes from 0 to {len(due) - 1}, or -1 for none, of at least one sample, came others; count from 0")
    counts = torch.bincount(modes[modes >= 0], minlength=len(due)).double()
    strays = int((modes < 0).sum()) / len(modes)
    if not counts.any():
        return ModeCoverage(0, 0.0, 1.0, strays)
    shares, due = counts / counts.sum(), due.double() / due.double().sum()
    wanted = due > 0
    return ModeCoverage(
        covered=int((counts[wanted] > 0).sum()),
        least=min(1.0, float((shares[wanted] / due[wanted]).min())),
        distance=float(total_variation(shares, due)),
        strays=strays,
    )


def nearest_modes(samples: Tensor, centres: Tensor, radius: float) -> Tensor:  # (n, d), (q, d) -> (n,)
    """The centre that each sample is nearest to, -1 where even that is farther than `radius`.

    >>> nearest_modes(torch.tensor([[0.1], [4.0], [1.9]]), torch.tensor([[0.0], [2.0]]), 0.5)
    tensor([ 0, -1,  1])
    """
    check_shapes("n d, q d", samples=samples, centres=centres)
    check_floating(samples, "samples")
    check_same_dtype(samples, centres)
    if not len(centres) or not radius > 0:
        raise Mistake(f"expected at least one centre and a radius above 0, came {len(centres)} and {radius}; give both")
    apart, mode = torch.cdist(samples, centres).min(dim=1)
    return torch.where(apart <= radius, mode, -1)
