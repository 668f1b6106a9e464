"""The rows `unet-step` and `unet-sample`: Quoin's U-Net beside Hugging Face's of the same layers, in training and in sampling.

Noise, times and data are the same on either side; so are loss and optimiser. Its training script takes AdamW as torch gives it; the
fused one is tried as well. Memory runs channels first: with the channels last, either network is slower here.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from quoin.bench.unet_problem import BATCH, BLOCKS, RATE, SAMPLE_STEPS, SHAPE, TIMES, TRAIN_STEPS, WIDTHS, images
from quoin.bench.worker import Laps
from quoin.models import UNet, load_diffusers_unet

__all__ = ["diffusers_sample", "diffusers_step", "diffusers_step_fused", "diffusers_unet", "quoin_sample", "quoin_step", "quoin_unet"]

Loss = Callable[[Tensor, Tensor, Tensor], Tensor]  # clean images, times and noise -> a number


def quoin_step(laps: Laps) -> dict[str, float]:
    from quoin.losses import denoising_loss
    from quoin.prob import PredictNoise, linear_schedule

    network, schedule = quoin_unet(), linear_schedule(TIMES)

    def loss(clean: Tensor, t: Tensor, noise: Tensor) -> Tensor:
        return denoising_loss(network, schedule, PredictNoise(), clean, t + 1, noise).mean()  # its times begin with 1

    return _train(laps, network, loss, fused=True)


def diffusers_step(laps: Laps) -> dict[str, float]:
    return _diffusers_step(laps, fused=False)


def diffusers_step_fused(laps: Laps) -> dict[str, float]:
    return _diffusers_step(laps, fused=True)


def _diffusers_step(laps: Laps, *, fused: bool) -> dict[str, float]:
    from diffusers import DDPMScheduler  # pyright: ignore

    network, scheduler = diffusers_unet(), DDPMScheduler(TIMES)

    def loss(clean: Tensor, t: Tensor, noise: Tensor) -> Tensor:
        noisy = scheduler.add_noise(clean, noise, t)  # pyright: ignore
        return nn.functional.mse_loss(network(noisy, t, return_dict=False)[0], noise)

    return _train(laps, network, loss, fused=fused)


def quoin_sample(laps: Laps) -> dict[str, float]:
    from quoin.generate import clipped, ddim, start_noise
    from quoin.prob import PredictNoise, denoiser_of, linear_schedule

    network, schedule = quoin_unet().eval(), linear_schedule(TIMES)
    denoiser = clipped(denoiser_of(network, schedule, PredictNoise()), schedule, low=-1.0, high=1.0)
    generator = torch.Generator().manual_seed(0)

    def sample() -> Tensor:
        return ddim(denoiser, schedule, start_noise((BATCH, *SHAPE), generator=generator), steps=SAMPLE_STEPS, generator=generator)

    return _sample(laps, sample)


def diffusers_sample(laps: Laps) -> dict[str, float]:
    from diffusers import DDIMScheduler  # pyright: ignore

    network, scheduler = diffusers_unet().eval(), DDIMScheduler(TIMES)
    scheduler.set_timesteps(SAMPLE_STEPS)
    generator = torch.Generator().manual_seed(0)

    def sample() -> Tensor:
        state = torch.randn((BATCH, *SHAPE), generator=generator)
        for t in scheduler.timesteps:
            state = scheduler.step(network(state, t, return_dict=False)[0], t, state, return_dict=False)[0]  # pyright: ignore
        return state

    return _sample(laps, sample)


def diffusers_unet() -> nn.Module:
    """Their network, with the layers of ours; one block a size, and groups, heads and eps as they are by default."""
    from diffusers import UNet2DModel  # pyright: ignore

    torch.manual_seed(0)
    levels = len(WIDTHS) - 1
    return UNet2DModel(
        sample_size=SHAPE[1],
        in_channels=SHAPE[0],
        out_channels=SHAPE[0],
        block_out_channels=WIDTHS,
        layers_per_block=BLOCKS,
        down_block_types=("DownBlock2D",) * levels + ("AttnDownBlock2D",),
        up_block_types=("AttnUpBlock2D",) + ("UpBlock2D",) * levels,
    )


def quoin_unet() -> UNet:
    """Ours with the weights of theirs, so that the losses show that both do the same."""
    network = UNet(SHAPE, widths=WIDTHS, blocks=BLOCKS)
    load_diffusers_unet(network, diffusers_unet().state_dict())
    return network


def _train(laps: Laps, network: nn.Module, loss: Loss, *, fused: bool) -> dict[str, float]:
    torch.set_num_threads(laps.threads)
    generator, pictures = torch.Generator().manual_seed(0), torch.from_numpy(images())
    optimiser = torch.optim.AdamW(network.parameters(), RATE, fused=fused)
    total = 0.0
    for _ in range(laps.count):
        total = 0.0
        for clean in pictures.split(BATCH):
            t = torch.randint(TIMES, (BATCH,), generator=generator)
            value = loss(clean, t, torch.randn(clean.shape, generator=generator))
            optimiser.zero_grad()
            value.backward()
            optimiser.step()
            total += value.item()
        laps.end()
    return {"parameters": float(sum(each.numel() for each in network.parameters())), "loss of the last lap": total / TRAIN_STEPS}


def _sample(laps: Laps, sample: Callable[[], Tensor]) -> dict[str, float]:
    torch.set_num_threads(laps.threads)
    drawn = torch.empty(0)
    with torch.no_grad():
        for _ in range(laps.count):
            drawn = sample()
            laps.end()
    return {"largest value": float(drawn.abs().max())}
