"""Figures of optimisation, read as numbers: paths against torch's own optimizers, rates against eigenvalues, bounds and
chords against their formulas."""

import itertools
import math

import numpy as np
import pytest
import torch

from figure_marks import collection, curve, drawn, line, near, panel, panels, points, xy
from quoin.notes import figures
from quoin.notes.figures import adversarial, convexity, descent

pytestmark = pytest.mark.usefixtures("one_thread")

LANDSCAPES = {
    "saddle": lambda x, y: x**2 - y**2,
    "ravine": lambda x, y: (x**2 + 20 * y**2) / 2,
    "two wells": lambda x, y: (x**2 - 1) ** 2 + y**2,
    "Rosenbrock": lambda x, y: (1 - x) ** 2 + 100 * (y - x**2) ** 2,
}
RULES = ["gradient descent", "momentum", "Nesterov", "RMSProp", "Adam"]
LOWEST = {
    "saddle": [],
    "ravine": [(0, 0)],
    "two wells": [(-1, 0), (1, 0)],
    "Rosenbrock": [(1, 1)],
}


def walk(f, start, make, num_steps: int) -> np.ndarray:
    """The path of an optimizer of torch's, (2, steps + 1)."""
    point = torch.tensor(start, dtype=torch.float64, requires_grad=True)
    optimizer, path = make([point]), [point.detach().clone()]
    for _ in range(num_steps):
        optimizer.zero_grad()
        f(*point).backward()
        optimizer.step()
        path.append(point.detach().clone())
    return torch.stack(path).T.numpy()


def gradient(f, start) -> np.ndarray:
    point = torch.tensor(start, dtype=torch.float64, requires_grad=True)
    return torch.autograd.grad(f(*point), point)[0].numpy()


@pytest.mark.parametrize("index", range(4))
def test_paths_are_those_of_the_optimizers_of_torch(index):
    axes = panels("paths_on_landscapes")[index]
    (name,) = (each for each in LANDSCAPES if axes.get_title("left").startswith(each))
    f = LANDSCAPES[name]
    plain = curve(axes, "gradient descent")
    start = plain[:, 0].tolist()
    lr = float((start[0] - plain[0, 1]) / gradient(f, start)[0])  # what the first step tells
    assert 0 < lr < 0.1
    half = {"lr": lr / 2, "momentum": 0.8}
    makers = {
        "gradient descent": lambda theta: torch.optim.SGD(theta, lr),
        "momentum": lambda theta: torch.optim.SGD(theta, **half),
        "Nesterov": lambda theta: torch.optim.SGD(theta, **half, nesterov=True),
        "RMSProp": lambda theta: torch.optim.RMSprop(theta, 0.05, 0.9),
        "Adam": lambda theta: torch.optim.Adam(theta, 0.1),
    }
    for label, make in makers.items():
        near(curve(axes, label)[:, :25], walk(f, start, make, 60)[:, :25], 1e-7)
        near(curve(axes, label)[:, -1], walk(f, start, make, 60)[:, -1], 1e-5)
        assert curve(axes, label).shape == (2, 61)
    starts = [xy(each)[:, 0] for each in axes.lines if each.get_markersize() == 5 and each.get_marker() == "o"]
    near(starts, [start])
    stars = [tuple(xy(each)[:, 0]) for each in axes.lines if each.get_marker() == "*"]
    assert stars == LOWEST[name]
    inside = [axes.get_xlim()[0] < x < axes.get_xlim()[1] and axes.get_ylim()[0] < y < axes.get_ylim()[1]
              for x, y in (start, *stars)]  # fmt: skip
    assert all(inside)
    left = [each.get_label() for each in axes.lines if not each.get_label().startswith("_")]
    assert left[:5] == RULES
    assert len({each.get_color() for each in axes.lines[:5]}) == 5


