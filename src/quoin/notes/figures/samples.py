"""What each measure of samples sees: models of a known distribution in the plane, each with one fault."""

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.data import keyed_generator
from quoin.metrics import sample_quality
from quoin.models import GaussianKDE
from quoin.notes.figures.figure import figure
from quoin.plot import Plot
from quoin.plot.plots import COLORS, FAINT, house_style, new_figure

MODES = 6


@figure(
    "D5.2-9",
    "Samples (blue) of six models of a ring of six normal distributions, over real examples (grey). "
    "The distribution itself; one too wide, as density sees first; one without two of the modes, which coverage sees; "
    "one with too much of a mode, which only the distances between whole distributions "
    "see; a copy of the training examples, which only the nearest-neighbour distance ratio gives away; and noise.",
    {"num_samples": (20, 2000), "std": (0.05, 2)},
)
def what_measures_see(num_samples: int = 400, std: float = 0.45) -> Plot:
    generator = keyed_generator("what measures see", 0)
    train, real = (ring(num_samples, generator) for _ in range(2))
    models = {
        "the distribution itself": ring(num_samples, generator),
        "too wide": ring(num_samples, generator, std=std),
        "two modes lost": ring(num_samples, generator, weights=[1.0] * (MODES - 2) + [0.0] * 2),
        "one mode too often": ring(num_samples, generator, weights=[2.5] + [1.0] * (MODES - 1)),
        "training examples": GaussianKDE(train, 0.005).sample(num_samples, generator=generator),
        "noise": 6 * torch.rand(num_samples, 2, generator=generator) - 3,
    }
    with house_style():
        sheet = new_figure(height=6.6)
        grid = sheet.subplots(2, 3)
        for axes, (name, samples) in zip(grid.flat, models.items()):
            axes.scatter(*real.mT, s=4, color=FAINT, linewidths=0)
            axes.scatter(*samples.mT, s=4, color=COLORS[0], linewidths=0)
            found = sample_quality(samples, real, lambda points: points, train=train)
            measures = [
                f"MMD² {found.mmd:.4f}   Fréchet {found.frechet:.3f}",
                f"density {found.density:.2f}   coverage {found.coverage:.2f}",
            ]
            axes.set_title(name, fontsize=10)
            axes.set_xlabel("\n".join([*measures, f"nn distance ratio {found.nn_distance_ratio:.2f}"]), fontsize=8)
            axes.set(xlim=(-3.4, 3.4), ylim=(-3.4, 3.4), xticks=[], yticks=[], aspect="equal")
        return Plot(sheet, "six models of a ring of six normal distributions, and the measures of their samples")


def ring(
    count: int, generator: torch.Generator, *, std: float = 0.2, weights: list[float] | None = None
) -> Float[Tensor, "n 2"]:
    """Samples from normal distributions around six points on a circle, equally probable or by these weights."""
    which = torch.multinomial(torch.tensor(weights or [1.0] * MODES), count, replacement=True, generator=generator)
    angles = which * (2 * torch.pi / MODES)
    centers = 2 * torch.stack([angles.cos(), angles.sin()], dim=-1)
    return centers + std * torch.randn(count, 2, generator=generator)
