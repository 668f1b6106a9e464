"""Where a run runs: device, precision, threads, rank; and whether torch compiles and is deterministic."""

import contextlib
import importlib.metadata
import os
import platform
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch

from quoin.display import shown
from quoin.errors import UserError, did_you_mean, format_value
from quoin.processor import num_cores, processor_name
from quoin.train.compiled import CompiledStep, length_of_first
from quoin.train.host_memory import keep_freed_memory, release_freed_memory
from quoin.train.processes import join_processes, local_place, num_processes, process_rank

__all__ = ["DeviceContext", "compiler", "describe_environment", "setup_device", "torch_as_it_was"]

R = TypeVar("R")

_AUTOCAST = {"float32": None, "bfloat16": torch.bfloat16, "float16": torch.float16}


@shown
@dataclass(frozen=True)
class DeviceContext:
    """A device and this process's fraction of the work. One process is rank 0 of a world of 1.

    With `shard` each process keeps a fraction of the weights, gradients and optimizer state (FSDP2); else all of them
    (DDP).
    """

    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    autocast_dtype: torch.dtype | None = None
    compile: bool = False
    rank: int = 0
    world_size: int = 1
    shard: bool = False
    _compiled: list[CompiledStep] = field(default_factory=list, init=False, repr=False, compare=False)

    def autocast(self) -> contextlib.AbstractContextManager:
        """Mixed precision for the forward pass where it was chosen."""
        if self.autocast_dtype is None:
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, dtype=self.autocast_dtype)

    def compiled(
        self, function: Callable[..., R], num_rows: int, rows_of: Callable[..., int] = length_of_first
    ) -> Callable[..., R]:
        """`function` compiled for pieces of `num_rows` rows, if chosen; the weights that it reads stay the same tensors
        (`CompiledStep` has the arguments)."""
        if not self.compile:
            return function
        step = CompiledStep(function, num_rows, rows_of)
        self._compiled.append(step)
        return step

    @property
    def compile_seconds(self) -> float:
        """Spent compiling so far, in this process."""
        return sum(step.seconds for step in self._compiled)

    @property
    def compiled_nothing(self) -> bool:
        """Whether compilation was chosen, and no task with this context has had anything to compile."""
        return self.compile and not self._compiled


@contextlib.contextmanager
def torch_as_it_was() -> Iterator[None]:
    """Afterwards, put back what `setup_device` sets: who trains in a notebook goes on with the threads, algorithms and
    free memory they had."""
    threads, benchmark = torch.get_num_threads(), torch.backends.cudnn.benchmark
    deterministic, warn_only = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.backends.cudnn.benchmark = benchmark
        torch.use_deterministic_algorithms(deterministic, warn_only=warn_only)
        release_freed_memory()


