"""Optimizers side by side: each at several learning rates, from the same weights and on the same batches."""

import math
import time
from collections.abc import Callable, Iterable
from statistics import fmean
from typing import Any, Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn, optim

from quoin import plot
from quoin.data import BatchSampler
from quoin.errors import UserError
from quoin.options import flag_name
from quoin.plot import Panel
from quoin.tasks.supervised import Classification
from quoin.train import Metrics, NonFiniteLossError

__all__ = [
    "OPTIMIZERS",
    "LearningRateOptions",
    "OptimizerRace",
    "Trial",
    "learning_rates",
    "make_unfused_optimizer",
    "smoothed",
]

OPTIMIZERS = {
    "sgd": "SGD",
    "momentum": "momentum",
    "nesterov": "Nesterov",
    "rmsprop": "RMSProp",
    "adam": "Adam",
    "adamw": "AdamW",
}
ADAPTIVE = {
    "rmsprop",
    "adam",
    "adamw",
}  # they divide the gradient by its size: their learning rates are in another unit


class LearningRateOptions(Protocol):
    """The learning rates to try: `adaptive_lrs` of the optimizers that scale their steps, `lrs` of the others."""

    @property
    def lrs(self) -> tuple[float, ...]: ...

    @property
    def adaptive_lrs(self) -> tuple[float, ...]: ...


def learning_rates(name: str, options: LearningRateOptions) -> list[float]:
    """The learning rates that `options` give the optimizer of this name, in order, each once."""
    option = "adaptive_lrs" if name in ADAPTIVE else "lrs"
    if not getattr(options, option):
        raise UserError(f"{flag_name(option)} expects at least one learning rate, got none: give e.g. 0.01 0.1")
    return sorted(set(getattr(options, option)))


def make_unfused_optimizer(
    name: str, parameters: Iterable[nn.Parameter], lr: float, *, momentum: float, weight_decay: float
) -> optim.Optimizer:
    """The optimizer as torch has it, always by its plain loop: RMSProp has no fused one, and seconds are to compare
    optimizers."""
    match name:
        case "sgd":
            return optim.SGD(parameters, lr, foreach=False)
        case "momentum" | "nesterov":
            return optim.SGD(parameters, lr, momentum=momentum, nesterov=name == "nesterov", foreach=False)
        case "rmsprop":
            return optim.RMSprop(parameters, lr, foreach=False)
        case "adam":
            return optim.Adam(parameters, lr, foreach=False)
        case "adamw":
            return optim.AdamW(parameters, lr, weight_decay=weight_decay, foreach=False)
    raise AssertionError(name)


class Trial:
    """One optimizer at one learning rate: the task it learns by and what was seen of it. It is over once a number is
    not finite."""

    def __init__(self, optimizer: str, lr: float, task: Classification) -> None:
        self.optimizer, self.lr, self.task = optimizer, lr, task
        self.losses: list[float] = []  # the mean over the batch, at each step
        self.eval_losses: list[float] = []  # on the validation rows, after each epoch
        self.seconds = 0.0  # spent in steps. No metric: no two runs agree on it
        self.diverged = False

    def step(self, rows: Int[Tensor, "batch"]) -> None:
        began = time.perf_counter()
        loss = self._attempt(lambda: float(self.task.step(rows)["loss"]) / len(rows))
        self.seconds += time.perf_counter() - began
        self.losses += [] if self.diverged else [loss]

    def evaluate(self, split: str) -> None:
        loss = self._attempt(lambda: self.task.evaluate(split)["loss"])
        self.eval_losses += [] if self.diverged else [loss]

    def _attempt(self, compute: Callable[[], Any]) -> Any:
        try:
            found = compute()
        except NonFiniteLossError:
            found = math.nan
        self.diverged = isinstance(found, float) and not math.isfinite(found)
        return found

    @property
    def last_loss(self) -> float:
        """What the best is chosen by: the last validation loss or, before there is one, the last training loss."""
        return (self.eval_losses or self.losses or [0.0])[-1]

    @property
    def step_seconds(self) -> float:
        return self.seconds / len(self.losses)

    def steps_to(self, level: float, window: int) -> int:
        """Steps until the mean loss of the last `window` was at most `level`, or all that were made if it never was."""
        ends = range(window, len(self.losses) + 1)
        return next((end for end in ends if fmean(self.losses[end - window : end]) <= level), len(self.losses))

    def state_dict(self) -> dict[str, Any]:
        task = (
            None if self.diverged else self._attempt(self.task.state_dict)
        )  # a step after a finite loss may have overflowed
        seen = {
            "losses": self.losses,
            "eval_losses": self.eval_losses,
            "seconds": self.seconds,
            "diverged": self.diverged,
        }
        return seen | {"task": None if self.diverged else task}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.losses, self.eval_losses, self.seconds, self.diverged = (
            state[name] for name in ("losses", "eval_losses", "seconds", "diverged")
        )
        if not self.diverged:
            self.task.load_state_dict(state["task"])


