"""Several processes that train one model: who they are, and what they tell each other.

torchrun, or `quoin train --processes`, starts the processes and says in the environment who each one is. Without
either there is one process, and every function here gives back what it was given.
"""

import contextlib
import datetime
import json
import os
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import torch
import torch.distributed as dist
from jaxtyping import Num, Shaped
from torch import Tensor

from quoin.errors import UserError, format_value

__all__ = [
    "alone",
    "fraction_of",
    "from_main",
    "gather_lists",
    "gather_rows",
    "is_first_to_say",
    "is_main",
    "join_processes",
    "leave_processes",
    "local_place",
    "lost_process",
    "num_processes",
    "on_main",
    "process_rank",
    "sum_over_processes",
]

# A process waits so long for the others. Only a lost machine takes it that far: when a process on this one dies, its
# connections end at once. Rank 0 alone writes reports, and the others wait for it meanwhile.
WAIT = datetime.timedelta(minutes=30)


_alone: ContextVar[bool] = ContextVar("alone", default=False)


def join_processes() -> None:
    """Meet the processes that torchrun, or `quoin train --processes`, started with this one; alone, do nothing."""
    if dist.is_initialized() or _count("WORLD_SIZE", 1) == 1:
        return
    missing = [name for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT") if name not in os.environ]
    if missing:
        raise UserError(
            f"WORLD_SIZE is {os.environ['WORLD_SIZE']}, and {', '.join(missing)} is not set: start the processes with "
            "torchrun, or with quoin train --processes"
        )
    for name in ("RANK", "MASTER_PORT"):
        _count(name)
    # A tensor on the CPU goes by gloo even where the model's go by NCCL.
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backend, timeout=WAIT)


def local_place() -> tuple[int, int]:
    """The number of this process among those of this machine, and how many these are."""
    return _count("LOCAL_RANK"), _count("LOCAL_WORLD_SIZE", num_processes())


def _count(name: str, otherwise: int = 0) -> int:
    """The whole number that a launcher put into the environment."""
    text = os.environ.get(name) or str(otherwise)
    if not (text.isascii() and text.isdecimal()):
        raise UserError(
            f"expected a whole number in the environment's {name}, got {format_value(text)}: unset it, or start the "
            "processes with torchrun"
        )
    return int(text)


def lost_process(error: Exception) -> bool:
    """Whether `error` says that another process is gone, or does not answer any more."""
    words = ("gloo", "NCCL", "closed by peer", "reset by peer", "Broken pipe")
    return isinstance(error, dist.DistError) or (
        num_processes() > 1 and isinstance(error, RuntimeError) and any(each in str(error) for each in words)
    )


def is_first_to_say(*, unknown: bool = True) -> bool:
    """Whether this process has something to say before any other had, so that they do not all say it; `unknown` where
    the process that kept count, mostly the first, is gone."""
    if not dist.is_initialized():
        rank = os.environ.get("RANK", "0")
        return not (rank.isascii() and rank.isdecimal()) or int(rank) == 0  # of a rank that is no number, each tells
    try:
        return dist.distributed_c10d._get_default_store().add("quoin/said", 1) == 1
    except RuntimeError:
        return unknown


def leave_processes() -> None:
    """Part from the other processes."""
    if dist.is_initialized():
        dist.destroy_process_group()


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """While entered, this process works as if there were no others: it has all rows, and waits for nobody. So the main
    process makes a report, for which it evaluates and samples while the others do something else."""
    before = _alone.set(True)
    try:
        yield
    finally:
        _alone.reset(before)


def num_processes() -> int:
    """How many processes train together."""
    return dist.get_world_size() if dist.is_initialized() and not _alone.get() else 1


def process_rank() -> int:
    """The number of this process, from 0."""
    return dist.get_rank() if dist.is_initialized() and not _alone.get() else 0


def is_main() -> bool:
    """Whether this is the process that writes, prints and draws: the one of rank 0, be it `alone` or not."""
    return not dist.is_initialized() or dist.get_rank() == 0


def fraction_of(num_rows: int) -> slice:
    """Which of `num_rows` rows are this process's own: all of them once over all processes, in order of rank."""
    rank, world = process_rank(), num_processes()
    return slice(num_rows * rank // world, num_rows * (rank + 1) // world)


def sum_over_processes(value: Num[Tensor, "*shape"]) -> Num[Tensor, "*shape"]:
    """The sum of what each process has; all have it afterwards, to equal bits. Every process calls it."""
    if num_processes() == 1:
        return value
    total = value.detach().clone(memory_format=torch.contiguous_format)
    dist.all_reduce(total)
    return total


def gather_rows(rows: Shaped[Tensor, "local *shape"]) -> Shaped[Tensor, "total *shape"]:
    """The rows of all processes, in order of rank, which may have different numbers of them. Every process calls it;
    one without any need not know the shape and dtype of a row, but the device."""
    if num_processes() == 1:
        return rows
    found = gather_lists([len(rows), list(rows.shape[1:]), str(rows.dtype).removeprefix("torch.")])
    counts = found[::3]
    first = next((rank for rank, count in enumerate(counts) if count), 0)
    shape, dtype = found[3 * first + 1], getattr(torch, found[3 * first + 2])
    padded = torch.zeros(max(counts), *shape, dtype=dtype, device=rows.device)
    if len(rows):
        padded[: len(rows)] = rows.detach()
    gathered = [torch.empty_like(padded) for _ in counts]
    dist.all_gather(gathered, padded)
    return torch.cat([each[:count] for each, count in zip(gathered, counts)])


def gather_lists(values: list[Any]) -> list[Any]:
    """The lists of all processes one after another, in order of rank: numbers, texts, lists and dicts, as JSON. Every
    process calls it."""
    if num_processes() == 1:
        return values
    text = json.dumps(values).encode()
    lengths = torch.zeros(num_processes(), dtype=torch.int64)
    lengths[process_rank()] = len(text)
    dist.all_reduce(lengths)
    padded = torch.zeros(int(lengths.max()), dtype=torch.uint8)
    padded[: len(text)] = torch.frombuffer(bytearray(text), dtype=torch.uint8)
    gathered = [torch.empty_like(padded) for _ in range(num_processes())]
    dist.all_gather(gathered, padded)
    texts = (each[:length].numpy().tobytes() for each, length in zip(gathered, lengths.tolist()))
    return [value for each in texts for value in json.loads(each)]


def from_main(value: Any) -> Any:
    """What the main process has: numbers, texts, lists and dicts, as JSON. Every process calls it."""
    if num_processes() == 1:
        return value
    text = json.dumps(value if process_rank() == 0 else None).encode()
    length = torch.tensor([len(text)])
    dist.broadcast(length, 0)
    content = (
        torch.frombuffer(bytearray(text), dtype=torch.uint8)
        if is_main()
        else torch.empty(int(length), dtype=torch.uint8)
    )
    dist.broadcast(content, 0)
    return json.loads(bytes(content.tolist()))


def on_main(function: Callable[[], Any]) -> Any:
    """What `function` gives in the main process, which alone calls it; numbers, texts, lists and dicts, as JSON. Every
    process calls `on_main`."""
    return from_main(function() if process_rank() == 0 else None)
