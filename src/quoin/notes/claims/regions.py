"""Linear regions of ReLU networks of the plane: their number, its bounds, and the breakpoints between them."""

import itertools
import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from quoin.expressivity import (
    activation_pattern,
    affine_layers,
    break_lines,
    folding_net,
    gradient_jump,
    max_regions,
    max_zero_definition,
    max_zero_net,
    num_folding_regions,
    region_growth_order,
    regions_in_window,
    relu_network,
)
from quoin.layers import Affine
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.rounding import gap, max, min, randint, roundings

CASES = 20


def random_net(sizes: list[int], generator: torch.Generator) -> nn.Sequential:
    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    return relu_network([Affine(normal(m, n) / math.sqrt(n), normal(m)) for n, m in itertools.pairwise(sizes)])


def random_widths(generator: torch.Generator, most: int = 8) -> list[int]:
    return [randint(1, most, generator) for _ in range(randint(1, 3, generator))]


@claim("D1.1-14", "the regions of one hidden layer in a window are 1 + its lines + their crossings there")
def regions_of_one_layer(generator: torch.Generator) -> Evidence:
    worst = 0
    for _ in range(CASES):
        net = random_net([2, randint(1, 12, generator), 1], generator)
        normals, offsets = (each.detach() for each in net[0].parameters())
        corners = torch.tensor(list(itertools.product((-1.0, 1.0), repeat=2)), dtype=torch.float64)
        sides = corners @ normals.T + offsets
        lines = int(((sides > 0).any(dim=0) & (sides < 0).any(dim=0)).sum())
        pairs = itertools.combinations(range(len(normals)), 2)
        crossings = sum(bool((torch.linalg.solve(normals[[i, j]], -offsets[[i, j]]).abs() < 1).all()) for i, j in pairs)
        worst = max(worst, abs(len(regions_in_window(net)) - (1 + lines + crossings)))
    return Evidence("largest |regions - (1 + lines + crossings)|", worst, 0, "exact: a count", CASES, "==")


