"""One Gaussian fitted to two modes, both ways round: KL(P, Q) covers them, KL(Q, P) settles in one."""

from dataclasses import dataclass

from quoin import data, train
from quoin.options import option
from quoin.tasks.options import RunOptions
from quoin.tasks.target import Target

NOTES = ("M24", "Z13.22")
# How far the worse of the two fits is from where mathematics puts it, in the width of the law there: KL(P, Q) is least for the mean and
# the deviation of P, and KL(Q, P) at one of the minima that quadrature finds, here within 0.001 of either mode. What is left is the
# noise of the last draws.
TARGET = Target("validation_off", at_most=0.05)
MONITOR = None  # the rate falls to nothing, so the last fits are the best


@dataclass(frozen=True)
class Options(RunOptions):
    distance: float = option(4.0, "how far each mode is from zero, in widths of a mode", at_least=0.0, at_most=30.0)
    share: float = option(0.5, "how much of P the left mode has", at_least=0.0, at_most=1.0)
    epochs: int = option(20, "looks at the two divergences, taken by quadrature", at_least=1, at_most=10**6)
    steps: int = option(25, "updates between two looks", at_least=1, at_most=10**6)
    batch_size: int = option(256, "draws for each update", at_least=1, at_most=10**6)
    lr: float = option(0.2, "the rate of Adam's first step; it falls along a cosine", above=0.0, at_most=100.0)


def model(options: Options, facts):
    """Two Gaussians, both started at one draw from P and as wide as a mode; a start between the modes may keep KL(Q, P) there too."""
    import torch
    from torch import nn

    generator = data.keyed_generator("start", options.seed)
    mode = -options.distance if float(torch.rand((), generator=generator)) < options.share else options.distance
    start = mode + torch.randn((), generator=generator, dtype=torch.float64)
    return nn.ParameterDict({"mean": nn.Parameter(start.repeat(2)), "log_std": nn.Parameter(torch.zeros(2, dtype=torch.float64))})


def build(options: Options, place: "train.Place"):
    from quoin.tasks.forward_reverse_kl import ForwardReverseKL

    return ForwardReverseKL(model(options, None), options)
