"""What each kind of plot shows of what it is given: every mark at its number, every name at its mark, one scale where
one is promised, and long or odd input without a loss that could be seen."""

import itertools
import math

import numpy as np
import pytest
import torch
from matplotlib.colors import to_hex, to_rgb

from figure_marks import collection, near, xy
from quoin import plot
from quoin.plot import Band, CoordinateAxis, PolygonMap, Volume, layered, palette
from quoin.plot.bands import curve_bands
from quoin.plot.plots import COLORS, FAINT, INK, WIDTH
from quoin.plot.smoothing import smoothed

pytestmark = pytest.mark.usefixtures("one_thread")


def parts(drawing) -> list:
    return list(drawing.figure.axes)


def legend(drawing) -> list[str]:
    return [text.get_text() for each in drawing.figure.legends for text in each.get_texts()]


# ---- curves, bars, points -----------------------------------------------------------------------------------------


def test_curves_have_colours_dashes_and_levels_of_their_own():
    series = {f"run {k}": ([1, 2, 3], [k, k + 1, k + 2]) for k in range(9)}
    drawing = plot.curves(series, reference_lines={"target": 2.5}, vertical_lines={"now": 2.0, "then": 3.0})
    (axes,) = parts(drawing)
    looks = [(line.get_color(), line.get_linestyle()) for line in axes.lines[:9]]
    assert len(set(looks)) == 9
    assert [color for color, _ in looks[:7]] == list(COLORS)
    assert looks[7] == (COLORS[0], "--")
    near([xy(line) for line in axes.lines[:9]], [[[1, 2, 3], [k, k + 1, k + 2]] for k in range(9)])
    level, now, then = axes.lines[9:]
    near(xy(level)[1], 2.5)
    near([xy(now)[0], xy(then)[0]], [[2, 2], [3, 3]])
    assert len({now.get_color(), then.get_color(), level.get_color()}) == 3
    assert legend(drawing) == [*series, "target (2.5)", "now (2)", "then (3)"]
    assert axes.lines[0].get_marker() == "o"
    assert all(tick == round(tick) for tick in axes.get_xticks())


def test_long_curves_have_no_dots_and_single_ones_no_legend():
    drawing = plot.curves({"a": (range(21), range(21))}, title="t", x_label="x", y_label="y", log_x=True)
    (axes,) = parts(drawing)
    assert axes.lines[0].get_marker() in ("None", None)
    assert legend(drawing) == []
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "linear")
    assert (axes.get_title("left"), axes.get_xlabel(), axes.get_ylabel()) == ("t", "x", "y")
    assert drawing.alt == "t"
    assert any(line.get_visible() for line in axes.get_xgridlines())


def test_predictions_stand_in_a_square_window_about_the_diagonal():
    (axes,) = parts(plot.scatter([0.0, 10.0, math.nan], [2.0, 4.0, 1.0]))
    near([axes.get_xlim(), axes.get_ylim()], [[-0.5, 10.5]] * 2)
    near(collection(axes, "PathCollection")[0].get_offsets()[:2], [[0, 2], [10, 4]])
    diagonal = axes.lines[0]
    assert (diagonal.get_xy1(), diagonal.get_slope()) == ((0.0, 0.0), 1)
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_aspect()) == ("true", "predicted", 1)
    (same,) = parts(plot.scatter([3.0, 3.0], [3.0, 3.0]))
    near(same.get_xlim(), [2.85, 3.15])
    (nothing,) = parts(plot.scatter([0.0], [0.0]))
    near(nothing.get_xlim(), [-1, 1])


def test_bars_are_as_long_as_their_numbers_the_first_on_top():
    (axes,) = parts(plot.bars({"a": 3.0, "b": -1.5, "c": math.inf}, x_label="x"))
    near([bar.get_width() for bar in axes.patches], [3, -1.5, 0])
    tops = [axes.transData.transform((0, bar.get_y()))[1] for bar in axes.patches]
    assert tops[0] > tops[1] > tops[2]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["a", "b", "c"]
    near(axes.get_yticks(), [bar.get_y() + bar.get_height() / 2 for bar in axes.patches])
    assert [text.get_text() for text in axes.texts] == ["3", "−1.5", "inf"]
    near(xy(axes.lines[0])[0], 0)


