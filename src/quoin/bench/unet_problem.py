"""The work of the benchmarks `unet-step` and `unet-sample`: a U-Net of 2.7 M weights on images of 16 x 16, and how a
repeat goes through them.
"""

import numpy as np

__all__ = [
    "BATCH_SIZE",
    "CHANNELS",
    "LR",
    "NUM_BLOCKS",
    "NUM_TIMESTEPS",
    "SAMPLE_STEPS",
    "SHAPE",
    "TRAIN_STEPS",
    "images",
]

SHAPE, CHANNELS, NUM_BLOCKS = (1, 16, 16), (32, 64, 128), 1
BATCH_SIZE, NUM_TIMESTEPS, LR = 32, 1000, 2e-4
TRAIN_STEPS = 4  # optimizer steps of a repeat
SAMPLE_STEPS = 50  # of DDIM, a repeat


def images() -> np.ndarray:  # (n, 1, 16, 16) float32 in [-1, 1]
    """Bright squares on a dark ground, the same in every process."""
    random = np.random.default_rng(0)
    found = np.full((BATCH_SIZE * TRAIN_STEPS, *SHAPE), -1.0, dtype=np.float32)
    for image, (top, left) in zip(found, random.integers(10, size=(len(found), 2))):
        image[0, top : top + 6, left : left + 6] = 1.0
    return found
