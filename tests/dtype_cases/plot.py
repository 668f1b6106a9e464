"""Cases for `quoin.plot`: see tests/dtypes.py. A drawing is compared by the numbers of its marks: lines, points, cells
and outlines."""

from unittest.mock import patch

import numpy as np
import torch

from quoin.plot import (
    AttentionLayer,
    PolygonMap,
    alignment,
    attention,
    bars,
    curves,
    ellipses,
    feature_map_rows,
    heatmap,
    image_grid,
    image_sheet,
    image_table,
    node_values,
    polygon_maps,
    reliability_diagram,
    roc_curves,
    scatter,
    scatter_by_class,
    scatter_panels,
    score_table,
    shaded_text,
    signal_grid,
    viewable,
)

POINTS = [[0, 100], [3, 2], [120, 1]]
TABLE = [[0, 1, 200], [3, 100, 2]]
IMAGES = [[[0, 1], [1, 0]], [[1, 1], [0, 1]]]
CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])


def marks(draw):
    """Every number that was drawn; where the words of the picture go is not asked, which would take most of the
    time."""
    with patch("matplotlib.figure.Figure.draw_without_rendering"):
        drawing = draw()
    found = []
    for axes in drawing.figure.axes:
        found += [line.get_xydata() for line in axes.lines]
        found += [each.get_offsets() for each in axes.collections]
        found += [each.get_array() for each in (*axes.collections, *axes.images) if each.get_array() is not None]
        found += [patch.get_path().vertices for patch in axes.patches]
    return [torch.from_numpy(np.array(each, dtype=np.float64)) for each in found]


CASES = {
    "viewable": lambda x: viewable(x([[[[0, 200], [3, 100]]]])).images,
    "alignment": lambda x: marks(lambda: alignment(x(TABLE), ["a", "b", "c"], ["d", "e"])),
    "attention": lambda x: marks(lambda: attention([AttentionLayer("first", x([TABLE]), ("a", "b"), ("c", "d", "e"))])),
    "bars": lambda x: marks(lambda: bars({"a": x(3), "b": x(200)})),
    "curves": lambda x: marks(lambda: curves({"a": (x([0, 1, 100]), x([3, 200, 1]))})),
    "ellipses": lambda x: marks(
        lambda: ellipses(x(POINTS), torch.tensor([0, 1, 1]), x([[0, 100], [3, 2]]), x([[[4, 0], [0, 9]]] * 2))
    ),
    "ellipses labels": lambda x: marks(
        lambda: ellipses(torch.tensor(POINTS), x([0, 1, 1]), torch.ones(2, 2), torch.eye(2).expand(2, 2, 2))
    ),
    "heatmap": lambda x: marks(lambda: heatmap(x(TABLE))),
    "image_grid": lambda x: marks(lambda: image_grid(x(IMAGES))),
    "signal_grid": lambda x: marks(lambda: signal_grid(x([TABLE]))),
    "image_sheet": lambda x: marks(lambda: image_sheet(x(IMAGES))),
    "image_table": lambda x: marks(lambda: image_table(x([IMAGES]))),
    "feature_map_rows": lambda x: marks(lambda: feature_map_rows({"a": x([TABLE])})),
    "node_values": lambda x: marks(lambda: node_values(torch.tensor([[0, 1], [1, 2]]), {"degree": x([3, 200, 1])})),
    "node_values edges": lambda x: marks(lambda: node_values(x([[0, 1], [1, 2]]), {"degree": [3.0, 2.0, 1.0]})),
    "score_table": lambda x: marks(
        lambda: score_table(x([[0, 1, 0.5], [1, 0.25, 0]]), row_labels=["a", "b"], column_labels=["c", "d", "e"])
    ),
    "roc_curves": lambda x: marks(lambda: roc_curves({"a": (x([0, 0.25, 1]), x([0, 1, 1]))})),
    "reliability_diagram": lambda x: marks(lambda: reliability_diagram(x([0.25, 1]), x([0.5, 1]), x([200, 100]))),
    "scatter_panels": lambda x: marks(lambda: scatter_panels({"a": x(POINTS)})),
    "scatter_by_class": lambda x: marks(lambda: scatter_by_class({"a": x(POINTS)})),
    "polygon_maps": lambda x: marks(lambda: polygon_maps({"a": PolygonMap([CORNERS], x([200]), x(POINTS), (0, 1, 1))})),
    "scatter": lambda x: marks(lambda: scatter(x([0, 100, 3]), x([200, 1, 2]))),
    "shaded_text": lambda x: marks(lambda: shaded_text(["to", "be"], x([0, 200]))),
}

# name -> how many roundings it may lose, where the mathematics makes it worse than dtypes.ROUNDINGS
ROUNDINGS: dict[str, float] = {}

DRAWN = "a finished drawing, or a part of one: the functions that make it have cases"
WORDS = "draws sizes and words"

# Public names that take no numbers in tensors, each with its reason.
NO_NUMBERS: dict[str, str] = {
    "AttentionPlot": DRAWN,
    "AttentionLayer": DRAWN,
    "Plot": DRAWN,
    "GraphPlot": DRAWN,
    "Panel": DRAWN,
    "PolygonMap": DRAWN,
    "Band": "lists of Python floats",
    "CoordinateAxis": "lists of Python floats",
    "curve_bands": "takes bands, lists of Python floats",
    "parallel_coordinates": "takes lists of Python floats",
    "Box": WORDS,
    "Volume": WORDS,
    "Viewable": DRAWN,
    "graph": WORDS,
    "network": WORDS,
    "volumes": WORDS,
}
