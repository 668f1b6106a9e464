"""Sheets, tables of images and clouds of points: every pixel in its place, names by their rows and columns, bad input
in one line."""

import itertools
import re
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from quoin import plot
from quoin.errors import UserError


def axes_of(drawing: plot.Plot, place: int = 0) -> Any:
    return drawing.figure.axes[place]


def mosaic(drawing: plot.Plot) -> np.ndarray:
    """The one image that all are drawn as."""
    (image,) = axes_of(drawing).images
    return np.asarray(image.get_array())


def cell(page: np.ndarray, place: tuple[int, int], grid: tuple[int, int], size: tuple[int, int]) -> np.ndarray:
    """What stands in a cell, found from the size of the page alone: images of `size` with equal gaps before, between
    and behind."""
    gaps = [(extent - count * each) // (count + 1) for extent, count, each in zip(page.shape, grid, size)]
    top, left = (gap + at * (each + gap) for gap, at, each in zip(gaps, place, size))
    return page[top : top + size[0], left : left + size[1]]


@settings(max_examples=20, deadline=None)
@given(
    st.integers(1, 4),
    st.integers(1, 5),
    st.sampled_from([None, 1, 3]),
    st.integers(2, 9),
    st.integers(2, 9),
    st.integers(0, 999),
)
def test_every_image_of_a_table_stands_in_its_cell(rows, columns, channels, height, width, seed):
    shape = (rows, columns, *([] if channels is None else [channels]), height, width)
    images = torch.rand(shape, generator=torch.Generator().manual_seed(seed))
    page = mosaic(plot.image_table(images))
    for row, column in itertools.product(range(rows), range(columns)):
        expected = images[row, column].reshape(-1, height, width).expand(3, -1, -1).permute(1, 2, 0).double().numpy()
        assert np.array_equal(cell(page, (row, column), (rows, columns), (height, width)), expected)


@pytest.mark.parametrize(
    ("count", "columns", "grid"),
    [(64, None, (8, 8)), (7, None, (3, 3)), (5, 2, (3, 2)), (1, None, (1, 1)), (3, 9, (1, 3))],
)
def test_a_sheet_goes_row_by_row_and_ends_empty(count, columns, grid):
    images = torch.arange(count).reshape(-1, 1, 1, 1).expand(-1, 1, 4, 4) / (2 * count)  # no two alike, none white
    page = mosaic(plot.image_sheet(images, columns=columns))
    cells = [cell(page, (row, column), grid, (4, 4)) for row in range(grid[0]) for column in range(grid[1])]
    assert [float(each.max()) for each in cells[:count]] == pytest.approx(
        [place / (2 * count) for place in range(count)]
    )
    paper = page[0, 0]
    assert paper.max() > paper.min()  # a colour, which no grey image has
    assert all((each == paper).all() for each in cells[count:])


def test_names_stand_at_their_rows_and_columns_and_do_not_touch():
    images = torch.zeros(3, 30, 8, 8)
    rows, columns = ["originals", "$10", "b"], [f"{value:.3f}" for value in range(30)]
    drawing = plot.image_table(images, row_labels=rows, column_labels=columns, x_label="time")
    axes = axes_of(drawing)
    drawing.figure.draw_without_rendering()
    width, height = mosaic(drawing).shape[1], mosaic(drawing).shape[0]
    across = {text.get_text(): where for text, where in zip(axes.get_xticklabels(), axes.get_xticks())}
    assert {"0.000", "29.000"} <= across.keys()  # the ends are always named
    for name, where in across.items():
        assert int(where / width * 30) == int(float(name))
    down = [text.get_text() for text in axes.get_yticklabels()]
    assert down == ["originals", r"\$10", "b"]
    assert [int(where / height * 3) for where in axes.get_yticks()] == [0, 1, 2]
    boxes = [text.get_window_extent() for text in axes.get_xticklabels()]
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
    edge = drawing.figure.bbox
    assert all(
        edge.x0 <= box.x0 and box.x1 <= edge.x1
        for box in [*boxes, *(text.get_window_extent() for text in axes.get_yticklabels())]
    )


def test_clouds_share_one_scale_and_hold_the_ends():
    drawing = plot.scatter_panels({"noise": [[0, 0], [5, 1]], "between": [[90, 90], [0, 0]], "data": [[-1, 2], [0, 0]]})
    limits = {(axes.get_xlim(), axes.get_ylim()) for axes in drawing.figure.axes}
    assert len(limits) == 1
    ((left, right), (bottom, top)) = limits.pop()
    assert left < -1 < 5 < right < 90
    assert bottom < 0 < 2 < top < 90
    assert [axes.get_title() for axes in drawing.figure.axes] == ["noise", "between", "data"]
    assert axes_of(drawing, 2).collections[0].get_offsets().tolist() == [[-1, 2], [0, 0]]


def test_groups_of_a_map_look_different():
    drawing = plot.scatter_by_class({str(group): torch.full((2, 2), float(group)) for group in range(12)})
    axes = axes_of(drawing)
    looks = {(tuple(marks.get_facecolor()[0]), len(marks.get_paths()[0].vertices)) for marks in axes.collections}
    assert len(looks) == 12
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [str(group) for group in range(12)]


KINDS = {
    "sheet": lambda: plot.image_sheet(torch.rand(5, 3, 4, 6, generator=torch.Generator().manual_seed(0))),
    "table": lambda: plot.image_table(torch.zeros(2, 3, 4, 4), row_labels="ab", column_labels="xyz", title="A < B"),
    "clouds": lambda: plot.scatter_panels({"a": torch.zeros(3000, 2), "b": [[float("nan"), 0], [1, 1]]}, title="t"),
    "map": lambda: plot.scatter_by_class({"a": [[1, 1]], "b": [[1, 1]]}, x_label="x"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_pictures_are_deterministic_and_whole(kind):
    svg = KINDS[kind]().svg()
    assert svg == KINDS[kind]().svg()
    ElementTree.fromstring(svg)
    assert all(link.startswith(("#", "data:")) for link in re.findall(r'href="([^"]*)"', svg))
    assert KINDS[kind]().png().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (lambda: plot.image_sheet(torch.zeros(0, 1, 8, 8)), "not empty"),
        (lambda: plot.image_sheet(torch.zeros(2, 2, 8, 8)), "1 or 3 channels"),
        (lambda: plot.image_sheet(torch.full((2, 8, 8), 1.01)), r"\[0, 1\]"),
        (lambda: plot.image_sheet(torch.full((2, 8, 8), float("nan"))), r"\[0, 1\]"),
        (lambda: plot.image_sheet(torch.zeros(2, 8, 8), columns=0), "1 column"),
        (lambda: plot.image_table(torch.zeros(2, 8, 8)), "4 or 5 axes"),
        (lambda: plot.image_table(torch.zeros(2, 3, 8, 8), row_labels=["a"]), "2 row labels"),
        (lambda: plot.image_table(torch.zeros(2, 3, 8, 8), column_labels=["a"]), "3 column labels"),
        (lambda: plot.scatter_panels({}), "at least one cloud"),
        (lambda: plot.scatter_panels({"a": torch.zeros(4, 3)}), "2 numbers"),
        (lambda: plot.scatter_by_class({"a": torch.zeros(4)}), "2 axes"),
    ],
)
def test_a_bad_input_is_one_line(bad, says):
    with pytest.raises(UserError, match=says) as caught:
        bad()
    assert "\n" not in str(caught.value)