def test_what_the_caption_says_of_the_paths():
    saddle, slope, wells, valley = panels("paths_on_landscapes")
    plain = curve(saddle, "gradient descent")
    assert np.hypot(*plain).min() < 0.2 < 1 < abs(plain[1, -1])  # into the saddle, then off
    ravine = curve(slope, "gradient descent")[1]
    assert all(one * other < 0 for one, other in itertools.pairwise(ravine[:20]))
    for rule in RULES:
        end = curve(wells, rule)[:, -1]
        assert min(np.hypot(*(end - other)) for other in LOWEST["two wells"]) < 0.4
    assert curve(valley, "gradient descent")[0, -1] < 0
    newton = curve(valley, "Newton")
    assert newton.shape == (2, 8)
    assert np.abs(newton[:, -1] - 1).max() < 1e-9 < np.abs(newton[:, 1] - 1).max()


@pytest.mark.parametrize("index", range(4))
def test_the_lower_the_darker(index):
    """The filled contours are of the landscape itself: their levels span its heights in the window."""
    axes = panels("paths_on_landscapes")[index]
    f = list(LANDSCAPES.values())[index]
    x, y = np.meshgrid(np.linspace(*axes.get_xlim(), 121), np.linspace(*axes.get_ylim(), 121))
    heights = f(x, y)
    heights = np.log1p(heights) if index == 3 else heights
    (filled,) = collection(axes, "ContourSet")
    assert 10 <= len(filled.levels) <= 20
    step = filled.levels[1] - filled.levels[0]
    assert filled.levels[0] <= heights.min() < filled.levels[0] + step
    assert filled.levels[-1] - step < heights.max() <= filled.levels[-1]
    assert filled.get_cmap().name == "Greys_r"
    assert 0.3 < filled.get_alpha() < 0.7
    # where the middle level runs the landscape has that height
    vertices = np.concatenate([path.vertices for path in filled.get_paths()[3:4]])
    found = f(*vertices.T)
    found = np.log1p(found) if index == 3 else found
    assert step * 0.9 < np.ptp(found) < step * 1.1


@pytest.mark.parametrize("start", [2.4, -1.0])
def test_on_a_parabola_the_error_shrinks_by_one_minus_the_learning_rate(start):
    arguments = {} if start == 2.4 else {"start": start}
    steps = (15, 15, 2, 12, 7)
    for axes, lr, count in zip(panels("learning_rates", **arguments), (0.05, 0.5, 1.0, 1.9, 2.05), steps):
        line, path, begin = map(xy, axes.lines)
        near(path[0], start * (1 - lr) ** np.arange(count + 1))
        near(path[1], path[0] ** 2 / 2)
        near(begin[:, 0], [start, start**2 / 2])
        near(line[1], line[0] ** 2 / 2)
        assert axes.get_title("left") == f"η = {lr:g}"
        assert 3 <= line[0].max() <= 3.5  # as far as a start may be chosen
        near(line[0], -line[0][::-1])


def test_on_a_wave_descent_ends_in_the_valley_it_started_in():
    axes = panels("learning_rates")[-1]
    line, *marks = map(xy, axes.lines)
    near(line[1], line[0] * np.cos(math.pi * line[0]))
    near(line[0][[0, -1]], [-1, 2])
    ends = []
    for path, begin in zip(marks[::2], marks[1::2]):
        x = path[0]
        slope = np.cos(math.pi * x) - math.pi * x * np.sin(math.pi * x)
        near(x[1:], x[:-1] - 0.04 * slope[:-1])
        near(path[1], x * np.cos(math.pi * x))
        near(begin[:, 0], path[:, 0])
        assert len(x) == 26
        assert abs(slope[-1]) < 0.01
        assert line[0][0] < x.min() <= x.max() < line[0][-1]
        ends.append(x[-1])
    assert ends[0] < 0 < 1 < ends[1]


def radius(product: float, momentum: float, curvature: float) -> float:
    """The spectral radius of a step of momentum on a parabola of this curvature, by its matrix on (θ_t, θ_{t-1})."""
    return max(abs(np.linalg.eigvals([[1 + momentum - product * curvature, -momentum], [1, 0]])))


