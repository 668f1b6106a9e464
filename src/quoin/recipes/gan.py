"""A small convolutional GAN of handwritten digits, with an R1 gradient penalty on the discriminator."""

from dataclasses import dataclass
from typing import Literal

from quoin import data, losses, models, tasks, train
from quoin.options import default, option
from quoin.tasks.generative_options import GenerativeOptions
from quoin.tasks.target import Target

NOTES = ("D5.2-7", "D5.2-5")
KEYWORDS = ("dcgan", "r1", "adversarial", "generative adversarial network")
SUBJECT = "Generative models"
# Coverage, the fraction of test images with a sample near them: it falls with every mode that the generator drops. Over
# seeds 100 to 104 it is 0.97 ± 0.02.
TARGET = Target("test_coverage", at_least=0.9)
MONITOR = None  # the learning rates fall to zero, and neither player's loss says how good the samples are


@dataclass(frozen=True)
class Options(GenerativeOptions):
    lr: float = default(3e-3)
    # With the usual 0.9 a player still runs after what its rival has left long ago.
    beta1: float | None = default(0.5, "beta1, of adam, adamw and lion")
    beta2: float | None = default(0.99, "beta2, of adam, adamw and lion")
    latent_dim: int = option(32, "latent dimension: size of the noise vector", at_least=1, at_most=100_000)
    base_channels: int = option(
        16, "channels at full size, a multiple of 8; at half size there are twice as many", at_least=8, at_most=4096
    )
    r1_weight: float = option(
        3.0, "weight of R1, the squared gradient norm of the discriminator at real images; 0 for none", at_least=0.0
    )
    loss: Literal["non-saturating", "minimax"] = option(
        "non-saturating", "what the generator minimises: -ln D, or ln(1 - D)"
    )


def model(options: Options, data_info: "data.ImageInfo") -> "models.GAN":
    weights = data.keyed_generator("weights", options.seed)
    return models.conv_gan(
        data_info.image_shape, latent_dim=options.latent_dim, base_channels=options.base_channels, generator=weights
    )


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    from quoin.runs.open_classifier import open_classifier
    from quoin.tasks.gan import GANTask

    data = tasks.load_raw_images(options, device_context)
    net = model(options, data.data_info).to(device_context.device)
    loss = losses.saturating_loss if options.loss == "minimax" else losses.non_saturating_loss
    return GANTask(
        net, data, options, device_context, loss=loss, penalty=options.r1_weight, open_classifier=open_classifier
    )
