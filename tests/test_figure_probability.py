"""Figures of probability, read as numbers: distributions by counting and by scipy, posteriors by Bayes' rule, limits
and chains by powers and convolutions."""

import itertools
import math

import numpy as np
import pytest
from matplotlib.colors import to_hex
from scipy import integrate, stats

from figure_marks import collection, curve, lengths, near, panel, panels, xy
from quoin.notes.figures import limits, probability, processes
from quoin.plot.plots import COLORS

pytestmark = pytest.mark.usefixtures("one_thread")


# ---- probability --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sides", [6, 4])
def test_two_dice_by_counting(sides):
    table, chart = panels("distribution_of_the_sum", **({} if sides == 6 else {"num_sides": sides}))
    rolls = list(itertools.product(range(1, sides + 1), repeat=2))
    image = np.asarray(table.images[0].get_array())
    assert table.images[0].origin == "lower"
    near(table.images[0].get_extent(), (0.5, sides + 0.5) * 2)
    assert {(i, j): image[i - 1, j - 1] for i, j in rolls} == {(i, j): i + j for i, j in rolls}
    assert sorted((text.get_position(), text.get_text()) for text in table.texts) == sorted(
        ((j, i), str(i + j)) for i, j in rolls
    )
    counts = np.bincount([i + j for i, j in rolls])[2:]
    near(lengths(chart), counts / sides**2)
    near([bar.get_x() + bar.get_width() / 2 for bar in chart.patches], range(2, 2 * sides + 1))
    near(xy(chart.lines[0])[0], sides + 1)
    # a bar has the colour of its outcomes
    shades = table.images[0].get_cmap()(table.images[0].norm(np.arange(2, 2 * sides + 1)))
    assert [to_hex(bar.get_facecolor()) for bar in chart.patches] == [to_hex(shade) for shade in shades]
    assert len({to_hex(shade) for shade in shades}) == 2 * sides - 1
    near(table.get_xticks(), range(1, sides + 1))
    near(table.get_yticks(), range(1, sides + 1))
    near(chart.get_xticks(), range(2, 2 * sides + 1))


def test_a_positive_test_by_bayes_rule():
    axes = panel("what_a_test_says")
    for label, alarm in (("finds 99% of the ill, 5.0%", 0.05), ("finds 99% of the ill, 0.5%", 0.005)):
        prior, posterior = curve(axes, label)
        near(posterior, 0.99 * prior / (0.99 * prior + alarm * (1 - prior)))
        near(prior[[0, -1]], [1e-4, 1])
    near(*curve(axes, "no test"))
    assert axes.get_xscale() == "log"
    one = 0.01 * 0.99 / (0.01 * 0.99 + 0.99 * 0.05)
    near(xy(axes.lines[3])[:, 0], [0.01, one], 1e-6)
    (said,) = axes.texts
    assert said.get_text() == "one in six"
    near(said.xy, [0.01, one], 1e-6)
    other = panel("what_a_test_says", sensitivity=0.5)
    assert other.texts[0].get_text() == f"{0.005 / (0.005 + 0.99 * 0.05):.0%}"
    prior, posterior = curve(other, "finds 50% of the ill, 0.5%")
    near(posterior, 0.5 * prior / (0.5 * prior + 0.005 * (1 - prior)))


def bell(x, mean: float = 0.0, std: float = 1.0) -> np.ndarray:
    return np.exp(-(((x - mean) / std) ** 2) / 2) / (std * math.sqrt(2 * math.pi))


def two_hills(x, y):
    ridge = 0.6 * bell(x, -1, 0.6) * bell(y, -0.5 - 0.8 * (x + 1), 0.6)
    return ridge + 0.4 * bell(x, 1.2, 0.5) * bell(y, 0.9, 0.7)


