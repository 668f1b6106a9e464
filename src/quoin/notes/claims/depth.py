"""What depth buys and how narrow it may be: sawteeth, their distance from every shallow network, and networks of width
d + 1."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from quoin.expressivity import (
    affine_distance,
    affine_layers,
    interior_peak,
    interpolant,
    l1_distance,
    max_min_definition,
    max_min_net,
    max_regions,
    min_units,
    narrow_convex_net,
    narrow_net,
    partial_sawtooth_net,
    pieces_on_segment,
    relu_network,
    sawtooth_definition,
    sawtooth_l1_lower_bound,
    sawtooth_net,
    to_relu_network,
    zigzag_net,
)
from quoin.layers import Affine
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.regions import random_net, random_widths
from quoin.notes.claims.rounding import gap, max, min, randint, roundings

CASES = 20
K = 10  # folds: 1024 pieces


def num_units(net: nn.Module) -> int:
    return sum(len(layer.bias) for layer in affine_layers(net)[:-1])


@claim(
    "D1.1-12",
    "for the same pieces a deeper network needs fewer units: 2^10 pieces from 1024, 64, 20 units in 1, 2, 10 layers",
)
def units_by_depth(generator: torch.Generator) -> Evidence:
    units = []
    for depth in (1, 2, 10):
        net = zigzag_net([2 ** (K // depth)] * depth)
        enough = pieces_on_segment(net, [0.0], [1.0]).num_linear_pieces == 2**K and num_units(net) >= min_units(
            2**K, depth
        )
        units.append(num_units(net) if enough else math.inf)
    ratio = min_units(2**K, 1) / units[-1] if units == sorted(units, reverse=True) else 0.0
    return Evidence(
        "units that one layer needs / units of ten layers",
        ratio,
        (2**K - 1) / (2 * K),
        "exact: n units in one layer have n breakpoints",
        3,
        ">=",
    )


@claim(
    "D1.1-12",
    "on the line no network has more pieces than Π (n_l + 1), so few units in few layers make few pieces",
    not_shown="the bound for all networks: 100 random ones",
)
def pieces_are_bounded(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 100
    for _ in range(cases):
        widths = random_widths(generator)
        pieces = len(pieces_on_segment(random_net([1, *widths, 1], generator), [-5.0], [5.0]).patterns)
        enough = sum(widths) >= min_units(pieces, len(widths))
        worst = max(worst, pieces / max_regions(widths, 1) if enough else math.inf)
    return Evidence("largest pieces / Π (n_l + 1)", worst, 1, "exact: a count", cases)


@claim("D1.1-15", "the tent composed k times is a network of k layers of two units with 2^k pieces")
def sawtooth_has_two_to_the_k_pieces(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for k in range(1, K + 1):
        net, x = sawtooth_net(k), torch.rand(200, generator=generator, dtype=torch.float64)
        whole = pieces_on_segment(net, [0.0], [1.0]).num_linear_pieces == 2**k and num_units(net) == 2 * k
        worst = max(worst, gap(net(x[:, None])[:, 0], sawtooth_definition(x, k)) if whole else math.inf)
    return Evidence(
        "largest |network - tent composed|, the pieces being 2^k",
        worst,
        2 ** (K + 2) * roundings(1),
        "a rounding, doubled k times",
        K,
    )


def free_teeth_bound(k: int, breaks: Float[Tensor, "n"]) -> float:
    """What a function that is linear between these breaks must miss of the sawtooth of 2^k in the mean.

    On a tooth, up and down over 2/2^k, no line is nearer in the mean than the constant 1/2, which misses it by 1/4: the
    signs of tooth - 1/2 are orthogonal to every line. So each tooth without a break inside costs a quarter of its
    width: for p pieces (1 - 2 (p - 1) / 2^k) / 4 or more, about twice what the notes ask.
    """
    teeth = 2 ** (k - 1)
    inside = ((breaks * teeth).frac() > 1e-9) & ((breaks * teeth).frac() < 1 - 1e-9)
    broken = len(set((breaks[inside] * teeth).floor().tolist()))
    return (teeth - broken) / teeth / 4


def fitted_rival(k: int, pieces: int, generator: torch.Generator) -> nn.Sequential:
    """A function of so many pieces, fitted to the sawtooth in the mean: breaks at random tips, heights by weighted
    least squares whose weights 1/|error| lead to the least absolute error."""
    x = (torch.arange(2 ** (k + 4), dtype=torch.float64) + 0.5) / 2 ** (k + 4)
    tips = torch.randperm(2**k - 1, generator=generator)[: pieces - 1].sort().values + 1
    knots = torch.cat([torch.zeros(1), tips / 2**k, torch.ones(1)]).double()
    index = torch.searchsorted(knots, x).clamp(1, pieces)
    fraction = (x - knots[index - 1]) / (knots[index] - knots[index - 1])
    hats = torch.zeros(len(x), pieces + 1, dtype=torch.float64)
    hats.scatter_(1, index[:, None] - 1, 1 - fraction[:, None]).scatter_(1, index[:, None], fraction[:, None])
    wanted, heights = sawtooth_definition(x, k), torch.full((pieces + 1,), 0.5, dtype=torch.float64)
    for _ in range(20):
        root = (wanted - hats @ heights).abs().clamp(min=1e-3).rsqrt()
        heights = torch.linalg.lstsq(root[:, None] * hats, (root * wanted)[:, None]).solution[:, 0]
    return to_relu_network(interpolant(knots, heights))


@claim(
    ("D1.1-15", "DE11"),
    "no network of p pieces comes closer to the sawtooth of 2^k than (1 - 2p/2^k - 2/2^k) / 8 in the mean; rivals that "
    "follow it as far as they can come within 5% of what counting free teeth leaves, about twice that",
    not_shown="all networks of p pieces at once: for each the count of free teeth proves it, and it is run on some",
)
def shallow_networks_stay_away(generator: torch.Generator) -> Evidence:
    least, closest, cases = math.inf, math.inf, 0
    for k, depth in ((6, 1), (6, 2), (11, 3)):
        f = sawtooth_net(k)
        partial = {pieces: partial_sawtooth_net(k, pieces) for pieces in (2, 2 ** (k - 3), 2 ** (k - 2))}
        for pieces, g in partial.items():  # they follow p - 1.5 slopes of 2^k and rest at 1/2, 1/4 away in the mean
            stated = (1 - (pieces - 1.5) / 2**k) / 4
            least = min(least, 0.0 if abs(l1_distance(f, g) - stated) < roundings(2**14) else -math.inf)
        fitted = [fitted_rival(k, pieces, generator) for pieces in (3, 8, 16)] if depth == 1 else []
        others = [random_net([1, *[2**depth] * depth, 1], generator) for _ in range(10)]
        for g in [*partial.values(), *fitted, *others]:
            found = pieces_on_segment(g, [0.0], [1.0])
            distance, free = l1_distance(f, g), free_teeth_bound(k, found.breaks)
            of_pieces = sawtooth_l1_lower_bound(k, found.num_linear_pieces)
            least = min(least, distance - free + roundings(2**14), free - of_pieces)
            closest, cases = min(closest, distance / max(free, 1e-9)), cases + 1
    half = relu_network([Affine(torch.zeros(1, 1), torch.zeros(1)), Affine(torch.zeros(1, 1), torch.full((1,), 0.5))])
    measured = abs(l1_distance(sawtooth_net(6), half) - 0.25) < roundings(64)
    return Evidence(
        "least of ∫|f - g| - free teeth, free teeth - bound, some rival being within 5%",
        least if measured and closest < 1.05 else math.nan,
        0,
        "exact integrals of linear pieces",
        cases,
        ">=",
    )


def exponential(L: int) -> int:
    return 2**L


def quadratic(L: int) -> int:
    return 2 * L**2


@claim(
    "DE11",
    "1/32 separates the sawtooth of L² + 2 folds from all networks of L >= 2 layers and 2^L nodes",
    right=exponential,
    printed=quadratic,
)
def depth_separates(form: Callable[[int], int], generator: torch.Generator) -> Evidence:
    """Nodes shared evenly over the layers make the most pieces, (nodes / L + 1)^L."""
    gaps = {L: sawtooth_l1_lower_bound(L**2 + 2, math.floor((form(L) / L + 1) ** L)) for L in range(2, 12)}
    where = min(gaps, key=gaps.__getitem__)
    made = math.floor((form(where) / where + 1) ** where)
    message = (
        f"L = {where}: {form(where)} nodes may make {made} of {2 ** (where**2 + 2)} pieces; L = 9: {form(9)} "
        "nodes for 512"
    )
    return Evidence(
        "least gap that counting pieces leaves", gaps[where], 1 / 32, "exact", len(gaps), ">=", counterexample=message
    )


@claim(
    ("D1.1-13", "DE12"),
    "width d + 1 is enough: a function of one variable is within eps of a network of width 2",
    not_shown="all continuous functions of one variable: Lipschitz ones, whose constant the construction needs",
)
def narrow_networks_approximate(generator: torch.Generator) -> Evidence:
    worst, eps = 0.0, 0.1
    t = torch.linspace(0, 1, 2001, dtype=torch.float64)
    for _ in range(3):
        phases = 2 * math.pi * torch.rand(3, generator=generator, dtype=torch.float64)
        frequencies = torch.tensor([2.0, 5.0, 9.0], dtype=torch.float64)

        def wave(t: Tensor, phases: Tensor = phases, frequencies: Tensor = frequencies) -> Tensor:
            return (torch.sin(frequencies * t[:, None] + phases) / frequencies).sum(dim=1)

        net = narrow_net(wave, eps, (0.0, 1.0), lipschitz=3.0)
        narrow = all(len(layer.bias) == 2 for layer in affine_layers(net)[:-1])
        worst = max(worst, float((net(t[:, None])[:, 0] - wave(t)).detach().abs().max()) if narrow else math.inf)
    return Evidence(
        "largest |network of width 2 - function|",
        worst,
        eps,
        "the construction's certificate: the function is 3-Lipschitz",
        3,
    )


@claim(
    "D1.1-13",
    "width d + 1 is enough for convex and concave functions of one, two and three variables: within eps of a network "
    "of width d + 1 on a box",
    not_shown="for d >= 2 a function that is neither convex nor concave: strings of maxima and minima are built "
    "exactly, but which of them is near a given function is open here",
)
def narrow_networks_of_many_variables(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 0
    for d, eps in ((1, 1e-3), (2, 0.02), (2, 0.005), (3, 0.1)):
        root = torch.randn(d, d, generator=generator, dtype=torch.float64)
        root = root / torch.linalg.matrix_norm(root, 2)
        peak = torch.rand(d, generator=generator, dtype=torch.float64)
        low = torch.randn(d, generator=generator, dtype=torch.float64)
        for sign in (1, -1):

            def bowl(x: Tensor, root=root, middle=low + peak, sign=sign) -> Tensor:  # second derivatives within 0 and 1
                return sign * (1 + ((x - middle) @ root).square().sum(dim=1)).sqrt()

            net = narrow_convex_net(bowl, eps, [(a, a + 1) for a in low.tolist()], curvature=1.0)
            narrow = all(len(layer.bias) == d + 1 for layer in affine_layers(net)[:-1])
            x = low + torch.rand(2000, d, generator=generator, dtype=torch.float64)
            x = torch.cat([x, low + torch.cartesian_prod(*[torch.tensor([0.0, 1.0])] * d).reshape(-1, d)])  # corners
            missed = float((net(x)[:, 0] - bowl(x)).detach().abs().max())
            worst, cases = max(worst, missed / eps if narrow else math.inf), cases + 1
    return Evidence("largest |network of width d + 1 - function| / eps", worst, 1.0, "the certificate", cases)


@claim("D1.1-13", "every string of maxima and minima of affine functions is a network of width d + 1")
def max_min_strings_are_narrow(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        inputs, length = randint(1, 4, generator), randint(2, 8, generator)
        weight = torch.randn(length, 1, inputs, generator=generator, dtype=torch.float64)
        bias = torch.randn(length, 1, generator=generator, dtype=torch.float64)
        maximum = torch.rand(length - 1, 1, generator=generator) < 0.5
        net = max_min_net(weight, bias, maximum, [-2.0] * inputs)
        narrow = all(len(layer.bias) == inputs + 1 for layer in affine_layers(net)[:-1])
        x = 4 * torch.rand(200, inputs, generator=generator, dtype=torch.float64) - 2
        worst = max(worst, gap(net(x), max_min_definition(x, weight, bias, maximum)) if narrow else math.inf)
    return Evidence(
        "largest |network - string|, the width being d + 1",
        worst,
        roundings(512),
        "512 roundings: 8 layers, 4 inputs",
        CASES,
    )


@claim(
    "D1.1-13",
    "width d is not enough: in a window such a network is highest on the border, while a bump of height 1 is a "
    "network of width d + 1",
    not_shown="every network of width d: 40 random ones of one and two inputs, up to six layers",
)
def width_d_encloses_nothing(generator: torch.Generator) -> Evidence:
    worst, cases = 0.0, 40
    for case in range(cases):
        d = 1 + case % 2
        net = random_net([d, *[d] * randint(1, 6, generator), 1], generator)
        reach = 1 + float(pieces_on_segment(net, [-3.0] * d, [3.0] * d).values.abs().max())
        worst = max(worst, interior_peak(net, [-3.0] * d, [3.0] * d) / reach)
    sides = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0], [0.0, 0.0]], dtype=torch.float64)
    one = torch.tensor([1.0, 1.0, 1.0, 1.0, 0.0], dtype=torch.float64)
    bump = max_min_net(sides[:, None], one[:, None], torch.tensor([[False], [False], [False], [True]]), [-2.0, -2.0])
    heights = [interior_peak(bump, [-2.0, -2.0], [2.0, 2.0]), interior_peak(sawtooth_net(1), [0.0], [1.0])]
    reached = max(abs(height - 1) for height in heights) < 1e-9
    return Evidence(
        "largest height enclosed by a network of width d",
        worst if reached else math.inf,
        roundings(2**14),
        "2^14 roundings of vertices",
        cases,
    )


def inputs_and_outputs(d_in: int, d_out: int) -> int:
    return d_in + d_out


def inputs_and_one(d_in: int, d_out: int) -> int:
    return d_in + 1


def moment_curve(t: Float[Tensor, "n"]) -> Float[Tensor, "n 3"]:
    return torch.stack([t, t**2, t**3], dim=1)


@claim(
    "DE12",
    "d_in + 1 is for one output; m outputs have width d_in + m",
    right=inputs_and_outputs,
    printed=inputs_and_one,
)
def width_for_many_outputs(form: Callable[[int, int], int], generator: torch.Generator) -> Evidence:
    """A network's outputs lie in an affine space of its last width's dimension; at width 4 the construction is at
    hand."""
    t, eps = torch.linspace(-1, 1, 401, dtype=torch.float64), 0.1
    width = form(1, 3)
    error = affine_distance(moment_curve(t), width)
    if width >= 4:
        net = narrow_net(moment_curve, eps, (-1.0, 1.0), lipschitz=3.0)
        narrow = all(len(layer.bias) == width for layer in affine_layers(net)[:-1])
        error = float((net(t[:, None]) - moment_curve(t)).detach().abs().max()) if narrow else math.inf
    message = f"the curve (t, t², t³) is {error:.3g} from every space of {width} dimensions, in root mean square"
    return Evidence(
        "distance of the moment curve from networks of this width",
        error,
        eps,
        "eps of the construction",
        1,
        counterexample=message,
    )
