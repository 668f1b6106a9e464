"""Pictures of latent variables: ellipses of a mixture, a bound and its gap, clouds of gradients, a latent plane."""

import math
from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from quoin.lab.parts.picture import Axes, Picture
from quoin.lab.parts.ticks import digits
from quoin.prob import GaussianMixtureDistribution

__all__ = ["draw_bound", "draw_clouds", "draw_ellipses", "draw_plane", "draw_stairs", "mixed_role"]

_SHAPES = ("circle", "square", "triangle", "diamond", "cross")


def mixed_role(responsibilities: Sequence[float]) -> str:
    """The colour of the component that has most of a point, paler the less it has."""
    best = max(range(len(responsibilities)), key=responsibilities.__getitem__)
    return f"series-{best + 1} {round(100 * responsibilities[best])}%"


def draw_ellipses(axes: Axes, mixture: GaussianMixtureDistribution) -> None:
    """Each component's lines of one and two standard deviations."""
    angles = torch.linspace(0, 2 * math.pi, 49, dtype=torch.float64)
    circle = torch.stack([angles.cos(), angles.sin()])
    for index, (mean, covariance) in enumerate(zip(mixture.components.means, mixture.components.covariance_matrices)):
        values, vectors = torch.linalg.eigh(covariance)
        root = vectors * values.clamp_min(0).sqrt()
        for size, width in ((1, 2.4), (2, 1.2)):
            line = mean.unsqueeze(-1) + size * root @ circle
            axes.line(line[0], line[1], f"series-{index + 1}", width=width, label=f"component {index + 1}")


def draw_stairs(picture: Picture, values: Sequence[float], most: int, box: tuple[float, float, float, float]) -> None:
    """A log-likelihood by steps."""
    low, high = min(values) - 0.1, max(max(values), min(values) + 1) + 0.15
    axes = picture.axes((0, most), (low, high), box=box, x_label="steps of EM", title="nats a point")
    x = [each for step in range(len(values)) for each in (step, step + 1)]
    axes.line(x, [value for value in values for _ in (0, 1)], "model")


def draw_bound(
    picture: Picture, bound: float, evidence: float, printed: float | None, box: tuple[float, float, float, float]
) -> None:
    """The bound, and the divergence that is missing to ln p(x), as two bars in a row; as printed below."""
    left = -7.0
    axes = picture.axes((left, 3), (0, 2), box=box, x_label="nats", y_ticks=False)
    parts = [(left, bound, 1.2, "model 70%", f"bound {digits(bound)}")]
    parts += [(bound, evidence, 1.2, "change 60%", f"KL {digits(evidence - bound)}")]
    if printed is not None:
        parts += [(left, printed, 0.2, "printed 40%", f"as printed {digits(printed)}")]
    for low, high, y, fill, label in parts:
        low, high = max(low, left), max(high, left)
        axes.polygon([(low, y), (high, y), (high, y + 0.6), (low, y + 0.6)], fill, edge=fill.split()[0], label=label)
    axes.text(left + 0.1, 1.42, f"bound {digits(bound)}", "ink")
    axes.text(max(evidence, bound) + 0.1, 1.42, f"+ KL {digits(evidence - bound)}", "change")
    if printed is not None:
        axes.text(left + 0.1, 0.42, f"as printed {digits(printed)}", "ink")
    axes.line([evidence, evidence], [0, 2], "ink", width=2, label="ln p(x)")
    axes.text(evidence, 2, "ln p(x)", anchor="middle", dy=-6)


def draw_clouds(
    picture: Picture, clouds: Mapping[str, Float[Tensor, "n"]], exact: float, printed: Sequence[str]
) -> None:
    """For each name its estimates as dots along a line, their mean as a mark, and the exact value through all."""
    spread = max(float((values - exact).abs().quantile(0.99)) for values in clouds.values())
    span = (exact - 1.1 * spread, exact + 1.1 * spread)
    axes = picture.axes(span, (0, len(clouds)), box=(16, 14, 610, 350), x_label="gradient in q's mean", y_ticks=False)
    axes.line([exact, exact], [0, len(clouds)], "ink", width=1.5, dashed=True, label="exact")
    jitter = 0.18 * torch.sin(torch.arange(200) * 2.4)
    for row, (name, values) in enumerate(clouds.items()):
        y = len(clouds) - 0.62 - row
        role = "printed" if name in printed else "model"
        axes.points(values, y + jitter[: len(values)], f"{role} 55%", size=2)
        axes.points([float(values.mean())], [y], "ink", size=5, shape="diamond")
        axes.text(
            span[0],
            y + 0.4,
            f"{name}{', as printed' if name in printed else ''}: deviation {digits(float(values.std()))}",
            size=12,
        )


def draw_plane(
    picture: Picture,
    places: Float[Tensor, "n 2"],
    classes: Int[Tensor, "n"],
    box: tuple[float, float, float, float],
    reach: float = 4.0,
) -> Axes:
    """Digits as small numerals at their places in a latent plane."""
    axes = picture.axes((-reach, reach), (-reach, reach), box=box, x_label="z₁", y_label="z₂", equal=True)
    for (x, y), digit in zip(places.tolist(), classes.tolist()):
        if max(abs(x), abs(y)) < reach:
            axes.text(x, y, str(digit), f"series-{digit % 7 + 1}", anchor="middle", size=10, dy=4)
    return axes
