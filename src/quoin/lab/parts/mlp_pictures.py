"""Small networks of the plane in pictures: creases and regions, what is learned step by step, the two sides of it."""

from __future__ import annotations

import copy
import functools
from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from quoin.expressivity import Regions
from quoin.lab.parts.picture import Axes
from quoin.layers import Affine, collapse
from quoin.losses import logistic_loss
from quoin.models import MLP

__all__ = [
    "ACTIVATIONS",
    "UPDATES",
    "creased_net",
    "draw_creases",
    "draw_regions",
    "draw_sides",
    "grid_of",
    "layers_in_one",
    "learned",
]

ACTIVATIONS = {"ReLU": nn.ReLU, "tanh": nn.Tanh, "identity": nn.Identity}
UPDATES = 20  # a step of the pages
_GRID = 70


def creased_net(creases: Sequence[Sequence[float]], layers: int) -> nn.Sequential:
    """A ReLU network of the plane with one output whose first units crease along given lines, as wide in every layer.

    Args:
        creases: The point of each line that is nearest to 0.
        layers: How many hidden layers; the later ones have fixed random weights.
    """
    generator = torch.Generator().manual_seed(3)
    feet = torch.tensor([list(foot) for foot in creases], dtype=torch.float64)
    lengths = feet.norm(dim=1, keepdim=True).clamp_min(1e-3)
    width, modules = len(feet), [nn.Linear(2, len(feet), dtype=torch.float64)]
    weights, biases = [feet / lengths], [-lengths[:, 0]]
    for _ in range(layers - 1):
        modules.append(nn.Linear(width, width, dtype=torch.float64))
        weights.append(torch.randn(8, 8, generator=generator, dtype=torch.float64)[:width, :width])
        biases.append(0.4 * torch.randn(8, generator=generator, dtype=torch.float64)[:width])
    modules.append(nn.Linear(width, 1, dtype=torch.float64))
    weights.append(torch.randn(1, 8, generator=generator, dtype=torch.float64)[:, :width])
    biases.append(torch.zeros(1, dtype=torch.float64))
    with torch.no_grad():
        for module, weight, bias in zip(modules, weights, biases):
            module.weight.copy_(weight)
            module.bias.copy_(bias)
    return nn.Sequential(*(part for module in modules[:-1] for part in (module, nn.ReLU())), modules[-1])


def draw_regions(axes: Axes, regions: Regions) -> None:
    """Each region in a tint of the height at its middle."""
    polygons = regions.polygons
    middles = torch.tensor(np.stack([polygon.mean(axis=0) for polygon in polygons]))
    heights = (regions.maps.weight[:, 0] * middles).sum(-1) + regions.maps.bias[:, 0]
    most = float(heights.abs().max()) or 1.0
    fills = [
        f"{'model' if height >= 0 else 'change'} {6 + 60 * abs(height) / most:.0f}%" for height in heights.tolist()
    ]
    axes.polygons(polygons, fills, edge="none")


def draw_creases(
    axes: Axes, regions: Regions, widths: Sequence[int], roles: Sequence[str], *, width: float = 2.0
) -> None:
    """The edges between regions, in the role of the layer whose unit changes there."""
    ends, sides = regions.mesh.shared_edges()
    patterns, points = regions.patterns.numpy(), regions.mesh.points
    unit = (patterns[sides[:, 0]] != patterns[sides[:, 1]]).argmax(axis=1)
    layer = np.searchsorted(np.cumsum(widths), unit, side="right")
    for number, role in reversed(list(enumerate(roles))):
        chosen = points[ends[layer == number]]  # (k, 2, 2)
        path = np.concatenate([chosen, np.full((len(chosen), 1, 2), np.nan)], axis=1).reshape(-1, 2)
        axes.line(path[:, 0], path[:, 1], role, width=width, label=f"creases of layer {number + 1}")


@functools.lru_cache(maxsize=64)
def learned(
    points: tuple[tuple[float, ...], ...], activation: str, steps: int, sizes: tuple[int, ...] = (2, 8, 8, 1)
) -> tuple[MLP, torch.optim.Adam, tuple[float, ...]]:
    """An MLP after `steps` times UPDATES updates of Adam on the logistic loss of the points, and its losses so far."""
    if steps == 0:
        model = MLP(sizes, activation=ACTIVATIONS[activation], generator=torch.Generator().manual_seed(0))
        return model, torch.optim.Adam(model.parameters(), lr=0.01), ()
    before, its_optimizer, losses = learned(points, activation, steps - 1, sizes)
    model = copy.deepcopy(before)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    optimizer.load_state_dict(copy.deepcopy(its_optimizer.state_dict()))
    x = torch.tensor([point[:2] for point in points])
    signs = torch.tensor([1.0 if point[2] else -1.0 for point in points])
    loss = 0.0
    for _ in range(UPDATES):
        mean_loss = logistic_loss(signs * model(x)[:, 0]).mean()
        for parameter, gradient in zip(model.parameters(), torch.autograd.grad(mean_loss, tuple(model.parameters()))):
            parameter.grad = gradient
        optimizer.step()
        loss = float(mean_loss.detach())
    return model, optimizer, (*losses, loss)


def layers_in_one(model: MLP) -> Affine:
    """What its affine layers would be in a row without activations: one affine map."""
    layers = [module for module in model.modules() if isinstance(module, nn.Linear)]
    return collapse([layer.weight.detach() for layer in layers], [layer.bias.detach() for layer in layers])


def grid_of(axes: Axes) -> Float[Tensor, "rows columns 2"]:
    """Points all over the axes, (rows, columns, 2), the top row first."""
    across, down = torch.linspace(*axes.x, _GRID), torch.linspace(axes.y[1], axes.y[0], _GRID)
    return torch.stack(torch.meshgrid(across, down, indexing="xy"), dim=-1)


@torch.no_grad()
def draw_sides(axes: Axes, model: nn.Module) -> None:
    """Where the network says circle, in blue, and where triangle, in vermilion: tints, deeper where it is surer."""
    score = torch.sigmoid(model(grid_of(axes).reshape(-1, 2))[:, 0]).reshape(_GRID, _GRID, 1).numpy()
    sure = 0.25 + 0.5 * np.abs(2 * score - 1)
    color = np.where(score < 0.5, np.array([0.72, 0.85, 0.94]), np.array([0.98, 0.84, 0.74]))
    axes.image(1 - sure * (1 - color))
