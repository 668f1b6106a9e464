"""Where a `torch.distributions` distribution on the line has its mass: the edges between which nodes are laid."""

import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.distributions import Distribution, MixtureSameFamily

from quoin.errors import UserError
from quoin.prob.checks import check_parameters

__all__ = ["support_edges"]


def support_edges(distribution: Distribution) -> Float[Tensor, "*batch e"]:
    """Edges for quadrature under a continuous `torch.distributions` distribution on the line: its support, cut about a
    width apart at its middle; that of a mixture at the middle of each of its components.
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
    support = getattr(support, "base_constraint", support)  # of a mixture: that of its components
    if isinstance(distribution, MixtureSameFamily):
        cuts = _strictly(_cuts_of_component(distribution.component_distribution, support).flatten(-2))
        low, high = _ends(support, cuts[..., 0])
        return torch.cat([low[..., None], cuts, high[..., None]], dim=-1)
    middle, width = _middle(distribution)
    low, high = _ends(support, middle)
    left = [] if bool(low.isfinite().all()) else [middle - width]
    right = [] if bool(high.isfinite().all()) else [middle + width]
    return torch.stack([low, *left, middle, *right, high], dim=-1)


def _ends(support: Any, like: Tensor) -> tuple[Tensor, Tensor]:
    """The ends of the support, in the shape of `like`."""
    low, high = getattr(support, "lower_bound", -math.inf), getattr(support, "upper_bound", math.inf)
    return torch.as_tensor(low).to(like).expand_as(like), torch.as_tensor(high).to(like).expand_as(like)


def _cuts_of_component(component: Distribution, support: Any) -> Tensor:  # (*batch, components, 5)
    """One width and six from each middle, both inside the support: six is where a component's own tail would be cut, so
    that no piece between two narrow components holds more than their tails."""
    middle, width = _middle(component)
    low, high = _ends(support, middle)
    offsets = [torch.minimum(width * n, (middle - low) * part) for n, part in ((6, 2 / 3), (1, 1 / 3))]
    others = [torch.minimum(width * n, (high - middle) * part) for n, part in ((1, 1 / 3), (6, 2 / 3))]
    return torch.stack([*(middle - each for each in offsets), middle, *(middle + each for each in others)], dim=-1)


def _strictly(cuts: Tensor) -> Tensor:
    """`cuts` in increasing order; one that equals its neighbour moves by a float."""
    ordered = cuts.sort(dim=-1).values
    columns = list(ordered.detach().unbind(-1))
    for number in range(1, len(columns)):
        above = torch.nextafter(columns[number - 1], torch.full_like(columns[number], math.inf))
        columns[number] = torch.maximum(columns[number], above)
    return ordered + (torch.stack(columns, dim=-1) - ordered.detach())


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