def test_slices_of_a_density_are_divided_by_their_mass():
    whole, cuts = panels("slices_of_a_density")
    mass, _ = integrate.dblquad(lambda y, x: two_hills(x, y), -6, 6, -6, 6)
    assert mass == pytest.approx(1, abs=1e-6)
    line = np.linspace(-8, 8, 8001)
    for cut, height in zip(whole.lines, (1.2, 0.0, -1.0), strict=True):
        near(xy(cut)[1], height)
        x, density = curve(cuts, f"given y = {height:g}".replace("-", "−"))
        near(density, two_hills(x, height) / np.trapezoid(two_hills(line, height), line), 1e-6)
        (same,) = (each for each in cuts.lines if each.get_color() == cut.get_color())
        near(xy(same)[1], density)
    x, marginal = curve(cuts, "marginal")
    near(marginal, 0.6 * bell(x, -1, 0.6) + 0.4 * bell(x, 1.2, 0.5), 1e-6)
    near(x[[0, -1]], [-3.2, 3.2])
    (filled,) = whole.collections
    x, y = np.meshgrid(np.linspace(-3.2, 3.2, 161), np.linspace(-3, 3.2, 156))
    assert filled.levels[-2] < two_hills(x, y).max() <= filled.levels[-1]
    for path in filled.get_paths()[4:6]:  # along a border of a level the density is that level
        inside = path.vertices[(np.abs(path.vertices) < 2.9).all(axis=1)]
        assert np.min(np.abs(two_hills(*inside.T)[:, None] - filled.levels), axis=1).max() < 0.004
    assert cuts.get_ylim() == (0, 1.1)


@pytest.mark.parametrize("counts", [(4, 16, 64), (2, 3, 6)])
def test_mass_on_squares_along_the_diagonal(counts):
    arguments = {} if counts == (4, 16, 64) else {"counts": counts}
    for axes, count in zip(panels("mass_on_the_diagonal", **arguments), counts, strict=True):
        edges = np.linspace(-3, 3, count + 1)
        squares = [(*each.get_xy(), each.get_width(), each.get_height()) for each in axes.patches]
        near(squares, [(low, low, 6 / count, 6 / count) for low in edges[:-1]])
        cells = np.diff(stats.norm.cdf(edges))
        area, copied, independent = axes.get_title("left").split("\n")
        assert area == f"area {36 / count:.2g}"
        assert copied == f"(X, X): {cells.sum():.1%}"
        assert independent == f"independent: {(cells**2).sum():.1%}"
        assert axes.get_aspect() == 1
        near([axes.get_xlim(), axes.get_ylim(), axes.get_xticks()[[0, 2]], axes.get_yticks()[[0, 2]]], [[-3, 3]] * 4)


def test_likelihoods_of_a_coin():
    axes = panel("likelihoods_sharpen")
    levels = [xy(each)[0, 0] for each in axes.lines if each.get_label().startswith("_")]
    for count, level in zip((10, 40, 160), levels, strict=True):
        heads = round(0.3 * count)
        theta, found = curve(axes, f"{heads} of {count} heads")
        expected = stats.binom.pmf(heads, count, theta) / stats.binom.pmf(heads, count, heads / count)
        near(found, expected, 1e-6)
        assert level == pytest.approx(heads / count)
        assert 0 < theta[0] < 0.01
        assert 0.99 < theta[-1] < 1
    assert axes.get_xlim() == (0, 1)


