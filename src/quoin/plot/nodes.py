"""A graph as dots joined by lines, the same layout as often as there are numbers to show at its nodes."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from quoin.errors import UserError
from quoin.plot.plots import (
    FAINT,
    INK,
    WIDTH,
    Plot,
    amount_map,
    house_style,
    new_figure,
    numbers,
    plain,
    signed_map,
    text_on,
)

__all__ = ["node_values"]

_MOST_NODES = 500
_COLUMNS = 3


def node_values(
    edges: object,
    values: Mapping[str, object],
    *,
    names: Sequence[str] | None = None,
    ringed: Collection[int] = (),
    title: str = "",
) -> Plot:
    """The graph of these edges (2, e) once for each `heading: one number a node`, as colour; nodes in `ringed` have a
    thick rim.

    White to blue from zero up, vermilion through white to blue if some numbers are negative, on one scale for all.
    Joined nodes lie near each other (Kamada and Kawai's springs), at the same positions in each plot and at every call.

    Args:
        names: What stands in each node; its number unless given.
    """
    if not values:
        raise UserError(
            "expected numbers for the nodes at least once, got none; give a mapping of heading to one number a node"
        )
    shown = {heading: numbers(each, f"the nodes of {heading!r}", 1) for heading, each in values.items()}
    pairs = np.asarray(numbers(edges, "edges", 2), dtype=int)
    count = len(next(iter(shown.values())))
    if any(len(each) != count for each in shown.values()) or (names is not None and len(names) != count):
        raise UserError(
            f"expected one number and one name for each of {count} nodes, got others; make them equally many"
        )
    if pairs.shape[0] != 2 or pairs.min() < 0 or pairs.max() >= count:
        raise UserError(
            f"expected edges (2, e) between nodes 0 to {count - 1}, got shape {pairs.shape}; give a number to "
            "every node"
        )
    if count > _MOST_NODES:
        raise UserError(f"expected at most {_MOST_NODES} nodes to plot, got {count}; plot a part of the graph")
    positions = _layout(pairs, count)
    signed = any((each < 0).any() for each in shown.values())
    top = max(float(np.abs(each).max()) for each in shown.values()) or 1.0
    columns = min(len(shown), _COLUMNS)
    rows = -(-len(shown) // columns)
    side = WIDTH / columns
    with house_style():
        from matplotlib.collections import LineCollection
        from matplotlib.colors import Normalize

        # Short of the darkest colour, on which a thick rim would not be seen.
        norm = Normalize(-1.2 * top if signed else 0.0, 1.2 * top)
        colors = signed_map() if signed else amount_map()
        figure = new_figure(height=rows * (min(0.9 * side, 4.0) + 0.35) + (0.3 if title else 0.0))
        if title:
            figure.suptitle(plain(title), fontsize=11, fontweight="bold")
        font = 7.0 if columns < 3 else 5.0
        rims = [2.2 if node in ringed else 0.6 for node in range(count)]
        for number, (heading, each) in enumerate(shown.items(), start=1):
            axes = figure.add_subplot(rows, columns, number)
            axes.set_title(plain(heading), fontsize=10, fontweight="normal", loc="center")
            axes.add_collection(
                LineCollection([*positions[pairs.T]], colors=FAINT, linewidths=0.7, zorder=1), autolim=False
            )
            fill = colors(norm(each))
            axes.scatter(*positions.T, s=(1.9 * font) ** 2, c=fill, edgecolors=INK, linewidths=rims, zorder=2)
            for node, (x, y) in enumerate(positions):
                label = plain(names[node]) if names is not None else str(node)
                axes.text(x, y, label, ha="center", va="center", fontsize=font, color=text_on(fill[node]), zorder=3)
            axes.margins(0.08)
            axes.set_axis_off()
        return Plot(figure, title or f"graph of {count} nodes: {', '.join(shown)}")


def _layout(pairs: np.ndarray, count: int) -> np.ndarray:  # (2, e) -> (count, 2)
    """Positions in the unit square: as far apart as the nodes are edges apart, rotated so that the longest way lies
    across.
    """
    import networkx

    graph = networkx.Graph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from(pairs.T.tolist())
    far = {a: {b: float(count) for b in range(count)} for a in range(count)}  # pieces that nothing joins
    for source, steps in networkx.all_pairs_shortest_path_length(graph):
        far[source].update(steps)
    found = networkx.kamada_kawai_layout(graph, dist=far)
    positions = np.array([found[node] for node in range(count)])
    positions -= positions.mean(axis=0)
    _, _, rotation = np.linalg.svd(positions)
    positions = positions @ rotation.T
    positions *= np.where(
        positions[np.abs(positions).argmax(axis=0), [0, 1]] < 0, 1, -1
    )  # an axis has two directions: choose one
    return (positions - positions.min(axis=0)) / np.maximum(np.ptp(positions, axis=0), 1e-9)
