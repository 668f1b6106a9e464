"""Marks on paper: curves, heat maps, image grids, networks; to SVG, PNG and standalone HTML."""

from quoin.draw.alignments import alignment
from quoin.draw.attention_page import AttentionDrawing, AttentionLayer, attention
from quoin.draw.charts import bars, curves, scatter
from quoin.draw.clouds import point_clouds, point_map
from quoin.draw.drawing import FORMATS, LARGEST, Drawing, Panel
from quoin.draw.ellipses import ellipses
from quoin.draw.graphs import Box, GraphDrawing, graph
from quoin.draw.grids import Viewable, heat_map, image_grid, viewable
from quoin.draw.maps import map_rows
from quoin.draw.networks import network
from quoin.draw.nodes import nodes
from quoin.draw.polygons import PolygonMap, polygon_maps
from quoin.draw.sheets import image_sheet, image_table
from quoin.draw.volumes import Volume, volumes
from quoin.draw.writing import writing

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
