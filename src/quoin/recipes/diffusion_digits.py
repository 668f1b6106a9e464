"""Digits drawn out of noise: a U-Net learns to tell noise from digits of a class, and guidance draws the class that is asked for."""

from dataclasses import dataclass
from typing import Literal

from quoin.errors import Mistake
from quoin.options import option
from quoin.recipes.running.options import GenerativeOptions
from quoin.recipes.running.target import Target

NOTES = ("D0-T",)
TARGET = Target("test_classified_as_asked", at_least=0.97)
GOAL = None  # the rate falls to nothing, so the last average is the best


@dataclass(frozen=True)
class Options(GenerativeOptions):
    """Options of the recipe `diffusion-digits`."""

    epochs: int = option(80, "passes over the training images", at_least=1, at_most=10**9)
    lr: float = option(0.004, "the largest learning rate of Adam", above=0.0, at_most=1e38)
    warm_up: float = option(0.05, "share of the run over which the learning rate rises to its full size", at_least=0.0, below=1.0)
    clip: float = option(1.0, "bound on the norm of the gradient; 0 sets none", at_least=0.0)
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


def model(options, facts):
    """An untrained U-Net with its schedule; images in [0, 1] are 2x - 1 to it."""
    import torch

    from quoin.data import keyed_generator
    from quoin.generate import GuidedDiffusionSampler, dpm_solver_2
    from quoin.models import UNet
    from quoin.recipes.running.noising import chosen_process

    schedule, asked = chosen_process(options)
    network = UNet(
        facts.image_shape,
        widths=options.widths,
        blocks=options.blocks,
        groups=options.groups,
        num_classes=facts.num_classes,
        generator=keyed_generator("weights", options.seed),
    )
    half = torch.tensor(0.5)
    return GuidedDiffusionSampler(
        network,
        schedule,
        asked,
        facts.image_shape,
        num_classes=facts.num_classes,
        offset=half,
        unit=half.clone(),
        bounds=(-1.0, 1.0),
        steps=options.steps,
        sampler=dpm_solver_2,
        guidance=options.guidance,
    )


def build(options, place):
    import torch

    from quoin.recipes.running.diffusing import DiffusionTask
    from quoin.recipes.running.parts import raw_images

    if options.drop_class == 0 and options.guidance != 1:
        told = "what the model says without a class, which --drop-class 0 never lets it learn: give --drop-class 0.1, or --guidance 1"
        raise Mistake(f"--guidance {options.guidance:g} needs {told}")
    data = raw_images(options, place)
    net = model(options, data.facts).to(place.device)
    adam = torch.optim.AdamW(net.parameters(), options.lr, betas=(0.9, 0.99), weight_decay=options.weight_decay, fused=True)
    return DiffusionTask(net, adam, data, options, place, average=options.average)
