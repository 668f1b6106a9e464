"""The training loop: gradient steps, checkpoints, run folder, devices, report."""

from typing import TYPE_CHECKING

from quoin.lazy import export_lazily

if TYPE_CHECKING:
    from quoin.train.checkpoint import read_checkpoint, write_checkpoint
    from quoin.train.device_context import DeviceContext, describe_environment, setup_device, torch_as_it_was
    from quoin.train.events import Callback, RunEvent
    from quoin.train.folder import RunFolder
    from quoin.train.gradient_task import GradientTask
    from quoin.train.gradient_updater import GradientUpdater, first_nonfinite_tensor
    from quoin.train.host_memory import keep_freed_memory
    from quoin.train.loggers import Logger
    from quoin.train.monitor import Monitor
    from quoin.train.progress import Progress
    from quoin.train.task import MeanMetrics, Metrics, NonFiniteLossError, Task, check_finite
    from quoin.train.trainer import Trainer, TrainOutput
    from quoin.train.weights import load_state_dict_strict, load_weights, save_weights

__all__ = [
    "Callback",
    "DeviceContext",
    "GradientTask",
    "GradientUpdater",
    "Logger",
    "MeanMetrics",
    "Metrics",
    "Monitor",
    "NonFiniteLossError",
    "Progress",
    "RunEvent",
    "RunFolder",
    "Task",
    "TrainOutput",
    "Trainer",
    "check_finite",
    "describe_environment",
    "first_nonfinite_tensor",
    "keep_freed_memory",
    "load_state_dict_strict",
    "load_weights",
    "read_checkpoint",
    "save_weights",
    "setup_device",
    "torch_as_it_was",
    "write_checkpoint",
]

export_lazily(__name__)