class OptimizerRace:
    """Every optimizer at every one of its learning rates, on the same batches; steps are counted to a loss of
    `level`."""

    kind = "classification"

    def __init__(self, trials: list[Trial], batches: BatchSampler, *, level: float) -> None:
        self.trials, self.batches, self.level = trials, batches, level
        data = trials[0].task.data
        self.data_info, self.eval_split = data.data_info, "validation" if data.validation.num_rows else "train"

    def step(self, rows: Int[Tensor, "batch"]) -> dict[str, Float[Tensor, ""]]:
        for each in self.running():
            each.step(rows)
        if self.batches.position == self.batches.num_batches:
            for each in self.running():
                each.evaluate(self.eval_split)
        return {"loss": torch.tensor(self.winner().losses[-1] * len(rows))}

    def running(self) -> list[Trial]:
        return [each for each in self.trials if not each.diverged]

    def chosen(self) -> dict[str, Trial]:
        """For each optimizer the trial at the learning rate that is best so far."""
        found = {name: [each for each in self.running() if each.optimizer == name] for name in OPTIMIZERS}
        if lost := [name for name, left in found.items() if not left]:
            flag = "--adaptive-lrs" if lost[0] in ADAPTIVE else "--lrs"
            raise NonFiniteLossError(
                f"the loss of {OPTIMIZERS[lost[0]]} is not finite at any of its learning rates; try smaller {flag}"
            )
        return {name: min(left, key=lambda each: each.last_loss) for name, left in found.items()}

    def winner(self) -> Trial:
        return min(self.chosen().values(), key=lambda each: each.last_loss)

    def evaluate(self, split: str) -> Metrics:
        best, chosen = self.winner(), self.chosen()
        metrics = {name: each.task.evaluate(split) for name, each in chosen.items()}
        if not metrics[best.optimizer]:
            return {}
        accuracies = {f"accuracy_{name}": value["accuracy"] for name, value in metrics.items()}
        found = metrics[best.optimizer] | accuracies | {"min_accuracy": min(accuracies.values())}
        if split == "train":
            found |= {f"lr_{name}": each.lr for name, each in chosen.items()}
            found |= {
                f"steps_to_threshold_{name}": float(each.steps_to(self.level, self.batches.num_batches))
                for name, each in chosen.items()
            }
        return found

    def state_dict(self) -> dict[str, Any]:
        trials = [each.state_dict() for each in self.trials]
        return {
            "model": self.winner().task.state_dict()["model"],
            "trials": trials,
            "batches": self.batches.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for each, saved in zip(self.trials, state["trials"], strict=True):
            each.load_state_dict(saved)
        self.batches.load_state_dict(state["batches"])

    def panels(self) -> list[Panel]:
        """The loss by steps and by seconds, the learning-rate sweep, and what the best network does."""
        chosen, window = self.chosen(), self.batches.num_batches
        if not all(each.losses for each in chosen.values()):
            return self.winner().task.panels()
        by_steps, by_seconds, by_lr = {}, {}, {}
        for name, each in chosen.items():
            ends, means = smoothed(each.losses, window)
            by_steps[f"{OPTIMIZERS[name]}, lr {each.lr:g}"] = ends, means
            by_seconds[f"{OPTIMIZERS[name]}, lr {each.lr:g}"] = [end * each.step_seconds for end in ends], means
            left = [other for other in self.running() if other.optimizer == name]
            by_lr[OPTIMIZERS[name]] = [other.lr for other in left], [other.last_loss for other in left]
        needed = ", ".join(f"{OPTIMIZERS[name]} {each.steps_to(self.level, window)}" for name, each in chosen.items())
        paces = ", ".join(f"{OPTIMIZERS[name]} {1e6 * each.step_seconds:.0f}" for name, each in chosen.items())
        among_optimizers = _ratio([each.last_loss for each in chosen.values()])
        among_rates = max(_ratio(losses) for _, losses in by_lr.values())
        steps = (
            f"Mean training loss of {window} steps, each optimizer at the learning rate validation chose. "
            f"Steps to {self.level:g}: {needed}."
        )
        clock = (
            "The same curves by the time spent in optimizer steps. "
            f"Microseconds per step, by torch's for-loop implementation for all: {paces}."
        )
        sweep = (
            f"The last validation loss of all {len(self.trials)} runs but those that diverged. "
            "Among optimizers at their best learning rates it differs "
            f"by a factor of {among_optimizers:.2g}, among the learning rates of one optimizer by up to "
            f"{among_rates:.2g}."
        )
        levels = {"level": self.level}
        return [
            Panel(
                "Loss by steps",
                lambda: plot.curves(
                    by_steps, x_label="steps", y_label="training loss", log_y=True, reference_lines=levels
                ),
                steps,
            ),
            Panel(
                "Loss by seconds",
                lambda: plot.curves(
                    by_seconds, x_label="seconds", y_label="training loss", log_y=True, reference_lines=levels
                ),
                clock,
            ),
            Panel(
                "Learning-rate sweep",
                lambda: plot.curves(by_lr, x_label="learning rate", y_label="validation loss", log_x=True, log_y=True),
                sweep,
            ),
            *self.winner().task.panels(),
        ]


def _ratio(losses: list[float]) -> float:
    """How many times the largest loss is the smallest; data that are learnt perfectly have losses of 0."""
    return max(losses) / min(losses) if min(losses) > 0 else 1.0 if max(losses) == 0 else math.inf


def smoothed(losses: list[float], window: int) -> tuple[list[int], list[float]]:
    """The numbers of the steps at which a mean over the last `window` is plotted, four per epoch, and these means."""
    ends = list(range(min(window, len(losses)), len(losses) + 1, max(1, window // 4)))
    return ends, [fmean(losses[max(0, end - window) : end]) for end in ends]
