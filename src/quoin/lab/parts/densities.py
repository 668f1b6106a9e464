"""Densities beside tables, for the page on information: what holds for one and not for the other."""

import functools
import math
from typing import NamedTuple

import torch
from torch.distributions import Categorical, MixtureSameFamily, Normal

from quoin.info import convert_base, differential_entropy
from quoin.lab.parts.claim_forms import form_of
from quoin.notes.claims.information_densities import a_hole_must_have_probability, joint_entropy_is_bounded
from quoin.prob import Density, density_kl_divergence_definition

__all__ = ["PointHole", "TableDensity", "as_density", "with_a_point_hole"]

_BUMPS = MixtureSameFamily(
    Categorical(torch.tensor([0.5, 0.5], dtype=torch.float64)),
    Normal(torch.tensor([-2.5, 2.5], dtype=torch.float64), torch.tensor([0.6, 0.6], dtype=torch.float64)),
)


class TableDensity(NamedTuple):
    """Entropies in bits of a table spread over the unit square, and by how much a rule about them is broken."""

    h_x: float
    h_y: float
    h_xy: float
    breach: float
    breach_printed: float


@functools.lru_cache(maxsize=64)
def as_density(table: tuple[tuple[float, ...], ...]) -> TableDensity:
    """A joint table as a density: each cell's probability, evenly over its part of the unit square."""
    joint = torch.tensor(table, dtype=torch.float64)
    count = len(joint)
    edges = [place / count for place in range(count + 1)]

    def place(x: torch.Tensor) -> torch.Tensor:
        return (x * count).long().clamp(0, count - 1)

    sides = [joint.sum(dim=1), joint.sum(dim=0)]
    h_x, h_y = (
        float(differential_entropy(Density(lambda x, side=side: count * side[place(x)], edges), base=2))
        for side in sides
    )
    both = Density(lambda x, y: count**2 * joint[place(x), place(y)], edges, edges)
    h_xy = float(differential_entropy(both, base=2))
    breaches = (form_of(joint_entropy_is_bounded, each)(h_x, h_y, h_xy, table=False) for each in (False, True))
    return TableDensity(h_x, h_y, h_xy, *(max(0.0, each) for each in breaches))


class PointHole(NamedTuple):
    """KL(P‖Q) in bits, and whether it is infinite by the rule, right and as printed."""

    kl: float
    infinite: bool
    infinite_printed: bool


@functools.lru_cache(maxsize=64)
def with_a_point_hole(mean: float, std: float, hole: float) -> PointHole:
    """Two bumps as a density P, and Q = N(mean, std²) whose density is 0 at one point."""
    spots = {-6.0, -4.0, -2.5, -1.0, 0.0, 1.0, 2.5, 4.0, 6.0, hole}
    edges = sorted({-math.inf, math.inf} | spots)
    q = Normal(torch.tensor(mean, dtype=torch.float64), torch.tensor(std, dtype=torch.float64))

    def punctured(x: torch.Tensor) -> torch.Tensor:
        return torch.where(x == hole, 0, q.log_prob(x).exp())

    wide = sorted(set(edges) | {mean + each * std for each in (-3, -1, 1, 3)})
    p, cut = Density(lambda x: _BUMPS.log_prob(x).exp(), wide), Density(punctured, wide)
    suspects = torch.tensor([hole], dtype=torch.float64)
    rules = (form_of(a_hole_must_have_probability, each)(p, cut, suspects) for each in (False, True))
    return PointHole(float(convert_base(density_kl_divergence_definition(p, cut), 2)), *rules)
