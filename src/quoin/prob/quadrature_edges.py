"""Where a `torch.distributions` distribution on the line has its mass: the edges between which nodes are laid."""

import math

import torch
from jaxtyping import Float
from torch import Tensor
from torch.distributions import Distribution

from quoin.errors import UserError
from quoin.prob.checks import check_parameters

__all__ = ["support_edges"]


def support_edges(distribution: Distribution) -> Float[Tensor, "*batch e"]:
    """Edges for quadrature under a continuous `torch.distributions` distribution on the line: its support, cut about a
    width apart at its middle.
    """
    check_parameters(distribution)
    try:
        support = distribution.support
    except NotImplementedError:
        support = None
    if support is None or support.is_discrete or distribution.event_shape:
        raise UserError(
            f"expected a continuous distribution on the line, got {type(distribution).__name__}; build a Density "
            "from its log_prob"
        )
    middle, width = _middle(distribution)
    low = torch.as_tensor(getattr(support, "lower_bound", -math.inf)).to(middle).expand_as(middle)
    high = torch.as_tensor(getattr(support, "upper_bound", math.inf)).to(middle).expand_as(middle)
    left = [] if bool(low.isfinite().all()) else [middle - width]
    right = [] if bool(high.isfinite().all()) else [middle + width]
    return torch.stack([low, *left, middle, *right, high], dim=-1)


def _middle(distribution: Distribution) -> tuple[Tensor, Tensor]:
    """A location and a scale of the distribution."""
    for way in (_by_quarters, _by_moments, _by_mode):
        try:
            middle, width = way(distribution)
        except (NotImplementedError, AttributeError):  # torch's distributions know some of these each
            continue
        if bool((middle.isfinite() & width.isfinite() & (width > 0)).all()):
            return middle, width
    raise UserError(
        f"expected a distribution that knows its quantiles, moments or mode, got {type(distribution).__name__}; "
        "build a Density of it"
    )


def _by_quarters(distribution: Distribution) -> tuple[Tensor, Tensor]:
    low, median, high = (
        distribution.icdf(torch.tensor(level).expand(distribution.batch_shape)) for level in (0.25, 0.5, 0.75)
    )
    return median, high - low


def _by_moments(distribution: Distribution) -> tuple[Tensor, Tensor]:
    return distribution.mean, distribution.stddev


def _by_mode(distribution: Distribution) -> tuple[Tensor, Tensor]:
    mode = distribution.mode
    return mode, torch.as_tensor(getattr(distribution, "scale", mode.abs())).to(mode).expand_as(mode)