def test_momentum_in_the_ravine_goes_as_its_matrix_says():
    grid, momenta, products = panels("momentum_paths"), (0.0, 0.5, 0.85), (0.2, 1.0, 1.9, 2.5)
    for axes, (momentum, product) in zip(grid, itertools.product(momenta, products), strict=True):
        path, begin, star = map(xy, axes.lines)
        expected = [path[:, 0]]
        velocity = np.zeros(2)
        for _ in range(60):
            velocity = momentum * velocity - product / 20 * np.array([1, 20]) * expected[-1]
            expected.append(expected[-1] + velocity)
        near(path.T, expected, 1e-7)
        near(begin, path[:, :1])
        near(star, 0)
        worst = max(radius(product, momentum, curvature) for curvature in (1 / 20, 1))
        title = axes._left_title
        assert title.get_text() == f"ρ = {worst:.3f}"
        assert (title.get_color() == descent.COLORS[1]) == (worst > 1)
        assert title.get_color() == axes.lines[0].get_color() in descent.COLORS[:2]
        assert axes.get_xlim()[0] < path[0, 0] < axes.get_xlim()[1]
        assert axes.get_ylim()[0] < path[1, 0] < axes.get_ylim()[1]
    assert [axes.get_ylabel() for axes in grid[::4]] == ["m = 0", "m = 0.5", "m = 0.85"]
    assert [axes.get_xlabel() for axes in grid[8:]] == ["γL = 0.2", "γL = 1", "γL = 1.9", "γL = 2.5"]


@pytest.mark.parametrize("condition", [20.0, 5.0])
def test_the_phases_of_momentum_are_spectral_radii(condition):
    arguments = {} if condition == 20 else {"condition": condition}
    left, right, bar = panels("momentum_phase", **arguments)
    for axes, curvatures in ((left, (1.0,)), (right, (1 / condition, 1.0))):
        (mesh,) = collection(axes, "QuadMesh")
        corners = np.asarray(mesh.get_coordinates())
        middle = (corners[1:, 1:] + corners[:-1, :-1]) / 2
        shown = np.ma.filled(mesh.get_array().reshape(middle.shape[:2]), np.nan)
        assert (mesh.get_clim(), mesh.get_cmap().name) == ((0, 1), "viridis")
        for i, j in itertools.product(range(0, middle.shape[0], 33), range(0, middle.shape[1], 27)):
            product, momentum = middle[i, j]
            worst = max(radius(product, momentum, each) for each in curvatures)
            if worst < 1 - 1e-6:
                assert shown[i, j] == pytest.approx(worst, abs=1e-6)
            elif worst > 1 + 1e-6:
                assert np.isnan(shown[i, j])
        assert middle[..., 1].min() >= 0
        assert 0.99 < middle[..., 1].max() < 1
        assert 0 < middle[..., 0].min() < 0.05
        assert middle[..., 0].max() > 4  # so far is it stable with momentum near 1
        border, star, dot = map(xy, axes.lines)
        near(border[0], 2 * (1 + border[1]))
        near([border[1].min(), border[1].max()], [0, 0.995])
        # Polyak's best choice, and the best without momentum
        small, large = min(curvatures), max(curvatures)
        root = (math.sqrt(large) - math.sqrt(small)) / (math.sqrt(large) + math.sqrt(small))
        near(star[:, 0], [4 / (math.sqrt(large) + math.sqrt(small)) ** 2, root**2])
        near(dot[:, 0], [2 / (small + large), 0])
        (lines,) = (each for each in axes.collections if each is not mesh)
        assert list(lines.levels) == [0.5, 0.7, 0.8, 0.9, 0.95]
        (text,) = (each for each in axes.texts if "γL" in each.get_text())
        assert abs(text.get_position()[0] - 2 * (1 + text.get_position()[1])) < 0.5  # beside its line
        slope = np.diff(axes.transData.transform([(2, 0), (4, 1)]), axis=0)[0]
        assert text.get_rotation() == pytest.approx(math.degrees(math.atan2(slope[1], slope[0])), abs=0.5)
    assert right.get_title("left").endswith(f"L/{condition:g} to L")
    assert "ρ" in bar.get_ylabel()
    assert np.diff(left.get_ylim()) < 1.2


