"""Figures of piecewise linear functions and of fits, read as numbers: slopes and bounds by hand, regions by counting
patterns, polynomials by numpy, kernels by their formulas."""

import itertools
import math

import numpy as np
import pytest
import torch
from matplotlib.colors import to_hex

from figure_marks import collection, curve, line, near, panel, panels, points, xy
from quoin.notes.figures import generalisation, kernel_regression, piecewise, regions
from quoin.plot.plots import COLORS, FAINT, INK

pytestmark = pytest.mark.usefixtures("one_thread")

BREAKS, SLOPES = np.array([-2.0, -0.75, 0.5, 2.25]), (0.5, -1.0, 1.6, -0.8, 0.4)


def by_slopes(x, slopes=SLOPES, offset: float = 2.0) -> np.ndarray:
    """The slopes added up from the first breakpoint, where the first piece is offset + slope x."""
    ramps = sum(
        (after - before) * np.maximum(0, x - at) for at, (before, after) in zip(BREAKS, itertools.pairwise(slopes))
    )
    return offset + slopes[0] * x + ramps


OTHER = {"slopes": (1.0, -0.5, 0.25, 2.0, -1.0), "offset": 1.0}


@pytest.mark.parametrize("arguments", [{}, OTHER])
def test_a_graph_and_its_breakpoints(arguments):
    axes = panel("graph_with_breakpoints", **arguments)
    slopes = arguments.get("slopes", SLOPES)
    pieces = axes.lines[:5]
    near(xy(pieces[0])[0, 0], -3.6)
    near(xy(pieces[4])[0, 1], 4.2)
    for piece, slope in zip(pieces, slopes):
        (left, right), heights = xy(piece)
        near(heights, by_slopes(np.array([left, right]), **arguments))
        near(np.diff(heights) / (right - left), slope)
    near([xy(piece)[0, 1] for piece in pieces[:4]], BREAKS)
    assert len({piece.get_color() for piece in pieces}) == 5
    dots = [xy(each)[:, 0] for each in axes.lines if each.get_marker() == "o"]
    near(dots, np.stack([BREAKS, by_slopes(BREAKS, **arguments)], axis=1))
    stems = [xy(each) for each in axes.lines if each.get_color() == FAINT]
    near(stems, [[[t, t], [-0.75, y]] for t, y in zip(BREAKS, by_slopes(BREAKS, **arguments))])
    words = [text.get_text() for text in axes.texts]
    assert [word for word in words if "slope" in word] == [
        f"$L_{index}$: slope {slope:g}".replace("-", "−") for index, slope in enumerate(slopes)
    ]
    names = [text for text in axes.texts if text.get_text().startswith("$t_")]
    near([text.xy[0] for text in names], BREAKS)
    near([axes.get_xlim(), axes.get_ylim()], [[-3.6, 4.2], [-0.75, 2]])
    if not arguments:  # each name stands over or under its own piece, inside the picture
        for text, piece in zip(axes.texts[:5], pieces):
            place = text.get_position()
            (left, right), _ = xy(piece)
            assert left - 0.7 < place[0] < right + 0.3
            assert 0.05 < abs(place[1] - by_slopes(np.array(place[0]))) < 1.3
            assert -0.7 < place[1] < 2


