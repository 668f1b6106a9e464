"""The map of momentum: by rate times curvature and momentum, the factor by which errors shrink each step."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from quoin.lab.parts.claim_forms import form_of
from quoin.lab.parts.picture import Axes, Picture
from quoin.notes.claims.momentum import momentum_is_stable
from quoin.optim import Momentum, momentum_convergence_rate

__all__ = ["draw_momentum_map", "momentum_is_stable", "momentum_map", "radius_of"]

MOST = 4.0  # rate times curvature


def step_matrix(form: Callable[..., tuple[Tensor, Tensor]], product: float, m: float) -> Float[Tensor, "2 2"]:
    """What a step of momentum on θ²/2 does to (θ, v), from what it does to (1, 0) and (0, 1)."""
    unit = torch.eye(2, dtype=torch.float64)
    return torch.stack(form(Momentum(product, m), unit[0], unit[0], unit[1]))


def radius_of(form: Callable[..., tuple[Tensor, Tensor]], product: float, m: float) -> float:
    """The factor by which errors shrink each step, in the long run."""
    return float(torch.linalg.eigvals(step_matrix(form, product, m)).abs().max())


@functools.lru_cache(maxsize=2)
def momentum_map(printed: bool) -> np.ndarray:
    """That factor over momentum from 1, top, to 0 and rate times curvature from 0 to 4."""
    count = 48 if printed else 160
    products, ms = ((torch.arange(count, dtype=torch.float64) + 0.5) / count for _ in range(2))
    if not printed:
        one = torch.ones((), dtype=torch.float64)
        return momentum_convergence_rate(4 * products[None, :], ms.flip(0)[:, None], one).numpy()
    form = form_of(momentum_is_stable, True)
    matrices = [step_matrix(form, 4 * float(product), float(m)) for m in ms.flip(0) for product in products]
    return torch.linalg.eigvals(torch.stack(matrices)).abs().amax(-1).reshape(count, count).numpy()


def draw_momentum_map(picture: Picture, printed: bool) -> Axes:
    """The map, bluer where it is faster, vermilion where errors grow, with the edge between them."""
    axes = picture.axes((0, MOST), (0, 1), box=(50, 30, 330, 320), x_label="rate × curvature", y_label="momentum m")
    rates = momentum_map(printed)
    speed = np.clip(1 - rates, 0, 1)[..., None] ** 0.5
    blue, red = np.array([0.0, 0.4, 0.66]), np.array([0.98, 0.89, 0.83])
    axes.image(np.where(rates[..., None] < 1, 1 - speed * (1 - blue), red))
    edge = (rates < 1).sum(axis=1) * MOST / rates.shape[1]
    axes.line(edge, np.linspace(1, 0, 2 * len(edge) + 1)[1::2], "printed" if printed else "model", label="stable edge")
    return axes
