"""A class-conditional diffusion model of digits: a U-Net with classifier-free guidance."""

from dataclasses import dataclass
from typing import Literal

from quoin import data, generate, models, tasks, train
from quoin.options import default, option
from quoin.tasks.generative_options import GenerativeOptions
from quoin.tasks.target import Target

NOTES = ("D0-T",)
KEYWORDS = ("ddpm", "ddim", "dpm-solver", "score matching", "unet", "classifier-free guidance", "cfg")
SUBJECT = "Diffusion and flow matching"
TARGET = Target("test_class_conditional_accuracy", at_least=0.97)
MONITOR = None  # the learning rate falls to zero, so the last average is the best


@dataclass(frozen=True)
class Options(GenerativeOptions):
    epochs: int = default(80)
    lr: float = default(0.004)
    beta2: float | None = default(0.99, "beta2, of adam, adamw and lion")
    warmup_ratio: float = default(0.05)
    max_grad_norm: float = default(1.0)
    channels: tuple[int, ...] = option((16, 32), "channels of the U-Net at each resolution", at_least=1)
    num_blocks: int = option(1, "residual blocks at each resolution on the way down", at_least=1, at_most=1000)
    num_groups: int = option(8, "groups of each group normalization", at_least=1, at_most=10**6)
    ema_decay: float = option(0.99, "EMA decay of the weights", above=0.0, below=1.0)
    num_timesteps: int = option(100, "timesteps T of the forward process", at_least=2, at_most=10**5)
    beta_schedule: Literal["linear", "cosine", "sigmoid"] = option("cosine", "noise schedule")
    prediction_type: Literal["epsilon", "sample", "v_prediction"] = option("v_prediction", "what the network predicts")
    class_dropout: float = option(
        0.1,
        "class dropout: fraction of the training examples without their class, for classifier-free guidance",
        at_least=0.0,
        at_most=1.0,
    )
    guidance_scale: float = option(
        1.5, "guidance scale: 1 samples the conditional model, more sharpens the class", at_least=0.0, at_most=1e6
    )
    num_steps: int = option(10, "sampling steps (DPM-Solver-2), at most --num-timesteps", at_least=1, at_most=10**5)


def model(options: Options, data_info: "data.ImageInfo") -> "generate.GuidedDiffusionSampler":
    """An untrained U-Net with its noise schedule; images in [0, 1] are 2x - 1 to it."""
    import torch

    from quoin.tasks.diffusion_process import make_noise_process, sampling_steps

    schedule, asked = make_noise_process(options)
    network = models.UNet(
        data_info.image_shape,
        channels=options.channels,
        num_blocks=options.num_blocks,
        num_groups=options.num_groups,
        num_classes=data_info.num_classes,
        generator=data.keyed_generator("weights", options.seed),
    )
    half = torch.tensor(0.5)
    return generate.GuidedDiffusionSampler(
        network,
        schedule,
        asked,
        data_info.image_shape,
        num_classes=data_info.num_classes,
        loc=half,
        scale=half.clone(),
        bounds=(-1.0, 1.0),
        num_steps=sampling_steps(options),
        sampler=generate.sample_dpm_solver_2,
        guidance_scale=options.guidance_scale,
    )


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    from quoin.runs.open_classifier import open_classifier
    from quoin.tasks.diffusion import DiffusionTask

    data = tasks.load_raw_images(options, device_context)
    return DiffusionTask(model(options, data.data_info), data, options, device_context, open_classifier=open_classifier)
