"""Pictures of chains: states on a circle with their walkers, a distribution beside another, two bars for each past."""

import functools
import math
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from quoin.lab.parts.picture import Picture
from quoin.lab.parts.ticks import digits
from quoin.prob import BrownianMotion, MarkovChain, RandomWalk

__all__ = [
    "ZOOMS",
    "brownian_paths",
    "draw_beside",
    "draw_chain",
    "draw_colors",
    "draw_edges",
    "draw_pasts",
    "draw_paths",
    "draw_row_sums",
    "draw_series",
    "walk_paths",
    "walkers",
]

ZOOMS = (1, 10, 100, 1000)
WALK_STEPS = 2500
_NUM_PATHS = 30


def draw_chain(
    picture: Picture,
    transition: Float[Tensor, "k k"],
    counts: Sequence[int],
    box: tuple[float, float, float, float],
    role: str = "hidden",
) -> None:
    """The states on a circle, an arrow for each possible step, as thick as it is probable, and as dots who is where."""
    k = len(transition)
    angles = [math.pi / 2 - 2 * math.pi * state / k for state in range(k)]
    places = [(math.cos(angle), math.sin(angle)) for angle in angles]
    axes = picture.axes((-1.5, 1.5), (-1.5, 1.5), box=box, bare=True, equal=True)
    for i, row in enumerate(transition.tolist()):
        for j, step in enumerate(row):
            if step > 0 and i != j:
                axes.arrow(
                    *_between(places[i], places[j]), "faint", width=0.8 + 2.4 * step, label=f"{i + 1} to {j + 1}"
                )
    for state, (x, y) in enumerate(places):
        stays = float(transition[state, state])
        axes.circle((x, y), 0.3, "ink" if stays else "edge", fill="paper")
        if stays:
            axes.circle((x, y), 0.34, "ink")
        dots = [(0.27 * math.sqrt((n + 0.5) / 300), 2.4 * n) for n in range(counts[state])]
        axes.points([x + r * math.cos(a) for r, a in dots], [y + r * math.sin(a) for r, a in dots], role, size=1.8)
        axes.text(1.42 * x, 1.42 * y, str(state + 1), anchor="middle", dy=5)


