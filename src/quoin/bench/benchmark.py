"""What a benchmark is: implementations of one piece of work. Imports neither torch nor a peer."""

import importlib.util
from dataclasses import dataclass

from quoin.bench.targets import Target

__all__ = ["TORCH_STEPS", "Benchmark", "Implementation", "missing_packages"]

# As the benchmarks of training steps call what runs on torch alone.
TORCH_STEPS = ("Quoin", "Quoin --compile", "torch", "torch, channels last")


@dataclass(frozen=True)
class Implementation:
    """A function of `module`, run in a process of its own; `needs` are the packages that it imports beyond Quoin's own.

    It is called with `worker.Repeats` and then `arguments`.
    """

    name: str
    module: str
    function: str
    target: Target | None = None
    needs: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True)
class Benchmark:
    """Implementations of one piece of work; the first `num_warmup` repeats of each are not counted. Benchmarks of a
    `group` are read together. `on_torch` names the implementations whose repeats are torch's kernels and what is
    around them, which can be taken apart (kernel_time.py).
    """

    name: str
    title: str
    implementations: tuple[Implementation, ...]
    num_repeats: int
    num_warmup: int = 2
    threads: int = 2
    group: str = ""
    needs_cuda: bool = False
    on_torch: tuple[str, ...] = ()


def missing_packages(implementation: Implementation) -> str:
    """What is not installed and how to install it; nothing where all is there."""
    missing = [name for name in implementation.needs if importlib.util.find_spec(name) is None]
    return f"not installed: pip install {' '.join(missing)}" if missing else ""