# ---- limits -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("omega", [0.31, 0.5])
def test_the_typewriter_strikes_each_point_once_a_block(omega):
    upper, lower = panels("typewriter_strokes", **({} if omega == 0.31 else {"omega": omega}))
    strokes = [(parts, index) for parts in range(2, 10) for index in range(parts)]  # block by block
    near(lengths(upper), [1 / parts for parts, _ in strokes])
    near(lengths(lower), [1 / parts for parts, _ in strokes])
    near([each.get_y() for each in upper.patches], [index / parts for parts, index in strokes])
    for axes in (upper, lower):
        near([each.get_x() + each.get_width() / 2 for each in axes.patches], range(1, 45))
        assert 0.7 < axes.patches[0].get_width() < 1
    struck = [number for number, (parts, index) in enumerate(strokes, start=1) if index == math.floor(omega * parts)]
    assert [n for n, each in enumerate(upper.patches, 1) if to_hex(each.get_facecolor()) == COLORS[1]] == struck
    assert {to_hex(each.get_facecolor()) for each in upper.patches} == set(COLORS[:2])
    (marks,) = (xy(each) for each in lower.lines if each.get_marker() == "^")
    near(marks, [struck, np.zeros(len(struck))])
    near([xy(each)[1] for each in upper.lines if each.get_linestyle() == "--"], [[omega, omega]])
    begins = [number - 0.5 for number, (_, index) in enumerate(strokes, start=1) if index == 0]
    for axes in (upper, lower):
        near(sorted(xy(each)[0, 0] for each in axes.lines if list(xy(each)[1]) == [0, 1]), begins)
    assert upper.get_ylim() == (0, 1)
    assert upper.texts[0].get_text() == f"ω = {omega}"
    assert upper.texts[0].get_position()[1] == omega
    assert lower.get_xlim()[0] == 0 < 44 < upper.texts[0].get_position()[0] < lower.get_xlim()[1]


def test_running_means_settle_where_there_is_a_mean():
    for axes, mean in zip(panels("means"), (0.5, 1.0, 3.0, None), strict=True):
        paths = [xy(each) for each in axes.lines if len(xy(each)[0]) > 2]
        assert len(paths) == 10
        for n, path in paths:
            assert (n[0], n[-1]) == (1, 10_000)
            assert (np.diff(n) >= 1).all()
            assert len(path) > 200
        if mean is not None:
            (level,) = (xy(each)[1] for each in axes.lines if len(xy(each)[0]) == 2)
            near(level, mean)
            assert np.median([abs(path[-1] - mean) for _, path in paths]) < 0.1 * mean + 0.01
        assert axes.get_xscale() == "log"
        assert axes.get_ylim() == {0.5: (0, 1), 1.0: (0, 2), 3.0: (0, 6), None: (-10, 10)}[mean]
        assert len({line.get_color() for line in axes.lines[:7]}) == 7
    uniform, exponential, pareto, cauchy = ([xy(each)[1] for each in axes.lines[:10]] for axes in panels("means"))
    assert all(0 < path.min() <= path.max() < 1 for path in uniform)
    assert all(path.min() > 0 for path in exponential)
    assert all(path.min() >= 1 for path in pareto)  # Pareto's least value is 1
    assert any(path.min() < 0 for path in cauchy)
    spread = [np.std([path[-1] for path in paths]) for paths in (uniform, exponential)]
    near(spread, [math.sqrt(1 / 12) / 100, 1 / 100], 0.8)


DISTRIBUTIONS = {"a coin": [0.5, 0.5], "a die": [1 / 6] * 6, "a rare event": [0.9, 0.1]}


def centered(probs: list[float], count: int) -> tuple[np.ndarray, np.ndarray, float]:
    """By convolving again and again."""
    exact = np.array([1.0])
    for _ in range(count):
        exact = np.convolve(exact, probs)
    x = np.arange(len(probs))
    mean = x @ probs
    std = math.sqrt((x - mean) ** 2 @ probs * count)
    return (np.arange(len(exact)) - count * mean) / std, exact, 1 / std


