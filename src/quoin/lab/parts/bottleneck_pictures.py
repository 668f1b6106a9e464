"""A bottleneck's channels step by step, in its right form and as printed."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

import torch

from quoin.errors import UserError
from quoin.lab.parts.picture import Picture
from quoin.layers import Bottleneck
from quoin.notes.claims.residual import parts, the_main_path_has_three_convolutions

__all__ = ["Channels", "bottleneck_channels", "draw_channels"]


class Channels(NamedTuple):
    """How many channels a bottleneck has after each step; `refused` is why the printed form cannot be run."""

    main: list[int]
    shortcut: list[int]
    out: int
    refused: str


@functools.lru_cache(maxsize=32)
def bottleneck_channels(filters: int) -> Channels:
    """Of a bottleneck for images of 3 channels, run in its right form and as printed."""
    block, x = Bottleneck(3, filters).double(), torch.ones(1, 3, 5, 5, dtype=torch.float64)
    narrow, across, widen, project = parts(block)
    assert project is not None  # 3 channels are never 4 times the filters
    claim = the_main_path_has_three_convolutions
    assert claim.right is not None
    assert claim.printed is not None
    out = claim.right(x, narrow, across, widen, project)
    refused = ""
    try:
        claim.printed(x, narrow, across, widen, project)
    except UserError as error:
        refused = str(error)
    main = [3, *(len(step.kernel) for step in (narrow, across, widen))]
    return Channels(main, [3, len(project.kernel)], out.shape[1], refused)


def draw_channels(
    picture: Picture, top: float, title: str, widths: Sequence[int], most: int, role: str = "model"
) -> None:
    """A path as bars, one for its input and one after each convolution, `most` the widest of all paths."""
    box = (52.0, top, 420.0, 120.0)
    bars = picture.axes((-0.6, 3.6), (0, 1.3 * most), box=box, title=title, x_ticks=False, y_label="channels")
    names = ["input", "1 × 1", "3 × 3", "1 × 1"][: len(widths)]
    bars.bars(widths, role, names=names)
    for at, width in enumerate(widths):
        bars.text(at, width, str(width), anchor="middle", dy=-6)
