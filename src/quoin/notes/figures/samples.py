"""What each measure of samples sees: models of a known law in the plane, each with one fault."""

import torch
from torch import Tensor

from quoin.data import keyed_generator
from quoin.metrics import sample_quality
from quoin.models import SmoothedSamples
from quoin.notes.figures.figure import figure
from quoin.plot import Drawing
from quoin.plot.drawing import COLOURS, FAINT, house_style, new_figure

COUNT = 400  # real examples, training examples and samples of each model
MODES = 6


@figure(
    "D5.2-9",
    "Samples (blue) of six models of a ring of six normal laws, over real examples (grey). The law itself; one too wide, as density sees "
    "first; one without two of the modes, which coverage sees; one with too much of a mode, which only the distances between whole laws "
    "see; a copy of the training examples, which only nearness to these gives away; and noise.",
)
def what_measures_see() -> Drawing:
    generator = keyed_generator("what measures see", 0)
    train, real = (ring(COUNT, generator) for _ in range(2))
    models = {
        "the law itself": ring(COUNT, generator),
        "too wide": ring(COUNT, generator, spread=0.45),
        "two modes lost": ring(COUNT, generator, shares=[1.0] * (MODES - 2) + [0.0] * 2),
        "one mode in three draws": ring(COUNT, generator, shares=[2.5] + [1.0] * (MODES - 1)),
        "training examples": SmoothedSamples(train, 0.005).sample(COUNT, generator=generator),
        "noise": 6 * torch.rand(COUNT, 2, generator=generator) - 3,
    }
    with house_style():
        sheet = new_figure(height=6.6)
        places = sheet.subplots(2, 3)
        for axes, (name, samples) in zip(places.flat, models.items()):
            axes.scatter(*real.mT, s=4, color=FAINT, linewidths=0)
            axes.scatter(*samples.mT, s=4, color=COLOURS[0], linewidths=0)
            found = sample_quality(samples, real, lambda points: points, train=train)
            told = [f"MMD² {found.mmd:.4f}   Fréchet {found.frechet:.3f}", f"density {found.density:.2f}   coverage {found.coverage:.2f}"]
            axes.set_title(name, fontsize=10)
            axes.set_xlabel("\n".join([*told, f"nearness {found.nearness:.2f}"]), fontsize=8)
            axes.set(xlim=(-3.4, 3.4), ylim=(-3.4, 3.4), xticks=[], yticks=[], aspect="equal")
        return Drawing(sheet, "six models of a ring of six normal laws, and the measures of their samples")


def ring(count: int, generator: torch.Generator, *, spread: float = 0.2, shares: list[float] | None = None) -> Tensor:  # -> (count, 2)
    """Draws from normal laws around six places on a circle, equally common or by these shares."""
    which = torch.multinomial(torch.tensor(shares or [1.0] * MODES), count, replacement=True, generator=generator)
    angles = which * (2 * torch.pi / MODES)
    centres = 2 * torch.stack([angles.cos(), angles.sin()], dim=-1)
    return centres + spread * torch.randn(count, 2, generator=generator)
