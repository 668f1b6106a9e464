"""Diffusion models of images for diffusers: the U-Net as `UNet2DModel`, its noise schedule as `DDIMScheduler`.

Our timesteps go from 1 to T, and at 0 there is no noise; theirs go from 0. So theirs has a timestep more, the first
without noise, and begins behind it (`steps_offset`): the numbers that the network sees are those it was trained with.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

from quoin.data import keyed_generator
from quoin.generate import DiffusionSampler, GuidedDiffusionSampler, sample_ddim
from quoin.models import UNet
from quoin.models.unet_weights import diffusers_unet_config, diffusers_unet_weights
from quoin.prob import EpsilonPrediction, SamplePrediction, VPrediction
from quoin.runs.export.huggingface.files import write_json, write_weights
from quoin.runs.export.huggingface.model_card import write_model_card
from quoin.runs.export.huggingface.opening import is_there, not_compared, quiet
from quoin.runs.export.written import Difference, Written, largest_difference
from quoin.runs.run import Run

__all__ = ["is_diffusers_model", "write_diffusion"]

BATCHES = (2, 5)
LOOP_TOLERANCE = 1e-4  # of a whole reverse process, whose steps each round anew
PREDICTION_TYPES = {EpsilonPrediction: "epsilon", SamplePrediction: "sample", VPrediction: "v_prediction"}
_LOAD = """
import torch
from diffusers import DDIMScheduler, UNet2DModel

unet = UNet2DModel.from_pretrained("unet")
scheduler = DDIMScheduler.from_pretrained("scheduler")
scheduler.set_timesteps({num_steps})
{labels}images = torch.randn({count}, {shape})
with torch.no_grad():
    for t in scheduler.timesteps:
        output = unet(images, t{given}).sample{guided}
        images = scheduler.step(output, t, images, use_clipped_model_output=True).prev_sample
images = (images / 2 + 0.5).clamp(0, 1)  # from 0 to 1
print(images.shape)
"""
_LABELS = """labels = torch.arange({count}) % {num_classes}  # see the notes
none = torch.full_like(labels, {num_classes})
"""
_GUIDED = """
        without = unet(images, t, class_labels=none).sample
        output = without + {scale:g} * (output - without)  # classifier-free guidance"""


def is_diffusers_model(model: nn.Module) -> bool:
    """Whether the model is a U-Net with a noise schedule, as diffusers has them."""
    return isinstance(model, DiffusionSampler | GuidedDiffusionSampler) and isinstance(model.network, UNet)


def write_diffusion(run: Run, folder: Path) -> Written:
    """Write the folder of a diffusion model and compare network, schedule and a whole reverse process."""
    model: Any = run.trained.model
    network = model.network
    (folder / "unet").mkdir()
    (folder / "scheduler").mkdir()
    files = [
        write_json(folder / "unet" / "config.json", diffusers_unet_config(network)),
        write_weights(folder / "unet" / "diffusion_pytorch_model.safetensors", diffusers_unet_weights(network)),
        write_json(folder / "scheduler" / "scheduler_config.json", _scheduler(model)),
    ]
    notes = _notes(run, network)
    if not network.num_classes:  # their pipeline knows no classes
        files.insert(0, write_json(folder / "model_index.json", _pipeline()))
    files.append(
        write_model_card(
            run,
            folder,
            code=_code(model, network),
            library="diffusers",
            pipeline_tag="unconditional-image-generation",
            notes=notes,
        )
    )
    if not is_there("diffusers"):
        return Written(tuple(files), (), (*notes, not_compared("diffusers")))
    return Written(tuple(files), tuple(_compare(model, network, folder)), tuple(notes))


def _scheduler(model: Any) -> dict[str, Any]:
    return {
        "_class_name": "DDIMScheduler",
        "num_train_timesteps": model.schedule.num_steps + 1,
        "trained_betas": model.schedule.betas.tolist(),  # the first is 0
        "prediction_type": PREDICTION_TYPES[type(model.prediction_type)],
        "clip_sample": model.clip_range is not None,
        "clip_sample_range": 1.0 if model.clip_range is None else model.clip_range[1],
        "set_alpha_to_one": True,
        "steps_offset": 1,
        "timestep_spacing": "leading",
    }


def _pipeline() -> dict[str, Any]:
    return {
        "_class_name": "DDIMPipeline",
        "scheduler": ["diffusers", "DDIMScheduler"],
        "unet": ["diffusers", "UNet2DModel"],
    }


def _notes(run: Run, network: UNet) -> list[str]:
    if not network.num_classes:
        return []
    names = getattr(run.data_info, "class_names", None) or tuple(map(str, range(network.num_classes)))
    listed = ", ".join(f"{number} {name}" for number, name in enumerate(names))
    return [
        f"its class labels: {listed}; {network.num_classes} is none of them, for classifier-free guidance",
        "DDIMPipeline gives no class labels, so there is no model_index.json: the loop is in README.md",
    ]


def _code(model: Any, network: UNet) -> str:
    count, guided = 4, isinstance(model, GuidedDiffusionSampler)
    return _LOAD.format(
        num_steps=model.num_steps,
        count=count,
        shape=", ".join(map(str, model.shape)),
        labels=_LABELS.format(count=count, num_classes=network.num_classes) if guided else "",
        given=", class_labels=labels" if guided else "",
        guided=_GUIDED.format(scale=model.guidance_scale) if guided else "",
    )


@torch.no_grad()
def _compare(model: Any, network: UNet, folder: Path) -> Iterator[Difference]:
    with quiet():
        from diffusers.models.unets.unet_2d import UNet2DModel
        from diffusers.schedulers.scheduling_ddim import DDIMScheduler

        unet: Any = UNet2DModel.from_pretrained(folder / "unet").eval()
        scheduler: Any = DDIMScheduler.from_pretrained(folder / "scheduler")
    generator, last = keyed_generator("export", 0), model.schedule.num_steps
    for rows in BATCHES:
        images = torch.randn(rows, *model.shape, generator=generator)
        t = torch.randint(1, last + 1, (rows,), generator=generator)
        labels = torch.randint(network.num_classes + 1, (rows,), generator=generator) if network.num_classes else None
        theirs = unet(images, t, class_labels=labels).sample
        yield Difference(f"random images, batch {rows}", largest_difference(network(images, t, labels), theirs))
    yield Difference("noise schedule", largest_difference(model.schedule.alpha_bar, scheduler.alphas_cumprod))
    start = torch.randn(2, *model.shape, generator=generator)
    labels = torch.zeros(2, dtype=torch.long) if network.num_classes else None
    denoiser = model.denoiser() if labels is None else model.denoiser(labels, 1.0)
    ours = sample_ddim(denoiser, model.schedule, start, num_steps=last, generator=generator)
    scheduler.set_timesteps(last)
    theirs = start
    for t in scheduler.timesteps:
        output = unet(theirs, t, class_labels=labels).sample
        theirs = scheduler.step(output, t, theirs, use_clipped_model_output=True).prev_sample
    yield Difference(f"reverse process of {last} steps", largest_difference(ours, theirs), LOOP_TOLERANCE)
