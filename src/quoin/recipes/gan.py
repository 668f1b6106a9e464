"""A small convolutional GAN of digits: a generator that never sees a digit learns them from the one that tells its fakes."""

from dataclasses import dataclass
from typing import Literal

from quoin import data, losses, models, tasks, train
from quoin.options import default, option
from quoin.tasks.options import GenerativeOptions
from quoin.tasks.target import Target

NOTES = ("D5.2-7", "D5.2-5")
# The share of test images that have a sample like them: it falls with every digit and every hand that the generator forgets. Over seeds
# 100 to 104 it is 0.97 ± 0.02.
TARGET = Target("test_coverage", at_least=0.9)
MONITOR = None  # the rates fall to nothing, and neither player's loss says how good the samples are


@dataclass(frozen=True)
class Options(GenerativeOptions):
    lr: float = default(3e-3)
    latent: int = option(32, "numbers of noise that an image is made from", at_least=1, at_most=100_000)
    width: int = option(16, "channels at full size, a multiple of 8; at half size there are twice as many", at_least=8, at_most=4096)
    penalty: float = option(3.0, "weight of the squared slopes of the discriminator at real images; 0 leaves it free", at_least=0.0)
    loss: Literal["non-saturating", "minimax"] = option("non-saturating", "what the generator minimises: -ln D, or ln(1 - D)")


def model(options: Options, facts):
    weights = data.keyed_generator("weights", options.seed)
    return models.conv_gan(facts.image_shape, latent_dim=options.latent, width=options.width, generator=weights)


def build(options: Options, place: "train.Place"):
    from quoin.runs.open_classifier import open_classifier
    from quoin.tasks.gan import AdversarialTask

    data = tasks.raw_images(options, place)
    net = model(options, data.facts).to(place.device)
    loss = losses.saturating_loss if options.loss == "minimax" else losses.non_saturating_loss
    return AdversarialTask(net, data, options, place, loss=loss, penalty=options.penalty, open_classifier=open_classifier)
