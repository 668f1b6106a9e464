"""Learning-rate schedules: the factor on the initial learning rate, as a function of the fraction of the run that is
done.

A schedule maps progress in [0, 1] to a factor and has no state, so a resumed run finds its learning rate by itself.
"""

import math
from collections.abc import Callable

__all__ = ["Schedule", "constant", "cosine", "one_cycle", "step_decay", "with_warmup"]

Schedule = Callable[[float], float]


def constant(progress: float) -> float:
    """The same learning rate throughout."""
    return 1.0


def cosine(progress: float) -> float:
    """From 1 to 0 along half a cosine: (1 + cos(pi p)) / 2.

    Args:
        progress: The fraction of the run that is done, from 0 to 1.

    >>> [round(cosine(p), 3) for p in (0.0, 0.5, 1.0)]
    [1.0, 0.5, 0.0]
    """
    return (1 + math.cos(math.pi * progress)) / 2


def one_cycle(progress: float) -> float:
    """Up along half a cosine from 1/25 to 1 over the first three tenths, then down along another to a ten-thousandth of
    the start.

    Args:
        progress: The fraction of the run that is done, from 0 to 1.

    >>> [round(one_cycle(p), 3) for p in (0.0, 0.15, 0.3, 0.65, 1.0)]
    [0.04, 0.52, 1.0, 0.5, 0.0]
    """
    peak, start = 0.3, 1 / 25
    if progress < peak:
        return 1 + (start - 1) * cosine(progress / peak)
    end = start / 10_000
    return end + (1 - end) * cosine((progress - peak) / (1 - peak))


def step_decay(progress: float) -> float:
    """A tenth of the learning rate after half of the run, a hundredth after three quarters.

    Args:
        progress: The fraction of the run that is done, from 0 to 1.

    >>> [step_decay(p) for p in (0.4, 0.6, 0.9)]
    [1.0, 0.1, 0.01]
    """
    return 1.0 if progress < 0.5 else 0.1 if progress < 0.75 else 0.01


def with_warmup(schedule: Schedule, ratio: float) -> Schedule:
    """Rise linearly to the full learning rate over the first `ratio` of the run, then follow `schedule` over the rest.

    >>> warmed = with_warmup(constant, 0.1)
    >>> [round(warmed(p), 2) for p in (0.0, 0.05, 0.5)]
    [0.0, 0.5, 1.0]
    """
    if ratio == 0:
        return schedule

    def warmed(progress: float) -> float:
        if progress < ratio:
            return progress / ratio
        return schedule((progress - ratio) / (1 - ratio) if ratio < 1 else 1.0)

    return warmed
