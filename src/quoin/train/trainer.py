"""The training loop: steps, evaluations, checkpoints, until the epochs are done, patience ends or somebody interrupts.

All that the loop itself must remember is in `TrainerState`; with the task's state it makes a run that was killed go on
to the same bits. Several processes go through it step by step together: the main one has the folder, the progress bar
and the callbacks, and what is decided by a clock, a signal or a callback, they decide together.
"""

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from quoin.callbacks import listen_with
from quoin.data import keyed_seed
from quoin.display import shown
from quoin.train.agreement import Agreement
from quoin.train.events import Callback, RunEvent
from quoin.train.folder import RunFolder
from quoin.train.gradient_task import GradientTask, whole_weights
from quoin.train.interrupt import Interrupt, StoppedInside
from quoin.train.monitor import Monitor, check_monitored
from quoin.train.processes import from_main, gather_lists, is_main, num_processes, process_rank
from quoin.train.progress import Progress, ProgressListener
from quoin.train.receiving import Place, load_for_all, share_state
from quoin.train.run_state import fitting, read_state
from quoin.train.state import generator_states, load_generator_states
from quoin.train.task import CHECK_EVERY, MeanMetrics, Metrics, Task, check_finite

__all__ = ["TrainOutput", "Trainer"]

MAX_SAVING_FRACTION = 0.03  # of the time, at most, for saving when the user gave no interval
MIN_SAVE_INTERVAL = 1.0  # between two such saves


@dataclass
class TrainerState:
    """Where the loop stands."""

    step: int = 0
    seconds: float = 0.0
    num_lines: int = 0  # of metrics.jsonl
    best_value: float | None = None
    best_step: int = 0
    epochs_without_improvement: int = 0  # since the best
    finished: bool = False


@shown
@dataclass(frozen=True)
class TrainOutput:
    """How the loop ended: `finished`, or interrupted and ready to be resumed."""

    finished: bool
    step: int
    epoch: int
    seconds: float
    saving_seconds: float