@claim(
    "D1.1-14",
    "every pattern of active units that occurs in the window is that of one region, and no network has more than Π "
    "Σ C(n_l, j)",
    not_shown="the bound for all networks: random ones of two inputs in a window",
)
def no_region_is_missed(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        widths = random_widths(generator)
        net = random_net([2, *widths, 1], generator)
        regions = regions_in_window(net)
        known = {tuple(row) for row in regions.patterns.tolist()}
        points = 2 * torch.rand(4000, 2, generator=generator, dtype=torch.float64) - 1
        met = {tuple(row) for row in activation_pattern(net, points).tolist()}
        centers = torch.stack([torch.from_numpy(each.mean(axis=0)) for each in regions.polygons])
        whole = abs(float(regions.mesh.areas().sum()) - 4) < 1e-9 and torch.equal(
            activation_pattern(net, centers), regions.patterns
        )
        sound = whole and met <= known and len(known) == len(regions)
        worst = max(worst, len(regions) / max_regions(widths, 2) if sound else math.inf)
    return Evidence(
        "largest regions / Π Σ C(n_l, j)", worst, 1, "exact: a count; every pattern of 4000 points known", CASES
    )


@claim(
    ("D1.1-14", "DE10"),
    "folding reaches floor(n/d)^(d(L-1)) Σ C(n, j) linear regions, a fixed fraction of the order where d divides n",
    not_shown="that no other network has more regions",
)
def folding_meets_its_count(generator: torch.Generator) -> Evidence:
    cases = [(4, 1), (4, 2), (4, 3), (5, 2), (6, 2)]
    missed = 0.0
    for width, depth in cases:
        counted = regions_in_window(folding_net(width, depth, 2), (0.0, 0.0), (1.0, 1.0)).num_linear_regions
        missed = max(missed, abs(counted - num_folding_regions(width, depth, 2)))
        if width % 2 == 0:
            missed = max(
                missed, abs(counted / region_growth_order(width, depth, 2) - max_regions([width], 2) / width**2)
            )
    return Evidence(
        "largest |linear regions counted - formula|", missed, roundings(8), "exact: counts and their ratio", len(cases)
    )


def ratio_of_width(width: int, depth: int, d: int) -> float:
    return region_growth_order(width, depth, d)


def binomial_of_width(width: int, depth: int, d: int) -> float:
    return math.comb(width, d) ** (d * (depth - 1)) * width**d


@claim(
    "DE10",
    "the order of the largest number of regions has the ratio n/d in it, not a binomial",
    right=ratio_of_width,
    printed=binomial_of_width,
)
def order_keeps_below_the_bound(form: Callable[[int, int, int], float], generator: torch.Generator) -> Evidence:
    cases = [(width, d) for d in (1, 2, 3) for width in range(2 * d, 9)]

    def region_growth(width: int, depth: int, d: int) -> float:
        return form(width, depth, d) / max_regions([width] * depth, d)

    growth = {case: region_growth(case[0], 8, case[1]) / region_growth(case[0], 1, case[1]) for case in cases}
    width, d = max(growth, key=growth.__getitem__)
    return Evidence(
        "largest growth of order / proven maximum from 1 to 8 layers",
        growth[width, d],
        1,
        "a lower bound on a maximum cannot outgrow an upper one",
        len(cases),
        counterexample=f"d = 2, n = 4, two layers: {form(4, 2, 2):g}, and no network has more than "
        f"{max_regions([4, 4], 2)} regions",
    )


@claim("D1.1-5", "a shallow network has whole break lines, and on each of them its gradient jumps by one vector")
def breakpoints_of_a_shallow_network(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        net = random_net([2, randint(1, 8, generator), 1], generator)
        lines = break_lines(regions_in_window(net, (-20.0, -20.0), (20.0, 20.0)))
        worst = max([worst, *(max(abs(line.fraction - 1), line.relative_variation) for line in lines)])
        units = affine_layers(net)[0]
        in_window = int((units.bias.abs() < 20 * units.weight.abs().sum(dim=1)).sum())  # w·x = -b for some |x_i| < 20
        worst = worst if len(lines) == in_window else math.inf
    return Evidence(
        "largest difference in a break line, or change of jump along it",
        worst,
        1e-7,
        "lengths of edges, relative to 1e-8 of the window",
        CASES,
    )


@claim(
    "D1.1-5",
    "the gradient of max(0, x, y) jumps on a half of each of three lines and not on the other, so no shallow "
    "network is it",
    not_shown="that every function with such rays is out of reach: max(0, x, y) alone",
)
def break_lines_of_max_are_rays(generator: torch.Generator) -> Evidence:
    least = math.inf
    away = 0.1 + torch.rand(CASES, generator=generator, dtype=torch.float64)
    for along in ((0.0, 1.0), (1.0, 0.0), (1.0, 1.0)):
        direction = torch.tensor(along, dtype=torch.float64)
        normal = torch.tensor([-along[1], along[0]], dtype=torch.float64)
        jumps = [gradient_jump(max_zero_definition, side * away[:, None] * direction, normal, 1e-3) for side in (1, -1)]
        least = min(least, float((jumps[0] - jumps[1]).norm(dim=1).min()))
    bent = [line.fraction for line in break_lines(regions_in_window(max_zero_net()))]
    halves = len(bent) == 3 and max(abs(region_growth - 0.5) for region_growth in bent) < 1e-9
    return Evidence(
        "least change of the jump along a line",
        least if halves else 0.0,
        1,
        "exact: jumps by (±1, 0), (0, ±1), (±1, ∓1), and by 0",
        3 * CASES,
        ">=",
    )


@claim("D1.1-5", "max(0, x, y) is a network of two hidden layers")
def max_is_deep(generator: torch.Generator) -> Evidence:
    x = 10 * torch.randn(1000, 2, generator=generator, dtype=torch.float64)
    return Evidence(
        "largest |network - max(0, x, y)|",
        gap(max_zero_net()(x)[:, 0], max_zero_definition(x)),
        roundings(8),
        "8 roundings",
        1000,
    )
