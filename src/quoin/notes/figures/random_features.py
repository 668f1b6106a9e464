"""Random features plotted: how the error falls with their number and grows with the length of vectors, and the rank
that they leave."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.data import keyed_generator
from quoin.layers import (
    RandomMatrixSampler,
    gaussian_random_matrix,
    hyperbolic_features_definition,
    hyperbolic_variance,
    orthogonal_random_matrix,
    orthogonal_variance_reduction,
    performer_features_definition,
    performer_variance,
)
from quoin.notes.figures.figure import figure
from quoin.plot import Plot
from quoin.plot.plots import COLORS, INK, house_style, new_figure

WIDTH = 16
COUNTS = [32 * 2**power for power in range(7)]  # of features
BANK = 2**15  # directions sampled, to be used in groups


def pairs(
    length: float, num_pairs: int, generator: torch.Generator
) -> tuple[Float[Tensor, "n d"], Float[Tensor, "n d"]]:
    """Queries and keys of this length in random directions, as they enter e^⟨x,y⟩."""
    vectors = torch.randn(2, num_pairs, WIDTH, generator=generator, dtype=torch.float64)
    x, y = length * vectors / vectors.norm(dim=-1, keepdim=True)
    return x, y


def measured(
    features: Callable[[Tensor, Tensor], Tensor],
    distribution: RandomMatrixSampler,
    x: Float[Tensor, "n d"],
    y: Float[Tensor, "n d"],
    generator: torch.Generator,
) -> dict[int, float]:
    """For each number of directions the root mean square of ψ(x)·ψ(y) / e^⟨x,y⟩ - 1, over pairs and groups of so many
    of one bank."""
    directions = distribution(BANK, WIDTH, generator=generator)
    products = BANK * (features(x, directions) * features(y, directions)).unflatten(-1, (-1, BANK)).sum(dim=-2)
    off = products / (x * y).sum(dim=-1, keepdim=True).exp() - 1
    return {
        count: float(off.unflatten(-1, (-1, count)).mean(dim=-1).square().mean().sqrt())
        for count in (COUNTS[0] // 2, *COUNTS)
    }


@figure(
    ("D4.1-12", "D4.1-10", "D4.1-8"),
    "The relative error of e^⟨x,y⟩ by m random features of width 16, for x ⟂ y of three lengths. Dots are samples, "
    "lines the standard "
    "deviation in closed form. All fall as 1/√m; the longer the vectors, the more features they need and the less "
    "better directions save.",
    {"lengths": (0.05, 2), "num_pairs": (2, 200)},
)
def error_by_number_of_features(lengths: tuple[float, float, float] = (0.35, 0.7, 1.05), num_pairs: int = 40) -> Plot:
    kinds = {
        "independent": (performer_features_definition, performer_variance, gaussian_random_matrix, 1),
        "orthogonal": (performer_features_definition, performer_variance, orthogonal_random_matrix, 1),
        "hyperbolic": (hyperbolic_features_definition, hyperbolic_variance, gaussian_random_matrix, 2),
        "hyperbolic, orthogonal": (hyperbolic_features_definition, hyperbolic_variance, orthogonal_random_matrix, 2),
    }
    generator = keyed_generator("D4.1-12")
    with house_style():
        sheet = new_figure(height=3.9)
        grid = sheet.subplots(1, 3, sharex=True, sharey=True)
        for axes, length in zip(grid, lengths):
            x, y = pairs(length, num_pairs, generator)
            y = y - (x * y).sum(dim=-1, keepdim=True) / length**2 * x  # at right angles, so that all pairs are alike
            y = length * y / y.norm(dim=-1, keepdim=True)
            square = (2 * (x * y).sum(dim=-1)).exp()
            for color, (name, (features, variance, distribution, for_each)) in zip(COLORS, kinds.items()):
                found, expected = measured(features, distribution, x, y, generator), []
                for count in COUNTS:
                    error_variance = variance(x, y, count)
                    if distribution is orthogonal_random_matrix:
                        error_variance = error_variance - orthogonal_variance_reduction(x, y, count // for_each)
                    expected.append(float((error_variance / square).mean().sqrt()))
                axes.plot(COUNTS, expected, color=color, linewidth=1.3, label=name)
                axes.plot(COUNTS, [found[count // for_each] for count in COUNTS], "o", color=color, markersize=3.5)
            axes.set(xscale="log", yscale="log", xlabel="features m")
            axes.set_xticks([32, 256, 2048], ["32", "256", "2048"])
            axes.minorticks_off()
            axes.grid(True)
            axes.set_title(f"‖x‖ = ‖y‖ = {length:g}", fontsize=10)
        grid[0].set_ylabel("relative error")
        sheet.legend(*grid[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=9)
        return Plot(sheet, "error of random features")


@figure(
    "D4.1-16",
    "Singular values of exp(QKᵀ) for 60 queries and keys, and of ΦΦᵀ by 8 and by 32 random features: these end "
    "after as many as there are "
    "features, the exact matrix has all 60. The longer the vectors, the slower its own fall, and the more is lost.",
    {"num_queries": (2, 500), "counts": (1, 256), "lengths": (0.1, 5)},
)
def rank_of_features(
    num_queries: int = 60, counts: tuple[int, int] = (8, 32), lengths: tuple[float, float] = (1.0, 3.0)
) -> Plot:
    n, generator = num_queries, keyed_generator("D4.1-16")
    with house_style():
        sheet = new_figure(height=3.7)
        grid = sheet.subplots(1, 2, sharey=True)
        for axes, length in zip(grid, lengths):
            query, key = pairs(length, n, generator)
            series = {"exp(QKᵀ)": (query @ key.mT).exp()}
            for count in counts:
                directions = orthogonal_random_matrix(count, WIDTH, generator=generator)
                left, right = (performer_features_definition(each, directions) for each in (query, key))
                series[f"{count} features"] = left @ right.mT
            for color, (name, matrix) in zip((INK, *COLORS), series.items()):
                values = torch.linalg.svdvals(matrix)
                kept = values > 1e-11 * values[0]  # below it stands rounding
                axes.plot(
                    torch.arange(1, n + 1)[kept],
                    values[kept] / values[0],
                    ".-",
                    color=color,
                    markersize=4,
                    linewidth=1,
                    label=name,
                )
            axes.set(yscale="log", xlabel="number", ylim=(1e-6, 3))
            axes.grid(True)
            axes.set_title(f"‖q‖ = ‖k‖ = {length:g}", fontsize=10)
        grid[0].set_ylabel("singular value, relative to the largest")
        sheet.legend(*grid[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        return Plot(sheet, "singular values of exact and factored scores")
