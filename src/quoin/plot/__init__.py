"""Plots: curves, heatmaps, image grids, networks; to SVG, PNG and standalone HTML."""

from typing import TYPE_CHECKING

from quoin.lazy import export_lazily

if TYPE_CHECKING:
    from quoin.plot.alignments import alignment
    from quoin.plot.attention_page import AttentionLayer, AttentionPlot, attention
    from quoin.plot.bands import Band, curve_bands
    from quoin.plot.charts import bars, curves, scatter
    from quoin.plot.classifiers import reliability_diagram, roc_curves, score_table
    from quoin.plot.clouds import scatter_by_class, scatter_panels
    from quoin.plot.ellipses import ellipses
    from quoin.plot.graphs import Box, GraphPlot, graph
    from quoin.plot.grids import Viewable, heatmap, image_grid, viewable
    from quoin.plot.maps import feature_map_rows
    from quoin.plot.networks import network
    from quoin.plot.nodes import node_values
    from quoin.plot.parallel import CoordinateAxis, parallel_coordinates
    from quoin.plot.plots import FORMATS, LARGEST, Panel, Plot
    from quoin.plot.polygons import PolygonMap, polygon_maps
    from quoin.plot.sheets import image_sheet, image_table
    from quoin.plot.signals import signal_grid
    from quoin.plot.volumes import Volume, volumes
    from quoin.plot.writing import shaded_text

__all__ = [
    "FORMATS",
    "LARGEST",
    "AttentionLayer",
    "AttentionPlot",
    "Band",
    "Box",
    "CoordinateAxis",
    "GraphPlot",
    "Panel",
    "Plot",
    "PolygonMap",
    "Viewable",
    "Volume",
    "alignment",
    "attention",
    "bars",
    "curve_bands",
    "curves",
    "ellipses",
    "feature_map_rows",
    "graph",
    "heatmap",
    "image_grid",
    "image_sheet",
    "image_table",
    "network",
    "node_values",
    "parallel_coordinates",
    "polygon_maps",
    "reliability_diagram",
    "roc_curves",
    "scatter",
    "scatter_by_class",
    "scatter_panels",
    "score_table",
    "shaded_text",
    "signal_grid",
    "viewable",
    "volumes",
]

export_lazily(__name__)
