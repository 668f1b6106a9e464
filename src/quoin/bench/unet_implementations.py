"""The benchmarks `unet-step` and `unet-sample`: Quoin's U-Net beside Hugging Face's of the same layers, in training and
in sampling.

Noise, times and data are the same in either implementation; so are loss and optimizer. Its training script takes AdamW
as torch gives it; the fused one is tried as well. Memory runs channels first: with the channels last, either network is
slower here.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from quoin.bench.unet_problem import (
    BATCH_SIZE,
    CHANNELS,
    LR,
    NUM_BLOCKS,
    NUM_TIMESTEPS,
    SAMPLE_STEPS,
    SHAPE,
    TRAIN_STEPS,
    images,
)
from quoin.bench.worker import Repeats
from quoin.models import UNet, load_diffusers_unet
from quoin.train import setup_device

__all__ = [
    "diffusers_sample",
    "diffusers_step",
    "diffusers_step_fused",
    "diffusers_unet",
    "quoin_sample",
    "quoin_step",
    "quoin_unet",
]

Loss = Callable[[Tensor, Tensor, Tensor], Tensor]  # clean images, times and noise -> a number


def quoin_step(repeats: Repeats) -> dict[str, float]:
    from quoin.losses import denoising_loss
    from quoin.prob import EpsilonPrediction, linear_beta_schedule

    network, schedule = quoin_unet(), linear_beta_schedule(NUM_TIMESTEPS)

    def loss(clean: Tensor, t: Tensor, noise: Tensor) -> Tensor:
        return denoising_loss(
            network, schedule, EpsilonPrediction(), clean, t + 1, noise
        ).mean()  # its times begin with 1

    setup_device("cpu", threads=repeats.threads)  # as `quoin train` sets it up
    return _train(repeats, network, loss, fused=True)


def diffusers_step(repeats: Repeats) -> dict[str, float]:
    return _diffusers_step(repeats, fused=False)


def diffusers_step_fused(repeats: Repeats) -> dict[str, float]:
    return _diffusers_step(repeats, fused=True)


def _diffusers_step(repeats: Repeats, *, fused: bool) -> dict[str, float]:
    from diffusers import DDPMScheduler  # pyright: ignore

    network, scheduler = diffusers_unet(), DDPMScheduler(NUM_TIMESTEPS)

    def loss(clean: Tensor, t: Tensor, noise: Tensor) -> Tensor:
        noisy = scheduler.add_noise(clean, noise, t)  # pyright: ignore
        return nn.functional.mse_loss(network(noisy, t, return_dict=False)[0], noise)

    return _train(repeats, network, loss, fused=fused)


def quoin_sample(repeats: Repeats) -> dict[str, float]:
    from quoin.generate import clip_denoiser, sample_ddim, sample_initial_noise
    from quoin.prob import EpsilonPrediction, linear_beta_schedule, make_denoiser

    network, schedule = quoin_unet().eval(), linear_beta_schedule(NUM_TIMESTEPS)
    denoiser = clip_denoiser(make_denoiser(network, schedule, EpsilonPrediction()), schedule, low=-1.0, high=1.0)
    generator = torch.Generator().manual_seed(0)

    def sample() -> Tensor:
        return sample_ddim(
            denoiser,
            schedule,
            sample_initial_noise((BATCH_SIZE, *SHAPE), generator=generator),
            num_steps=SAMPLE_STEPS,
            generator=generator,
        )

    setup_device("cpu", threads=repeats.threads)
    return _sample(repeats, sample)


def diffusers_sample(repeats: Repeats) -> dict[str, float]:
    from diffusers import DDIMScheduler  # pyright: ignore

    network, scheduler = diffusers_unet().eval(), DDIMScheduler(NUM_TIMESTEPS)
    scheduler.set_timesteps(SAMPLE_STEPS)
    generator = torch.Generator().manual_seed(0)

    def sample() -> Tensor:
        state = torch.randn((BATCH_SIZE, *SHAPE), generator=generator)
        for t in scheduler.timesteps:
            state = scheduler.step(network(state, t, return_dict=False)[0], t, state, return_dict=False)[0]  # pyright: ignore
        return state

    return _sample(repeats, sample)


def diffusers_unet() -> nn.Module:
    """Their network, with the layers of ours; one block a size, and groups, heads and eps as they are by default."""
    from diffusers import UNet2DModel  # pyright: ignore

    torch.manual_seed(0)
    levels = len(CHANNELS) - 1
    return UNet2DModel(
        sample_size=SHAPE[1],
        in_channels=SHAPE[0],
        out_channels=SHAPE[0],
        block_out_channels=CHANNELS,
        layers_per_block=NUM_BLOCKS,
        down_block_types=("DownBlock2D",) * levels + ("AttnDownBlock2D",),
        up_block_types=("AttnUpBlock2D",) + ("UpBlock2D",) * levels,
    )


def quoin_unet() -> UNet:
    """Ours with the weights of theirs, so that the losses show that both do the same."""
    network = UNet(SHAPE, channels=CHANNELS, num_blocks=NUM_BLOCKS)
    load_diffusers_unet(network, diffusers_unet().state_dict())
    return network


def _train(repeats: Repeats, network: nn.Module, loss: Loss, *, fused: bool) -> dict[str, float]:
    torch.set_num_threads(repeats.threads)
    generator, clean_images = torch.Generator().manual_seed(0), torch.from_numpy(images())
    optimizer = torch.optim.AdamW(network.parameters(), LR, fused=fused)

    def epoch() -> float:
        total = 0.0
        for clean in clean_images.split(BATCH_SIZE):
            t = torch.randint(NUM_TIMESTEPS, (BATCH_SIZE,), generator=generator)
            value = loss(clean, t, torch.randn(clean.shape, generator=generator))
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
            total += value.item()
        return total

    total = repeats.timed(epoch)
    return {
        "parameters": float(sum(each.numel() for each in network.parameters())),
        "loss of the last repeat": total / TRAIN_STEPS,
    }


def _sample(repeats: Repeats, sample: Callable[[], Tensor]) -> dict[str, float]:
    torch.set_num_threads(repeats.threads)
    with torch.no_grad():
        samples = repeats.timed(sample)
    return {"largest value": float(samples.abs().max())}
