"""A variational autoencoder of digits made of MLPs, with a Gaussian decoder of fixed standard deviation."""

from dataclasses import dataclass
from typing import Literal

from quoin import data, models, tasks, train
from quoin.options import default, option
from quoin.tasks.generative_options import VAEOptions
from quoin.tasks.target import Target
from quoin.train.monitor import Monitor

NOTES = ("D6-16", "D6-23", "D6-28", "D6-30", "D5.2-6")
KEYWORDS = ("variational autoencoder", "elbo", "iwae", "beta-vae", "latent")
SUBJECT = "Latent-variable models"
# Bits for the exact grey level of a pixel, by the ELBO; a uniform distribution over the 17 levels needs 4.09. Over
# seeds 100 to 103 it is 3.35 ± 0.01.
TARGET = Target("test_bits_per_dimension", at_most=3.42)
MONITOR = Monitor("validation_loss")


@dataclass(frozen=True)
class Options(VAEOptions):
    epochs: int = default(150)
    lr: float = default(0.003)
    hidden_dims: tuple[int, ...] = option(
        (256,), "units of the encoder's hidden layers; the decoder has them in reverse order", at_least=1
    )
    decoder: Literal["gaussian", "learned-gaussian", "binomial"] = default("gaussian")


def model(options: Options, data_info: "data.ImageInfo") -> "models.VAE":
    weights = data.keyed_generator("weights", options.seed)
    return models.mlp_vae(
        data_info.image_shape,
        options.latent_dim,
        tasks.vae_decoder(options, data_info),
        hidden_dims=options.hidden_dims,
        generator=weights,
    )


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    from quoin.runs.open_classifier import open_classifier

    return tasks.vae_task(model, options, device_context, open_classifier)
