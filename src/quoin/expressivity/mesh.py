"""A window of the plane as convex polygons on shared vertices, and its cutting by functions that are affine on each
polygon.

Polygons are rows of vertex numbers in order around the polygon, padded by repeating the last one: a repeat adds no
edge, no corner and no sign, so every step is a few array operations on all polygons together.

P polygons, K most corners, V vertices
"""

from dataclasses import dataclass

import numpy as np

from quoin.display import shown

__all__ = ["Mesh", "split_mesh"]


@shown
@dataclass(frozen=True)
class Mesh:
    """Convex polygons that fill a rectangle, edge to edge."""

    points: np.ndarray  # (V, 2)
    corners: np.ndarray  # (P, K), indices into points

    @classmethod
    def rectangle(cls, left: float, right: float, bottom: float, top: float) -> "Mesh":
        points = np.array([[left, bottom], [right, bottom], [right, top], [left, top]], dtype=float)
        return cls(points, np.array([[0, 1, 2, 3]]))

    def polygons(self) -> list[np.ndarray]:
        sizes = 1 + (np.diff(self.corners, axis=1) != 0).sum(axis=1)
        return [self.points[row[:size]] for row, size in zip(self.corners, sizes, strict=True)]

    def areas(self) -> np.ndarray:  # (P,), by the shoelace formula about each polygon's first corner
        x, y = np.moveaxis(self.points[self.corners] - self.points[self.corners[:, :1]], 2, 0)
        return 0.5 * (x * np.roll(y, -1, axis=1) - np.roll(x, -1, axis=1) * y).sum(axis=1)

    def any_of(self, marked: np.ndarray) -> np.ndarray:  # (V, n) -> (P, n)
        """For each polygon which flags one of its vertices carries."""
        found = marked[self.corners[:, 0]]
        for column in self.corners.T[1:]:
            found |= marked[column]
        return found

    def shared_edges(self) -> tuple[np.ndarray, np.ndarray]:
        """The edges between two polygons: their vertices (E, 2), and the polygons on either side (E, 2)."""
        following = np.roll(self.corners, -1, axis=1)
        polygon, column = np.nonzero(self.corners != following)
        ends = np.sort(np.stack([self.corners[polygon, column], following[polygon, column]], axis=1), axis=1)
        key = ends[:, 0] * len(self.points) + ends[:, 1]
        order = np.argsort(key, kind="stable")
        (pair,) = np.nonzero(key[order][1:] == key[order][:-1])
        return ends[order[pair]], np.stack([polygon[order[pair]], polygon[order[pair + 1]]], axis=1)

    def neighbors(self) -> np.ndarray:  # (E, 2)
        return self.shared_edges()[1]


def split_mesh(mesh: Mesh, z: np.ndarray, zero: np.ndarray) -> tuple[Mesh, np.ndarray, np.ndarray]:
    """Cut every polygon along the lines z_j = 0, for values z (V, n) at the vertices that are affine on each polygon.

    What is at most `zero` (n,) in size counts as on the line. Gives the new mesh, z at its vertices, and the polygon
    that each comes from.
    """
    values = np.concatenate(
        [np.where(np.abs(z) <= zero, 0.0, z), mesh.points], axis=1
    )  # all that is interpolated along an edge
    corners, origin, count = mesh.corners, np.arange(len(mesh.corners)), len(values)
    for unit in range(z.shape[1]):
        around = np.sign(values[:count, unit]).astype(np.int8)[corners]
        (cut,) = np.nonzero((around.max(axis=1) > 0) & (around.min(axis=1) < 0))
        if not len(cut):
            continue
        new, children = _cut(values[:count], corners[cut], around[cut], unit, zero)
        # Space for as many again: to copy every vertex for every unit would take longest of all.
        if count + len(new) > len(values):
            values = np.concatenate([values[:count], np.empty((count + len(new), values.shape[1]))])
        values[count : count + len(new)] = new
        count += len(new)
        width = max(corners.shape[1], children.shape[1])
        corners = np.concatenate([_padded(np.delete(corners, cut, axis=0), width), _padded(children, width)])
        origin = np.concatenate([np.delete(origin, cut), origin[cut], origin[cut]])
    return Mesh(values[:count, -2:].copy(), corners), values[:count, :-2], origin


def _cut(
    values: np.ndarray, rows: np.ndarray, sign: np.ndarray, unit: int, zero: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The polygons `rows`, each cut in two where column `unit` is zero: the values at the new vertices, and the halves
    (2 P, K')."""
    following = np.roll(rows, -1, axis=1)
    polygon, column = np.nonzero(sign * np.roll(sign, -1, axis=1) < 0)
    ends = np.sort(np.stack([rows[polygon, column], following[polygon, column]], axis=1), axis=1)
    # One vertex for an edge, whichever of its two polygons asks: this is what keeps neighbours joined.
    edges, number = np.unique(ends[:, 0] * len(values) + ends[:, 1], return_inverse=True)
    first, second = values[edges // len(values)], values[edges % len(values)]
    fraction = (first[:, unit] / (first[:, unit] - second[:, unit]))[:, None]
    new = first + fraction * (second - first)
    new[:, :-2][np.abs(new[:, :-2]) <= 2 * zero] = 0.0  # a vertex that one line makes may lie on another
    new[:, unit] = 0.0
    around = np.full((*rows.shape, 2), -1)  # each corner, and after it the new vertex if its edge is cut
    around[:, :, 0] = rows
    around[polygon, column, 1] = len(values) + number
    signs = np.stack([sign, np.zeros_like(sign)], axis=2)
    halves = [
        _gathered(around.reshape(len(rows), -1), ((around >= 0) & (side * signs >= 0)).reshape(len(rows), -1))
        for side in (1, -1)
    ]
    width = max(half.shape[1] for half in halves)
    return new, np.concatenate([_padded(half, width) for half in halves])


def _gathered(around: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """The kept entries of each row at its front, and the last of them repeated to the end."""
    # Padding repeats the corner before it, which stands two entries to the left.
    kept[:, 2:] &= around[:, 2:] != around[:, :-2]
    counts = kept.sum(axis=1)
    order = np.argsort(~kept, axis=1, kind="stable")[:, : counts.max()]
    front = np.take_along_axis(around, order, axis=1)
    last = np.take_along_axis(front, counts[:, None] - 1, axis=1)
    return np.where(np.arange(front.shape[1]) < counts[:, None], front, last)


def _padded(rows: np.ndarray, width: int) -> np.ndarray:
    return np.pad(rows, ((0, 0), (0, width - rows.shape[1])), mode="edge")
