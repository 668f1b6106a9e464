"""One Gaussian fitted to two modes: forward KL covers both, reverse KL settles in one."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from quoin import data, train
from quoin.options import default, option
from quoin.tasks.options import EpochOptions, GradientOptions, OptimizerName
from quoin.tasks.target import Target

if TYPE_CHECKING:
    from torch import nn

NOTES = ("M24", "Z13.22")
KEYWORDS = ("forward kl", "reverse kl", "mode covering", "mode seeking", "variational inference")
SUBJECT = "Latent-variable models"
# The error of the worse of the two fits, in the standard deviation of the exact one: KL(P, Q) is least for the mean and
# the standard deviation of P, and KL(Q, P) at one of the minima that quadrature finds, here within 0.001 of either
# mode. What is left is the noise of the last samples.
TARGET = Target("validation_max_relative_error", at_most=0.05)
MONITOR = None  # the learning rate falls to zero, so the last fits are the best


@dataclass(frozen=True)
class Options(GradientOptions, EpochOptions):
    mode_distance: float = option(
        4.0, "distance of each mode from zero, in standard deviations of a mode", at_least=0.0, at_most=30.0
    )
    mixture_weight: float = option(0.5, "mixture weight of the left mode of P", at_least=0.0, at_most=1.0)
    epochs: int = option(20, "evaluations of the two KL divergences, by quadrature", at_least=1, at_most=10**6)
    steps_per_epoch: int = option(25, "optimizer steps between two evaluations", at_least=1, at_most=10**6)
    batch_size: int = option(256, "samples per optimizer step", at_least=1, at_most=10**6)
    optimizer: OptimizerName = default("adam")
    lr: float = option(0.2, "initial learning rate, under a cosine schedule", above=0.0, at_most=100.0)


def model(options: Options, data_info: None) -> "nn.ParameterDict":
    """Two Gaussians, both with one sample of P as initial mean and the std of a mode; between the modes KL(Q, P) may
    stay there."""
    import torch
    from torch import nn

    generator = data.keyed_generator("start", options.seed)
    mode = (
        -options.mode_distance
        if float(torch.rand((), generator=generator)) < options.mixture_weight
        else options.mode_distance
    )
    start = mode + torch.randn((), generator=generator, dtype=torch.float64)
    return nn.ParameterDict(
        {"mean": nn.Parameter(start.repeat(2)), "log_std": nn.Parameter(torch.zeros(2, dtype=torch.float64))}
    )


def build(options: Options, device_context: "train.DeviceContext") -> "train.Task":
    from quoin.tasks.forward_reverse_kl import ForwardReverseKL

    return ForwardReverseKL(model(options, None), options)
