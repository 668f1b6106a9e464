"""A state that the main process has, brought to all processes: tensor by tensor, some megabytes at a time.

A tensor goes straight to where it belongs: into the weights themselves, or into new memory on the device of the weight
that an optimizer keeps it for; of one that is sharded (FSDP2) each process takes its own rows. No process ever holds a
second model, and what was saved by some number of processes is loaded by any other.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from jaxtyping import Shaped
from torch import Tensor, nn

from quoin.errors import UserError
from quoin.train import tensor_file
from quoin.train.folder import RunFolder
from quoin.train.processes import from_main, is_main, num_processes
from quoin.train.state import flatten_state, unflatten_state
from quoin.train.tensor_file import is_sharded

__all__ = ["Place", "Placement", "load_for_all", "places_in", "share_state"]


class Placement(NamedTuple):
    """Where a tensor of a state goes.

    Args:
        like: A tensor of the same shape. What is received gets its device, its strides and its sharding.
        into: Whether the values go into `like` itself.
    """

    like: Shaped[Tensor, "..."]
    into: bool = False


Place = Callable[[str], Placement | None]  # by the path in the state, such as "task.model.weights.0.bias"


def places_in(modules: Mapping[str, nn.Module], optimizers: Mapping[str, torch.optim.Optimizer]) -> Place:
    """Where the tensors of a state belong: in the weights of `modules`, and with those that `optimizers` move.

    Args:
        modules: By the path of their `state_dict` in the state, such as "task.model.weights".
        optimizers: Likewise, such as "task.updater.optimizer".
    """
    found = {
        f"{path}.{name}": Placement(tensor, into=True)
        for path, module in modules.items()
        for name, tensor in module.state_dict().items()
    }
    kept = {
        f"{path}.state.{number}": Placement(parameter.detach())
        for path, optimizer in optimizers.items()
        for number, parameter in enumerate(each for group in optimizer.param_groups for each in group["params"])
    }

    def place(path: str) -> Placement | None:
        of, _, key = path.rpartition(".")
        return found.get(path) or (kept.get(of) if key != "step" else None)  # a count, which torch itself puts right

    return place


def load_for_all(folder: RunFolder, step: int | None = None, place: Place | None = None) -> tuple[Any, int] | None:
    """What `RunFolder.load_checkpoint` gives the main process, in every process; so is its error. Every process calls
    it.

    The best model so far stays with the main process and is None elsewhere: nobody needs it before the end, when
    `share_state` brings it to all.

    Args:
        folder: The run's, of which only the main process reads.
        place: Where each tensor belongs; what it gives None for comes as a whole into the memory of every process.
    """
    found, problem = None, None
    if is_main():
        try:
            found = folder.load_checkpoint(step)
        except UserError as error:
            problem = str(error)
    problem, chosen = from_main([problem, found and found[1]])
    if problem is not None:
        raise UserError(problem)
    if chosen is None:
        return None
    state: Any = found and found[0]
    best = state.get("best") if isinstance(state, dict) else None
    shared = share_state({**state, "best": None} if best is not None else state, place)
    return {**shared, "best": best} if best is not None else shared, chosen


def share_state(state: Any, place: Place | None = None) -> Any:
    """The `state` of the main process in every process, its tensors where they belong. Every process calls it; what the
    others give is not looked at.

    Args:
        place: Where each tensor belongs, by its path. One of another shape than what it is placed like comes as a
            whole, so that loading it tells what is wrong.
    """
    if num_processes() == 1 and place is None:
        return state
    skeleton, tensors = flatten_state(state) if is_main() else (None, {})
    about = [[name, tensor_file.DTYPE_NAMES[each.dtype], list(each.shape)] for name, each in tensors.items()]
    skeleton, about = from_main([skeleton, about])
    found = {}
    for name, dtype, shape in about:
        placement = place(name) if place is not None else None
        if placement is not None and list(placement.like.shape) != shape:
            placement = None
        found[name] = _receive(tensors.get(name), tensor_file.dtype_called(dtype), shape, placement)
    return unflatten_state(skeleton, found)


@torch.no_grad()
def _receive(source: Tensor | None, dtype: torch.dtype, shape: list[int], placement: Placement | None) -> Tensor:
    """One tensor of the main process, `source` there, in the place where this process keeps it."""
    placed, own, first = _destination(source, dtype, shape, placement)
    if math.prod(shape) == 0:
        return placed
    is_in_place = placed is source
    if not shape:
        own, source, shape = own.reshape(1), source if source is None else source.reshape(1), [1]
    at_once = max(1, tensor_file.PIECE // (math.prod(shape[1:]) * dtype.itemsize))
    for begin in range(0, shape[0], at_once):
        end = min(begin + at_once, shape[0])
        piece = torch.empty(end - begin, *shape[1:], dtype=dtype) if source is None else source[begin:end].contiguous()
        if num_processes() > 1:  # as bytes: gloo does not know every dtype
            dist.broadcast(piece.view(-1).view(torch.uint8), 0)
        low, high = max(begin, first), min(end, first + len(own))
        if low < high and not is_in_place:
            own[low - first : high - first].copy_(piece[low - begin : high - begin])
    return placed


def _destination(
    source: Tensor | None, dtype: torch.dtype, shape: list[int], placement: Placement | None
) -> tuple[Tensor, Tensor, int]:
    """The tensor that is received, the rows of it that this process has, and the number of their first."""
    if placement is None:
        whole = torch.empty(shape, dtype=dtype) if source is None else source
        return whole, whole, 0
    like: Any = placement.like
    if not is_sharded(like):
        own = like.detach() if placement.into else torch.empty_like(like, dtype=dtype, requires_grad=False)
        return own, own, 0
    rows = _own_rows(like, shape[0])
    if placement.into:
        return like.detach(), like.detach().to_local(), rows.start
    from torch.distributed.tensor import DTensor

    own = torch.empty(len(rows), *shape[1:], dtype=dtype, device=like.device)
    strides = torch.empty(shape, device="meta").stride()
    whole = DTensor.from_local(
        own, like.device_mesh, like.placements, run_check=False, shape=torch.Size(shape), stride=strides
    )
    return whole, own, rows.start


def _own_rows(like: Any, num_rows: int) -> range:
    """Which rows of a sharded tensor are this process's: as torch.chunk deals them out."""
    sharded = [number for number, placement in enumerate(like.placements) if placement.is_shard()]
    if not sharded:
        return range(num_rows)
    assert len(sharded) == 1, f"expected tensors that are sharded once, as FSDP2 does it, got {like.placements}"
    assert like.placements[sharded[0]].dim == 0, f"expected tensors sharded by their rows, got {like.placements}"
    size = math.ceil(num_rows / like.device_mesh.size(sharded[0]))
    first = min(num_rows, size * like.device_mesh.get_local_rank(sharded[0]))
    return range(first, min(num_rows, first + size))
