"""Probabilistic PCA trained as a linear variational autoencoder: its ELBO reaches the exact log evidence."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from quoin import data, models, train
from quoin.options import default, option
from quoin.tasks.options import EpochOptions, GradientOptions, OptimizerName
from quoin.tasks.target import Target

if TYPE_CHECKING:
    from torch import nn

NOTES = ("D6-11", "D6-17", "D6-19", "D6-26")
KEYWORDS = ("pca", "factor analysis", "elbo", "latent")
SUBJECT = "Latent-variable models"
# In nats per test example: how far the ELBO is below the log evidence of the closed-form maximum-likelihood fit. It is
# what the encoder misses of the posterior, plus what the decoder misses of that fit. Over seeds 100 to 109 it is 0.005
# ± 0.005.
TARGET = Target("test_elbo_gap_to_mle", at_most=0.02)
MONITOR = None  # the learning rate falls to zero, so the last weights are the best


@dataclass(frozen=True)
class Options(GradientOptions, EpochOptions):
    num_features: int = option(10, "features of an example", at_least=2, at_most=10_000)
    latent_dim: int = option(3, "latent dimension, of the true model and of the fitted one", at_least=1, at_most=1000)
    noise: float = option(
        0.5, "standard deviation of the noise that the latent does not explain", above=0.0, at_most=1000.0
    )
    num_examples: int = option(1000, "training examples, and as many test examples", at_least=10, at_most=10**7)
    epochs: int = option(80, "passes over the examples", at_least=1, at_most=10**6)
    batch_size: int = option(100, "examples per optimizer step", at_least=1, at_most=10**6)
    num_latent_samples: int = option(
        1, "latent samples for each example of an optimizer step", at_least=1, at_most=10_000
    )
    optimizer: OptimizerName = default("adam")
    lr: float = option(0.05, "initial learning rate, under a cosine schedule", above=0.0, at_most=100.0)


def model(options: Options, data_info: None) -> "nn.ModuleDict":
    """A decoder with random weights, and an encoder that knows nothing yet: one distribution around zero for every
    example."""
    import torch
    from torch import nn

    d, k = options.num_features, options.latent_dim
    generator = data.keyed_generator("start", options.seed)
    weight = torch.randn(d, k, generator=generator, dtype=torch.float64) / k**0.5
    encoder = nn.Linear(d, k, dtype=torch.float64)
    nn.init.zeros_(encoder.weight)
    nn.init.zeros_(encoder.bias)
    blocks = {"decoder": models.PPCA(weight, torch.zeros(d, dtype=torch.float64), 1.0), "encoder": encoder}
    scale = nn.ParameterDict({"entries": nn.Parameter(torch.zeros(k * (k + 1) // 2, dtype=torch.float64))})
    return nn.ModuleDict({**blocks, "scale": scale})


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    from quoin.tasks.ppca import PPCATask

    return PPCATask(model(options, None), options)
