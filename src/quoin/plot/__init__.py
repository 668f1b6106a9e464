"""Marks on paper: curves, heat maps, image grids, networks; to SVG, PNG and standalone HTML."""

from typing import TYPE_CHECKING

from quoin.lazy import export_lazily

if TYPE_CHECKING:
    from quoin.plot.alignments import alignment
    from quoin.plot.attention_page import AttentionDrawing, AttentionLayer, attention
    from quoin.plot.charts import bars, curves, scatter
    from quoin.plot.clouds import point_clouds, point_map
    from quoin.plot.drawing import FORMATS, LARGEST, Drawing, Panel
    from quoin.plot.ellipses import ellipses
    from quoin.plot.graphs import Box, GraphDrawing, graph
    from quoin.plot.grids import Viewable, heat_map, image_grid, viewable
    from quoin.plot.maps import map_rows
    from quoin.plot.networks import network
    from quoin.plot.nodes import nodes
    from quoin.plot.polygons import PolygonMap, polygon_maps
    from quoin.plot.sheets import image_sheet, image_table
    from quoin.plot.volumes import Volume, volumes
    from quoin.plot.writing import writing

__all__ = [
    "FORMATS",
    "LARGEST",
    "AttentionDrawing",
    "AttentionLayer",
    "Box",
    "Drawing",
    "GraphDrawing",
    "Panel",
    "PolygonMap",
    "Viewable",
    "Volume",
    "alignment",
    "attention",
    "bars",
    "curves",
    "ellipses",
    "graph",
    "heat_map",
    "image_grid",
    "image_sheet",
    "image_table",
    "map_rows",
    "network",
    "nodes",
    "point_clouds",
    "point_map",
    "polygon_maps",
    "scatter",
    "viewable",
    "volumes",
    "writing",
]

export_lazily(__name__)
