"""Drive a task: one gradient step, the loop, checkpoints, run folder, devices, report."""

from typing import TYPE_CHECKING

from quoin.lazy import export_lazily

if TYPE_CHECKING:
    from quoin.train.checkpoint import read_checkpoint, write_checkpoint
    from quoin.train.folder import RunFolder
    from quoin.train.gradient_task import GradientTask
    from quoin.train.gradient_updater import GradientUpdater, first_bad_tensor
    from quoin.train.loop import Ending, Loop
    from quoin.train.monitor import Monitor
    from quoin.train.place import Place, choose_place, describe_environment, torch_as_it_was
    from quoin.train.progress import Progress
    from quoin.train.task import Diverged, Metrics, Task, Totals, check_finite
    from quoin.train.weights import load_strictly, load_weights, save_weights

__all__ = [
    "Diverged",
    "Ending",
    "GradientTask",
    "GradientUpdater",
    "Loop",
    "Metrics",
    "Monitor",
    "Place",
    "Progress",
    "RunFolder",
    "Task",
    "Totals",
    "check_finite",
    "choose_place",
    "describe_environment",
    "first_bad_tensor",
    "load_strictly",
    "load_weights",
    "read_checkpoint",
    "save_weights",
    "torch_as_it_was",
    "write_checkpoint",
]

export_lazily(__name__)
