"""Small images drawn large with smooth edges, for where they are the subject and not their pixels."""

import math

import numpy as np
import torch
from torch.nn.functional import interpolate

__all__ = ["smoothed"]

_SIDE = 128  # pixels of an image's longer side that are enough for a picture of an inch
_MOST_PIXELS = 4e6  # of all images together, or the file would be large


def smoothed(images: np.ndarray) -> np.ndarray:  # (n, c, h, w) -> (n, c, k h, k w)
    """Images in [0, 1] with k times as many rows and columns, by bicubic interpolation; k is 1 where they are large
    or many.
    """
    count, _, height, width = images.shape
    most = math.sqrt(_MOST_PIXELS / max(1, count * height * width))
    factor = max(1, int(min(most, math.ceil(_SIDE / max(height, width)))))
    if factor == 1:
        return images
    finer = interpolate(torch.from_numpy(np.ascontiguousarray(images)), scale_factor=factor, mode="bicubic")
    return finer.clamp(0, 1).numpy()  # a cubic goes beyond its points at an edge
