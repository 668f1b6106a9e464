"""Figures of networks, read as numbers: random features and gradients against their bounds, samples by their faults,
diffusion, graphs and shapes by counting."""

import itertools
import math
import re

import numpy as np
import pytest
import torch
from matplotlib.colors import to_hex

from figure_marks import collection, curve, drawn, near, panel, panels, points, xy
from quoin.data import load, load_karate_club
from quoin.notes.figures import random_features, samples
from quoin.plot.plots import COLORS, INK

pytestmark = pytest.mark.usefixtures("one_thread")


def words(axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def test_errors_of_random_features_fall_as_one_over_the_root():
    for axes, length in zip(panels("error_by_number_of_features"), (0.35, 0.7, 1.05), strict=True):
        lines, dots = axes.lines[::2], axes.lines[1::2]
        counts, plain = xy(lines[0])
        near(counts, [32, 64, 128, 256, 512, 1024, 2048])
        # x ⟂ y of this length: |x + y|² = 2 l², and positive features have variance (e^{2 l²} - 1) / m about 1
        near(plain, np.sqrt(np.expm1(2 * length**2) / counts), 1e-6)
        near(xy(lines[2])[1] * np.sqrt(counts), xy(lines[2])[1][0] * math.sqrt(32), 1e-6)
        for mark, dot in zip(lines, dots, strict=True):
            near(np.log(xy(dot)[1]), np.log(xy(mark)[1]), 0.3)
            near(xy(dot)[0], counts)
            assert mark.get_color() == dot.get_color()
        assert (xy(lines[1])[1] < plain).all()
        assert (xy(lines[3])[1] < xy(lines[2])[1]).all()
        assert (xy(lines[2])[1] < plain).all()
        assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
        near(axes.get_xticks(), [32, 256, 2048])
    generator = torch.Generator().manual_seed(0)
    near(torch.stack(random_features.pairs(0.5, 7, generator)).norm(dim=-1), 0.5)


def test_as_many_singular_values_as_features():
    for axes in panels("rank_of_features"):
        for label, most in (("exp(QKᵀ)", 60), ("8 features", 8), ("32 features", 32)):
            number, values = curve(axes, label)
            near(number, np.arange(1, most + 1))
            assert values[0] == 1
            assert (np.diff(values) <= 0).all()
        assert axes.get_yscale() == "log"
    short, long = (curve(axes, "exp(QKᵀ)")[1] for axes in panels("rank_of_features"))
    assert short[20] < long[20] / 3  # the longer the vectors, the slower the fall


def test_gradients_through_time_stay_below_their_bounds():
    axes = panel("gradients_by_lag")
    for size in (0.8, 1.4):
        lags, found = curve(axes, f"plain, ‖W_h‖ = {size:g}")
        bound = curve(axes, f"its bound, {size:g}^lag")[1]
        near(lags, np.arange(1, 61))
        near(np.log(bound), lags * math.log(size))
        assert (found <= bound).all()
    kept = next(xy(each)[1] for each in axes.lines if each.get_label() == "plain, ‖W_h‖ = 1")
    assert (kept <= 1 + 1e-9).all()
    near(curve(axes, "bound where")[1], 1)
    for name in ("GRU", "LSTM"):
        gated = curve(axes, name)[1]
        assert gated[-1] > 3 * curve(axes, "plain, ‖W_h‖ = 0.8")[1][-1]
        # an open gate keeps at least about sigmoid(4) of the state
        assert gated[-1] > 0.02 if name == "GRU" else gated[-1] > 1e-3
    assert axes.get_yscale() == "log"


def test_measures_of_samples_tell_the_faults_apart():
    found = {}
    for axes in panels("what_measures_see"):
        real, model = points(axes), points(axes, 1)
        assert real.shape == model.shape == (2, 400)
        found[axes.get_title("left")] = (model, axes.get_xlabel().split())
        near([axes.get_xlim(), axes.get_ylim()], [[-3.4, 3.4]] * 2)
    angles = {name: np.angle(model[0] + 1j * model[1]) % (2 * np.pi) for name, (model, _) in found.items()}
    modes = {name: np.bincount(np.round(each / (np.pi / 3)).astype(int) % 6, minlength=6) / 400
             for name, each in angles.items()}  # fmt: skip
    near(modes["the distribution itself"], 1 / 6, 0.06)
    near(modes["two modes lost"], [0.25] * 4 + [0] * 2, 0.08)
    near(modes["one mode too often"], [2.5 / 7.5] + [1 / 7.5] * 5, 0.08)
    away = {name: np.hypot(*model) for name, (model, _) in found.items()}
    for name in ("the distribution itself", "two modes lost", "one mode too often", "training examples"):
        near([away[name].mean(), away[name].std()], [2, 0.2], 0.03)
    assert 0.35 < away["too wide"].std() < 0.5
    assert np.abs(found["noise"][0]).max() <= 3
    near(found["noise"][0].std(axis=1), 6 / math.sqrt(12), 0.15)
    names = ("mmd", "frechet", "density", "coverage", "ratio")
    told = {name: dict(zip(names, (float(label[i]) for i in (1, 3, 5, 7, -1)))) for name, (_, label) in found.items()}
    own = told["the distribution itself"]
    assert told["too wide"]["density"] < 0.7 < own["density"]
    assert told["two modes lost"]["coverage"] < 0.75 < own["coverage"]
    assert told["one mode too often"]["coverage"] > 0.9
    assert told["one mode too often"]["mmd"] > 5 * abs(own["mmd"])
    assert told["training examples"]["ratio"] < 0.3 < 0.8 < own["ratio"] < 1.2
    assert samples.MODES == 6


def test_diffusion_forth_and_back():
    grid = panels("forth_and_back")
    forward, schedules, ways = grid[:5], grid[5], grid[6:]
    clean = points(forward[0])
    assert clean.shape == (2, 400)
    near(clean.mean(axis=1), 0)
    for axes, angle in zip(forward, (0, 0.2, 0.4, 0.7, 1)):
        signal = np.sum(points(axes) * clean) / np.sum(clean**2)
        assert signal == pytest.approx(math.cos(angle * math.pi / 2), abs=0.06)
        assert axes.get_aspect() == 1
    times = [int(axes.get_title().removeprefix("t = ")) for axes in forward]
    assert (times[0], times[-1]) == (0, 1000)
    assert (np.abs(np.array(times) / 1000 - [0, 0.2, 0.4, 0.7, 1]) < 0.01).all()  # the cosine one is even in the angle
    time, linear = curve(schedules, "linear")
    near(time, np.arange(1, 1001))
    kept = np.cumprod(1 - np.linspace(1e-4, 0.02, 1000))
    near(linear, np.log(kept / (1 - kept)) / 2, 2e-3)
    for label in ("linear", "cosine", "sigmoid"):
        assert (np.diff(curve(schedules, label)[1]) < 0).all()
    for axes, many in zip(ways, (40, 4), strict=True):
        assert len(axes.lines) == many
        noise, ends = points(axes, 1), points(axes, 2)
        near(points(axes), clean, 1e-6)
        near([xy(each)[:, 0] for each in axes.lines], noise.T[:many])
        near([xy(each)[:, -1] for each in axes.lines], ends.T[:many])
        assert {len(xy(each)[0]) for each in axes.lines} == {101}
        assert np.hypot(*(ends[:, :, None] - clean[:, None])).min(axis=1).max() < 0.5  # clouds of deviation 0.1
    near(points(ways[0], 1), points(ways[1], 1))
    (level,) = (xy(each)[1] for each in schedules.lines if len(xy(each)[0]) == 2)
    near(level, 0)


def test_masked_convolutions_see_what_comes_before():
    """A pixel sees only what is before it in reading order; the plain stack misses a wedge to the upper right."""
    plain, two = panels("receptive_fields")
    for axes, blind_expected in ((plain, True), (two, False)):
        colors = {patch.get_xy()[::-1]: to_hex(patch.get_facecolor()) for patch in axes.patches}
        assert len(colors) == 81
        seen = {place for place, color in colors.items() if color == COLORS[0]}
        blind = {place for place, color in colors.items() if color == COLORS[1]}
        assert [place for place, color in colors.items() if color == INK] == [(5, 4)]
        before = {(i, j) for i, j in colors if (i, j) < (5, 4) and 5 - i <= 4 and abs(j - 4) <= 4}
        assert seen | blind == before
        # of each layer the right end is one column further per row: a wedge of slope one stays out of sight
        wedge = {(i, j) for i, j in before if j - 4 > 5 - i}
        assert blind == (wedge if blind_expected else set())
        assert axes.get_title("left") == (
            f"plain stack: {len(wedge)} blind pixels" if blind_expected else "two stacks: no blind pixels"
        )
        assert not axes.axison


def test_the_karate_club_and_how_far_word_gets():
    grid = panels("factions_and_propagation")
    club = load_karate_club()
    links = np.eye(34)
    links[club.edges[0], club.edges[1]] = links[club.edges[1], club.edges[0]] = 1
    degrees = links.sum(axis=1)
    step = links / np.sqrt(np.outer(degrees, degrees))
    reached = [np.eye(34)[0], step[0], (step @ step)[0]]
    for axes, signal in zip(grid[3:], reached, strict=True):
        fill = collection(axes, "PathCollection")[0].get_facecolors()
        paper = np.array([to_hex(each) == "#ffffff" or each[:3].min() > 0.985 for each in fill])
        assert (paper == (signal < 0.02 * signal.max())).mean() > 0.95
        assert fill[:, 2].argsort()[:1].size == 1
        assert fill[:, 0].argmin() == signal.argmax()  # the deepest blue
    colors = [collection(axes, "PathCollection")[0].get_facecolors() for axes in grid[:3]]
    blue = [each[:, 2] > each[:, 0] for each in colors]
    assert (blue[0] == (club.labels.numpy() == 0)).all()
    assert (blue[2] == blue[0]).mean() > 0.9  # from two labels alone
    rims = collection(grid[0], "PathCollection")[0].get_linewidths()
    assert [index for index, width in enumerate(rims) if width > 1] == sorted(club.seed_nodes)


def test_graphs_hold_values_and_adjoints():
    """y = exp(u) + sin(u) with u = x₁x₂: dy/du = exp(u) + cos(u), and dx₁ = x₂ dy/du."""
    told = " ".join(words(panel("reverse_mode"))).replace("−", "-")
    slope = math.e + math.cos(1)
    for value in (0.5, 2.0, math.e, math.sin(1), math.e + math.sin(1), 2 * slope, 0.5 * slope, slope):
        assert any(abs(float(each) - value) < 6e-3 * max(1, abs(value)) for each in numbers_in(told)), value
    assert drawn("regularized_loss").figure.findobj(lambda each: "λ = 0.1" in getattr(each, "get_text", str)())


def numbers_in(text: str) -> list[str]:
    return re.findall(r"-?\d+(?:\.\d+)?", text)


def test_blocks_and_networks_by_counting():
    blocks = words(panel("residual_blocks"))
    assert blocks.count("F(x) + s(x), ReLU") == 3
    assert sum("3×3" in word for word in blocks) >= 4
    assert {"64 × 56 × 56", "512 × 28 × 28", "256 × 56 × 56"} <= {word.split(": ")[-1] for word in blocks}
    axes = panel("vgg")
    count = sum(9 * a * b + b for a, b in itertools.pairwise([3, 64, 64])) + sum(
        9 * a * b + b
        for a, b in ((64, 128), (128, 128), (128, 256), (256, 256), (256, 256), (256, 512), *[(512, 512)] * 5)
    )
    count += 512 * 49 * 4096 + 4096 + 4096 * 4096 + 4096 + 4096 * 1000 + 1000
    assert axes.get_title() == f"VGG-16: {count:,} parameters"
    assert {"224²\n×3", "224²\n×64", "112²\n×128", "56²\n×256", "28²\n×512", "14²\n×512", "4096", "1000"} <= set(
        words(axes)
    )
    for name, layers in (("two_five_one", (2, 5, 1)), ("four_hidden_units", (3, 4, 3)), ("linear_regression", (3, 1))):
        net = panel(name)
        segments = collection(net, "LineCollection")[0].get_segments()
        assert len(segments) == sum(a * b for a, b in itertools.pairwise(layers))
        assert len(net.patches) == sum(layers)
    surfaces = panels("random_realizations")
    assert len({axes.get_zlim() for axes in surfaces}) == len(surfaces) == 6
    for axes in surfaces:  # over [-2, 2] in both variables, with matplotlib's margin
        near([axes.get_xlim(), axes.get_ylim()], [[-2, 2]] * 2, 0.1)
        assert np.ptp(axes.get_zlim()) > 0.1
    shown = panel("layer_by_layer").images
    data = load("digits")
    near(shown[0].get_array(), data.features[int((data.targets == 3).nonzero()[0]), 0])
    assert np.asarray(shown[-10].get_array()).size == 1
    assert int(np.argmax([float(np.max(each.get_array())) for each in shown[-10:]])) == 3
