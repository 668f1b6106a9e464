"""Random features of a circle of queries and keys, and the pictures of linear attention."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.data import keyed_generator
from quoin.lab.parts.claim_forms import form_of
from quoin.lab.parts.picture import Picture
from quoin.layers import (
    gaussian_random_matrix,
    hyperbolic_features_definition,
    hyperbolic_variance,
    orthogonal_random_matrix,
    orthogonal_variance_reduction,
    performer_features_definition,
    performer_variance,
)
from quoin.notes.claims.random_features import hyperbolic_features_factorise

__all__ = ["PROJECTIONS", "Estimates", "draw_brackets", "draw_maps", "draw_states", "estimates", "relative_error"]

DIM, AROUND, REPEATS = 16, 8, 20
PROJECTIONS = {"independent": gaussian_random_matrix, "orthogonal": orthogonal_random_matrix, "hyperbolic": None}


def relative_error(length: float, num_features: int, projection: str) -> float:
    """The standard deviation of ψ(x)·ψ(y) / e^⟨x,y⟩ in closed form, for x and y of this length at right angles."""
    x, y = length * torch.eye(DIM, dtype=torch.float64)[:2]
    if projection == "hyperbolic":
        return float(hyperbolic_variance(x, y, num_features).sqrt())
    variance = performer_variance(x, y, num_features)
    if projection == "orthogonal":
        variance = variance - orthogonal_variance_reduction(x, y, num_features)
    return float(variance.clamp_min(0).sqrt())


class Estimates(NamedTuple):
    """e^⟨x_i,x_j⟩ of eight vectors around a circle, and what random features make of it."""

    exact: Float[Tensor, "8 8"]
    found: Float[Tensor, "8 8"]  # by the first sample of directions
    measured: float  # root mean square of the relative error at right angles, over all samples
    opposite: float  # mean over all samples of the estimate over the exact value, of opposite vectors


def _features(projection: str, printed: bool) -> tuple[Callable[[Tensor, Tensor], Tensor], Callable[..., Tensor], int]:
    """Features, how their directions are sampled, and how many features there are for each direction."""
    if printed:
        form = form_of(hyperbolic_features_factorise, True)
        return lambda x, directions: torch.stack([form(each, directions) for each in x]), gaussian_random_matrix, 1
    if projection == "hyperbolic":
        return hyperbolic_features_definition, gaussian_random_matrix, 2
    sample = orthogonal_random_matrix if projection == "orthogonal" else gaussian_random_matrix
    return performer_features_definition, sample, 1


@functools.lru_cache(maxsize=256)
def estimates(num_features: int, length: float, projection: str, printed: bool) -> Estimates:
    """Estimates by so many features, with the same random numbers whatever the length."""
    angles = torch.arange(AROUND, dtype=torch.float64) * 2 * math.pi / AROUND
    x = torch.zeros(AROUND, DIM, dtype=torch.float64)
    x[:, 0], x[:, 1] = length * angles.cos(), length * angles.sin()
    exact = (x @ x.T).exp()
    features, sample, for_each = _features(projection, printed)
    generator, products = keyed_generator("circle"), []
    for _ in range(REPEATS):
        mapped = features(x, sample(num_features // for_each, DIM, generator=generator))
        products.append(mapped @ mapped.T)
    ratio = torch.stack(products) / exact
    apart = (torch.arange(AROUND)[:, None] - torch.arange(AROUND)) % AROUND
    right, opposite = (apart == 2) | (apart == 6), apart == 4
    measured = float((ratio[:, right] - 1).square().mean().sqrt())
    return Estimates(exact, products[0], measured, float(ratio[:, opposite].mean()))


def draw_maps(picture: Picture, found: Estimates, printed: bool) -> None:
    """Exact, estimated, and their difference."""
    most = float(found.exact.max())
    role = "printed" if printed else "model"
    panels = (("exact exp(q·k)", found.exact, "ink"), ("by features", found.found, role))
    for number, (title, table, color) in enumerate(panels):
        axes = picture.axes(box=(30 + 210 * number, 30, 170, 170), bare=True, title=title)
        axes.cells(table, role=color, most=most)
    axes = picture.axes(box=(450, 30, 170, 170), bare=True, title="difference")
    axes.cells(found.found - found.exact, role="model", most=most)


def draw_brackets(picture: Picture, n: int, features: int, costs: tuple[int, int]) -> None:
    """Both costs as squares whose areas are the multiplications, and what each writes down in between."""
    unit = 150 / math.sqrt(max(costs))
    middles = (f"{n:,} × {n:,} scores", f"{features:,} × 64 sums")
    for number, (cost, role, name, middle) in enumerate(zip(costs, ("ink", "model"), ("(QKᵀ)V", "Q(KᵀV)"), middles)):
        side, left = unit * math.sqrt(cost), 16 + 180 * number
        axes = picture.axes(box=(left, 250 - side, side, side), bare=True)
        axes.polygon([(0, 0), (1, 0), (1, 1), (0, 1)], f"{role} 35%", edge=role)
        picture.text(left, 274, name, role=role, size=16)
        picture.text(left, 296, f"{cost:,}", size=14)
        picture.text(left, 314, "multiplications", role="faint", size=13)
        picture.text(left, 336, middle, role="faint", size=13)


def draw_states(
    picture: Picture,
    state: Float[Tensor, "features columns"],
    key: Float[Tensor, "tokens dim"],
    value: Float[Tensor, "tokens dim"],
    most_tokens: int,
) -> None:
    """The state of linear attention, S beside z, and the keys and values that exact attention keeps."""
    size, most = 26, float(state.abs().max()) or 1.0
    rows, columns = state.shape
    box = (30, 60, size * columns, size * rows)
    picture.axes(box=box, bare=True, title="state: S and z").cells(state, role="hidden", most=most)
    picture.text(30, 60 + size * rows + 24, f"{rows} × {columns} numbers, for ever", role="faint", size=13)
    left, down = 290, 320 / most_tokens
    for number, (name, table) in enumerate((("keys", key), ("values", value))):
        place = (left + 180 * number, 60, 150, max(down * len(table), 1))
        axes = picture.axes(box=place, bare=True, title=name)
        if len(table):
            axes.cells(table, role="ink", most=2.5)
    picture.text(left, 404, f"{len(key)} × {2 * key.shape[1]} numbers, and growing", role="faint", size=13)
