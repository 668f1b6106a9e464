"""What all figures of the notes have in common: the house's colours, axes that say what they show, legends that tell
their entries apart, curves that are numbers and can be seen, words that can be read."""

import itertools
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgba_array
from matplotlib.text import Text

from figure_marks import drawn, xy
from quoin.notes import figures
from quoin.plot.palette import CELL_TEXT, LIGHT, amounts, signed

NAMES = [each.name for each in figures.collect()]
HOUSE = {LIGHT.ink, LIGHT.edge, LIGHT.grid, LIGHT.paper, *LIGHT.series, *LIGHT.tints}
# fills that are amounts, mixtures or shades of a side, each compared in a test of its own
OWN_FILLS = {"distribution_of_the_sum", "factions_and_propagation", "fitted_mixture", "region_maps", "vgg"}
# the plane of a landscape, a line of numbers and a density of which only the shape counts need no name
UNNAMED_X = {"below_sets", "chords", "edges_of_digits", "ellipses_of_equal_density", "fitted_mixture", "forth_and_back",
             "kl_both_ways", "learning_rates", "mass_on_the_diagonal", "paths_on_landscapes", "break_lines_of_max",
             "region_maps", "distribution_by_step", "sawteeth", "jensen", "sums_become_normal"}  # fmt: skip
NO_TITLES = {"certificate", "forth_and_back", "graph_with_breakpoints", "graph_with_network", "hidden_states",
             "kernel_over_image", "layer_by_layer", "random_realizations", "sawteeth", "typewriter_strokes", "widths",
             "width_two", "regularized_loss", "reverse_mode", "residual_blocks"}  # fmt: skip


pytestmark = pytest.mark.usefixtures("one_thread")


def axes_of(name: str) -> list[Any]:
    return list(drawn(name).figure.axes)


def hexes(colors: Any) -> set[str]:
    """The colours that can be seen, without how much of them."""
    return {to_hex(each[:3]) for each in to_rgba_array(colors) if each[3] > 0}


def legends(name: str) -> list[Any]:
    figure: Any = drawn(name).figure
    parts = [figure, *figure.subfigs]
    return [*(each for part in parts for each in part.legends), *filter(None, (a.get_legend() for a in figure.axes))]


@pytest.mark.parametrize("name", NAMES)
def test_lines_and_marks_have_the_colours_of_the_house(name):
    for axes in axes_of(name):
        for each in axes.lines:
            if each.get_linestyle() != "None":
                assert hexes(each.get_color()) <= HOUSE, each
            if each.get_marker() not in ("None", "", None):
                assert hexes(each.get_markeredgecolor()) <= HOUSE, each
                assert each.get_markerfacecolor() == "none" or hexes(each.get_markerfacecolor()) <= HOUSE, each
        for each in axes.texts:
            assert hexes(each.get_color()) <= HOUSE | CELL_TEXT.keys(), each
        if name in OWN_FILLS:
            continue
        for each in axes.patches:
            assert hexes(each.get_facecolor()) | hexes(each.get_edgecolor()) <= HOUSE, each
        for each in axes.collections:
            if each.get_array() is None:
                assert hexes(each.get_facecolor()) | hexes(each.get_edgecolor()) <= HOUSE, each


@pytest.mark.parametrize("name", NAMES)
def test_amounts_have_the_maps_of_the_house(name):
    """Images and meshes: paper to blue, vermilion to blue, grey for photographs and heights, viridis for a rate."""
    stops = ({amounts()[0], amounts()[-1]}, {signed()[0], signed()[-1]})
    for axes in axes_of(name):
        for each in (*axes.images, *(c for c in axes.collections if c.get_array() is not None)):
            colors = each.get_cmap()
            if colors.name in ("gray", "Greys_r", "viridis", "Blues_r"):
                continue
            assert {to_hex(colors(0.0)), to_hex(colors(1.0))} in stops or colors.N < 30, (each, colors.name)


@pytest.mark.parametrize("name", NAMES)
def test_curves_are_numbers_and_in_view(name):
    for axes in axes_of(name):
        if axes.name == "3d":
            continue
        x_view, y_view = sorted(axes.get_xlim()), sorted(axes.get_ylim())
        for each in axes.lines:
            x, y = xy(each)
            gaps = np.isnan(y).sum()
            assert np.isfinite(x).all()
            assert np.isinf(y).sum() == 0
            assert gaps <= 2  # where a curve jumps
            if each.get_transform() is axes.transData and len(x):
                inside = (x_view[0] <= x) & (x <= x_view[1]) & (y_view[0] <= y) & (y <= y_view[1])
                assert inside.any() or len(x) == 2, each.get_label()


@pytest.mark.parametrize("name", NAMES)
def test_what_is_named_stands_in_a_legend_and_the_legend_tells_its_entries_apart(name):
    found = legends(name)
    told = {text.get_text() for legend in found for text in legend.get_texts()}
    for axes in axes_of(name):
        labels = axes.get_legend_handles_labels()[1]
        assert name == "kl_both_ways" or len(labels) < 2 or set(labels) <= told
    for legend in found:
        words = [text.get_text() for text in legend.get_texts()]
        assert len(words) == len(set(words))
        assert all(words)
        looks = [_look(handle) for handle in legend.legend_handles]
        assert len(looks) == len(set(looks)), looks


def _look(handle: Any) -> tuple[Any, ...]:
    if hasattr(handle, "get_linestyle") and hasattr(handle, "get_color"):
        dash = getattr(handle, "_dash_pattern", None) or handle.get_linestyle()
        return to_hex(handle.get_color()), str(dash), handle.get_marker(), handle.get_linewidth() > 3
    color = handle.get_facecolor()
    return to_hex(np.atleast_2d(color)[0]), type(handle).__name__


