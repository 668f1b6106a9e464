"""Digits drawn out of noise: a U-Net learns to tell noise from digits of a class, and guidance draws the class that is asked for."""

from dataclasses import dataclass
from typing import Literal

from quoin import data, generate, models, tasks, train
from quoin.options import default, option
from quoin.tasks.options import GenerativeOptions
from quoin.tasks.target import Target

NOTES = ("D0-T",)
TARGET = Target("test_classified_as_asked", at_least=0.97)
MONITOR = None  # the rate falls to nothing, so the last average is the best


@dataclass(frozen=True)
class Options(GenerativeOptions):
    epochs: int = default(80)
    lr: float = default(0.004)
    warm_up: float = default(0.05)
    clip: float = default(1.0)
    widths: tuple[int, ...] = option((16, 32), "channels of the U-Net at each size of image, each half of the one before", at_least=1)
    blocks: int = option(1, "blocks at each size on the way down", at_least=1, at_most=1000)
    groups: int = option(8, "groups of channels that are normalised together", at_least=1, at_most=10**6)
    average: float = option(0.99, "how much of its last value a moving average of the weights keeps at an update", above=0.0, below=1.0)
    times: int = option(100, "steps T from data to noise", at_least=2, at_most=10**5)
    noise: Literal["linear", "cosine", "sigmoid"] = option("cosine", "how the noise comes in")
    predict: Literal["noise", "clean", "velocity"] = option("velocity", "what the network is asked for")
    drop_class: float = option(
        0.1, "share of the training examples whose class is not told, to learn what guidance needs", at_least=0.0, at_most=1.0
    )
    guidance: float = option(1.5, "how strongly the class is asked for: 1 as it was learnt, more exaggerates", at_least=0.0, at_most=1e6)
    steps: int = option(10, "steps of the sampler, DPM-Solver-2, at most --times", at_least=1, at_most=10**5)


def model(options: Options, facts):
    """An untrained U-Net with its schedule; images in [0, 1] are 2x - 1 to it."""
    import torch

    from quoin.tasks.diffusion_process import chosen_process

    schedule, asked = chosen_process(options)
    network = models.UNet(
        facts.image_shape,
        widths=options.widths,
        blocks=options.blocks,
        groups=options.groups,
        num_classes=facts.num_classes,
        generator=data.keyed_generator("weights", options.seed),
    )
    half = torch.tensor(0.5)
    return generate.GuidedDiffusionSampler(
        network,
        schedule,
        asked,
        facts.image_shape,
        num_classes=facts.num_classes,
        offset=half,
        unit=half.clone(),
        bounds=(-1.0, 1.0),
        steps=options.steps,
        sampler=generate.dpm_solver_2,
        guidance=options.guidance,
    )


def build(options: Options, place: "train.Place"):
    from quoin.runs.open_classifier import open_classifier
    from quoin.tasks.diffusion import DiffusionTask

    data = tasks.raw_images(options, place)
    return DiffusionTask(model(options, data.facts), data, options, place, open_classifier=open_classifier)
