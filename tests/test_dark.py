"""Plots on dark paper: every colour of an SVG has its place there, pictures stay as they are, plots do not clash."""

import io
import re

import numpy as np
import pytest
import torch
from PIL import Image

from quoin import plot
from quoin.plot import palette
from quoin.plot.plots import amount_map, signed_map
from test_plot import KINDS

RULE = re.compile(r'\[style\*="(fill|stroke): (#[0-9a-f]{6})"\]\{(fill|stroke):(#[0-9a-f]{6})!important\}')


def body(svg: str) -> str:
    return re.sub(r"<style.*?</style>", "", svg, flags=re.DOTALL)


@pytest.mark.parametrize("kind", KINDS)
def test_every_colour_of_an_svg_has_a_dark_one(kind):
    svg = KINDS[kind]().svg()
    used = set(re.findall(r"\b(fill|stroke): (#[0-9a-f]{6})", body(svg)))
    rules = {(name, color): (again, dark) for name, color, again, dark in RULE.findall(svg)}
    assert used
    assert rules.keys() == used
    assert all(name == again for (name, _), (again, _) in rules.items())
    assert rules["fill", palette.LIGHT.paper][1] == palette.DARK.paper
    assert {dark for (_, color), (_, dark) in rules.items() if color == palette.LIGHT.ink} <= {palette.DARK.ink}


def test_rules_reach_no_other_element_of_a_page():
    svg = KINDS["curves"]().svg()
    for style in re.findall(r"<style[^>]*>(.*?)</style>", svg, flags=re.DOTALL):
        selectors = re.findall(r"([^{}]+)\{", style.replace("@media (prefers-color-scheme: dark){", ""))
        assert selectors
        assert all(".quoin-plot" in selector for selector in selectors), selectors


def test_two_plots_in_one_page_share_no_id_and_one_plot_refers_to_its_own():
    one, other = KINDS["curves"]().inline(), KINDS["scatter"]().inline()
    ids = [set(re.findall(r'\bid="([^"]*)"', each)) for each in (one, other)]
    assert ids[0]
    assert not ids[0] & ids[1]
    for each, own in zip((one, other), ids):
        referred = re.findall(r'href="#([^"]*)"|url\(#([^)]*)\)', each)
        assert referred
        assert {first or second for first, second in referred} <= own


def test_digits_are_pictures_and_a_large_heat_map_is_turned_over():
    digits, amounts = plot.image_grid(torch.rand(2, 8, 8)).svg(), plot.heatmap(torch.rand(40, 40)).svg()
    assert digits.count("<image") == digits.count('<image class="picture"') == 2
    assert "filter:" not in digits
    assert "quoin:" not in digits
    assert "<image" in amounts
    assert f"filter:{palette.TURN_OVER}" in amounts


@pytest.mark.parametrize("colors", [amount_map, signed_map])
def test_numbers_in_cells_can_be_read_on_either_paper(colors):
    from matplotlib.colors import to_hex

    for place in np.linspace(0, 1, 256):
        cell = to_hex(colors()(place))
        ink = palette.cell_text(cell)
        assert palette.contrast(ink, cell) >= 4.5
        assert palette.contrast(palette.CELL_TEXT[ink], palette.turned_over(cell)) >= 4.5


def test_a_dark_png_turns_lines_over_and_leaves_pictures():
    images = torch.zeros(2, 8, 8)
    images[0] = 1.0
    drawing = plot.image_grid(images, ["white", "black"], columns=2)
    light, dark = (np.asarray(Image.open(io.BytesIO(drawing.png(dark=each))).convert("RGB")) for each in (False, True))
    paper = tuple(int(palette.DARK.paper[i : i + 2], 16) for i in (1, 3, 5))
    assert tuple(dark[0, 0]) == paper
    assert tuple(light[0, 0]) == (255, 255, 255)
    left, right = (image.get_window_extent() for image in drawing.figure.axes[0].images)
    scale, height = 150 / drawing.figure.dpi, light.shape[0]
    for box, value in ((left, 255), (right, 0)):
        x, y = round((box.x0 + box.x1) / 2 * scale), height - round((box.y0 + box.y1) / 2 * scale)
        assert tuple(light[y, x]) == tuple(dark[y, x]) == (value,) * 3
    box = drawing.figure.axes[0].texts[0].get_window_extent()
    words = np.s_[height - round(box.y1 * scale) : height - round(box.y0 * scale), : round(box.x1 * scale)]
    assert light[words].min() < 60  # the caption is dark on light paper
    assert dark[words].max() > 180  # and light on dark


def test_smooth_images_keep_their_mean_and_their_place():
    image = torch.zeros(1, 8, 8)
    image[0, 2:6, 5] = 1.0  # a stroke at the right
    sharp, smooth = (
        np.asarray(plot.image_grid(image, smooth=each).figure.axes[0].images[0].get_array()) for each in (False, True)
    )
    assert sharp.shape == (8, 8)
    assert min(smooth.shape) >= 64
    assert smooth.min() >= 0
    assert smooth.max() <= 1
    assert smooth.mean() == pytest.approx(sharp.mean(), abs=0.02)
    centre = (smooth.sum(axis=0) * (np.arange(smooth.shape[1]) + 0.5)).sum() / smooth.sum() / smooth.shape[1]
    assert centre == pytest.approx(5.5 / 8, abs=0.01)
    assert len(np.unique(smooth.round(2))) > 20  # edges between black and white


def test_a_sheet_of_thousands_is_not_made_finer():
    (image,) = plot.image_sheet(torch.rand(4000, 8, 8), smooth=True).figure.axes[0].images
    assert np.asarray(image.get_array()).size < 3 * 8e6