@pytest.mark.parametrize("name", NAMES)
def test_axes_with_numbers_say_of_what(name):
    """A name under the lowest panel of each column, or one for the sheet."""
    figure: Any = drawn(name).figure
    if name in UNNAMED_X or (figure._supxlabel is not None and figure._supxlabel.get_text()):
        return
    shown = [axes for axes in figure.axes if axes.axison and axes.get_label() != "<colorbar>"]
    for axes in shown:
        below = [other for other in shown if other.get_position().y1 <= axes.get_position().y0]
        if not below:
            assert axes.get_xlabel()


@pytest.mark.parametrize("name", sorted(set(NAMES) - NO_TITLES))
def test_panels_have_titles_that_differ(name):
    """In a grid whose columns have titles and whose rows have names only the top row has titles."""
    figure: Any = drawn(name).figure
    shown = [axes for axes in figure.axes if axes.get_label() != "<colorbar>"]
    titles = [(axes.get_title() or axes.get_title("left"), axes) for axes in shown]
    if all(title for title, _ in titles):
        assert name == "momentum_paths" or len({title for title, _ in titles}) == len(titles)
        return
    top, left = max(a.get_position().y1 for a in shown), min(a.get_position().x0 for a in shown)
    for title, axes in titles:
        place = axes.get_position()
        at_left, at_top = abs(place.x0 - left) < 0.02, abs(place.y1 - top) < 0.02
        assert (at_top and bool(title)) or not at_left or bool(title or axes.get_ylabel())


@pytest.mark.parametrize("name", NAMES)
def test_words_can_be_read_and_do_not_meet(name):
    """Titles, names of axes and legends stand in the picture and clear of each other, in letters of 5 to 15 points."""
    figure: Any = drawn(name).figure
    if name == "random_realizations":  # in three dimensions the names of the axes lie across the ticks
        return
    renderer = figure._get_renderer()
    words = [each for each in figure.findobj(Text) if each.get_visible() and each.get_text().strip()]
    assert all(4.9 <= each.get_fontsize() <= 15.1 for each in words)
    free = [
        text
        for axes in figure.axes
        for text in (axes.title, axes._left_title, *((axes.xaxis.label, axes.yaxis.label) if axes.axison else ()))
    ]
    free += [text for legend in legends(name) for text in legend.get_texts()]
    free += [each for each in (figure._suptitle, figure._supxlabel) if each is not None]
    boxes = [(each.get_text(), each.get_window_extent(renderer)) for each in free if each.get_text().strip()]
    for text, box in boxes:  # letters are fitted to the pixels of the screen: in print they are a little narrower
        assert box.x0 > -2, text
        assert box.y0 > -2, text
        assert box.x1 < 1.02 * figure.bbox.width, text
        assert box.y1 < figure.bbox.height + 2, text
    for (one, first), (other, second) in itertools.combinations(boxes, 2):
        assert not first.shrunk(0.95, 0.8).overlaps(second.shrunk(0.95, 0.8)), (one, other)


@pytest.mark.parametrize("name", NAMES)
def test_numbers_at_ticks_do_not_meet(name):
    figure: Any = drawn(name).figure
    renderer = figure._get_renderer()
    boxes = []
    for axes in figure.axes:
        if axes.name == "3d" or not axes.axison:
            continue
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            slack = 1e-6 * (high - low)
            for tick in axis.get_major_ticks():
                if (
                    tick.label1.get_visible()
                    and tick.label1.get_text()
                    and low - slack <= tick.get_loc() <= high + slack
                ):
                    boxes.append((tick.label1.get_text(), tick.label1.get_window_extent(renderer)))
    for (one, first), (other, second) in itertools.combinations(boxes, 2):
        assert not first.shrunk(0.9, 0.7).overlaps(second.shrunk(0.9, 0.7)), (one, other)


@pytest.mark.parametrize("name", NAMES)
def test_marks_are_neither_hairs_nor_blots(name):
    for axes in axes_of(name):
        for each in axes.lines:
            assert each.get_linestyle() == "None" or 0.5 <= each.get_linewidth() <= 5
            assert each.get_marker() in ("None", "", None) or 1.5 <= each.get_markersize() <= 14
        for each in axes.collections:
            if "FillBetween" in type(each).__name__ and each.get_array() is None:
                assert max(each.get_linewidth(), default=0) == 0  # an edge would make a band wider than it is


@pytest.mark.parametrize("name", NAMES)
def test_the_sheet_is_as_wide_as_a_report_and_not_higher_than_a_page(name):
    width, height = drawn(name).figure.get_size_inches()
    if name in ("reverse_mode", "regularized_loss", "residual_blocks"):  # graphs, as large as their boxes
        assert 1.5 < height <= 11
    else:
        assert width == (5.6 if name == "conditioning_is_a_slice" else 6.6)
        assert 1.5 < height <= 9
    assert drawn(name).alt == getattr(figures, name).caption


@pytest.mark.parametrize("name", NAMES)
def test_no_panel_is_empty_or_lies_on_another(name):
    shown = axes_of(name)
    for axes in shown:
        assert any((axes.lines, axes.patches, axes.collections, axes.images, axes.texts, axes.artists))
    for one, other in itertools.combinations([axes.bbox for axes in shown], 2):
        wide, high = min(one.x1, other.x1) - max(one.x0, other.x0), min(one.y1, other.y1) - max(one.y0, other.y0)
        assert wide < 1 or high < 1  # pixels
