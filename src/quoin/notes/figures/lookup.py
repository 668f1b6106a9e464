"""A table with keys and values, asked by vectors."""

from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.layers import linear_lookup, linear_lookup_definition, soft_lookup, soft_lookup_definition
from quoin.notes.figures.figure import figure
from quoin.plot import Plot
from quoin.plot.plots import COLORS, INK, house_style, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

VALUES = torch.tensor([[1.0, -2.0, 0.0], [3.0, 1.0, -1.0], [-1.0, 2.0, 4.0], [0.0, -3.0, 2.0], [2.0, 0.0, -1.0]])
KEY, COEFFICIENT, VALUE = 0.0, 5.6, 7.6  # where the columns of keys, coefficients and values begin


def strip(
    axes: "Axes", cells: Float[Tensor, "n"], left: float, top: float, largest: float, strength: float = 1.0
) -> None:
    """A vector as a row of cells with their numbers, blue above zero and vermilion below; faint where it hardly
    counts."""
    from matplotlib.patches import Rectangle

    for index, number in enumerate(cells.tolist()):
        color = COLORS[0] if number > 0 else COLORS[1]
        shade = strength * min(1.0, abs(number) / largest)
        axes.add_patch(Rectangle((left + index, top), 1, 1, facecolor=color, alpha=0.75 * shade, linewidth=0))
        axes.add_patch(
            Rectangle((left + index, top), 1, 1, fill=False, edgecolor=INK, alpha=0.25 + 0.75 * strength, linewidth=0.5)
        )
        text = f"{number:.2f}".rstrip("0").rstrip(".").replace("-", "−")
        text = "0" if text == "−0" else text
        size = 6.5 if len(text) < 5 else 5.5
        axes.text(
            left + index + 0.5, top + 0.5, text, ha="center", va="center", fontsize=size, alpha=0.35 + 0.65 * strength
        )


def table(
    axes: "Axes", query: Float[Tensor, "m"], coefficients: Float[Tensor, "m"], output: Float[Tensor, "v"], asked: str
) -> None:
    """The query over the keys, beside each key its coefficient and its value, and under the values what is answered."""
    keys = torch.eye(len(VALUES))
    axes.set_title(asked, fontsize=8.5, loc="center")
    strip(axes, query, KEY, 0, 2.0)
    axes.text(KEY - 0.3, 0.5, "q", ha="right", va="center", fontsize=8, style="italic")
    for left, width, name in ((KEY, 5, "keys $e_i$"), (COEFFICIENT, 1, "$c_i$"), (VALUE, 3, "values $v_i$")):
        axes.text(left + width / 2, 2.05, name, ha="center", va="center", fontsize=7.5)
    for index, (key, coefficient, value) in enumerate(zip(keys, coefficients, VALUES)):
        top, strength = 2.6 + 1.25 * index, min(1.0, float(coefficient.abs()))
        strip(axes, key, KEY, top, 2.0)
        strip(axes, coefficient.reshape(1), COEFFICIENT, top, 2.0)
        strip(axes, value, VALUE, top, 5.0, strength)
        axes.text(KEY - 0.3, top + 0.5, str(index + 1), ha="right", va="center", fontsize=7)
        axes.annotate(
            "",
            (VALUE - 0.05, top + 0.5),
            (COEFFICIENT + 1.05, top + 0.5),
            arrowprops={"arrowstyle": "->", "linewidth": 0.6},
        )
    strip(axes, output, VALUE, 9.6, 5.0)
    axes.text(VALUE - 0.3, 10.1, "answer  $\\sum_i c_i v_i$", ha="right", va="center", fontsize=8)
    axes.set_xlim(-0.9, 10.7)
    axes.set_ylim(10.7, -0.1)
    axes.set_aspect("equal")
    axes.set_axis_off()


@figure(
    "D2.2F",
    "A table of five values with unit vectors as keys. Asked by e₃ it answers row 3; by e₃ + 2e₅ a combination; "
    "with softmax the coefficients sum to one, and a longer query is answered more sharply.",
    {"scale": (-20, 20), "coefficient": (-20, 20)},
)
def lookup_table(scale: float = 5.0, coefficient: float = 2.0) -> Plot:
    keys = torch.eye(len(VALUES))
    asked = [
        ("linear, $q = e_3$", keys[2], linear_lookup, linear_lookup_definition),
        (
            f"linear, $q = e_3 + {coefficient:g}e_5$",
            keys[2] + coefficient * keys[4],
            linear_lookup,
            linear_lookup_definition,
        ),
        ("softmax, $q = e_3$", keys[2], soft_lookup, soft_lookup_definition),
        (f"softmax, $q = {scale:g}e_3$", scale * keys[2], soft_lookup, soft_lookup_definition),
    ]
    with house_style():
        sheet = new_figure(height=6.6)
        for axes, (name, query, lookup, definition) in zip(sheet.subplots(2, 2).flat, asked):
            row = query.unsqueeze(0)
            coefficients = definition(row, keys, VALUES).weights[0]
            table(axes, query, coefficients, lookup(row, keys, VALUES)[0], name)
        return Plot(sheet, "a lookup table asked by vectors")