def test_sums_become_normal_by_convolution():
    counts = (1, 2, 8, 32, 128)
    grid = np.array(panels("sums_become_normal")).reshape(4, 5)
    for row, probs in enumerate(DISTRIBUTIONS.values()):
        for axes, count in zip(grid[row], counts):
            values, exact, spacing = centered(probs, count)
            near(lengths(axes), exact / spacing, 1e-6)
            near([each.get_x() + each.get_width() / 2 for each in axes.patches], values, 1e-6)
            near([each.get_width() for each in axes.patches], spacing)
    for axes in grid.flatten():
        x, normal = xy(axes.lines[0])
        near(normal, bell(x))
        near([x[0], x[-1], *axes.get_xlim(), *axes.get_ylim()], [-4, 4, -4, 4, 0, 0.6])
        assert len(x) > 100
    for axes, count in zip(grid[3], counts):  # a histogram of 20 000 samples of √n times a Cauchy variable
        edges = np.linspace(-4, 4, 41)
        expected = np.diff(stats.cauchy.cdf(edges / math.sqrt(count))) / 0.2
        near(lengths(axes), expected, 6 * math.sqrt(0.05 / 20_000) / 0.2)
        near([each.get_x() for each in axes.patches], edges[:-1], 1e-5)
    assert [axes.get_title("left") for axes in grid[0]] == [f"n = {count}" for count in counts]
    assert [axes.get_ylabel() for axes in grid[:, 0]] == [*DISTRIBUTIONS, "Cauchy"]


def test_the_distance_of_sums_to_the_normal_one():
    axes = panel("distance_by_count")
    counts = [2**power for power in range(11)]
    for name, probs in DISTRIBUTIONS.items():
        n, found = curve(axes, name)
        assert n.tolist() == counts
        for count, distance in zip(counts[:8], found):  # the supremum lies at a jump, on one side of it
            values, exact, _ = centered(probs, count)
            above = np.cumsum(exact)
            normal = stats.norm.cdf(values)
            expected = max(np.abs(above - normal).max(), np.abs(above - exact - normal).max())
            assert distance == pytest.approx(expected, abs=1e-6)
    line = np.linspace(0, 3000, 2_000_001)
    for count, distance in zip(counts, curve(axes, "Cauchy")[1], strict=True):
        gap = stats.norm.cdf(line) - stats.cauchy.cdf(line / math.sqrt(count)) if count in (1, 64) else None
        assert gap is None or distance == pytest.approx(np.abs(gap).max(), abs=1e-4)
    assert (np.diff(curve(axes, "Cauchy")[1]) > 0).all()
    near(curve(axes, "1 / √n")[1], [count**-0.5 for count in counts])
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    values, exact, spacing = limits.centered_sums(limits.DISTRIBUTIONS["a die"], 3)
    assert float(values.square() @ exact) == pytest.approx(1)
    assert spacing == pytest.approx(1 / math.sqrt(3 * 35 / 12))


# ---- processes ----------------------------------------------------------------------------------------------------

FIVE = np.array([[0, 0, 0.5, 0, 0.5], [1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0.2] * 5, [0, 0, 0, 1, 0]])


def test_the_distribution_of_a_chain_by_powers_of_its_matrix():
    grid = np.array(panels("distribution_by_step")).reshape(2, 6)
    near(processes.FIVE, FIVE)
    limit = np.linalg.matrix_power(FIVE, 4000)[0]
    for (row, state), (column, step) in itertools.product(enumerate((1, 4)), enumerate((0, 1, 2, 4, 8, 16))):
        axes = grid[row, column]
        near(lengths(axes), np.linalg.matrix_power(FIVE, step)[state - 1])
        near([each.get_x() + each.get_width() / 2 for each in axes.patches], range(1, 6))
        near([xy(each)[1] for each in axes.lines], np.stack([limit, limit], axis=1), 1e-6)
        near([xy(each)[0] for each in axes.lines], [(k - 0.5, k + 0.5) for k in range(1, 6)])
        near([*axes.get_ylim(), *axes.get_xticks()], [0, 1.05, 1, 2, 3, 4, 5])
        assert {to_hex(each.get_facecolor()) for each in axes.patches} == {COLORS[row]}
    assert [axes.get_title("left") for axes in grid[0]] == [f"n = {step}" for step in (0, 1, 2, 4, 8, 16)]
    assert [axes.get_ylabel() for axes in grid[:, 0]] == ["from state 1", "from state 4"]


