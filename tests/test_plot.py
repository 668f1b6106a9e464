"""Plots: deterministic, self-contained, true to their data, and no traceback for a bad input."""

import io
import itertools
import re
import subprocess
import sys
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from PIL import Image

from commands import without_progress
from quoin import plot
from quoin.errors import UserError
from quoin.notes import figures
from quoin.plot import palette

KINDS = {
    "curves": lambda: plot.curves(
        {"a": ([1, 2, 3], [1, 10, 100]), "b": ([1, 3], [5, 5])}, log_y=True, reference_lines={"target": 7.0}
    ),
    "scatter": lambda: plot.scatter(torch.arange(5.0), torch.arange(5.0) + 0.1),
    "bars": lambda: plot.bars({"from $10^{ to $20": 1.0, "gain in $": -2.0}),
    "heatmap": lambda: plot.heatmap([[1, 0], [0, 2]], row_labels="ab", column_labels="ab", show_values=True),
    "image_grid": lambda: plot.image_grid(
        torch.rand(5, 8, 8, generator=torch.Generator().manual_seed(0)), list("abcde")
    ),
    "network": lambda: plot.network([2, 5, 1]),
    "signal_grid": lambda: plot.signal_grid(torch.eye(6).reshape(3, 2, 6), list("abc")),
}


def marks(drawing: plot.Plot) -> Any:
    """The axes of a drawing, whose artists matplotlib types only loosely."""
    return drawing.figure.axes[0]


