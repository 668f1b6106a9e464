"""Regions, sawteeth and narrow networks: what depth and width do to a piecewise linear function."""

import math

import numpy as np
import torch
from torch import nn

from quoin.data import generated, keyed_generator
from quoin.expressivity import (
    Regions,
    affine_layers,
    break_lines,
    folding_net,
    l1_distance,
    max_zero_net,
    min_units,
    narrow_net,
    partial_sawtooth_net,
    pieces_on_segment,
    regions_in_window,
    relu_network,
    sawtooth_l1_lower_bound,
    sawtooth_net,
)
from quoin.layers import Affine
from quoin.models import MLP
from quoin.notes.figures.figure import figure
from quoin.plot import Plot, PolygonMap, curves, polygon_maps
from quoin.plot.palette import LIGHT
from quoin.plot.plots import COLORS, FAINT, INK, house_style, new_figure

WINDOW = (-3.0, -3.0), (3.0, 3.0)


def _random(sizes: list[int], key: str) -> nn.Module:
    generator = keyed_generator(key, 0)
    net = MLP(sizes, generator=generator).double()
    for module in net.modules():
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.bias, std=0.5, generator=generator)
    return net


def _heights(regions: Regions) -> np.ndarray:
    """The network at the middle of each region."""
    middle = torch.stack([torch.from_numpy(each.mean(axis=0)) for each in regions.polygons])
    return ((regions.maps.weight @ middle[..., None])[..., 0] + regions.maps.bias)[:, 0].numpy()


@figure(
    "D1.1-14",
    "The linear regions of ReLU networks of the plane: random ones, one by training, and folded ones, each with "
    "its count.",
    {"hidden_dim": (2, 48)},
)
def region_maps(hidden_dim: int = 16) -> Plot:
    maps = {}
    for sizes in ([2, *[hidden_dim] * depth, 1] for depth in (1, 2, 3)):
        regions = regions_in_window(_random(sizes, "figure D1.1-14"), *WINDOW)
        maps[f"random {'-'.join(map(str, sizes))}: {len(regions)}"] = PolygonMap(regions.polygons)
    points, classes, net = _trained(hidden_dim)
    regions = regions_in_window(net, (-2.2, -2.2), (2.2, 2.2))
    maps[f"trained 2-{hidden_dim}-{hidden_dim}-1: {len(regions)}"] = PolygonMap(
        regions.polygons, -_heights(regions), points, classes
    )
    for depth in (2, 3):
        regions = regions_in_window(folding_net(4, depth, 2), (0.0, 0.0), (1.0, 1.0))
        maps[f"folded {'-'.join(map(str, [2, *[4] * depth, 1]))}: {len(regions)}"] = PolygonMap(regions.polygons)
    return polygon_maps(maps, title="Linear regions")


def _trained(hidden_dim: int) -> tuple[torch.Tensor, list[int], nn.Module]:
    data = generated.make_moons(400, noise=0.1, generator=keyed_generator("figure D1.1-14 moons", 0))
    x = ((data.features - data.features.mean(dim=0)) / data.features.std(dim=0)).double()
    y = data.targets.double()
    net = _random([2, hidden_dim, hidden_dim, 1], "figure D1.1-14")
    adam = torch.optim.Adam(net.parameters(), 0.01)
    for _ in range(400):
        loss = nn.functional.binary_cross_entropy_with_logits(net(x)[:, 0], y)
        adam.zero_grad()
        loss.backward()
        adam.step()
    return x, [int(each) for each in data.targets], net


@figure(
    "D1.1-15",
    "The tent composed k times, a network of 2k units with 2^k pieces; and how far p pieces stay from the one of 64.",
    {"depths": (1, 10)},
)
def sawteeth(depths: tuple[int, int, int, int] = (1, 2, 4, 6)) -> Plot:
    with house_style():
        sheet = new_figure(height=4.4)
        grid = sheet.add_gridspec(2, 4, height_ratios=(1, 1.5))
        for index, k in enumerate(depths):
            found = pieces_on_segment(sawtooth_net(k), [0.0], [1.0])
            axes = sheet.add_subplot(grid[0, index])
            axes.set_title(f"{2 * k} units: {found.num_linear_pieces} pieces", fontsize=8, fontweight="normal", pad=4)
            axes.plot(found.breaks, found.values[:, 0], color=COLORS[0], linewidth=1.2 if k < 6 else 0.8)
            axes.set_xticks([0, 1])
            axes.set_yticks([0, 1])
            axes.tick_params(labelsize=7)
        axes = sheet.add_subplot(grid[1, :], xlabel="pieces p", ylabel="$\\int |f - g|$")
        axes.grid(True)
        pieces = list(range(2, 65))
        fits = [l1_distance(sawtooth_net(6), partial_sawtooth_net(6, p)) for p in pieces]
        axes.plot(pieces, fits, color=COLORS[1], label="follow some teeth, then rest at 1/2")
        axes.plot(
            pieces, [sawtooth_l1_lower_bound(6, p) for p in pieces], color=COLORS[0], label="no p pieces come below"
        )
        axes.axhline(1 / 32, color=INK, linewidth=1, linestyle=(0, (4, 3)), label="1/32")
        axes.set_ylim(0)
        axes.legend(fontsize=8)
        return Plot(sheet, "sawteeth by depth, and their distance from few pieces")


