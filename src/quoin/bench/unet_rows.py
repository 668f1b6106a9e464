"""The rows on the U-Net of a diffusion model: training steps and samples, beside Hugging Face's `diffusers`. No torch."""

from quoin.bench.measured import RatioAtLeast
from quoin.bench.row import Contestant, Row

__all__ = ["UNET_ROWS"]

_SIDES = "quoin.bench.unet_sides"

UNET_ROWS = (
    Row(
        "unet-step",
        "4 training steps of a U-Net 32-64-128 of 2.7 M weights on 32 noisy images of 1 x 16 x 16, AdamW",
        (
            Contestant("Quoin", _SIDES, "quoin_step", needs=("diffusers",)),
            Contestant("diffusers UNet2DModel", _SIDES, "diffusers_step", RatioAtLeast(1.3), ("diffusers",)),
            Contestant("diffusers, fused AdamW", _SIDES, "diffusers_step_fused", RatioAtLeast(1.0), ("diffusers",)),
        ),
        rounds=15,
    ),
    Row(
        "unet-sample",
        "32 images of 1 x 16 x 16 by 50 steps of DDIM with the same U-Net",
        (
            Contestant("Quoin", _SIDES, "quoin_sample", needs=("diffusers",)),
            Contestant("diffusers, DDIMScheduler", _SIDES, "diffusers_sample", RatioAtLeast(1.3), ("diffusers",)),
        ),
        rounds=9,
        warm_up=1,
    ),
)
