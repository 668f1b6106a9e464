"""Figures of layers, read as numbers: encodings and scores by their formulas, tables, normalisations and convolutions
entry by entry."""

import itertools
import math

import numpy as np
import pytest
from matplotlib.colors import to_hex
from scipy import special, stats

from figure_marks import collection, curve, near, panel, panels, xy
from quoin.data import load
from quoin.plot.plots import COLORS

pytestmark = pytest.mark.usefixtures("one_thread")


def words(axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


# ---- positions ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "dim"), [(128, 32), (40, 8)])
def test_sinusoidal_encodings(count, dim):
    left, right = panels("sinusoidal_encodings", **({} if dim == 32 else {"num_positions": count, "dim": dim}))[:2]
    angles = np.arange(count)[:, None] / 10000 ** (np.arange(0, dim, 2) / dim)
    expected = np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(count, dim)
    for axes, table, top in ((left, expected, 1), (right, expected @ expected.T, dim / 2)):
        near(axes.images[0].get_array(), table, 1e-4)
        near(axes.images[0].get_clim(), [-top, top])
        near(axes.get_xticks(), np.arange(4) * (table.shape[1] // 4))
        near(axes.get_yticks(), np.arange(4) * (count // 4))


def test_rotary_scores_are_sums_of_cosines_of_the_offset():
    left, right = panels("rotary_scores")
    frequencies = 10000 ** -(np.arange(0, 32, 2) / 32)
    for label in ("query at m = 60", "query at m = 1000"):
        offsets, found = curve(left, label)
        near(offsets, np.arange(-60, 61))
        near(found, np.cos(offsets[:, None] * frequencies).mean(axis=1), 1e-5)
    one, other = curve(right, "RoFormer")[1], curve(right, "as printed")[1]
    near(one, other[::-1], 1e-6)  # rotated the other way it is mirrored
    assert np.abs(one - other).max() > 0.1
    for axes in (left, right):
        (middle,) = (xy(each)[0] for each in axes.lines if list(xy(each)[1]) == [0, 1])
        near(middle, 0)
    assert left.lines[0].get_linewidth() > left.lines[1].get_linewidth()  # both must be seen


@pytest.mark.parametrize("heads", [8, 4])
def test_biases_by_distance(heads):
    left, right = panels("biases_by_distance", **({} if heads == 8 else {"num_heads": heads}))
    for head, mark in enumerate(left.lines, start=1):
        distance, bias = xy(mark)
        near(distance, np.arange(-32, 33))
        near(bias, -(2.0 ** (-8 * head / heads)) * np.abs(distance))
    assert len(left.lines) == heads
    near(np.diff([mark.get_alpha() for mark in left.lines]) < 0, True)
    for text, mark in zip(left.texts, left.lines, strict=False):
        near(text.xy, xy(mark)[:, -1])
    assert words(left) == [str(head) for head in range(1, min(heads, 5) + 1)]
    for mark, first in zip(right.lines, (0, 16), strict=True):
        distance, bucket = xy(mark)
        near([distance.min(), distance.max()], [-150, 0] if first == 0 else [1, 150])
        far = np.abs(distance)
        # T5: the first 8 distances have a bucket each, the others share 8 by logarithm up to 128
        shared = 8 + np.floor(np.log(np.maximum(far, 1) / 8) / math.log(16) * 8 + 1e-6)
        near(bucket, first + np.where(far < 8, far, np.minimum(15, shared)))
        assert mark.get_drawstyle() == "steps-mid"


# ---- tables, convolutions, normalisation --------------------------------------------------------------------------

VALUES = np.array([[1, -2, 0], [3, 1, -1], [-1, 2, 4], [0, -3, 2], [2, 0, -1]])


@pytest.mark.parametrize("arguments", [{}, {"scale": 3.0, "coefficient": -1.0}])
def test_a_table_answers_with_the_sum_of_its_values(arguments):
    scale, other = ({"scale": 5.0, "coefficient": 2.0} | arguments).values()
    unit = np.eye(5)
    queries = [unit[2], unit[2] + other * unit[4], unit[2], scale * unit[2]]
    for axes, query, softmax in zip(
        panels("lookup_table", **arguments), queries, (False, False, True, True), strict=True
    ):
        numbers = [(text.get_position(), text.get_text()) for text in axes.texts]
        cells = {}
        for (x, y), text in numbers:
            plain = text.replace("−", "-")
            if x % 1 in (0.5,) or abs(x - 6.1) < 0.01 or abs((x - 7.6) % 1 - 0.5) < 0.01:
                try:
                    cells[round(x, 2), round(y, 2)] = float(plain)
                except ValueError:
                    continue
        weights = special.softmax(query) if softmax else query
        near([cells[0.5 + i, 0.5] for i in range(5)], query, 0.006)
        rows = [3.1 + 1.25 * i for i in range(5)]
        near([[cells[0.5 + j, round(row, 2)] for j in range(5)] for row in rows], unit)
        near([cells[6.1, round(row, 2)] for row in rows], weights, 0.006)
        near([[cells[round(8.1 + j, 2), round(row, 2)] for j in range(3)] for row in rows], VALUES)
        near([cells[round(8.1 + j, 2), 10.1] for j in range(3)], weights @ VALUES, 0.006)
        # a cell that is positive is blue, one that is not vermilion, the deeper the larger
        for patch in axes.patches:
            if not hasattr(patch, "get_x") or not patch.get_fill():
                continue
            number = cells[round(patch.get_x() + 0.5, 2), round(patch.get_y() + 0.5, 2)]
            assert to_hex(patch.get_facecolor()) == (COLORS[0] if number > 0 else COLORS[1]) or number == 0
            row = round((patch.get_y() - 2.6) / 1.25)
            counts = min(1, abs(weights[row])) if patch.get_x() > 7 and patch.get_y() < 9 else 1  # faint if it does not
            largest = 5 if patch.get_x() > 7 else 2
            assert patch.get_facecolor()[3] == pytest.approx(0.75 * counts * min(1, abs(number) / largest), abs=0.006)
        assert not axes.axison


@pytest.mark.parametrize(("row", "column"), [(1, 2), (0, 1)])
def test_an_output_is_the_sum_of_products_under_the_kernel(row, column):
    axes = panel("kernel_over_image", **({} if row == 1 else {"row": row, "column": column}))
    cells = {text.get_position(): text.get_text().replace("−", "-") for text in axes.texts}

    def table(left: float, size: int) -> np.ndarray:
        top = (4 - size) / 2
        return np.array([[float(cells[left + j + 0.5, top + i + 0.5]) for j in range(size)] for i in range(size)])

    image, kernel, output = table(0, 4), table(5.5, 2), table(9, 3)
    for i, j in np.ndindex(3, 3):
        assert output[i, j] == (image[i : i + 2, j : j + 2] * kernel).sum()
    (sentence,) = (word for word in words(axes) if "·" in word)
    left, right = sentence.replace("−", "-").split(" = ")
    products = [[float(each.strip("()")) for each in product.split("·")] for product in left.split(" + ")]
    near([each[0] for each in products], image[row : row + 2, column : column + 2].flatten())
    near([each[1] for each in products], kernel.flatten())
    assert float(right) == output[row, column]
    filled = [(*patch.get_xy(), patch.get_width(), patch.get_height()) for patch in axes.patches if patch.get_fill()]
    near(filled, [(column, row, 2, 2), (5.5, 1, 2, 2), (9 + column, 0.5 + row, 1, 1)])
    assert {"⋆", "=", "input", "kernel", "output"} <= set(words(axes))


def test_edges_are_differences_of_brightness():
    grid = np.array(panels("edges_of_digits")).reshape(3, 4)
    data = load("digits")
    for column, digit in enumerate((0, 1, 4, 7)):
        picture = data.features[int((data.targets == digit).nonzero()[0])][0].double().numpy()
        near(grid[0, column].images[0].get_array(), picture)
        padded = np.pad(picture, 1)
        smooth = padded[:-2] + 2 * padded[1:-1] + padded[2:]
        near(grid[1, column].images[0].get_array(), (smooth[:, 2:] - smooth[:, :-2]) / 4)
        smooth = padded[:, :-2] + 2 * padded[:, 1:-1] + padded[:, 2:]
        near(grid[2, column].images[0].get_array(), (smooth[2:] - smooth[:-2]) / 4)
    assert {axes.images[0].get_clim() for axes in grid[0]} == {(0, 1)}
    assert {axes.images[0].get_clim() for axes in grid[1:].flatten()} == {(-1, 1)}
    assert [axes.get_title("left") for axes in grid[:, 0]] == ["image", "left to right", "top to bottom"]


def test_the_matrix_of_a_kernel_is_banded():
    axes = panels("kernel_as_matrix")[0]
    (mesh,) = collection(axes, "QuadMesh")
    expected = sum(value * np.eye(7, 9, shift) for shift, value in enumerate((1, 2, -1)))
    near(np.asarray(mesh.get_array()).reshape(7, 9), expected)
    shown = np.zeros((7, 9))
    for text in axes.texts:
        x, y = text.get_position()
        shown[int(y), int(x)] = float(text.get_text().replace("−", "-"))
    near(shown, expected)
    assert axes.get_title("left") == "A kernel (1, 2, −1) as a dense layer"


@pytest.mark.parametrize("sizes", [(4, 5, 3), (3, 2, 4)])
def test_which_entries_share_a_mean(sizes):
    names = dict(zip(("num_examples", "num_positions", "num_channels"), sizes))
    examples, positions, channels = sizes
    every = list(itertools.product(*map(range, sizes)))
    expected = {
        "batch norm, by channel": [each for each in every if each[2] == 0],
        "batch norm, per position": [each for each in every if each[1:] == (1, 0)],
        "layer norm, by position": [each for each in every if each[:2] == (0, 1)],
        "layer norm, by example": [each for each in every if each[0] == 0],
    }
    for axes in panels("axes_of_the_means", **({} if sizes == (4, 5, 3) else names)):
        places = {(b * (channels + 1) + c, n): (b, n, c) for b, n, c in every}
        shared = [places[patch.get_xy()] for patch in axes.patches if to_hex(patch.get_facecolor()) == COLORS[4]]
        assert sorted(shared) == expected[axes.get_title("left")]
        assert len(axes.patches) == len(every)
        near(xy(axes.lines[0])[:, 0], [0.5, 1.5])  # the first example, the second position, the first channel
        assert words(axes) == [f"example {each}" for each in range(1, examples + 1)]
        near([text.get_position()[0] for text in axes.texts], np.arange(examples) * (channels + 1) + channels / 2)
        left, right, bottom, top = *axes.get_xlim(), *axes.get_ylim()
        assert left < -0.9
        assert right > examples * (channels + 1) - 1
        assert bottom > positions
        assert top < -0.5


def test_activations_and_their_derivatives():
    left, right = panels("activations")
    x = curve(left, "ReLU")[0]
    near(x, np.linspace(-4, 4, 801))
    gauss = stats.norm
    functions = {
        "ReLU": (np.maximum(x, 0), (x > 0).astype(float)),
        "tanh": (np.tanh(x), 1 - np.tanh(x) ** 2),
        "sigmoid": (special.expit(x), special.expit(x) * special.expit(-x)),
        "GELU": (x * gauss.cdf(x), gauss.cdf(x) + x * gauss.pdf(x)),
        "ELU": (np.where(x > 0, x, np.expm1(np.minimum(x, 0))), np.where(x > 0, 1, np.exp(np.minimum(x, 0)))),
    }
    for name, expected in functions.items():
        for axes, values in zip((left, right), expected):
            found = curve(axes, name)[1]
            gaps = np.isnan(found)
            near(found[~gaps], values[~gaps])
            assert gaps.sum() == (axes is right and name == "ReLU")
    assert np.isnan(curve(right, "ReLU")[1][401])  # right after the jump
    assert left.get_ylim() == (-1.4, 3.2)
    assert right.get_ylim() == (-0.3, 1.3)
