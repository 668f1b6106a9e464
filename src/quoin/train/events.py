"""What a run tells of itself while it trains. A callback is a plain function of one event:

    def stop_when_good(event: RunEvent) -> None:
        if event.kind == "epoch" and event.metrics["validation_accuracy"] > 0.99:
            event.stop()

There are three kinds of events, and a callback sees all of them in the order in which they happen. What it raises ends
the run as any error does: the last checkpoint stays, and the run can be resumed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from jaxtyping import Float
from torch import Tensor, nn

from quoin.display import shown
from quoin.train.task import Metrics, Task

__all__ = ["Callback", "RunEvent"]


@shown
@dataclass(frozen=True)
class RunEvent:
    """A step was made, an epoch was evaluated and its line written, or a checkpoint was saved.

    Args:
        step: Steps made so far, those of before a resume among them.
        epoch: Epochs done so far; within an epoch a fraction.
        values: What `metrics` are read from: tensors on a GPU stay there until somebody asks.
        num_rows: Of how many examples the values are sums; 1 where they are means already.
        folder: The run's folder.
        stop: Ends the run after this step, as its last epoch would: with an evaluation, a result and a report.
    """

    kind: Literal["step", "epoch", "checkpoint"]
    step: int
    epoch: float
    values: Mapping[str, Float[Tensor, ""] | float]
    num_rows: int
    task: Task
    folder: Path
    stop: Callable[[], None]

    @property
    def metrics(self) -> Metrics:
        """Of a step, the mean losses of its batch (to read them makes a GPU wait); of an epoch, all that its line in
        metrics.jsonl holds: train_loss, validation_loss, ...; of a checkpoint, none."""
        return {name: float(value) / self.num_rows for name, value in self.values.items()}

    @property
    def model(self) -> nn.Module:
        """The model that trains; a task of several has none of this name."""
        return self.task.model  # type: ignore[attr-defined]


Callback = Callable[[RunEvent], None]