def _between(start: tuple[float, float], end: tuple[float, float]) -> tuple[tuple[float, float], tuple[float, float]]:
    """From rim to rim, a little to the right, so that two ways do not hide each other."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = math.hypot(dx, dy)
    ux, uy = dx / length, dy / length
    side = (0.06 * uy, -0.06 * ux)
    return (
        (start[0] + 0.36 * ux + side[0], start[1] + 0.36 * uy + side[1]),
        (end[0] - 0.38 * ux + side[0], end[1] - 0.38 * uy + side[1]),
    )


def draw_beside(
    picture: Picture,
    now: Float[Tensor, "k"],
    settled: Float[Tensor, "k"],
    box: tuple[float, float, float, float],
    role: str,
) -> None:
    """Two distributions as pairs of bars: where the chain is now, and where it would stay."""
    k = len(now)
    top = max(1.0, 1.05 * float(now.max()))
    axes = picture.axes(
        (-0.6, k - 0.4), (0, top), box=box, x_ticks=False, title="now, beside the stationary one (grey)"
    )
    places = torch.arange(k, dtype=torch.float64)
    axes.bars(now, role, positions=places - 0.18, width=0.34)
    axes.bars(settled, "faint", positions=places + 0.18, width=0.34)
    for state in range(k):
        axes.text(state, 0, str(state + 1), "faint", anchor="middle", dy=17)


@functools.lru_cache(maxsize=16)
def walkers(rows: tuple[tuple[float, ...], ...], num_steps: int) -> Int[Tensor, "300 times"]:
    """The states of 300 walkers who begin in the first state."""
    transition = torch.tensor(rows, dtype=torch.float64)
    chain = MarkovChain(torch.eye(len(rows), dtype=torch.float64)[0], transition)
    return chain.sample_paths(num_steps, 300, generator=torch.Generator().manual_seed(0))


def draw_pasts(
    picture: Picture, bars: Sequence[tuple[tuple[str, str], float, bool]], box: tuple[float, float, float, float]
) -> None:
    """For each past its probability of what comes next: the bars of one present stand together, in that colour."""
    axes = picture.axes((-0.6, max(len(bars), 1) - 0.4), (0, 1), box=box, x_ticks=False, y_label="P(next is blue)")
    for place, ((before, now), value, blue) in enumerate(bars):
        axes.bars([value], "model" if blue else "hidden", positions=[place], width=0.7)
        axes.text(place, value, digits(value), anchor="middle", dy=-6)
        axes.text(place, 0, before, "faint", anchor="middle", dy=18, size=12)
        axes.text(place, 0, now, "ink", anchor="middle", dy=34, size=12)
    picture.text(
        box[0] + box[2] / 2, box[1] + box[3] + 66, "before above, now below", anchor="middle", role="faint", size=13
    )


@functools.lru_cache(maxsize=1)
def brownian_paths() -> tuple[Float[Tensor, "times"], Float[Tensor, "30 times"]]:
    """Times, dense near 0 at every zoom, and 30 paths of Brownian motion at them."""
    near = [torch.linspace(0, 1 / zoom, 201, dtype=torch.float64) for zoom in ZOOMS]
    times = torch.cat(near).unique()
    return times, BrownianMotion().sample_paths(times, _NUM_PATHS, generator=torch.Generator().manual_seed(0))[..., 0]


@functools.lru_cache(maxsize=64)
def walk_paths(drift: float) -> tuple[Float[Tensor, "times"], Float[Tensor, "30 times"]]:
    """Times and 30 walks of 2500 steps of length 1 / 50, which at time 1 are at `drift` in the mean."""
    walk = RandomWalk(0.5 + drift / 2 / math.sqrt(WALK_STEPS))
    paths = walk.sample_paths(WALK_STEPS - 1, _NUM_PATHS, generator=torch.Generator().manual_seed(0))
    times = torch.arange(1, WALK_STEPS + 1, dtype=torch.float64) / WALK_STEPS
    return times, paths.double() / math.sqrt(WALK_STEPS)


def draw_edges(picture: Picture, edges: Sequence[int], transition: Float[Tensor, "k k"]) -> None:
    """A table of steps to open and close (control "edges"), from row to column, with their probabilities."""
    k, size = len(transition), 44
    table = picture.axes((0, k), (0, k), box=(34, 46, k * size, k * size), bare=True)
    table.paint("edges", edges, k, k, roles=("paper", "hand 45%"))
    for i, row in enumerate(transition.tolist()):
        for j, step in enumerate(row):
            if step:
                table.text(j + 0.5, k - 0.5 - i, f"{step:.3g}", anchor="middle", size=13, dy=5)
        picture.text(56 + size * i, 40, str(i + 1), anchor="middle", role="faint", size=13)
        picture.text(26, 73 + size * i, str(i + 1), anchor="end", role="faint", size=13)
    picture.text(34, 18, "from row to column", role="faint", size=13)


def draw_paths(picture: Picture, times: Float[Tensor, "n"], paths: Float[Tensor, "m n"], drift: float) -> None:
    """Paths from 0, their drift, and the band of two standard deviations around it."""
    end, every = float(times[-1]), max(1, len(times) // 200)
    height = 3.2 * math.sqrt(end)
    axes = picture.axes((0, end), (-height, height), x_label="time t", box=(60, 14, 570, 350))
    for path in paths:
        axes.line(times[::every], path[::every], "model 60%", width=1)
    curve = torch.linspace(0, end, 100, dtype=torch.float64)
    for sign in (1, -1):
        axes.line(curve, drift * curve + sign * 2 * curve.sqrt(), "ink", dashed=True, width=1.6, label="2 √t")
    if drift:
        axes.line([0, end], [0, drift * end], "change", label="drift")


def draw_series(
    picture: Picture, series: Float[Tensor, "n"], path: Int[Tensor, "n"], means: Float[Tensor, "k"]
) -> None:
    """A series in the colours and shapes of its hidden states, and their means."""
    low, high = float(series.min()), float(series.max())
    margin = 0.06 * (high - low)
    axes = picture.axes((0, len(series)), (low - margin, high + margin), x_label="row", box=(60, 14, 570, 350))
    days = torch.arange(len(series)).double()
    axes.line(days, means[path], "hidden", width=3, label="mean of the most probable state")
    axes.line(days, series, "faint", width=1)
    for state, shape in zip(range(len(means)), ("circle", "square", "triangle", "diamond", "cross")):
        here = path == state
        axes.points(days[here], series[here], f"series-{state + 1}", size=3, shape=shape)


def draw_colors(picture: Picture, transition: Float[Tensor, "5 5"], colors: Sequence[int]) -> None:
    """A chain of five states, and below it the states to paint (control "colors")."""
    draw_chain(picture, transition, [0] * 5, (10, 4, 300, 300))
    row = picture.axes((0, 5), (0, 1), box=(10, 340, 300, 60), bare=True)
    row.paint("colors", colors, 1, 5, roles=("hidden 45%", "model"))
    for state in range(5):
        row.text(state + 0.5, 0.5, str(state + 1), "ink", anchor="middle", size=16, dy=6)
    picture.text(160, 424, "states, sky or blue: click", anchor="middle", role="faint", size=13)


def draw_row_sums(picture: Picture, matrix: Float[Tensor, "k k"], box: tuple[float, float, float, float]) -> None:
    """A matrix by its numbers, and what each row sums to."""
    left, top, width, height = box
    states = [str(state + 1) for state in range(len(matrix))]
    cells = picture.axes((0, 1), (0, 1), box=box, bare=True)
    cells.cells(matrix, most=1.0, numbers=True, rows=states, columns=states)
    for place, total in enumerate(matrix.sum(dim=1).tolist()):
        y = top + height * (place + 0.5) / len(matrix) + 5
        picture.text(left + width + 8, y, f"Σ {digits(total)}", role="printed", size=13)
    picture.text(left + width / 2, top + height + 40, "as it stands", anchor="middle", role="printed", size=13)
