"""A PNG on light paper made one on dark paper, its pictures left as they are."""

import io
import math
from collections.abc import Sequence

import numpy as np

from quoin.plot.palette import turn_over_channels

__all__ = ["turn_over_png"]


def turn_over_png(png: bytes, pictures: Sequence[tuple[float, float, float, float]] = ()) -> bytes:
    """The same PNG with lightness inverted and hue kept, outside these boxes (left, top, right, bottom), in pixels."""
    from matplotlib.image import imread, imsave

    before = np.asarray(imread(io.BytesIO(png), format="png"), dtype=float)[..., :3]  # in [0, 1]
    after = turn_over_channels(before)
    for left, top, right, bottom in pictures:
        box = (slice(max(0, round(top)), math.ceil(bottom)), slice(max(0, round(left)), math.ceil(right)))
        after[box] = before[box]
    buffer = io.BytesIO()
    imsave(buffer, after, format="png", metadata={"Software": None})  # type: ignore[arg-type]  # as savefig takes it
    return buffer.getvalue()