@shown
class Trainer:
    """Drive `task` for `epochs`, leaving everything in `folder`.

    Args:
        monitor: The metric that says which model is the best: a run that finishes leaves that one in the task, without
            it the last.
        patience: The run stops after so many epochs without a better value of `monitor`; 0 goes on to the end.
        checkpoint_every: Steps between two checkpoints; 0 lets the loop choose, spending about 3% of its time on them.
        max_steps: The run ends after so many steps, even within an epoch; 0 sets no bound.
        progress: Shows epochs, batches and metrics; without it nothing is shown.
        callbacks: Each is told of every event, in this order.
    """

    def __init__(
        self,
        task: Task,
        folder: RunFolder,
        *,
        epochs: int,
        monitor: Monitor | None = None,
        patience: int = 0,
        checkpoint_every: int = 0,
        max_steps: int = 0,
        progress: Progress | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self.task, self.folder, self.epochs, self.monitor, self.patience = task, folder, epochs, monitor, patience
        self.checkpoint_every, self.max_steps = checkpoint_every, max_steps
        self.progress = progress if progress and is_main() else Progress(show_progress=False)
        self.callbacks = callbacks if is_main() else ()
        self.at = TrainerState()
        self.means = MeanMetrics()
        self.best: Any = None
        self._asked_to_stop = False  # by a callback
        self.saving_seconds = 0.0
        # A test or the bench may put another in its place, such as one that stands still while peers run.
        self.clock: Callable[[], float] = time.perf_counter
        self._began = self._saved = self.clock()
        self._save_cost = 0.0

    def resume(self, step: int | None = None) -> None:
        """Take up the newest checkpoint, or that of `step`; a run killed before its first one starts afresh."""
        found = load_for_all(self.folder, step, self._places())
        if found is not None:
            state, chosen = found
            self.load_state_dict(state)  # first: what does not fit must cost no later checkpoint
            self.folder.delete_after(chosen)
        self.folder.truncate_metrics(self.at.num_lines)

    def run(self) -> TrainOutput:
        """Train until done or interrupted; either way the folder then holds a checkpoint of the last step, unless that
        was cut short while it was compiled: then it holds what it held."""
        batches = self.task.batches
        self._began = self.clock() - self.at.seconds
        self._saved = self.clock()
        try:
            self._run()
        except StoppedInside:
            self.at.seconds = self.clock() - self._began
        if self.at.finished:
            self.load_best()
        epoch = batches.epoch + (batches.position == batches.num_batches)
        return TrainOutput(self.at.finished, self.at.step, epoch, self.at.seconds, self.saving_seconds)

    def _run(self) -> None:
        batches, listener = self.task.batches, ProgressListener(self.progress)
        with Interrupt() as interrupt, self.progress.open(self.epochs, batches.num_batches), listen_with(listener):
            all_say = Agreement(
                {
                    "interrupt": lambda: interrupt.asked,
                    "stop": lambda: self._asked_to_stop,
                    "save": lambda: is_main() and self._save_is_due(),
                }
            )
            while not self.at.finished and not all_say.says("interrupt"):
                for rows in batches:
                    self._step(rows)
                    all_say.after_step()
                    if batches.position == batches.num_batches:
                        self._end_epoch()
                        all_say.meet()
                        self.at.finished |= all_say.says("stop")
                    elif self._out_of_steps() or all_say.says("stop"):
                        self._evaluate()
                        self.at.finished = True
                    if self.at.finished or all_say.says("interrupt"):
                        break
                    if self._at_checkpoint() or all_say.says("save"):
                        self.save()
            self.save()

    def load_best(self) -> None:
        """Put the best model an evaluation saw into the task, if there is one."""
        if from_main(self.best is not None):  # which alone has it
            best = share_state({"task": {"model": self.best}}, self._places())["task"]["model"]
            with fitting(f"the best model of {self.folder.path}"):
                self.task.load_state_dict({**self.task.state_dict(), "model": best})

    def _step(self, rows: Tensor) -> None:
        if num_processes() > 1:
            # What a module draws by itself differs between the processes, and is no matter of what they drew before:
            # the generators of all but the main one are in no checkpoint.
            torch.manual_seed(keyed_seed("torch", self.task.batches.seed, self.at.step, process_rank()))
        sums = self.task.step(rows)
        self.at.step += 1
        self.means.add(sums, len(rows))
        # Of several processes the updaters have looked at the losses of all.
        if num_processes() == 1 and (self.at.step % CHECK_EVERY == 0 or self.means.on_host):
            check_finite(self.means.sums, f"at step {self.at.step}")
        self.progress.advance(self.task.batches.epoch, self.task.batches.position, self.means)
        self._tell("step", sums, len(rows))

    def _tell(
        self, kind: Literal["step", "epoch", "checkpoint"], values: Mapping[str, Tensor | float], num_rows: int = 1
    ) -> None:
        if self.callbacks:
            event = RunEvent(
                kind, self.at.step, self._epoch, values, num_rows, self.task, self.folder.path, self._ask_to_stop
            )
            for callback in self.callbacks:
                callback(event)

    def _ask_to_stop(self) -> None:
        self._asked_to_stop = True

    @property
    def _epoch(self) -> float:
        batches = self.task.batches
        return batches.epoch + batches.position / batches.num_batches

    def _end_epoch(self) -> None:
        self._evaluate()
        done = self.task.batches.epoch + 1
        out_of_patience = bool(self.patience) and self.at.epochs_without_improvement >= self.patience
        self.at.finished = done >= self.epochs or out_of_patience or self._out_of_steps()

    def _out_of_steps(self) -> bool:
        return bool(self.max_steps) and self.at.step >= self.max_steps

    def _evaluate(self) -> None:
        """Evaluate, write the line, remember the best."""
        found = {f"train_{name}": value for name, value in self.means.over_processes().compute().items()}
        with whole_weights(self.task):
            found |= {f"validation_{name}": value for name, value in self.task.evaluate("validation").items()}
        found = from_main(found)  # by which all decide
        check_finite(found, f"at step {self.at.step}")
        self.means = MeanMetrics()
        self.at.seconds = self.clock() - self._began
        self.folder.append_metrics(
            {"step": self.at.step, "epoch": self._epoch, "seconds": round(self.at.seconds, 3), **found}
        )
        self.at.num_lines += 1
        self.progress.show(found)
        self._remember_best(found)
        self._tell("epoch", found)

    def _remember_best(self, found: Metrics) -> None:
        if self.monitor is None:
            return
        if self.monitor.is_required:
            check_monitored(self.monitor.metric, found)
        if self.monitor.metric not in found:
            return
        value = found[self.monitor.metric]
        if self.at.best_value is None or self.monitor.better(value, self.at.best_value):
            self.at.best_value, self.at.best_step, self.at.epochs_without_improvement = value, self.at.step, 0
            self.best = self.folder.set_aside(self.task.state_dict()["model"])
        else:
            self.at.epochs_without_improvement += 1

    def _places(self) -> Place | None:
        """Where the tensors of a state belong that several processes load."""
        return self.task.places() if num_processes() > 1 and isinstance(self.task, GradientTask) else None

    def _at_checkpoint(self) -> bool:
        return bool(self.checkpoint_every) and self.at.step % self.checkpoint_every == 0

    def _save_is_due(self) -> bool:
        if self.checkpoint_every:
            return False
        return self.clock() - self._saved >= max(MIN_SAVE_INTERVAL, self._save_cost / MAX_SAVING_FRACTION)

    def save(self) -> None:
        """Write a checkpoint of this moment, unless it is one that nobody should go on from."""
        started = self.clock()
        check_finite(self.means.over_processes().sums, f"at step {self.at.step}")
        self.at.seconds = started - self._began
        self.folder.save_checkpoint(self.state_dict(), self.at.step)
        self._saved = self.clock()
        self._save_cost = self._saved - started
        self.saving_seconds += self._save_cost
        self._tell("checkpoint", {})

    def state_dict(self) -> dict[str, Any]:
        """Everything: the task, the loop, the best model so far, and where torch's own generators stand.

        The mean losses so far are those of each process, so that a resumed run sums in the same order.
        """
        return {
            "task": self.task.state_dict(),
            "trainer": dataclasses.asdict(self.at),
            "means": gather_lists([self.means.state_dict()]),
            "best": self.best,
            "generators": generator_states(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up what `state_dict` gave, to the task and the loop; what was well sealed but is no state of this task
        is a UserError."""
        where = f"the checkpoint of {self.folder.path}"
        checked = read_state(state, where)
        with fitting(where):
            self.task.load_state_dict(checked["task"])
            self.at = TrainerState(**checked["trainer"])
            self.means = MeanMetrics.of_processes(checked["means"])
            self.best = checked["best"]
            load_generator_states(checked["generators"])