def test_bands_have_one_look_a_label_in_all_panels():
    flat, wide = Band([1, 2, 3], [1, 2, 3], [1, 2, 3], [1, 2, 3]), Band([1, 2, 3], [2, 2, 2], [1, 0, 1], [3, 4, 3])
    drawing = curve_bands(
        {"one": {"a": flat, "b": wide}, "two": {"b": wide, "c": flat}},
        faint=["c"],
        x_label="x",
        y_label="y",
        log_y=True,
    )
    first, second = parts(drawing)
    near([xy(line)[1] for line in first.lines], [[1, 2, 3], [2, 2, 2]])
    assert [line.get_color() for line in first.lines] == list(COLORS[:2])
    assert [line.get_color() for line in second.lines] == [COLORS[1], FAINT]
    assert first.lines[1].get_linestyle() == second.lines[0].get_linestyle() != first.lines[0].get_linestyle()
    assert [len(each.collections) for each in (first, second)] == [1, 1]
    corners = first.collections[0].get_paths()[0].vertices
    near([corners[:, 1].min(), corners[:, 1].max()], [0, 4])
    assert to_hex(first.collections[0].get_facecolor()[0]) == COLORS[1]
    assert legend(drawing) == ["a", "b", "1 others", "min to max"]
    assert (first.get_ylabel(), second.get_ylabel(), first.get_xlabel()) == ("y", "", "x")
    assert [each.get_title("left") for each in (first, second)] == ["one", "two"]
    assert first.get_yscale() == "log"
    near(first.get_ylim(), second.get_ylim())
    dot = parts(curve_bands({"one": {"a": Band([1], [2], [2], [2])}}))[0].lines[0]
    assert dot.get_marker() == "o"
    many = {f"{k}": flat for k in range(49)}
    looks = {(line.get_color(), str(line._dash_pattern)) for line in parts(curve_bands({"one": many}))[0].lines}
    assert len(looks) == 49
    sevens = parts(curve_bands({"one": dict(itertools.islice(many.items(), 7))}))[0].lines
    assert len({line.get_color() for line in sevens}) == len({str(line._dash_pattern) for line in sevens}) == 7


def test_points_side_by_side_have_the_window_of_the_first_and_last():
    clouds = {"first": [[0, 0], [1, 2]], "between": [[9, 9], [0, 1]], "last": [[4, 0], [0, 2]]}
    drawing = plot.scatter_panels(clouds, title="t")
    for axes, (label, cloud) in zip(parts(drawing), clouds.items(), strict=True):
        near([axes.get_xlim(), axes.get_ylim()], [[-0.2, 4.2], [-0.2, 2.2]])
        near(collection(axes, "PathCollection")[0].get_offsets(), cloud)
        assert axes.get_title() == label
    (axes,) = parts(plot.scatter_by_class({f"{k}": [[k, k], [0, 1]] for k in range(9)}, x_label="x", y_label="y"))
    marks = collection(axes, "PathCollection")
    assert [to_hex(each.get_facecolor()[0]) for each in marks] == [*COLORS, *COLORS[:2]]
    assert marks[0].get_paths()[0].vertices.shape != marks[7].get_paths()[0].vertices.shape
    near([axes.get_xlim(), axes.get_ylim()], [[-0.4, 8.4]] * 2)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [f"{k}" for k in range(9)]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x", "y")


# ---- tables, images, signals --------------------------------------------------------------------------------------