# ---- convexity ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ends", [(-1.5, 1.0), (-0.5, 2.0)])
def test_chords_join_two_points_of_the_curve(ends):
    functions = {
        "½x²": lambda x: x**2 / 2,
        "cos": lambda x: np.cos(math.pi * x),
        "$": lambda x: np.exp(x / 2),
    }
    arguments = {} if ends == (-1.5, 1.0) else {"a": ends[0], "b": ends[1]}
    for axes, (name, f) in zip(panels("chords", **arguments), functions.items()):
        near(curve(axes, "f")[1], f(curve(axes, "f")[0]))
        near(curve(axes, "f")[0][[0, -1]], [-2, 2])
        near(curve(axes, "chord"), [ends, f(np.array(ends))])
        assert axes.get_title("left").startswith(name)
        assert axes.get_title("left").endswith(": not convex" if name == "cos" else ": convex")
        near(axes.get_xticks(), ends)
        assert not len(axes.get_yticks())
        x = curve(axes, "f")[0]
        x = x[(x > ends[0]) & (x < ends[1])]
        chord = np.interp(x, ends, f(np.array(ends)))
        for fill, higher in zip(axes.collections, (chord, f(x)), strict=True):  # blue where the chord is above
            corners = np.concatenate([path.vertices for path in fill.get_paths()])
            high = np.abs(chord - f(x)) > 0.2
            filled = np.array([any(path.contains_point(each) for path in fill.get_paths())
                               for each in zip(x, (chord + f(x)) / 2)])  # fmt: skip
            assert (filled[high] == (higher > np.minimum(chord, f(x)))[high]).all()
            assert corners[:, 0].min() >= ends[0] - 1e-9
            assert corners[:, 0].max() <= ends[1] + 1e-9


def test_sublevel_sets_and_the_chords_that_leave_them():
    bowl, hollows = panels("below_sets")
    values = [lambda x, y: np.cosh(1.5 * x + y) - 1 + 2 * y**2, lambda x, y: (x**2 - 1) ** 2 + y**2]
    for axes, f in ((bowl, values[0]), (hollows, values[1])):
        assert (len(axes.get_xticks()), len(axes.get_yticks())) == (0, 0)  # shapes, not places
        filled, edges = axes.collections
        assert list(edges.levels) == [0.4, 1.2, 2.0]
        assert list(filled.levels) == [-1, 0.4, 1.2, 2.0]
        for path, level in zip(edges.get_paths(), edges.levels):
            near(f(*path.vertices.T), level, 0.03)
        near([axes.get_xlim(), axes.get_ylim()], [[-1.8, 1.8]] * 2, 0.01)
        assert sorted({each.get_text() for each in axes.texts}) == ["b = 0.4", "b = 1.2", "b = 2"]
    assert not bowl.lines  # convex
    for level, (chord, outside) in zip((0.4, 1.2, 2.0), zip(hollows.lines[::2], hollows.lines[1::2]), strict=True):
        ends, (point,) = xy(chord).T, xy(outside).T
        assert (values[1](*xy(chord)) <= level + 1e-9).all()
        assert values[1](*point) > level
        assert np.hypot(*(ends[0] - point)) + np.hypot(*(ends[1] - point)) == pytest.approx(
            np.hypot(*(ends[0] - ends[1]))
        )
    assert [xy(each)[0].tolist() for each in panels("below_sets", levels=(2.0, 1.2, 0.4))[1].lines] == [
        xy(each)[0].tolist() for each in hollows.lines
    ]  # in any order


def test_the_run_stays_below_both_bounds_and_the_bounds_are_the_theorems():
    axes = panel("bound_beside_the_run")
    t, run = curve(axes, "the run")
    sublinear, linear = curve(axes, "|θ₀")[1], curve(axes, "(L/2)")[1]
    near(t, np.arange(1, 151))
    assert (run[:-1] > 0).all()
    assert (run <= sublinear).all()
    assert (run <= linear).all()
    near(sublinear * t, sublinear[0])
    ratios = linear[1:] / linear[:-1]
    near(ratios, ratios[0], 1e-7)
    # of |θ₀ − θ*|² / (2η) = L/2 |θ₀ − θ*|² both begin, the second times (1 − ημ)²
    near(linear[0] / sublinear[0], ratios[0], 1e-7)
    assert 0.9 < ratios[0] < 1
    assert run[-1] < run[0] / 1000  # a run of the same cost as its minimum's
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    tight = panel("bound_beside_the_run", l2=1.0, num_steps=20)
    faster = curve(tight, "(L/2)")[1]
    assert faster[1] / faster[0] < ratios[0]  # the larger μ / L, the faster


