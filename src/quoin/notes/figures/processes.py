"""Sample paths of random processes in discrete and in continuous time, and what a function of a chain forgets."""

import torch
from torch import Tensor

from quoin.data import keyed_generator
from quoin.notes.figures.figure import figure
from quoin.plot import Plot, bars
from quoin.plot.plots import COLORS, FAINT, INK, house_style, new_figure
from quoin.prob import (
    BrownianMotion,
    GaussianRandomWalk,
    InhomogeneousChain,
    MarkovChain,
    RandomWalk,
    chain_distribution,
    function_distribution,
    next_distribution,
    stationary_distribution,
)

# 1 → 3 or 5, 2 → 1, 3 → 2, 4 → any, 5 → 4.
FIVE = torch.tensor(
    [[0.0, 0.0, 0.5, 0.0, 0.5], [1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0.2] * 5, [0, 0, 0, 1, 0]], dtype=torch.float64
)


@figure(
    "D5.1F",
    "Six paths of each of six processes; grey is twice the standard deviation: walks spread as the square root of "
    "time.",
    {"num_paths": (1, 7), "num_steps": (2, 1000)},
)
def sample_paths(num_paths: int = 6, num_steps: int = 60) -> Plot:
    generator = keyed_generator("figure D5.1F")
    steps = torch.arange(num_steps + 1)
    sticky = torch.tensor([[0.9, 0.1, 0.0], [0.05, 0.9, 0.05], [0.0, 0.1, 0.9]], dtype=torch.float64)
    first = torch.tensor([0.0, 1.0, 0.0], dtype=torch.float64)
    freezing = (
        sticky
        + (torch.eye(3, dtype=torch.float64) - sticky)
        * torch.linspace(0, 1, num_steps, dtype=torch.float64)[:, None, None]
    )
    plane = GaussianRandomWalk(
        torch.zeros(2, dtype=torch.float64), torch.tensor([[1.0, 0.8], [0.8, 1.0]], dtype=torch.float64)
    )
    line = GaussianRandomWalk(torch.zeros(1, dtype=torch.float64), torch.eye(1, dtype=torch.float64))
    times = torch.linspace(0, 1, 1001, dtype=torch.float64)
    with house_style():
        sheet = new_figure(height=6.2)
        grid = sheet.subplots(3, 2).flatten()
        _steps(
            grid[0],
            "random walk, ±1",
            steps,
            RandomWalk().sample_paths(num_steps, num_paths, generator=generator),
            std=(steps + 1).sqrt(),
        )
        _steps(
            grid[1],
            "Gaussian random walk",
            steps,
            line.sample_paths(num_steps, num_paths, generator=generator)[..., 0],
            std=steps.sqrt(),
        )
        _chain(grid[2], "chain on three states", MarkovChain(first, sticky), num_paths, num_steps, generator)
        _chain(
            grid[3], "the same, freezing in time", InhomogeneousChain(first, freezing), num_paths, num_steps, generator
        )
        grid[4].set_title("Gaussian walk in the plane", fontsize=10)
        for path, color in zip(plane.sample_paths(num_steps, num_paths, generator=generator), COLORS):
            grid[4].plot(*path.T, color=color, linewidth=1)
            grid[4].plot(*path[-1], "o", color=color, markersize=4)
        grid[4].plot(0, 0, "o", color=INK, markersize=5)
        grid[4].set_xlabel("first coordinate")
        grid[4].set_ylabel("second")
        brownian = BrownianMotion().sample_paths(times, num_paths, generator=generator)[..., 0]
        _curves(grid[5], "Brownian motion on [0, 1]", times, brownian, std=times.sqrt(), label="time t")
        return Plot(sheet, "sample paths")


def _curves(axes, title: str, times: Tensor, paths: Tensor, *, std: Tensor, label: str) -> None:
    axes.set_title(title, fontsize=10)
    axes.fill_between(times, -2 * std, 2 * std, color=FAINT, alpha=0.35, linewidth=0)
    for path, color in zip(paths, COLORS):
        axes.plot(times, path, color=color, linewidth=1)
    axes.set_xlabel(label)


def _steps(axes, title: str, times: Tensor, paths: Tensor, *, std: Tensor) -> None:
    _curves(axes, title, times, paths, std=std, label="step n")


def _chain(axes, title: str, chain, num_paths: int, num_steps: int, generator: torch.Generator) -> None:
    axes.set_title(title, fontsize=10)
    paths = chain.sample_paths(num_steps, num_paths, generator=generator)
    for index, (path, color) in enumerate(zip(paths, COLORS)):
        axes.step(
            torch.arange(num_steps + 1),
            path + 0.09 * (index - (num_paths - 1) / 2),
            color=color,
            linewidth=1,
            where="post",
        )
    axes.set_yticks([0, 1, 2])
    axes.set_ylabel("state")
    axes.set_xlabel("step n")


@figure(
    "D5.1-6",
    "The distribution of a chain after n steps, from two initial states: each bar chart is νAⁿ, and both go to the one "
    "stationary distribution (dashed).",
    {"steps": (0, 10000)},
)
def distribution_by_step(steps: tuple[int, int, int, int, int, int] = (0, 1, 2, 4, 8, 16)) -> Plot:
    starts = torch.eye(5, dtype=torch.float64)[[0, 3]]
    limit = stationary_distribution(FIVE)
    with house_style():
        sheet = new_figure(height=3.4)
        for (row, column), axes in _grid(sheet, 2, len(steps)):
            distribution = chain_distribution(starts[row], FIVE, steps[column])
            axes.bar(range(1, 6), distribution.tolist(), color=COLORS[row], width=0.75)
            for state, height in enumerate(limit.tolist(), start=1):
                axes.plot([state - 0.5, state + 0.5], [height] * 2, color=INK, linewidth=1, linestyle=(0, (3, 2)))
            axes.set_ylim(0, 1.05)
            axes.set_xticks(range(1, 6))
            axes.tick_params(labelsize=7)
            if row == 0:
                axes.set_title(f"n = {steps[column]}", fontsize=10)
            if column == 0:
                axes.set_ylabel(f"from state {(1, 4)[row]}")
        return Plot(sheet, "distribution by step")


def _grid(sheet, rows: int, columns: int):
    grid = sheet.subplots(rows, columns, sharex=True, sharey=True)
    return [((row, column), grid[row][column]) for row in range(rows) for column in range(columns)]


@figure(
    "D5.1-10",
    "A function of the five-state chain: what comes after a 1 depends on what came before it, 5/24 against 1/6, so "
    "that it is not Markov.",
    {"labels": (0, 1)},
)
def function_forgets(labels: tuple[int, int, int, int, int] = (0, 0, 0, 1, 1)) -> Plot:
    joint = function_distribution(MarkovChain(stationary_distribution(FIVE), FIVE), torch.tensor(labels), 3)
    pasts = [(0,), (0, 0), (1, 0), (0, 0, 0), (1, 0, 0), (1, 1, 0)]
    heights = {
        f"after {' '.join(str(y + 1) for y in past)}": float(next_distribution(joint, past)[1]) for past in pasts
    }
    return bars(heights, title="P[next is 2] by the past, where the present is 1", x_label="exact probability")