def test_a_heat_map_has_white_at_zero_and_thins_its_names():
    axes, bar = parts(plot.heatmap([[1.0, -4.0], [math.nan, 2.0]], x_label="x", y_label="y", show_values=True))
    (mesh,) = collection(axes, "QuadMesh")
    assert mesh.get_clim() == (-4, 4)
    near(mesh.get_cmap()(mesh.norm(0.0))[:3], 1, 0.01)  # paper
    where = {text.get_text(): text.get_position() for text in axes.texts}
    assert where == {"1": (0.5, 0.5), "−4": (1.5, 0.5), "nan": (0.5, 1.5), "2": (1.5, 1.5)}
    assert bar.get_ylim() == (-4, 4)
    amounts = collection(parts(plot.heatmap([[0.0, 3.0]]))[0], "QuadMesh")[0]
    assert amounts.get_clim() == (0, 3)
    assert parts(plot.heatmap([[0.0]]))[0].collections[0].get_clim() == (0, 1)
    long = parts(plot.heatmap(np.ones((45, 20)), column_labels=["names"] * 20))[0]
    near(long.get_yticks(), np.arange(0, 45, 3) + 0.5)
    assert [text.get_text() for text in long.get_yticklabels()] == [str(k) for k in range(0, 45, 3)]
    near(long.get_xticks(), np.arange(20) + 0.5)
    assert {text.get_rotation() for text in long.get_xticklabels()} == {45}
    assert {text.get_rotation() for text in long.get_yticklabels()} == {0}


def test_images_for_the_eye_are_rescaled_and_said_to_be():
    plain = torch.tensor([[[[0.25, 1.0]]]])
    assert plot.viewable(plain).caption == ""
    near(plot.viewable(plain).images, plain)
    seen = plot.viewable(torch.tensor([[[[-1.0, 3.0]], [[1.0, 5.0]]]]))
    near(seen.images, [[[[0, 1]]]])
    assert seen.caption == "Shown is the mean of 2 channels. Rescaled for the eye: black is 0, white is 4."
    near(plot.viewable(torch.full((1, 1, 1, 2), 7.0)).images, 0)


def test_small_images_become_finer_and_stay_in_range():
    images = np.zeros((1, 1, 8, 4))
    images[..., 4:, :] = 1.0
    finer = smoothed(images)
    assert finer.shape == (1, 1, 128, 64)
    assert finer.min() == 0
    assert finer.max() == 1
    near(finer.reshape(1, 1, 8, 16, 4, 16).mean(axis=(3, 5))[0, 0, [0, 7]], [[0] * 4, [1] * 4], 0.05)
    assert smoothed(np.zeros((1, 1, 128, 8))).shape == (1, 1, 128, 8)
    assert smoothed(np.zeros((10_000, 1, 32, 32))).shape == (10_000, 1, 32, 32)


def test_feature_maps_share_a_scale_within_their_row():
    rows = {"a": np.stack([np.full((2, 2), v) for v in (1.0, 2.0, 3.0)]), "b": np.full((1, 1, 2), -0.5)}
    (axes,) = parts(plot.feature_map_rows(rows, columns=2, captions={"b": ["one"]}))
    near([np.asarray(image.get_array()).flatten()[0] for image in axes.images], [1, 2, 3, -0.5])
    assert [image.get_clim() for image in axes.images] == [(0, 3)] * 3 + [(-0.5, 0.5)]
    left, right, low, high = np.array([image.get_extent() for image in axes.images]).T
    assert left[0] == left[2] == left[3] == 0
    assert left[1] > right[0]
    assert high[2] > low[0]
    assert high[3] > low[2]
    near(right - left, 1)
    near(low - high, [1, 1, 1, 0.5])
    texts = [text.get_text() for text in axes.texts]
    assert texts == ["a\nup to 3", "one", "b\n±0.5"]
    assert axes.get_ylim()[0] > low.max()
    assert len(axes.patches) == 4


