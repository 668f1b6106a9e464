"""What a hand can hold in a picture: handles, points to place and drag, cells to paint.

Each bears the name of a control; the browser sends where it was moved, and Python draws it there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from quoin.lab.parts.marks import color_of, escape, mark
from quoin.lab.parts.marks import number as _at
from quoin.lab.parts.ticks import digits

if TYPE_CHECKING:
    from quoin.lab.parts.picture import Picture

__all__ = ["Hands"]


class Hands(ABC):
    """The part of `Axes` that is held."""

    picture: Picture
    box: tuple[float, float, float, float]
    number: int

    @abstractmethod
    def place(self, x: float, y: float) -> tuple[float, float]:
        """Where a point of these coordinates is on the sheet."""

    def handle(self, name: str, x: float, y: float, *, label: str = "", along: str = "xy", role: str = "hand") -> None:
        """The control `name` of kind Handle (or a Slider: `along` "x" or "y" then is its direction) at this place."""
        self._handle(name, x, y, label or name, along, role, "circle")

    def points_to_drag(
        self,
        name: str,
        points: Sequence[Sequence[float]],
        *,
        label: str = "point",
        along: str = "xy",
        roles: Sequence[str] = (),
        shapes: Sequence[str] = (),
    ) -> None:
        """The control `name` of kind DragPoints; a click on these axes places another one."""
        left, top, width, height = self.box
        self.picture.body.append(
            f'<rect class="ground" data-place="{escape(name)}" data-frame="{self.number}" '
            f'x="{_at(left)}" y="{_at(top)}" width="{_at(width)}" height="{_at(height)}" fill="transparent"/>'
        )
        for index, point in enumerate(points):
            role = roles[index] if index < len(roles) else "hand"
            shape = shapes[index] if index < len(shapes) else "circle"
            self._handle(f"{name}.{index}", point[0], point[1], f"{label} {index + 1}", along, role, shape)

    def _handle(self, name: str, x: float, y: float, label: str, along: str, role: str, shape: str) -> None:
        a, b = self.place(x, y)
        at = f"{digits(x)}, {digits(y)}" if along == "xy" else digits(x if along == "x" else y)
        self.picture.body.append(
            f'<g class="handle" tabindex="0" role="slider" aria-label="{escape(label)}" aria-valuetext="{at}" '
            f'aria-valuenow="{x if along == "x" else y:.6g}" data-name="{escape(name)}" data-frame="{self.number}" '
            f'data-along="{along}" data-x="{x:.8g}" data-y="{y:.8g}"><title>{escape(label)}: {at}</title>'
            f'<circle class="target" cx="{_at(a)}" cy="{_at(b)}" r="16"/>'
            f'<g style="fill:{color_of(role)};stroke:var(--paper);stroke-width:1.5">{mark(shape, a, b, 7.5)}</g></g>'
        )

    def paint(
        self, name: str, values: Sequence[int], rows: int, columns: int, *, roles: Sequence[str] = ("paper", "hand")
    ) -> None:
        """The control `name` of kind Paint over the whole axes; `roles` are the colours of the levels."""
        left, top, width, height = self.box
        across, down = width / columns, height / rows
        cells = []
        for index, value in enumerate(values):
            row, column = divmod(index, columns)
            cells.append(
                f'<rect data-cell="{index}" x="{_at(left + column * across)}" y="{_at(top + row * down)}" '
                f'width="{_at(across)}" height="{_at(down)}" style="fill:{color_of(roles[value])}"/>'
            )
        self.picture.body.append(
            f'<g class="paint" tabindex="0" role="application" data-paint="{escape(name)}" data-rows="{rows}" '
            f'data-columns="{columns}" aria-label="{escape(name)}: {rows} by {columns} cells to paint; arrows move, '
            f'space paints">{"".join(cells)}</g>'
        )
