"""Marks on paper: curves, heat maps, image grids, networks; to SVG, PNG and standalone HTML."""

from quoin.draw.charts import bars, curves, scatter
from quoin.draw.drawing import FORMATS, Drawing, Panel
from quoin.draw.graphs import Box, GraphDrawing, graph
from quoin.draw.grids import heat_map, image_grid
from quoin.draw.networks import network

__all__ = ["FORMATS", "Box", "Drawing", "GraphDrawing", "Panel", "bars", "curves", "graph", "heat_map", "image_grid", "network", "scatter"]