def test_signals_keep_their_peaks_and_one_scale():
    signals = np.zeros((4, 2, 5000))
    signals[1, 0, 1234], signals[2, 1, 77] = 9.0, -3.0
    drawing = plot.signal_grid(signals, list("abcd"), title="t")
    panels = parts(drawing)
    assert {axes.get_ylim() for axes in panels} == {(-3.6, 9.6)}
    curves = [[xy(line) for line in axes.lines[1:]] for axes in panels]
    assert all(len(curve) == 2 for curve in curves)
    x, y = curves[1][0]
    assert x[y.argmax()] == 1234
    assert y.max() == 9
    assert len(x) <= 400
    x, y = curves[2][1]
    assert (x[y.argmin()], y.min()) == (77, -3)
    assert (np.diff(x) >= 0).all()
    short = parts(plot.signal_grid(np.arange(6.0).reshape(1, 2, 3)))[0]
    near([xy(line) for line in short.lines[1:]], [[[0, 1, 2], [0, 1, 2]], [[0, 1, 2], [3, 4, 5]]])
    assert [line.get_color() for line in short.lines[1:]] == list(COLORS[:2])
    labelled = [axes.xaxis.get_tick_params()["labelbottom"] for axes in panels]
    assert labelled == [False, True, True, True]  # the lowest of each column
    assert [axes.yaxis.get_tick_params()["labelleft"] for axes in panels] == [True, False, False, True]
    assert [axes.get_title() or axes.get_title("left") for axes in panels] == list("abcd")


def test_a_sheet_puts_image_after_image():
    images = np.linspace(0, 1, 5)[:, None, None] * np.ones((5, 3, 4))
    page = np.asarray(parts(plot.image_sheet(images, columns=2))[0].images[0].get_array())
    gap = 1
    assert page.shape == (3 * (3 + gap) + gap, 2 * (4 + gap) + gap, 3)
    for index in range(5):
        row, column = divmod(index, 2)
        cell = page[gap + row * 4 : gap + row * 4 + 3, gap + column * 5 : gap + column * 5 + 4]
        near(cell, index / 4)
    assert np.ptp(page[9:12, 6:10].reshape(-1, 3), axis=0).max() == 0  # what is left over is paper
    assert tuple(page[0, 0]) == tuple(page[10, 7]) == tuple(page[-1, -1])
    square = np.asarray(parts(plot.image_sheet(images))[0].images[0].get_array())
    assert square.shape == (2 * 4 + 1, 3 * 5 + 1, 3)
    axes = parts(plot.image_table(np.zeros((2, 3, 3, 4)), row_labels=["a", "b"], column_labels=["x", "y", "z"]))[0]
    near(axes.get_xticks(), [3, 8, 13])
    near(axes.get_yticks(), [2.5, 6.5])
    assert [text.get_text() for text in axes.get_xticklabels()] == ["x", "y", "z"]


# ---- classifiers --------------------------------------------------------------------------------------------------


def test_a_table_of_scores_writes_each_in_its_cell():
    (axes,) = parts(plot.score_table([[0.5, math.nan], [1.0, 0.25]], row_labels=["a", "b"], column_labels=["p", "r"]))
    where = {text.get_position(): text.get_text() for text in axes.texts}
    assert where == {(0.5, 0.5): "0.500", (1.5, 0.5): "–", (0.5, 1.5): "1.000", (1.5, 1.5): "0.250"}
    assert axes.yaxis_inverted()
    near([axes.get_xticks(), axes.get_yticks()], [[0.5, 1.5]] * 2)
    assert [text.get_text() for text in axes.get_yticklabels()] == ["a", "b"]
    (mesh,) = collection(axes, "QuadMesh")
    shades = [mesh.get_cmap()(mesh.norm(value)) for value in (0.0, 0.25, 0.5, 1.0)]
    assert to_hex(shades[0]) == palette.LIGHT.paper
    assert np.all(np.diff([shade[0] for shade in shades]) < 0)  # the bluer the larger


