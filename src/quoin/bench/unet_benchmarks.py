"""The benchmarks on the U-Net of a diffusion model: training steps and samples, beside Hugging Face's `diffusers`. No
torch.
"""

from quoin.bench.benchmark import Benchmark, Implementation
from quoin.bench.targets import RatioAtLeast

__all__ = ["UNET_BENCHMARKS"]

_SIDES = "quoin.bench.unet_implementations"

UNET_BENCHMARKS = (
    Benchmark(
        "unet-step",
        "4 training steps of a U-Net 32-64-128 of 2.7 M weights on 32 noisy images of 1 x 16 x 16, AdamW",
        (
            Implementation("Quoin", _SIDES, "quoin_step", needs=("diffusers",)),
            Implementation("diffusers UNet2DModel", _SIDES, "diffusers_step", RatioAtLeast(1.3), ("diffusers",)),
            Implementation("diffusers, fused AdamW", _SIDES, "diffusers_step_fused", RatioAtLeast(1.0), ("diffusers",)),
        ),
        num_repeats=15,
        on_torch=("Quoin", "diffusers, fused AdamW"),
    ),
    Benchmark(
        "unet-sample",
        "32 images of 1 x 16 x 16 by 50 steps of DDIM with the same U-Net",
        (
            Implementation("Quoin", _SIDES, "quoin_sample", needs=("diffusers",)),
            Implementation("diffusers, DDIMScheduler", _SIDES, "diffusers_sample", RatioAtLeast(1.3), ("diffusers",)),
        ),
        num_repeats=9,
        num_warmup=1,
        on_torch=("Quoin", "diffusers, DDIMScheduler"),
    ),
)
