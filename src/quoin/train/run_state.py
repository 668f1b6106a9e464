"""What the state in a checkpoint of a run must hold, and what is built from it must fit."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypedDict

import torch
from jaxtyping import Shaped
from torch import Tensor

from quoin.documents import Count, checked
from quoin.errors import UserError

__all__ = ["RunState", "fitting", "model_weights", "read_state"]


class _TrainerState(TypedDict):
    step: Count
    seconds: float
    num_lines: Count
    best_value: float | None
    best_step: Count
    epochs_without_improvement: Count
    finished: bool


class _MeanMetrics(TypedDict):
    count: Count
    sums: dict[str, float]


class RunState(TypedDict):
    """The state in a checkpoint of a run; what the task keeps of itself, the task knows."""

    task: dict[str, Any]
    trainer: _TrainerState
    means: list[_MeanMetrics]  # of each process
    best: dict[str, Any] | None
    generators: dict[str, Tensor]


def model_weights(saved: Any, where: str) -> dict[str, Shaped[Tensor, "..."]]:
    """The weights by name in what is kept of a model."""
    found = checked(dict[str, Any], saved, where)
    return checked(dict[str, Tensor], found.get("weights"), f"{where}, weights")


def read_state(state: Any, where: str) -> RunState:
    """What a checkpoint held, known to be the state of a run."""
    return checked(RunState, state, where)


@contextmanager
def fitting(where: str) -> Iterator[None]:
    """What lacks a thing that a recipe looks for in it, or holds it in another form, as one line."""
    try:
        yield
    except UserError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, RuntimeError, AssertionError) as error:
        if isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error):
            raise
        got = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise UserError(
            f"{where}: expected what a run of this recipe holds, got another ({got[:100]}); train again"
        ) from error
