"""What a benchmark is: implementations of one piece of work. Imports neither torch nor a peer."""

from dataclasses import dataclass

from quoin.bench.targets import Target

__all__ = ["Benchmark", "Implementation"]


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
    `group` are read together.
    """

    name: str
    title: str
    implementations: tuple[Implementation, ...]
    num_repeats: int
    num_warmup: int = 2
    threads: int = 2
    group: str = ""
    needs_cuda: bool = False