def setup_device(
    device: str = "auto",
    *,
    threads: int = 0,
    precision: str = "float32",
    compile: bool = False,
    deterministic: bool = False,
    shard: bool = False,
) -> tuple[DeviceContext, list[str]]:
    """Meet the other processes if there are any, set torch up, and say in plain lines what could not be had.

    Args:
        device: "auto" takes CUDA, else an Apple GPU, else the CPU; otherwise "cpu", "cuda", "cuda:1", "mps".
        threads: Threads of torch on the CPU; 0 leaves their number as it is, and shares out the cores among the
            processes of this machine if there are several.
        precision: "float32", or on a GPU autocast to "bfloat16" or "float16".
        compile: Whether `DeviceContext.compiled` compiles; without a C++ compiler it does not, and a line says so.
        deterministic: Whether torch takes deterministic algorithms; one that has no such form warns.
        shard: Whether each of several processes keeps a fraction of the model.
    """
    join_processes()
    remarks, world_size = [], num_processes()
    local_rank, local_processes = local_place()
    if threads:
        torch.set_num_threads(threads)
    elif world_size > 1 and os.environ.get("OMP_NUM_THREADS", "1") == "1":  # torchrun's default, not the user's choice
        torch.set_num_threads(max(1, num_cores() // local_processes))
    chosen = _device(device)
    if world_size > 1:
        kind, chosen = chosen.type, _own_device(chosen, device, local_rank, local_processes)
        if kind != chosen.type:
            remarks.append(f"{local_processes} processes have no GPU each on this machine: they train on the CPU")
    if chosen.type == "cpu":
        keep_freed_memory()
    if chosen.type == "cuda" and chosen.index is not None:
        torch.cuda.set_device(chosen)  # so that the generator that is saved is the one dropout samples from
    if precision not in _AUTOCAST:
        raise UserError(f"expected a precision, got {format_value(precision)}; {did_you_mean(precision, _AUTOCAST)}")
    dtype = _AUTOCAST[precision]
    if dtype is not None and chosen.type == "cpu":
        raise UserError(
            f"--precision {precision} is for a GPU; this run is on the CPU: leave it out or choose --device cuda"
        )
    if shard and world_size == 1:
        remarks.append("--shard changes nothing: one process keeps all of the model")
    if shard and dtype is torch.float16:
        raise UserError(
            "--shard with --precision float16: a process cannot see whether the gradients of others overflow; say "
            "--precision bfloat16"
        )
    if compile and compiler() is None:
        remarks.append("no C++ compiler was found, so the model is not compiled; the run goes on without")
        compile = False
    torch.use_deterministic_algorithms(deterministic, warn_only=True)
    if deterministic and chosen.type == "cuda":
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.backends.cudnn.benchmark = False
        remarks.append(
            "deterministic: kernels that have no deterministic form will warn and may differ from run to run"
        )
    return DeviceContext(chosen, dtype, compile, process_rank(), world_size, shard and world_size > 1), remarks


def _own_device(chosen: torch.device, name: str, local_rank: int, local_processes: int) -> torch.device:
    """The device of one of several processes: of the GPUs of a machine each process has its own."""
    if chosen.type == "mps":
        if name == "auto":
            return torch.device("cpu")
        raise UserError("--device mps: several processes train on the CPU or on CUDA; say cpu, or leave --device out")
    if chosen.type == "cpu":
        return chosen
    if chosen.index is not None:
        raise UserError(f"--device {name}: each of several processes has a GPU of its own; say --device cuda")
    if local_processes > (there := torch.cuda.device_count()):
        if name == "auto":
            return torch.device("cpu")
        raise UserError(
            f"--device cuda: {local_processes} processes need as many GPUs, and torch sees {there} here; start "
            f"{there}, or say --device cpu"
        )
    return torch.device("cuda", local_rank)


def _device(name: str) -> torch.device:
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    kind, _, index = name.partition(":")
    if kind not in ("cpu", "cuda", "mps") or not re.fullmatch("[0-9]{0,4}", index):
        hint = "did you mean 'cuda'?" if kind == "gpu" else did_you_mean(name, ["auto", "cpu", "cuda", "cuda:0", "mps"])
        raise UserError(f"--device {format_value(name)} is not a device: {hint}")
    if kind == "cuda" and int(index or 0) >= torch.cuda.device_count():
        raise UserError(
            f"--device {name}: torch sees {torch.cuda.device_count()} CUDA device(s) here; leave --device out or "
            "say cpu"
        )
    if kind == "mps" and not torch.backends.mps.is_available():
        raise UserError("--device mps: this torch sees no Apple GPU here; leave --device out or say cpu")
    if kind == "cpu" and index not in ("", "0"):
        raise UserError(f"--device {name}: there is one CPU device; say cpu")
    return torch.device(name if index and kind != "cpu" else kind)


def compiler() -> str | None:
    """The C++ compiler that torch.compile would find, if there is one."""
    return next((name for name in (os.environ.get("CXX") or "g++", "c++", "clang++") if shutil.which(name)), None)


def describe_environment(device_context: DeviceContext, seed: int) -> dict[str, Any]:
    """What it takes to run it again: versions, device, threads, seed."""
    import quoin

    libraries = ("numpy", "scikit-learn", "safetensors")
    return {
        "quoin": quoin.__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        **{name: importlib.metadata.version(name) for name in libraries},
        "system": f"{platform.system()} {platform.machine()}",
        "device": str(device_context.device),
        "device_name": torch.cuda.get_device_name(device_context.device)
        if device_context.device.type == "cuda"
        else processor_name(),
        "threads": torch.get_num_threads(),
        "processes": device_context.world_size,
        "shard": device_context.shard,
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "seed": seed,
    }