def test_roc_curves_and_the_diagonal():
    fpr = np.linspace(0, 1, 5001)
    (axes,) = parts(plot.roc_curves({"a": (fpr, np.sqrt(fpr)), "b": ([0, 1], [0, 1])}))
    random, first, second = axes.lines
    near(xy(random), [[0, 1], [0, 1]])
    x, y = xy(first)
    near(y, np.sqrt(x))
    near([x[0], x[-1]], [0, 1])
    assert 900 < len(x) <= 1000
    assert [first.get_color(), second.get_color()] == list(COLORS[:2])
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["random", "a", "b"]
    near([axes.get_xticks(), axes.get_yticks()], [[0, 0.5, 1]] * 2)


def test_reliability_by_bins():
    upper, lower = parts(plot.reliability_diagram([0.1, math.nan, 0.9], [0.2, math.nan, 0.8], [10, 0, 30]))
    near([bar.get_height() for bar in upper.patches], [0.2, 0, 0.8])
    near([bar.get_x() + bar.get_width() / 2 for bar in upper.patches], [1 / 6, 0.5, 5 / 6])
    near([bar.get_height() for bar in lower.patches], [0.25, 0, 0.75])
    near([bar.get_x() + bar.get_width() / 2 for bar in lower.patches], [1 / 6, 0.5, 5 / 6])
    assert all(0.28 < bar.get_width() < 1 / 3 for bar in (*upper.patches, *lower.patches))
    diagonal, means = upper.lines
    near(xy(diagonal), [[0, 1], [0, 1]])
    near(xy(means)[:, [0, 2]], [[0.1, 0.9], [0.2, 0.8]])
    assert [text.get_text() for text in lower.get_yticklabels()] == ["0", "75%"]
    near(lower.get_yticks(), [0, 0.75])
    near(lower.get_xlim(), upper.get_xlim())


# ---- graphs, polygons, axes ---------------------------------------------------------------------------------------


def test_a_chain_is_straight_and_an_edge_past_a_layer_is_laid_round_it():
    layout = layered.layered([1.0, 1.0, 1.0], [(0, 1), (1, 2), (0, 2)], 0.2)
    assert [level for _, level in layout.positions] == [0, 1, 2]
    assert [level for _, level in layout.routes[0, 2]] == [0, 1, 2]
    (aside, _), (middle, _) = layout.routes[0, 2][1], layout.positions[1]
    assert abs(aside - middle) >= 0.5 + 0.06 + 0.2 - 1e-9
    straight = layered.layered([1.0, 3.0, 1.0], [(0, 1), (1, 2)], 0.2)
    near([x for x, _ in straight.positions], straight.positions[0][0])
    beside = layered.layered([1.0, 2.0, 1.0], [(0, 2), (1, 2)], 0.3)
    assert abs(beside.positions[0][0] - beside.positions[1][0]) >= 1.8 - 1e-9
    # crossed at first: 0 to 3 and 1 to 2 are laid side by side
    crossed = layered.layered([1.0] * 4, [(0, 3), (1, 2)], 0.1).positions
    assert (crossed[0][0] - crossed[1][0]) * (crossed[3][0] - crossed[2][0]) > 0
    # a source stands just above what it feeds
    assert layered.layered([1.0] * 4, [(0, 1), (1, 2), (3, 2)], 0.1).positions[3][1] == 1


