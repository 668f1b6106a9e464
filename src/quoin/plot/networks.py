"""A network as its layers of units, every unit joined to every unit of the next layer."""

from collections.abc import Sequence
from itertools import pairwise, product

from quoin.errors import UserError, format_value
from quoin.plot.palette import LIGHT
from quoin.plot.plots import INK, Plot, house_style, new_figure, plain

__all__ = ["network"]

_MOST_UNITS = 12
_FILL = (LIGHT.tints[0], LIGHT.tints[5], LIGHT.tints[1])  # input, hidden, output
_GAP, _RADIUS = 1.0, 0.36


def network(sizes: Sequence[int | str], *, names: Sequence[str] | None = None, title: str = "") -> Plot:
    """Layers of circles from left to right: inputs x, hidden units h, outputs o, and all edges between neighbours.

    A size may be a letter, such as "n", for a layer of so many units; it and a layer of more than twelve show an
    ellipsis.

    Args:
        sizes: Units of each layer, inputs and outputs included.
        names: Of the layers; input, hidden and output unless given.
    """
    if len(sizes) < 2 or any(size < 1 if isinstance(size, int) else not size.isalpha() for size in sizes):
        raise UserError(
            f"expected two or more layer sizes, each a positive number or a letter, got {format_value(list(sizes))}"
        )
    if names is None:
        hidden = ["hidden"] if len(sizes) == 3 else [f"hidden {i}" for i in range(1, len(sizes) - 1)]
        names = ["input", *hidden, "output"]
    if len(names) != len(sizes):
        raise UserError(f"expected {len(sizes)} names, one for each layer, got {len(names)}")
    layers = [_units(size) for size in sizes]
    tallest = max(map(len, layers))
    across = 2.6 if len(sizes) <= 4 else 1.9
    with house_style():
        from matplotlib.collections import LineCollection
        from matplotlib.patches import Circle

        figure = new_figure(height=min(7.0, max(2.2, 0.9 + 0.52 * tallest)))
        axes = figure.add_subplot(aspect="equal")
        axes.set_title(title, loc="center")
        positions = [
            [(k * across, ((len(units) - 1) / 2 - i) * _GAP) if unit else None for i, unit in enumerate(units)]
            for k, units in enumerate(layers)
        ]
        edges = [edge for near, far in pairwise(positions) for edge in product(filter(None, near), filter(None, far))]
        axes.add_collection(LineCollection(edges, colors=LIGHT.edge, linewidths=0.7, zorder=1), autolim=False)
        for k, (units, spots) in enumerate(zip(layers, positions)):
            fill = _FILL[0 if k == 0 else 2 if k == len(layers) - 1 else 1]
            for i, (unit, spot) in enumerate(zip(units, spots)):
                if spot is None:
                    axes.text(k * across, ((len(units) - 1) / 2 - i) * _GAP, "⋮", ha="center", va="center", fontsize=15)
                else:
                    axes.add_patch(Circle(spot, _RADIUS, facecolor=fill, edgecolor=INK, linewidth=1, zorder=2))
                    axes.text(*spot, _label(unit, k, len(layers)), ha="center", va="center", fontsize=9, zorder=3)
            foot = -(tallest - 1) / 2 * _GAP - _RADIUS - 0.3
            axes.text(k * across, foot, f"{plain(names[k])}\n{sizes[k]}", ha="center", va="top", fontsize=9)
        axes.set_xlim(-0.9, (len(layers) - 1) * across + 0.9)
        axes.set_ylim(-(tallest - 1) / 2 * _GAP - _RADIUS - 1.4, (tallest - 1) / 2 * _GAP + _RADIUS + 0.1)
        axes.set_axis_off()
        return Plot(figure, title or f"network of layers {', '.join(map(str, sizes))}")


def _units(size: int | str) -> list[str]:
    """The subscripts to show, an empty one standing for the units left out."""
    if isinstance(size, str):
        return ["1", "2", "", size]
    if size <= _MOST_UNITS:
        return [str(i) for i in range(1, size + 1)]
    return ["1", "2", "3", "4", "", str(size - 1), str(size)]


def _label(unit: str, layer: int, layers: int) -> str:
    """x for inputs, o for outputs, h for hidden units, with the layer above it where there are several."""
    if layer in (0, layers - 1):
        return f"${'x' if layer == 0 else 'o'}_{{{unit}}}$"
    return f"$h_{{{unit}}}$" if layers == 3 else f"$h^{{({layer})}}_{{{unit}}}$"