@figure(
    "D1.1-12",
    "The least number of units with which any network of L layers can have 1024 pieces: 1023 in one layer, 10 in ten.",
    {"num_pieces": (2, 100000)},
)
def units_by_depth(num_pieces: int = 1024) -> Plot:
    depths = list(range(1, 11))
    least = [min_units(num_pieces, depth) for depth in depths]
    # the depths at which equal folds give as many: 1, 2, 5 and 10 for 1024
    folded = [depth for depth in depths if round(num_pieces ** (1 / depth)) ** depth == num_pieces]
    series = {
        "no fewer units can": (depths, least),
        "folding does": (folded, [depth * round(num_pieces ** (1 / depth)) for depth in folded]),
    }
    return curves(series, title=f"Units for {num_pieces} pieces", x_label="hidden layers", y_label="units", log_y=True)


@figure(
    "D1.1-5",
    "max(0, x, y) has breakpoints on three half-lines; a shallow network of three units on three whole lines.",
    {"reach": (0.1, 10)},
)
def break_lines_of_max(reach: float = 1.0) -> Plot:
    normals = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, -1.0]], dtype=torch.float64)
    shallow = relu_network(
        [Affine(each, torch.zeros(len(each), dtype=torch.float64)) for each in (normals, torch.ones(1, 3).double())]
    )
    window = (-reach, -reach), (reach, reach)
    with house_style():
        sheet = new_figure(height=3.4)
        for index, (name, net) in enumerate(
            {"max(0, x, y), two layers": max_zero_net(), "one layer on the same lines": shallow}.items()
        ):
            regions = regions_in_window(net, *window)
            axes = sheet.add_subplot(1, 2, index + 1, aspect="equal")
            axes.set_title(name, fontsize=10, fontweight="normal")
            ends, sides = regions.mesh.shared_edges()
            jump = (regions.maps.weight[sides[:, 1], 0] - regions.maps.weight[sides[:, 0], 0]).norm(dim=1)
            for line in break_lines(regions):
                foot, along = line.offset * line.normal, torch.stack([-line.normal[1], line.normal[0]])
                (x, y), direction = foot.tolist(), along.tolist()
                axes.axline(
                    (x, y), (x + direction[0], y + direction[1]), color=FAINT, linewidth=1, linestyle=(0, (4, 3))
                )
            for pair, size in zip(ends, jump.tolist(), strict=True):
                if size > 1e-9:
                    x, y = regions.mesh.points[pair].T
                    axes.plot(x, y, color=COLORS[0], linewidth=2.5, solid_capstyle="butt")
            axes.set(xlim=(-reach, reach), ylim=(-reach, reach), xticks=(-reach, 0, reach), yticks=(-reach, 0, reach))
        return Plot(sheet, "breakpoints of max(0, x, y) and of a shallow network")


@figure(
    "D1.1-13",
    "A network of width 2 within 0.2 of a wave, and what width 1 can do at best: it only rises or only falls.",
    {"eps": (0.05, 0.9)},
)
def width_two(eps: float = 0.2) -> Plot:
    def wave(t: torch.Tensor) -> torch.Tensor:
        return torch.sin(2 * math.pi * t)

    net = narrow_net(wave, eps, (0.0, 1.0), lipschitz=2 * math.pi)
    found = pieces_on_segment(net, [0.0], [1.0])
    t = torch.linspace(0, 1, 401, dtype=torch.float64)
    with house_style():
        sheet = new_figure(height=3.4)
        axes = sheet.add_subplot(xlabel="t")
        axes.grid(True)
        axes.fill_between(t, wave(t) - eps, wave(t) + eps, color=LIGHT.grid, linewidth=0, label=f"within {eps:g}")
        axes.plot(t, wave(t), color=INK, linewidth=1, label="sin 2πt")
        layers = len(affine_layers(net)) - 1
        axes.plot(found.breaks, found.values[:, 0], color=COLORS[0], linewidth=1.2, label=f"width 2, {layers} layers")
        # The nearest monotone function to a wave: half-way between what it should have kept and what it may not give
        # up.
        nearest = (wave(t).flip(0).cummax(0).values.flip(0) + wave(t).cummin(0).values) / 2
        axes.plot(t, nearest, "--", color=COLORS[1], label="the best that only falls (width 1)")
        sheet.legend(loc="outside lower center", ncols=2)
        return Plot(sheet, "a network of width two in its band")