# ---- the adversarial game -----------------------------------------------------------------------------------------


def test_the_best_discriminator_and_the_one_that_was_learnt():
    axes = panels("adversarial_game")[0]
    x, fake = curve(axes, "p_G")

    def normal(mean: float, std: float) -> np.ndarray:
        return np.exp(-(((x - mean) / std) ** 2) / 2) / (std * math.sqrt(2 * math.pi))

    real = 0.4 * normal(-1.5, 0.5) + 0.6 * normal(1.2, 0.7)
    near(fake, normal(0, 1.2), 1e-5)
    near(curve(axes, "D*")[1], real / (real + fake), 1e-4)
    near(x[[0, -1]], [-3, 3])
    (band,) = collection(axes, "PolyCollection")
    assert band.get_paths()[0].vertices[:, 1].max() == pytest.approx(real.max(), abs=1e-6)
    learnt = curve(axes, "D, learnt")[1]
    weight = (real + fake) / (real + fake).sum()
    assert (weight * abs(learnt - curve(axes, "D*")[1])).sum() < 0.05  # where there are samples
    assert line(axes, "D, learnt").get_linestyle() == "--"
    assert axes.get_ylim() == (0, 1.1)


def test_both_players_steps_by_hand():
    """D(x) = sigmoid(ψ x), data at 0, fakes at θ: V = ln ½ + ln sigmoid(-ψθ), and the penalty γ/2 ψ²."""
    axes = panels("adversarial_game")[1]
    for label, strength in (("free", 0.0), ("with a penalty", 0.3)):
        theta, psi, expected = 0.6, 0.0, [(0.6, 0.0)]
        for _ in range(150):
            slope = -1 / (1 + math.exp(-psi * theta))  # of ln sigmoid(-u) by u = ψθ
            theta, psi = theta - 0.2 * slope * psi, psi + 0.2 * (slope * theta - strength * psi)
            expected.append((theta, psi))
        near(curve(axes, label).T, expected, 1e-4)
    assert np.hypot(*curve(axes, "free")[:, -1]) > 0.6 > 0.05 > np.hypot(*curve(axes, "with a penalty")[:, -1])
    near([axes.get_xlim(), axes.get_ylim()], [[-1.5, 1.5]] * 2)
    near(xy(axes.lines[2]), 0)


def test_the_ring_has_eight_modes_and_most_samples_are_near_one():
    axes = panels("adversarial_game")[2]
    centers = xy(axes.lines[0])
    near(np.hypot(*centers), 1, 1e-6)
    near(np.sort(np.angle(centers[0] + 1j * centers[1]) % (2 * np.pi)), np.arange(8) * np.pi / 4, 1e-6)
    samples = points(axes)
    assert samples.shape == (2, 1500)
    away = np.hypot(*(samples[:, :, None] - centers[:, None])).min(axis=1)
    assert axes.get_xlabel() == f"{(away <= 0.2).mean():.0%} of the samples are near a mode"  # of four deviations 0.05
    assert axes.get_title("left") == "samples of G: 8 of 8 modes"
    assert (away <= 0.2).mean() > 0.5
    assert (adversarial.MODES, adversarial.NOISE) == (8, 0.05)
    assert drawn("adversarial_game").alt == figures.adversarial_game.caption


def test_a_bowl_is_its_formula():
    x = torch.tensor([[0.5, -0.25], [-1.0, 2.0]], dtype=torch.float64)
    near(convexity._bowl(x), [math.cosh(0.5) - 1 + 0.125, math.cosh(0.5) - 1 + 8])