@pytest.mark.parametrize("arguments", [{}, OTHER])
def test_a_function_and_the_network_it_is(arguments):
    net, graph = panels("graph_with_network", **arguments)
    x, whole = curve(graph, "f, the sum")
    near(whole, by_slopes(x, **arguments), 1e-6)
    units = [xy(each)[1] for each in graph.lines if each.get_label() != line(graph, "f, the sum").get_label()]
    words = [text.get_text() for text in net.texts]
    assert len(units) == words.count("ReLU") == 5
    last = float(words[-1].split("\n")[0].replace("−", "-").replace("+-", "-"))
    near(sum(units) + last, whole, 0.006)
    near(x[[0, -1]], [-3.6, 4.2])
    named = [word.replace("−", "-") for word in words if word not in ("ReLU", "x") and "f(x)" not in word]
    for unit, entering, leaving in zip(units, named[::2], named[1::2], strict=True):
        sign, bias = entering.split()
        expected = float(leaving) * np.maximum(0, (1 if sign == "x" else -1) * x + float(bias))
        assert np.abs(unit - expected).max() < 0.06 * (1 + np.abs(x).max())  # one decimal is written
    heights = [xy(each)[1, 1] for each in net.lines[::2]]
    near([xy(each)[1, 0] for each in net.lines[1::2]], heights)
    near(np.diff(heights), -1)
    near(sum(heights), 0)
    assert [each.get_color() for each in net.lines[::2]] == [each.get_color() for each in net.lines[1::2]]
    assert [each.get_color() for each in net.lines[::2]] == [each.get_color() for each in graph.lines[:5]]
    for text in net.texts:  # numbers stand on their edges
        across, high = text.get_position()
        assert -0.3 < across < 2.3
        assert abs(high) <= 2
    assert not net.axison


def test_a_certificate_bounds_the_error():
    for axes, eps in zip(panels("certificate"), (0.5, 0.3, 0.2), strict=True):
        x, truth = curve(axes, "√x")
        near(truth, np.sqrt(x))
        near(x[[0, -1]], [0, 1])
        network = curve(axes, "network")[1]
        measured = np.abs(network - truth).max()
        band = collection(axes, "PolyCollection")[0].get_paths()[0].vertices
        width = band[:, 1].max() - 1
        assert measured <= width <= eps + 1e-9
        assert band[:, 1].min() == pytest.approx(-width)
        assert axes.get_title("left").startswith(f"eps {eps}: ")
        assert float(axes.get_title("left").split()[-1]) == pytest.approx(measured, abs=6e-4)
        (dots,) = (xy(each) for each in axes.lines if each.get_marker() == "o")
        near(np.interp(dots[0], x, network), dots[1], 1e-3)
        inner = (x >= dots[0].min()) & (x <= dots[0].max())
        near(np.interp(x, *dots)[inner], network[inner])  # straight from dot to dot
        # √ may change by eps over eps², so that the interval has 1/eps² pieces
        assert int(axes.get_title("left").split()[2]) - math.ceil(1 / eps**2 - 1e-9) in (0, 1)


# ---- regions ------------------------------------------------------------------------------------------------------


def test_teeth_double_with_each_layer():
    *teeth, bottom = panels("sawteeth")
    for axes, depth in zip(teeth, (1, 2, 4, 6), strict=True):
        x, y = xy(axes.lines[0])
        near(x, np.arange(2**depth + 1) / 2**depth)
        near(y, np.arange(2**depth + 1) % 2)
        assert axes.get_title("left").startswith(f"{2 * depth} units: {2**depth} pieces")
        near([axes.get_xticks(), axes.get_yticks()], [[0, 1]] * 2)
    pieces, followed = curve(bottom, "follow")
    near(pieces, np.arange(2, 65))
    bound = curve(bottom, "no p pieces")[1]
    assert (bound <= followed + 1e-9).all()
    # p - 2 flanks are followed, half of the next is the way to rest at 1/2; each flank left out costs 1/4 of its 1/64
    near(followed, (64 - (pieces - 2) - 1 / 2) / 64 / 4)
    assert (np.diff(bound) <= 0).all()
    near(bound, np.maximum(0, (1 - 2 * (pieces + 1) / 64) / 8))
    assert (np.diff(followed) <= 1e-9).all()
    near(curve(bottom, "1/32")[1], 1 / 32)
    assert bottom.get_ylim()[0] == 0


