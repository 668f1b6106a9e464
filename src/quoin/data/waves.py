"""`waves`: generated signals of five waveforms, told apart by their shape alone."""

import math

import torch
from jaxtyping import Float64, Int
from torch import Generator, Tensor

from quoin.data.dataset import Dataset, column_names

__all__ = ["WAVEFORMS", "make_waves", "waveform"]

WAVEFORMS = ("chirp", "sawtooth", "sine", "square", "triangle")


def make_waves(num_rows: int, *, length: int = 128, noise: float, generator: Generator) -> Dataset:
    """One channel of `length` steps, A w(f t + phase) + N(0, noise²) on t in [0, 1), with w the waveform of the row's
    class, the classes equally large to within one row.

    The amplitude A, the frequency f (of a chirp, the first one) and the phase are uniform on [0.5, 1.5], [3, 9] and
    [0, 1], whatever the class. Since the phase is uniform, every class has the mean 0 at every step, and a linear
    classifier has next to nothing to go by.
    """
    targets = torch.arange(num_rows) % len(WAVEFORMS)
    amplitude, frequency, phase = torch.rand(3, num_rows, 1, dtype=torch.float64, generator=generator)
    clean = (0.5 + amplitude) * waveform(targets, 3 + 6 * frequency, phase, length)
    signals = clean + noise * torch.randn(clean.shape, dtype=torch.float64, generator=generator)
    features = signals.float().unsqueeze(1)
    return Dataset("waves", features, targets, column_names(features.shape[1:]), WAVEFORMS, ("waveform",))


def waveform(
    labels: Int[Tensor, "samples"],
    frequency: Float64[Tensor, "samples 1"],
    phase: Float64[Tensor, "samples 1"],
    length: int,
) -> Float64[Tensor, "samples {length}"]:
    """The waveform of each label in WAVEFORMS, of amplitude 1, at `length` steps of [0, 1).

    Args:
        frequency: Periods on [0, 1); that of a chirp rises in proportion to the time, to three times as many.
        phase: In periods.
    """
    t = torch.arange(length, dtype=torch.float64) / length
    periods = frequency * t + phase
    within = periods - periods.floor()  # of the period, in [0, 1)
    chirp = torch.sin(2 * math.pi * (frequency * (t + t**2) + phase))
    sawtooth = 2 * within - 1
    sine = torch.sin(2 * math.pi * periods)
    square = torch.where(within < 0.5, 1.0, -1.0).double()
    triangle = 1 - 4 * (within - 0.5).abs()
    shapes = torch.stack([chirp, sawtooth, sine, square, triangle])
    return shapes[labels, torch.arange(len(labels))]
