"""Under- and overfitting: polynomials of three degrees, errors by degree, and errors by the number of examples."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.data import keyed_generator
from quoin.losses import squared_loss
from quoin.metrics import held_out_loss, learning_curve
from quoin.models import fit_polynomial, polynomial_features
from quoin.notes.figures.figure import figure
from quoin.plot import Plot, curves
from quoin.plot.plots import COLORS, INK, house_style, new_figure

NOISE = 0.3
REPEATS = 50


def truth(x: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    return torch.sin(1.5 * x)


def sample(num_examples: int, generator: torch.Generator) -> tuple[Float[Tensor, "n"], Float[Tensor, "n"]]:
    x = 6 * torch.rand(num_examples, generator=generator, dtype=torch.float64) - 3
    return x, truth(x) + NOISE * torch.randn(num_examples, generator=generator, dtype=torch.float64)


def fit(x: Float[Tensor, "n"], y: Float[Tensor, "n"], degree: int) -> Callable[[Tensor], Tensor]:
    weights = fit_polynomial(x, y, degree)
    return lambda x: polynomial_features(x, degree) @ weights


@figure(
    "Z3.27",
    "Polynomials fitted to 15 noisy points of a sine: degree 1 is too stiff, 5 follows the curve, 13 follows the "
    "noise.",
    {"degrees": (0, 30), "num_points": (2, 500), "noise": (0, 2)},
)
def fits_by_degree(degrees: tuple[int, int, int] = (1, 5, 13), num_points: int = 15, noise: float = NOISE) -> Plot:
    x = torch.linspace(-2.8, 2.8, num_points, dtype=torch.float64)
    y = truth(x) + noise * torch.randn(num_points, generator=keyed_generator("figure Z3.27", 0), dtype=torch.float64)
    names = (" underfits", " fits", " overfits") if degrees == (1, 5, 13) else ("", "", "")
    line = torch.linspace(-3, 3, 601, dtype=torch.float64)
    with house_style():
        sheet = new_figure(height=3.0)
        panels = sheet.subplots(1, 3, sharey=True)
        for axes, degree, name in zip(panels, degrees, names):
            error = held_out_loss(fit(x, y, degree), squared_loss, x, y)
            axes.set_title(f"degree {degree}{name}\ntraining error {error:.1g}", fontsize=10)
            axes.plot(line, truth(line), color=INK, linewidth=1, linestyle=(0, (4, 3)), label="truth")
            axes.plot(line, fit(x, y, degree)(line), color=COLORS[1], label="fit")
            axes.scatter(x, y, s=22, color=COLORS[0], zorder=3, label="training data")
            axes.set_ylim(-2.2, 2.2)
            axes.set_xlabel("x")
            axes.grid(True)
        sheet.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        return Plot(sheet, "polynomial fits of three degrees")


@figure(
    "Z3.25",
    "The median errors of 50 fits to 15 points, by degree: training error only falls, the error on new data falls "
    "and rises.",
    {"num_points": (2, 500), "num_repeats": (1, 1000)},
)
def errors_by_degree(num_points: int = 15, num_repeats: int = REPEATS) -> Plot:
    generator = keyed_generator("figure Z3.25", 0)
    degrees, test = list(range(12)), sample(2000, generator)
    errors = torch.empty(2, num_repeats, len(degrees), dtype=torch.float64)
    for repeat in range(num_repeats):
        train = sample(num_points, generator)
        for column, degree in enumerate(degrees):
            model = fit(*train, degree)
            errors[:, repeat, column] = torch.tensor(
                [held_out_loss(model, squared_loss, *split) for split in (train, test)]
            )
    training, unseen = errors.median(dim=1).values
    series = {"training error": (degrees, training), "error on new data": (degrees, unseen)}
    levels = {"half the noise variance": NOISE**2 / 2}
    return curves(
        series,
        title="Errors by degree",
        x_label="degree",
        y_label="mean of squares / 2",
        log_y=True,
        reference_lines=levels,
    )


@figure(
    "Z3.29",
    "The median errors of 50 fits of degree 7, by the number of examples: both go to what the noise leaves, from "
    "two sides.",
    {"degree": (0, 9), "num_repeats": (1, 1000)},
)
def errors_by_size(degree: int = 7, num_repeats: int = REPEATS) -> Plot:
    generator = keyed_generator("figure Z3.29", 0)
    sizes, test = (10, 14, 20, 30, 50, 80, 150, 300, 600), sample(2000, generator)
    found = [
        learning_curve(lambda x, y: fit(x, y, degree), squared_loss, sample(600, generator), test, sizes)
        for _ in range(num_repeats)
    ]
    series = {
        "training error": (sizes, torch.stack([each.training_errors for each in found]).median(dim=0).values),
        "error on new data": (sizes, torch.stack([each.test_errors for each in found]).median(dim=0).values),
    }
    levels = {"half the noise variance": NOISE**2 / 2}
    title = "Errors by the number of examples"
    return curves(
        series,
        title=title,
        x_label="training examples",
        y_label="mean of squares / 2",
        log_x=True,
        log_y=True,
        reference_lines=levels,
    )