@pytest.mark.parametrize("count", [1024, 64])
def test_the_least_units_by_depth(count):
    axes = panel("units_by_depth", **({} if count == 1024 else {"num_pieces": count}))
    depths, least = curve(axes, "no fewer")
    near(depths, np.arange(1, 11))
    assert (np.diff(least) <= 0).all()
    folded, units = curve(axes, "folding")
    near(folded, [depth for depth in range(1, 11) if any(width**depth == count for width in range(2, count + 1))])
    near(units, folded * count ** (1 / folded))
    assert (least[folded.astype(int) - 1] <= units).all()
    assert least[0] == count - 1  # one layer of n units has at most n + 1 pieces
    if count == 1024:
        assert least[9] == 10
    assert axes.get_yscale() == "log"


def max_zero(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.maximum(0, np.maximum(x, y))


@pytest.mark.parametrize("reach", [1.0, 2.0])
def test_three_half_lines_and_three_lines(reach):
    deep, shallow = panels("break_lines_of_max", **({} if reach == 1 else {"reach": reach}))
    for axes, halves in ((deep, True), (shallow, False)):
        breaks = [xy(each) for each in axes.lines if each.get_color() == COLORS[0]]
        whole = [each for each in axes.lines if each.get_color() == FAINT]
        directions = set()
        for each in whole:
            x, y = np.array([each.get_xy1(), each.get_xy2()]).T
            near(x[0] * y[1] - x[1] * y[0], 0)  # through the origin
            directions.add(round(math.degrees(math.atan2(y[1] - y[0], x[1] - x[0])) % 180))
        assert directions == {0, 45, 90}
        assert len(whole) == 3
        total = sum(np.hypot(*np.diff(each)[:, 0]) for each in breaks)
        near(total, reach * (2 + math.sqrt(2)) * (1 if halves else 2))
        for x, y in breaks:
            middle = np.array([x.mean(), y.mean()])
            across = np.array([-np.diff(y)[0], np.diff(x)[0]]) * 1e-3
            f = max_zero if halves else lambda x, y: np.maximum(0, x) + np.maximum(0, y) + np.maximum(0, x - y)
            bend = f(*(middle + across)) + f(*(middle - across)) - 2 * f(*middle)
            assert bend > 1e-5
        near([axes.get_xlim(), axes.get_ylim()], [[-reach, reach]] * 2)
        near([axes.get_xticks(), axes.get_yticks()], [[-reach, 0, reach]] * 2)
        assert axes.get_aspect() == 1


def test_width_two_stays_in_its_band_and_width_one_cannot():
    axes = panel("width_two")
    t, wave = curve(axes, "sin")
    near(wave, np.sin(2 * np.pi * t))
    near(t[[0, -1]], [0, 1])
    x, found = curve(axes, "width 2")
    near([x[0], x[-1]], [0, 1])
    inside = np.interp(t, x, found)
    assert np.abs(inside - wave).max() <= 0.2 + 1e-9
    band = collection(axes, "PolyCollection")[0].get_paths()[0].vertices
    near([band[:, 1].min(), band[:, 1].max()], [-1.2, 1.2])
    monotone = curve(axes, "the best that only falls")[1]
    assert (np.diff(monotone) <= 1e-12).all()
    # no falling function is nearer: half of the largest rise
    rise = max(wave[j] - wave[: j + 1].min() for j in range(len(wave)))
    near(np.abs(monotone - wave).max(), rise / 2)
    assert "layers" in line(axes, "width 2").get_label()
    assert line(axes, "the best").get_linestyle() == "--"


def test_maps_of_regions_fill_their_windows():
    grid = panels("region_maps")
    windows = [(-3, 3)] * 3 + [(-2.2, 2.2)] + [(0, 1)] * 2
    for axes, (low, high) in zip(grid, windows, strict=True):
        polygons = [path.vertices for path in collection(axes, "PolyCollection")[0].get_paths()]
        shown = int((axes.get_title() or axes.get_title("left")).split(": ")[1])
        assert shown == len(polygons)
        area = sum(
            abs(np.sum(p[:-1, 0] * p[1:, 1] - p[1:, 0] * p[:-1, 1])) / 2
            for p in (np.vstack([q, q[:1]]) for q in polygons)
        )
        near(area, (high - low) ** 2)
        corners = np.concatenate(polygons)
        near([corners.min(axis=0), corners.max(axis=0)], [[low, low], [high, high]])
    counts = [len(collection(axes, "PolyCollection")[0].get_paths()) for axes in grid]
    # of 16 units in one layer at most 1 + 16 + 120 regions; those of the folded nets by their formula
    assert counts[0] <= 1 + 16 + math.comb(16, 2)
    assert counts[0] < counts[1] < counts[2]
    assert [counts[4], counts[5]] == [11 * 4, 11 * 16]
    classes = points(grid[3])
    assert classes.shape == (2, 400)
    near([classes.mean(axis=1), classes.std(axis=1, ddof=1)], [[0, 0], [1, 1]], 1e-5)
    x, labels, net = regions._trained(16)
    assert ((net(x)[:, 0] > 0).long() == torch.tensor(labels)).double().mean() > 0.97


# ---- fits ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("degrees", [(1, 5, 13), (0, 2, 4)])
def test_polynomials_are_those_of_numpy(degrees):
    arguments = {} if degrees == (1, 5, 13) else {"degrees": degrees}
    for axes, degree, name in zip(panels("fits_by_degree", **arguments), degrees, (" underfits", " fits", " overfits")):
        x, y = points(axes)
        near(x, np.linspace(-2.8, 2.8, 15))
        assert 0.1 < np.std(y - np.sin(1.5 * x)) < 0.6
        best = np.polynomial.Polynomial.fit(x, y, degree)
        near(curve(axes, "fit")[1], best(curve(axes, "fit")[0]), 1e-5)
        near(curve(axes, "truth")[1], np.sin(1.5 * curve(axes, "truth")[0]))
        near(curve(axes, "fit")[0], np.linspace(-3, 3, 601))
        error = ((best(x) - y) ** 2).mean() / 2
        first, second = axes.get_title("left").split("\n")
        assert first == f"degree {degree}{name if not arguments else ''}"
        told = float(second.split()[-1])
        assert told == float(f"{error:.1g}") or (degree == 13 and told / error < 2)  # of degree 13 rounding sees more
        assert axes.get_ylim() == (-2.2, 2.2)


def repeated(make, count: int = 50) -> tuple[np.ndarray, np.ndarray]:
    """Medians of the training error and of the error on new data, by numpy on other random points."""
    random = np.random.default_rng(0)

    def sample(size: int) -> tuple[np.ndarray, np.ndarray]:
        x = random.uniform(-3, 3, size)
        return x, np.sin(1.5 * x) + 0.3 * random.standard_normal(size)

    test, found = sample(2000), []
    for _ in range(count):
        rows = []
        for size, degree in make:
            x, y = sample(size)
            best = np.polynomial.Polynomial.fit(x, y, degree, domain=(-3, 3))
            rows.append([((best(a) - b) ** 2).mean() / 2 for a, b in ((x, y), test)])
        found.append(rows)
    return tuple(np.median(found, axis=0).T)


def test_errors_by_degree_are_those_of_other_points():
    axes = panel("errors_by_degree")
    training, unseen = repeated([(15, degree) for degree in range(12)])
    degrees, ours = curve(axes, "training")
    near(degrees, np.arange(12))
    near(np.log(ours), np.log(training), 0.45)
    near(np.log(curve(axes, "error on new")[1][:9]), np.log(unseen[:9]), 0.8)
    assert (np.diff(ours) <= 0).all()
    assert 3 <= curve(axes, "error on new")[1].argmin() <= 7
    near(curve(axes, "half the noise")[1], 0.045)
    assert axes.get_yscale() == "log"
    assert (axes.get_xscale(), generalisation.NOISE, generalisation.REPEATS) == ("linear", 0.3, 50)


def test_errors_by_size_meet_at_the_noise():
    axes = panel("errors_by_size")
    sizes = (10, 14, 20, 30, 50, 80, 150, 300, 600)
    training, unseen = repeated([(size, 7) for size in sizes])
    count, ours = curve(axes, "training")
    near(count, sizes)
    near(np.log(ours), np.log(training), 0.45)
    near(np.log(curve(axes, "error on new")[1][2:]), np.log(unseen[2:]), 0.5)
    near(curve(axes, "half the noise")[1], 0.045)
    near([ours[-1], curve(axes, "error on new")[1][-1]], 0.045, 0.005)
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")


KERNELS = {
    "Gaussian": lambda u: np.exp(-(u**2) / 2),
    "boxcar": lambda u: (np.abs(u) < 1).astype(float),
    "triangular": lambda u: np.maximum(0, 1 - np.abs(u)),
    "Epanechnikov": lambda u: np.maximum(0, 1 - u**2),
}


def test_four_kernels_and_their_fits():
    rows = np.array(panels("four_kernels")).reshape(3, 4)
    for column, (name, kernel) in enumerate(KERNELS.items()):
        shape, fit, weights = rows[:, column]
        u, height = xy(shape.lines[0])
        near(u[[0, -1]], [-2.5, 2.5])
        off = np.abs(np.abs(u) - 1) > 1e-9  # at the edge of the boxcar either value is right
        near((height / height.max())[off], kernel(u)[off])
        x, y = points(fit)
        assert len(x) == 40
        assert (np.diff(x) >= 0).all()
        width = 0.3 if name == "Gaussian" else 0.75
        line, truth, found = xy(fit.lines[0])[0], xy(fit.lines[0])[1], xy(fit.lines[1])[1]
        near(truth, 2 * np.sin(line) + line)
        table = kernel((line[:, None] - x) / width)
        table /= table.sum(axis=1, keepdims=True)
        near(found, table @ y, 1e-6)
        assert 0.3 < np.std(y - 2 * np.sin(x) - x) < 0.7
        image = weights.images[0]
        near(image.get_array(), table[::3], 1e-6)
        near([*image.get_extent(), *image.get_clim()], [0, 40, 5, 0, 0, 0.4])
        assert fit.get_xlabel() == f"x, bandwidth {width:g}"
        assert shape.get_title("left") == name
        assert shape.lines[0].get_color() == fit.lines[1].get_color() == COLORS[column]
        assert fit.lines[0].get_color() == INK
    assert [axes.get_ylabel() for axes in rows[:, 0]] == ["K(u)", "y", "query x"]


def test_errors_fall_with_the_width():
    left, right = panels("widths")
    x, y = points(left)
    for width in (0.05, 0.3, 1.5):
        line, found = curve(left, f"h = {width:g}")
        table = np.exp(-(((line[:, None] - x) / width) ** 2) / 2)
        near(found, (table @ y) / table.sum(axis=1), 1e-5)
    (truth,) = (xy(each) for each in left.lines if each.get_color() == INK)
    near(truth[1], 2 * np.sin(truth[0]) + truth[0])
    counts, shrinking = curve(right, "h = n")
    near(counts, [30, 100, 300, 1000, 3000, 10_000])
    reference = curve(right, "∝")[1]
    near(reference, shrinking[-1] * (counts / counts[-1]) ** -0.4)
    assert (np.diff(shrinking) < 0).all()
    kept = curve(right, "h = 0.6")[1]
    assert kept[-1] / kept[-2] > 0.97  # its bias stays: that of a mean of the truth around a place, over [0.5, 4.5]
    inner, whole = np.linspace(0.5, 4.5, 81), np.linspace(0, 5, 2001)
    table = np.exp(-(((inner[:, None] - whole) / 0.6) ** 2) / 2)
    bias = table @ (2 * np.sin(whole) + whole) / table.sum(axis=1) - 2 * np.sin(inner) - inner
    assert kept[-1] == pytest.approx(np.sqrt((bias**2).mean()), rel=0.02)
    assert (right.get_xscale(), right.get_yscale()) == ("log", "log")
    assert [each.radius for each in kernel_regression.KERNELS.values()] == [math.inf, 1, 1, 1]
    assert piecewise.SLOPES == SLOPES
    assert to_hex(right.lines[0].get_color()) == COLORS[0]
