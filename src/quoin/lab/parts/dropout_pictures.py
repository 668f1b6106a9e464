"""A layer of units of which some are left out."""

from __future__ import annotations

from jaxtyping import Bool, Float
from torch import Tensor

from quoin.lab.parts.picture import Axes

__all__ = ["draw_layer"]


def draw_layer(net: Axes, mask: Bool[Tensor, " unit"], outputs: Float[Tensor, " unit"]) -> None:
    """Units at 0, 1, ... with their outputs, three inputs below and an output above; dropped ones are hollow."""
    middle = (len(mask) - 1) / 2
    below = [middle - 2, middle, middle + 2]
    for unit, alive in enumerate(mask.tolist()):
        role = "model" if alive else "faint 30%"
        for end in below:
            net.line([end, unit], [-0.4, 2], role, width=1.2)
        net.line([unit, middle], [2, 4.5], role, width=1.2)
    for unit, (alive, output) in enumerate(zip(mask.tolist(), outputs.tolist())):
        net.points([unit], [2], "model" if alive else "faint", size=11, shape="circle" if alive else "ring")
        # by turns lower and higher: side by side they would touch
        net.text(unit, 2, f"{output:.3g}", "ink", anchor="middle", dy=44 if unit % 2 else 28, size=11)
    net.points(below, [-0.4] * 3, "ink", size=8)
    net.points([middle], [4.5], "ink", size=8)
