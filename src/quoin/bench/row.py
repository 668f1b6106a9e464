"""What a row of the bench is: contestants at one piece of work. Imports neither torch nor a peer."""

from dataclasses import dataclass

from quoin.bench.measured import Target

__all__ = ["Contestant", "Row"]


@dataclass(frozen=True)
class Contestant:
    """A function of `module`, run in a process of its own; `needs` are the packages that it imports beyond Quoin's own.

    It is called with `worker.Laps` and then `arguments`.
    """

    name: str
    module: str
    function: str
    target: Target | None = None
    needs: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True)
class Row:
    """Contestants at one piece of work; the first `warm_up` laps of each are not counted. Rows of a `group` are read together."""

    name: str
    title: str
    contestants: tuple[Contestant, ...]
    rounds: int
    warm_up: int = 2
    threads: int = 2
    group: str = ""
