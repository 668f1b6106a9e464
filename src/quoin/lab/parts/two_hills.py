"""Two normal components of equal weight on the line: their sum, and where it has its peaks."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.lab.parts.picture import Picture
from quoin.prob import GaussianMixtureDistribution, SphericalNormals, modes_1d

__all__ = ["draw_hills", "two_hills"]

LINE = torch.linspace(-5, 5, 241, dtype=torch.float64)


def two_hills(apart: float, sigma: float) -> tuple[GaussianMixtureDistribution, Float[Tensor, " peaks"]]:
    """Half N(-apart/2, σ²), half N(apart/2, σ²), and where the density has its peaks."""
    means = torch.tensor([[-apart / 2], [apart / 2]], dtype=torch.float64)
    components = SphericalNormals(means, torch.full((2,), sigma**2, dtype=torch.float64))
    mixture = GaussianMixtureDistribution(torch.full((2,), 0.5, dtype=torch.float64), components)
    return mixture, modes_1d(mixture)


def draw_hills(picture: Picture, mixture: GaussianMixtureDistribution, peaks: Float[Tensor, " peaks"]) -> None:
    """The components, their sum with its peaks, and the handle `apart` on the mean at the right."""
    density = mixture.log_prob(LINE.unsqueeze(-1)).exp()
    parts = mixture.weights * mixture.components.log_prob(LINE[:, None, None]).exp()
    axes = picture.axes((-5, 5), (0, 1.12 * float(density.max())), box=(46, 14, 580, 340), x_label="x", y_ticks=False)
    for number, place in enumerate(("left", "right")):
        axes.line(LINE, parts[:, number], "hidden", width=1.6, label=f"the component at the {place}")
    axes.line(LINE, density, "model", width=2.8, label="their sum")
    heights = mixture.log_prob(peaks.unsqueeze(-1)).exp()
    axes.points(peaks, heights, "change", size=5, labels=["a peak"] * len(peaks))
    for mean in mixture.components.means[:, 0].tolist():
        axes.line([mean, mean], [0, 1], "faint", width=1, dashed=True)
    axes.handle("apart", float(mixture.components.means[1, 0]), 0.0, label="the second mean", along="x")
