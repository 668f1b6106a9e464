"""A mixture that EM has found, and how EM came there; and when two bells make one hill."""

import torch

from quoin.data import keyed_generator
from quoin.models import em, em_step, start_mixture
from quoin.notes.figures.figure import figure
from quoin.plot import Drawing
from quoin.plot.drawing import COLOURS, FAINT, INK, house_style, new_figure
from quoin.plot.ellipses import put_ellipses
from quoin.prob import FullNormals, NormalMixture, SphericalNormals, peaks_on_line


@figure(
    ("D6-9", "D6-10"),
    "A mixture of three normal laws found by EM: where it begins, the responsibilities and ellipses of one and two deviations after one "
    "step and at the end, and the likelihood, which never falls. Points are mixed from the colours of their components.",
)
def fitted_mixture() -> Drawing:
    generator = keyed_generator("fitted mixture", 0)
    true = NormalMixture(
        torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64),
        FullNormals(
            torch.tensor([[0.0, 0.0], [3.0, 1.0], [0.5, 3.2]], dtype=torch.float64),
            torch.tensor([[[1.2, 0.7], [0.7, 0.8]], [[0.4, -0.3], [-0.3, 0.9]], [[1.5, 0.0], [0.0, 0.15]]], dtype=torch.float64),
        ),
    )
    x = true.sample((600,), generator=generator)
    begin = start_mixture(x, 3, generator=keyed_generator("start of the mixture", 5))
    middle, fitted = em_step(begin, x).output, em(begin, x)
    with house_style():
        sheet = new_figure(height=6.6)
        places = sheet.subplots(2, 2).flatten()
        for axes, law, title in zip(places, (begin, middle, fitted.output), ("the start", "after one step", "at the end")):
            _responsibilities(axes, law, x, title)
        steps = range(len(fitted.log_likelihoods))
        places[3].plot(steps, [each / len(x) for each in fitted.log_likelihoods], color=COLOURS[0])
        level = float(true.log_prob(x).mean())
        places[3].axhline(level, color=INK, linewidth=1, linestyle=(0, (4, 3)), label="the law that drew the points")
        places[3].set_title("mean of ln p(x)", fontsize=10)
        places[3].set_xlabel("step")
        places[3].legend(fontsize=8)
        return Drawing(sheet, "a mixture of three normal laws found by EM")


@figure(
    "D6-9c",
    "Two normal laws of equal weight and deviation σ: one peak as long as the means are at most 2σ apart, two beyond. Dots are the peaks.",
)
def one_hill_or_two() -> Drawing:
    with house_style():
        sheet = new_figure(height=2.8)
        for axes, apart in zip(sheet.subplots(1, 3), (1.5, 2.0, 3.0)):
            means = torch.tensor([[-apart / 2], [apart / 2]], dtype=torch.float64)
            law = NormalMixture(torch.tensor([0.5, 0.5], dtype=torch.float64), SphericalNormals(means, torch.ones(2, dtype=torch.float64)))
            x = torch.linspace(-5, 5, 400, dtype=torch.float64).unsqueeze(-1)
            for shares in (0.5 * law.log_likelihoods(x).exp()).mT:
                axes.plot(x[:, 0], shares, color=FAINT, linewidth=1)
            axes.plot(x[:, 0], law.log_prob(x).exp(), color=COLOURS[0])
            peaks = peaks_on_line(law)
            axes.plot(peaks, law.log_prob(peaks.unsqueeze(-1)).exp(), "o", color=COLOURS[1], markersize=5)
            axes.set_title(f"{apart:g}σ apart", fontsize=10)
            axes.set_yticks([])
            axes.set_xlabel("x / σ")
        return Drawing(sheet, "two bells as one hill or two")


def _responsibilities(axes, law: NormalMixture, x: torch.Tensor, title: str) -> None:
    from matplotlib.colors import to_rgb

    palette = torch.tensor([to_rgb(colour) for colour in COLOURS[:3]], dtype=x.dtype)
    mixed = (law.responsibilities(x) @ palette).clamp(0, 1)
    axes.scatter(*x.mT, s=6, c=mixed.numpy(), alpha=0.6, linewidths=0)
    put_ellipses(axes, law.components.means, law.components.covariances)
    axes.set_aspect("equal")
    axes.set_title(title, fontsize=10)
