"""A convolutional variational autoencoder of digits whose pixels are counts of coin tosses."""

from dataclasses import dataclass

from quoin.options import option
from quoin.recipes.running.options import VAEOptions
from quoin.recipes.running.target import Goal, Target

NOTES = ("D6-16", "D6-23", "D6-30", "D5.2-6", "DE63")
# Bits for the exact grey level of a pixel, by the bound; a model that knows nothing but the 17 levels needs 4.09. Over seeds 100 to
# 102 it is 2.25 ± 0.01.
TARGET = Target("test_bits_per_dimension", at_most=2.4)
GOAL = Goal("validation_loss")


@dataclass(frozen=True)
class Options(VAEOptions):
    """Options of the recipe `vae-conv`."""

    lr: float = option(0.004, "the largest learning rate of Adam", above=0.0, at_most=1e38)
    channels: tuple[int, ...] = option((32, 64), "maps of the encoder's convolutions, each of which halves the sides", at_least=1)


def model(options, facts):
    from quoin.data import keyed_generator
    from quoin.models import conv_vae
    from quoin.recipes.running.vae import vae_decoder

    weights = keyed_generator("weights", options.seed)
    return conv_vae(facts.image_shape, options.latent, vae_decoder(options, facts), channels=options.channels, generator=weights)


def build(options, place):
    from quoin.recipes.running.vae import vae_task

    return vae_task(model, options, place)