def test_a_function_of_a_chain_by_adding_up_its_paths():
    axes = panel("function_forgets")
    labels, start = np.array([0, 0, 0, 1, 1]), np.linalg.matrix_power(FIVE, 4000)[0]

    def weight(outputs: tuple[int, ...]) -> float:
        belief = start * (labels == outputs[0])
        for each in outputs[1:]:
            belief = (belief @ FIVE) * (labels == each)
        return belief.sum()

    names = [text.get_text() for text in axes.get_yticklabels()]
    assert len(names) == 6
    for name, bar in zip(names, axes.patches, strict=True):
        past = tuple(int(each) - 1 for each in name.removeprefix("after ").split())
        assert bar.get_width() == pytest.approx(weight((*past, 1)) / weight(past), abs=1e-6)
    heights = {name: bar.get_width() for name, bar in zip(names, axes.patches)}
    assert heights["after 1 1"] == pytest.approx(5 / 24)  # as the caption says, and 1/6 after another past
    assert heights["after 2 1"] == pytest.approx(1 / 6)


def test_sample_paths_of_six_processes():
    walk, gaussian, chain, freezing, plane, brownian = panels("sample_paths")
    for axes in (walk, gaussian, brownian):
        paths = np.array([xy(each)[1] for each in axes.lines])
        times = xy(axes.lines[0])[0]
        assert len(paths) == 6
        band = collection(axes, "PolyCollection")[0].get_paths()[0].vertices
        if axes is not walk:
            near(paths[:, 0], 0)
            moves = np.diff(paths) / np.sqrt(np.diff(times))
            near([moves.mean(), moves.std()], [0, 1], 0.25)
        else:
            assert set(np.abs(np.diff(paths)).flatten()) == {1}
            assert abs(np.diff(paths).mean()) < 5 / math.sqrt(360)
            assert set(np.abs(paths[:, 0])) == {1}  # a first step is made already
        high, low = (band[band[:, 1] * sign > 0] for sign in (1, -1))
        for half, sign in ((high, 1), (low, -1)):
            variance = half[:, 0] + (1 if axes is walk else 0)
            near(half[:, 1], sign * 2 * np.sqrt(variance), 1e-6)
        near([times[0], times[-1]], [0, 1] if axes is brownian else [0, 60])
    for axes, name in ((chain, "chain"), (freezing, "freezing")):
        paths = [xy(each)[1] for each in axes.lines]
        states = np.round(paths)
        shifts = paths - states
        near(shifts, np.broadcast_to(shifts[:, :1], shifts.shape))
        near(np.diff(shifts[:, 0]), 0.09)
        near(shifts.sum(axis=0), 0)
        assert (np.abs(np.diff(states)) <= 1).all()  # neighbours only
        assert set(states.flatten()) <= {0, 1, 2}, name
        assert (states[:, 0] == 1).all()
        assert 0 < (np.diff(states) != 0).mean() < 0.2
        assert axes.lines[0].get_drawstyle() == "steps-post"
        near(axes.get_yticks(), [0, 1, 2])
    late = np.diff(np.round([xy(each)[1] for each in freezing.lines]))[:, 45:]
    assert (late != 0).mean() < 0.06
    ways, ends = [xy(each) for each in plane.lines[:12:2]], [xy(each) for each in plane.lines[1:12:2]]
    near([way[:, -1:] for way in ways], ends)
    near([way[:, 0] for way in ways], 0)
    near(xy(plane.lines[-1]), 0)
    moves = np.concatenate([np.diff(way) for way in ways], axis=1)
    near(np.cov(moves), [[1, 0.8], [0.8, 1]], 0.3)
    assert probability.LINE[0] == -math.inf == -probability.LINE[-1]