@pytest.mark.parametrize("kind", KINDS)
def test_the_svg_is_deterministic_and_refers_to_nothing_outside(kind):
    drawing = KINDS[kind]()
    svg = drawing.svg()
    drawing.png()
    assert drawing.svg() == svg == KINDS[kind]().svg()
    ElementTree.fromstring(svg)
    assert "<!DOCTYPE" not in svg
    assert set(re.findall(r"https?://[^\"'<> ]*", svg)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    assert all(link.startswith(("#", "data:")) for link in re.findall(r'href="([^"]*)"', svg))


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_names_no_address_at_all(kind):
    page = KINDS[kind]().html("A < B & C")
    assert "<title>A &lt; B &amp; C</title>" in page
    assert "://" not in page


def test_the_png_is_white_backed_and_report_wide():
    image = Image.open(io.BytesIO(KINDS["curves"]().png(dpi=96))).convert("RGB")
    assert abs(image.width - 640) < 20
    assert image.getpixel((0, 0)) == (255, 255, 255)


def test_the_users_own_style_changes_nothing():
    import matplotlib

    svg = KINDS["curves"]().svg()
    with matplotlib.rc_context({"font.size": 30, "svg.hashsalt": "mine", "axes.facecolor": "black"}):
        assert KINDS["curves"]().svg() == svg
        assert matplotlib.rcParams["font.size"] == 30


@pytest.mark.parametrize(("suffix", "start"), [("svg", b"<svg"), ("PNG", b"\x89PNG"), ("html", b"<!DOCTYPE html>")])
def test_save_follows_the_suffix(tmp_path, suffix, start):
    path = KINDS["network"]().save(tmp_path / f"Z3.F1.{suffix}")
    assert path.read_bytes().startswith(start)


def test_save_refuses_what_it_cannot_write(tmp_path):
    for name in ("a.jpg", "a", "missing/a.svg"):
        with pytest.raises(UserError):
            KINDS["network"]().save(tmp_path / name)


def test_a_long_curve_keeps_its_spikes_and_its_ends():
    ys = np.zeros(100_000)
    ys[77_777], ys[5] = 3.0, -2.0
    drawn = marks(plot.curves({"a": (np.arange(100_000), ys)})).lines[0]
    xs, kept = drawn.get_xdata(), drawn.get_ydata()
    assert len(xs) <= 2002
    assert (max(kept), min(kept)) == (3.0, -2.0)
    assert (xs[0], xs[-1]) == (0, 99_999)
    assert xs[np.argmax(kept)] == 77_777


def test_curves_draw_what_they_are_given():
    drawing = plot.curves(
        {"a": ([1, 2], torch.tensor([3.0, 4.0], requires_grad=True))}, reference_lines=[("target", 0.5)]
    )
    curve, level = marks(drawing).lines
    assert list(curve.get_ydata()) == [3, 4]
    assert list(level.get_ydata()) == [0.5, 0.5]
    assert [text.get_text() for text in drawing.figure.legends[0].get_texts()] == ["a", "target (0.5)"]


@pytest.mark.parametrize("ys", [[0.0, 0.0], [float("nan")] * 2, [-1.0, float("inf")]])
def test_curves_without_a_positive_value_are_drawn_on_a_linear_axis(ys):
    drawing = plot.curves({"a": ([0, 0], ys)}, log_x=True, log_y=True)
    assert (marks(drawing).get_xscale(), marks(drawing).get_yscale()) == ("linear", "linear")
    drawing.svg()


def test_a_heat_map_puts_the_first_row_on_top_and_writes_readable_numbers():
    axes = marks(plot.heatmap([[1, 0], [0, 250]], show_values=True))
    where = {text.get_text(): axes.transData.transform(text.get_position()) for text in axes.texts}
    assert where["1"][1] > where["250"][1]
    assert where["1"][0] < where["250"][0]
    color = {text.get_text(): text.get_color() for text in axes.texts}
    assert palette.contrast(color["250"], palette.amounts()[-1]) > 4.5  # on the deepest cell
    assert palette.contrast(color["1"], palette.amounts()[0]) > 4.5  # on one that is nearly paper


@pytest.mark.parametrize("columns", [5, 8])
def test_captions_of_neighbouring_images_do_not_meet(columns):
    figure = plot.image_grid(torch.zeros(10, 32, 32), ["automobile (36%), is airplane"] * 10, columns=columns).figure
    figure.draw_without_rendering()
    axes = figure.axes[0]
    boxes = [text.get_window_extent() for text in axes.texts]
    pictures = [image.get_window_extent() for image in axes.images]
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
    assert not any(box.shrunk(0.98, 0.98).overlaps(picture) for box in boxes for picture in pictures)


def test_an_image_grid_shows_the_pixels_in_order():
    images = torch.zeros(4, 1, 3, 5)
    images[2, 0, 0, 4] = 1.0
    shown = marks(plot.image_grid(images, columns=2)).images
    assert [float(np.max(image.get_array())) for image in shown] == [0, 0, 1, 0]
    assert shown[2].get_array()[0, 4] == 1
    left, right, bottom, top = shown[2].get_extent()
    assert left == 0 < right  # third of two columns: second row, first column
    assert top == shown[3].get_extent()[3] > shown[0].get_extent()[2] - 1e-9
    assert top < bottom  # the axis runs downwards


def test_a_network_has_every_unit_and_every_edge():
    axes = marks(plot.network([2, 5, 1]))
    assert len(axes.patches) == 2 + 5 + 1
    assert len(axes.collections[0].get_segments()) == 2 * 5 + 5 * 1
    labels = [text.get_text() for text in axes.texts]
    assert {"$x_{1}$", "$x_{2}$", "$h_{5}$", "$o_{1}$", "input\n2", "hidden\n5", "output\n1"} <= set(labels)


def test_a_wide_layer_is_shortened_and_says_its_size():
    labels = [text.get_text() for text in marks(plot.network([64, 12, "q"])).texts]
    assert {"⋮", "$x_{64}$", "input\n64", "$h_{12}$", "$o_{q}$"} <= set(labels)
    assert "$x_{50}$" not in labels


@pytest.mark.parametrize(
    "bad",
    [
        lambda: plot.curves({}),
        lambda: plot.curves({"a": ([1, 2], [1])}),
        lambda: plot.curves({"a": ([], [])}),
        lambda: plot.curves({"a": (["x"], [1])}),
        lambda: plot.scatter([1, 2], [1]),
        lambda: plot.bars({}),
        lambda: plot.heatmap([1, 2]),
        lambda: plot.heatmap([[1, 2]], row_labels=["a", "b"]),
        lambda: plot.image_grid(torch.zeros(3, 2, 4, 4)),
        lambda: plot.image_grid(torch.zeros(4, 4)),
        lambda: plot.image_grid(torch.full((1, 4, 4), 255.0)),
        lambda: plot.image_grid(torch.full((1, 4, 4), float("nan"))),
        lambda: plot.image_grid(torch.zeros(2, 4, 4), ["one"]),
        lambda: plot.network([3]),
        lambda: plot.network([3, 0]),
        lambda: plot.network([3, 1], names=["input"]),
    ],
)
def test_a_bad_input_is_one_line(bad):
    with pytest.raises(UserError) as caught:
        bad()
    assert "\n" not in str(caught.value)


def test_importing_the_room_does_not_import_matplotlib():
    code = (
        "import sys, quoin.plot, quoin.notes.figures; quoin.notes.figures.collect(); print('matplotlib' in sys.modules)"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
        == "False"
    )


# ---- figures of the notes


def test_the_figures_are_collected_chosen_and_drawn(tmp_path):
    ours = figures.collect()
    chosen = figures.select(ours, ["d1f1", "3"])
    assert [one.ids[0] for one in chosen] == ["Z3.F1", "D1F1"]
    written = figures.plot_all(chosen, tmp_path / "new" / "folder", "svg")
    assert [path.name for path in written] == ["Z3.F1.svg", "D1F1.svg"]
    assert chosen[0].caption in written[0].read_text()


def test_figures_refuse_in_one_line(tmp_path):
    ours = figures.collect()
    (tmp_path / "file").write_text("")
    for bad in (
        lambda: figures.plot_all(ours, tmp_path, "jpg"),
        lambda: figures.plot_all(ours, tmp_path / "file"),
        lambda: figures.select(ours, ["Z3.4"]),
    ):
        with pytest.raises(UserError):
            bad()
    with pytest.raises(ValueError, match=r"Z99\.9"):
        figures.figure("Z99.9", "no such id")


NAMES = ["語", "😀", "नमस्ते", "a$b$", "\x07", "العربية"]
NAMED = {
    "heatmap": lambda: plot.heatmap(
        torch.eye(6), row_labels=NAMES, column_labels=NAMES, title=NAMES[0], x_label=NAMES[1], y_label=NAMES[2]
    ),
    "image_grid": lambda: plot.image_grid(torch.zeros(6, 4, 4), NAMES, title=NAMES[0]),
    "image_table": lambda: plot.image_table(
        torch.zeros(6, 6, 4, 4), row_labels=NAMES, column_labels=NAMES, x_label=NAMES[0]
    ),
    "signal_grid": lambda: plot.signal_grid(torch.zeros(6, 2, 4), NAMES, title=NAMES[0]),
    "bars": lambda: plot.bars(dict.fromkeys(NAMES, 1.0), x_label=NAMES[0]),
    "curves": lambda: plot.curves(
        {name: ([0, 1], [0, 1]) for name in NAMES}, reference_lines={NAMES[0] + "!": 0.5}, x_label=NAMES[1]
    ),
    "scatter": lambda: plot.scatter([0, 1], [0, 1], x_label=NAMES[0], y_label=NAMES[1]),
    "scatter_panels": lambda: plot.scatter_panels(dict.fromkeys(NAMES, torch.eye(2))),
    "scatter_by_class": lambda: plot.scatter_by_class(dict.fromkeys(NAMES, torch.eye(2)), x_label=NAMES[0]),
    "shaded_text": lambda: plot.shaded_text(NAMES, torch.ones(6)),
    "alignment": lambda: plot.alignment(torch.ones(6, 6) / 6, NAMES, NAMES),
    "feature_map_rows": lambda: plot.feature_map_rows({name: torch.eye(3)[None] for name in NAMES}),
}


@pytest.mark.parametrize("name", NAMED)
def test_names_in_any_letters_warn_nobody(name):
    """Letters that the font lacks are drawn as boxes; here a warning would be an error."""
    drawing = NAMED[name]()
    assert drawing.svg()
    assert drawing.png()


def test_a_run_on_classes_in_any_letters_prints_no_warning(tmp_path):
    rows = "".join(f"{i},{i * i % 7},{('語', '😀', 'नमस्ते')[i % 3]}\n" for i in range(60))
    (tmp_path / "names.csv").write_text(f"度,b😀,label\n{rows}", encoding="utf-8")
    words = [
        "train",
        "mlp",
        "--data",
        f"csv:{tmp_path}/names.csv",
        "--max-steps",
        "2",
        "--num-threads",
        "1",
        "--runs",
        str(tmp_path),
    ]
    done = subprocess.run([sys.executable, "-m", "quoin.cli", *words], capture_output=True, text=True)
    assert (done.returncode, without_progress(done.stderr)) == (0, "")