def test_polygons_share_a_scale_and_keep_their_extent():
    square, triangle = np.array([[0.0, 0], [2, 0], [2, 1], [0, 1]]), np.array([[0.0, 0], [1, 0], [0, 3]])
    maps = {
        "a": PolygonMap([square], [4.0], [[0.5, 0.5], [1.0, 0.5]], [0, 1]),
        "b": PolygonMap([triangle], [-2.0]),
        "c": PolygonMap([triangle, square]),
    }
    first, second, third = parts(plot.polygon_maps(maps, title="t"))
    near([first.get_xlim(), first.get_ylim(), second.get_xlim(), second.get_ylim()], [[0, 2], [0, 1], [0, 1], [0, 3]])
    (one,), (two,) = (collection(axes, "PolyCollection")[0].get_facecolors() for axes in (first, second))
    assert one[2] > one[0] > 0
    assert two[0] > two[2]  # vermilion below zero
    assert (one[2] - one[0]) > (two[0] - two[2]) * 0.8
    near(collection(first, "PathCollection")[0].get_offsets(), [[0.5, 0.5], [1, 0.5]])
    assert [to_hex(each) for each in collection(first, "PathCollection")[0].get_facecolors()] == list(COLORS[:2])
    pale = collection(third, "PolyCollection")[0].get_facecolors()[:, :3]
    assert np.abs(pale[0] - pale[1]).max() > 0.1
    assert (pale.max(axis=1) > 0.95).all()
    assert to_hex(collection(third, "PolyCollection")[0].get_edgecolors()[0]) == INK
    assert [axes.get_title("left") for axes in (first, second, third)] == ["a", "b", "c"]


def test_parallel_axes_from_the_least_to_the_largest():
    axes = [
        CoordinateAxis("lr", [0.001, 0.1, 0.01], log=True),
        CoordinateAxis("name", ["b", "a", "c"], choices=("a", "b", "c")),
        CoordinateAxis("loss", [3.0, 1.0, 2.0]),
    ]
    (plane,) = parts(plot.parallel_coordinates(axes, best=1))
    lines = [xy(line)[1] for line in plane.lines if len(xy(line)[0]) == 3]
    expected = {0: [0, 0.5, 1], 1: [1, 0, 0], 2: [0.5, 1, 0.5]}
    near(lines, [expected[0], expected[2], expected[1]])  # the better, the later; the best on top
    best = next(line for line in plane.lines if line.get_label() == "best")
    near(xy(best), [[0, 1, 2], expected[1]])
    assert best.get_color() == palette.LIGHT.change
    assert [text.get_text() for text in plane.get_xticklabels()] == ["lr", "name", "loss"]
    told = {
        (round(text.get_position()[0] - 0.03), round(text.get_position()[1], 3)): text.get_text()
        for text in plane.texts
    }
    assert told[0, 0.0] == "0.001"
    assert told[0, 1.0] == "0.1"
    assert [told[1, height] for height in (0, 0.5, 1)] == ["a", "b", "c"]
    assert (told[2, 0.0], told[2, 1.0]) == ("1", "3")
    near([xy(line)[0, 0] for line in plane.lines if len(xy(line)[0]) == 2], [0, 1, 2])
    greens = [to_rgb(line.get_color())[0] for line in plane.lines[:2]]
    assert greens[0] > greens[1]  # the better, the darker


def test_volumes_stand_side_by_side_and_never_overlap():
    outputs = [Volume((3, 32, 32), "image", "in"), Volume((8, 16, 16), "convolution"), Volume((10,), "dense", "out")]
    (axes,) = parts(plot.volumes(outputs))
    fronts = [patch.get_xy() for patch in axes.patches[2::3]]
    widths = [np.ptp(front[:, 0]) for front in fronts]
    near(widths, [3**0.35, 8**0.35, 10**0.35])
    heights = [np.ptp(front[:, 1]) for front in fronts]
    near(heights[0] / heights[1], 2**0.6)
    near([front[:-1, 1].mean() for front in fronts], 0)
    gaps = [other[:, 0].min() - one[:, 0].max() for one, other in itertools.pairwise(fronts)]
    assert 0 < gaps[0] < gaps[1]  # a label begins a group
    assert [text.get_text() for text in axes.texts] == ["in", "", "out"]
    every = np.concatenate([patch.get_xy() for patch in axes.patches])
    assert axes.get_xlim()[0] < every[:, 0].min() < every[:, 0].max() < axes.get_xlim()[1]
    assert axes.get_ylim()[0] < every[:, 1].min() < every[:, 1].max() < axes.get_ylim()[1]
    assert plot.volumes(outputs).figure.get_size_inches()[0] == WIDTH
