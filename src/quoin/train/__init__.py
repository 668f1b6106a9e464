"""Drive a task: step, loop, checkpoint, run folder, devices, report."""

from quoin.train.checkpoint import read_checkpoint, write_checkpoint
from quoin.train.descent import Descent
from quoin.train.folder import RunFolder
from quoin.train.layout import settle_layout
from quoin.train.loop import Ending, Goal, Loop
from quoin.train.place import Place, choose_place, describe_environment, torch_as_it_was
from quoin.train.progress import Progress
from quoin.train.supervised import Classification, Regression, SupervisedTask, in_squared_unit, rows_at_once
from quoin.train.task import Diverged, Metrics, Task, Totals
from quoin.train.weights import load_strictly, load_weights, save_weights

__all__ = [
    "Classification",
    "Descent",
    "Diverged",
    "Ending",
    "Goal",
    "Loop",
    "Metrics",
    "Place",
    "Progress",
    "Regression",
    "RunFolder",
    "SupervisedTask",
    "Task",
    "Totals",
    "choose_place",
    "describe_environment",
    "in_squared_unit",
    "load_strictly",
    "load_weights",
    "read_checkpoint",
    "rows_at_once",
    "save_weights",
    "settle_layout",
    "torch_as_it_was",
    "write_checkpoint",
]
