"""Points, noise and what is drawn of them: exact denoisers of a few points, paths, rows of digits, receptive fields."""

import functools
import itertools
from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from quoin.generate import sample_ddim
from quoin.lab.parts.picture import Axes, Picture
from quoin.models import GatedPixelCNN, PixelCNN
from quoin.prob import (
    Denoised,
    GaussianMixtureDistribution,
    NoiseSchedule,
    SamplePrediction,
    SphericalNormals,
    cosine_beta_schedule,
    make_denoiser,
)

__all__ = [
    "SCHEDULE",
    "draw_digits",
    "draw_field",
    "draw_guesses",
    "draw_paths_back",
    "draw_walks",
    "exact_denoiser",
    "guesses",
    "seen_pixels",
    "walk_back",
]

SCHEDULE: NoiseSchedule = cosine_beta_schedule(100)
SIDE = 9


def exact_denoiser(points: Float[Tensor, "n 2"], schedule: NoiseSchedule = SCHEDULE):
    """The best denoiser of data that are these points: the mean of the points, each by how probably it is behind x_t.
    x_t given a point is normal, so these are the responsibilities of a mixture."""

    def network(noisy: Tensor, t: Tensor) -> Tensor:
        level = schedule.level(int(t[0]), points)
        normals = SphericalNormals(level.signal * points, level.noise.square().clamp_min(1e-12).expand(len(points)))
        mixture = GaussianMixtureDistribution(torch.full((len(points),), 1 / len(points), dtype=points.dtype), normals)
        return mixture.responsibilities(noisy) @ points

    return make_denoiser(network, schedule, SamplePrediction())


def guesses(points: Float[Tensor, "n 2"], noisy: Float[Tensor, "m 2"], t: int) -> Denoised:
    """What the exact denoiser guesses of x_0 and of the noise."""
    return exact_denoiser(points)(noisy, torch.full((len(noisy),), t))


def walk_back(points: Float[Tensor, "n 2"], start: Float[Tensor, "m 2"], num_steps: int) -> Float[Tensor, "times m 2"]:
    """The paths of DDIM under the exact denoiser, from noise to the points."""
    states: list[Tensor] = []
    generator = torch.Generator().manual_seed(0)  # unused: eta is 0
    sample_ddim(
        exact_denoiser(points),
        SCHEDULE,
        start,
        num_steps=num_steps,
        generator=generator,
        callback=lambda t, state: states.append(state),
    )
    return torch.stack(states)


def draw_guesses(
    axes: Axes, noisy: Float[Tensor, "m 2"], guess: Float[Tensor, "m 2"], mean: Float[Tensor, "2"]
) -> None:
    """Arrows from noisy points to what is guessed of them, and the mean of the data."""
    for start, end in zip(noisy.tolist(), guess.tolist()):
        axes.arrow(start, end, "model 60%", width=1.2)
    axes.points(noisy[:, 0], noisy[:, 1], "faint", size=3)
    axes.points([float(mean[0])], [float(mean[1])], "ink", size=7, shape="cross", labels=["mean of your points"])
    axes.text(float(mean[0]), float(mean[1]), "mean", anchor="middle", dy=24)


def draw_paths_back(
    axes: Axes, states: Float[Tensor, "times m 2"], role: str = "model 45%", width: float = 1.0
) -> None:
    """Paths from noise to samples, and the samples."""
    for path in states.unbind(dim=1):
        axes.line(path[:, 0], path[:, 1], role, width=width)
    axes.points(states[-1, :, 0], states[-1, :, 1], role.split()[0], size=3)


def draw_walks(picture: Picture, states: Float[Tensor, "times m 2"], real: Float[Tensor, "n 2"]) -> Axes:
    """Test points, thirty walks, and the first eight, which are the reader's; the axes are given back."""
    axes = picture.axes((-4.2, 4.2), (-3.1, 3.1), box=(10, 10, 620, 400), equal=True, bare=True)
    axes.points(real[:, 0], real[:, 1], "faint 45%", size=2)
    draw_paths_back(axes, states[:, 8:38])
    draw_paths_back(axes, states[:, :8], "hand", 2)
    return axes


def draw_digits(
    picture: Picture, images: Float[Tensor, "n h w"], columns: int, box: tuple[float, float, float, float]
) -> None:
    """Images in rows, of `columns` each."""
    left, top, width, height = box
    rows = -(-len(images) // columns)
    size = min(width / columns, height / rows)
    for index, image in enumerate(images):
        row, column = divmod(index, columns)
        place = (left + column * size, top + row * size, size - 6, size - 6)
        picture.axes(box=place, bare=True).image(image)


@functools.lru_cache(maxsize=256)
def seen_pixels(plain: bool, num_layers: int, row: int, column: int) -> Bool[Tensor, "9 9"]:
    """The pixels that the logits of one depend on, by their gradients, in a stack of masked convolutions."""
    weights = torch.Generator().manual_seed(0)
    kind = PixelCNN if plain else GatedPixelCNN
    model = kind(
        (1, SIDE, SIDE), 2, channels=8, num_layers=num_layers, kernel_size=3, first_kernel_size=3, generator=weights
    ).double()
    images = torch.full((1, 1, SIDE, SIDE), 0.5, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(model.logits(images)[0, :, row, column].square().sum(), images)
    return gradient[0, 0] != 0


def draw_field(
    picture: Picture, seen: Bool[Tensor, "9 9"], blind: Sequence[tuple[int, int]], at: tuple[int, int]
) -> Axes:
    """A grid of pixels: those seen, those before the pixel and within reach that are not, and the pixel itself."""
    axes = picture.axes((0, SIDE), (0, SIDE), box=(30, 14, 390, 390), bare=True)
    areas, fills = [], []
    for row, column in itertools.product(range(SIDE), repeat=2):
        top = SIDE - row
        areas.append([(column, top), (column + 1, top), (column + 1, top - 1), (column, top - 1)])
        role = "model 70%" if seen[row, column] else "change 75%" if (row, column) in blind else "paper"
        fills.append("ink" if (row, column) == at else role)
    axes.polygons(areas, fills, edge="grid")
    legend = (("seen", "model"), ("before it, not seen", "change"), ("the pixel", "ink"))
    for place, (text, role) in enumerate(legend):
        picture.text(446, 40 + 26 * place, f"■ {text}", role=role, size=14)
    return axes
