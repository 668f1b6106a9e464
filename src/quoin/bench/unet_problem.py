"""The work of the rows `unet-step` and `unet-sample`: a U-Net of 2.7 M weights on images of 16 x 16, and how a lap goes through them."""

import numpy as np

__all__ = ["BATCH", "BLOCKS", "RATE", "SAMPLE_STEPS", "SHAPE", "TIMES", "TRAIN_STEPS", "WIDTHS", "images"]

SHAPE, WIDTHS, BLOCKS = (1, 16, 16), (32, 64, 128), 1
BATCH, TIMES, RATE = 32, 1000, 2e-4
TRAIN_STEPS = 4  # updates of a lap
SAMPLE_STEPS = 50  # of DDIM, a lap


def images() -> np.ndarray:  # (n, 1, 16, 16) float32 in [-1, 1]
    """Bright squares on a dark ground, the same in every process."""
    random = np.random.default_rng(0)
    pictures = np.full((BATCH * TRAIN_STEPS, *SHAPE), -1.0, dtype=np.float32)
    for picture, (top, left) in zip(pictures, random.integers(10, size=(len(pictures), 2))):
        picture[0, top : top + 6, left : left + 6] = 1.0
    return pictures
