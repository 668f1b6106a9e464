"""Data sampled from known distributions, so that what a model finds can be compared with the truth."""

import math
from collections.abc import Sequence

import torch
from torch import Generator, Tensor

from quoin.data.dataset import Dataset, column_names
from quoin.data.seeds import keyed_generator
from quoin.data.sources import NUM_IMAGES
from quoin.data.waves import make_waves

__all__ = [
    "LINEAR_BIAS",
    "LINEAR_NOISE",
    "LINEAR_WEIGHTS",
    "POLYNOMIAL_COEFFICIENTS",
    "make_blobs",
    "make_circles",
    "make_dataset",
    "make_linear",
    "make_moons",
    "make_polynomial",
]

# The truths behind `--data linear` and `--data polynomial`.
LINEAR_WEIGHTS = (2.0, -3.4)
LINEAR_BIAS = 4.2
LINEAR_NOISE = 0.01
POLYNOMIAL_COEFFICIENTS = (5.0, 1.2, -3.4, 5.6)


def make_dataset(name: str, seed: int, num_rows: int | None = None) -> Dataset:
    """The generated source `name`, a function of the seed.

    Args:
        num_rows: Of glyphs and shapes, if not their default; the others have one size.
    """
    generator = keyed_generator(name, seed)
    match name:
        case "linear":
            return make_linear(1000, LINEAR_WEIGHTS, LINEAR_BIAS, noise=LINEAR_NOISE, generator=generator)
        case "polynomial":
            return make_polynomial(400, POLYNOMIAL_COEFFICIENTS, noise=0.1, generator=generator)
        case "moons":
            return make_moons(1000, noise=0.1, generator=generator)
        case "circles":
            return make_circles(1000, noise=0.1, generator=generator)
        case "blobs":
            return make_blobs(1000, [(0.0, 0.0), (4.0, 0.0), (2.0, 4.0)], noise=1.0, generator=generator)
        case "waves":
            return make_waves(2000, noise=0.2, generator=generator)
        case "glyphs":
            from quoin.data.glyphs import make_glyphs

            return make_glyphs(num_rows or NUM_IMAGES, generator=generator).dataset
        case "shapes":
            from quoin.data.shapes import make_shapes

            return make_shapes(num_rows or NUM_IMAGES, generator=generator).dataset
        case _:
            raise ValueError(f"no generated source {name!r}")


def make_linear(num_rows: int, weights: Sequence[float], bias: float, *, noise: float, generator: Generator) -> Dataset:
    """y = Xw + b + ε with standard normal X and ε ~ N(0, noise²): a straight line seen through additive Gaussian noise.

    Notes: Z3.11.
    """
    X = _normal(num_rows, len(weights), generator)
    y = X @ torch.tensor(weights, dtype=torch.float64) + bias + noise * _normal(num_rows, 1, generator)[:, 0]
    return Dataset("linear", X.float(), y.float(), column_names((len(weights),)), None, ("y",))


def make_polynomial(
    num_rows: int, coefficients: Sequence[float], *, num_monomials: int = 20, noise: float, generator: Generator
) -> Dataset:
    """y = Σ_i coefficients_i xⁱ / i! + ε with standard normal x; the features are xⁱ / i! for i below `num_monomials`.

    Dividing by i! keeps the high powers from dwarfing the low ones.

    Args:
        noise: Standard deviation of ε.
    """
    if len(coefficients) > num_monomials:
        raise ValueError(f"{len(coefficients)} coefficients need as many monomials, got {num_monomials}")
    x = _normal(num_rows, 1, generator)
    monomials = torch.cat([x**power / math.factorial(power) for power in range(num_monomials)], dim=1)
    truth = monomials[:, : len(coefficients)] @ torch.tensor(coefficients, dtype=torch.float64)
    y = truth + noise * _normal(num_rows, 1, generator)[:, 0]
    names = tuple(f"x^{power}/{power}!" for power in range(num_monomials))
    return Dataset("polynomial", monomials.float(), y.float(), names, None, ("y",))


def make_moons(num_rows: int, *, noise: float, generator: Generator) -> Dataset:
    """Two half circles, (cos t, sin t) and (1 - cos t, 1/2 - sin t), that reach into one another; plus N(0, noise²)."""
    upper = torch.linspace(0, math.pi, num_rows // 2, dtype=torch.float64)
    lower = torch.linspace(0, math.pi, num_rows - num_rows // 2, dtype=torch.float64)
    groups = [torch.stack([upper.cos(), upper.sin()], dim=1), torch.stack([1 - lower.cos(), 0.5 - lower.sin()], dim=1)]
    return _clouds("moons", groups, ("upper", "lower"), noise, generator)


def make_circles(num_rows: int, *, ratio: float = 0.5, noise: float, generator: Generator) -> Dataset:
    """A circle of radius 1 around one of radius `ratio`, which no straight line separates; plus N(0, noise²)."""
    groups = []
    for radius, size in ((1.0, num_rows // 2), (ratio, num_rows - num_rows // 2)):
        turn = 2 * math.pi * torch.arange(size, dtype=torch.float64) / size
        groups.append(radius * torch.stack([turn.cos(), turn.sin()], dim=1))
    return _clouds("circles", groups, ("outer", "inner"), noise, generator)


def make_blobs(num_rows: int, centers: Sequence[Sequence[float]], *, noise: float, generator: Generator) -> Dataset:
    """One round Gaussian cloud N(centre, noise² I) a class, the classes equally large to within one row."""
    sizes = [(num_rows + len(centers) - 1 - number) // len(centers) for number in range(len(centers))]
    groups = [torch.tensor(center, dtype=torch.float64).expand(size, -1) for center, size in zip(centers, sizes)]
    return _clouds("blobs", groups, tuple(f"blob {number}" for number in range(len(centers))), noise, generator)


def _clouds(
    name: str, groups: list[Tensor], class_names: tuple[str, ...], noise: float, generator: Generator
) -> Dataset:
    """One class a group, its points moved by N(0, noise²)."""
    points = torch.cat(groups)
    points = points + noise * _normal(*points.shape, generator)
    targets = torch.arange(len(groups)).repeat_interleave(torch.tensor([len(group) for group in groups]))
    return Dataset(name, points.float(), targets, column_names(points.shape[1:]), class_names, ("class",))


def _normal(num_rows: int, num_columns: int, generator: Generator) -> Tensor:
    return torch.randn(num_rows, num_columns, dtype=torch.float64, generator=generator)
