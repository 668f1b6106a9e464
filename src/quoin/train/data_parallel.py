"""The gradients of several processes, added up: by torch's DistributedDataParallel, or by FSDP2, where each process
keeps a fraction of the weights, gradients and optimizer state.

Both want the forward pass to go through the module that they wrap, and a task may call any method of its model. So what
they wrap is a module whose forward pass is the losses of a piece of the batch.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import chain
from typing import Any

import torch
import torch.distributed as dist
from jaxtyping import Float
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel

from quoin.errors import UserError
from quoin.train.device_context import DeviceContext

__all__ = ["ReplicatedModel", "ShardedModel", "parallel_model"]

Losses = Callable[..., Tensor]


class _Losses(nn.Module):
    """The losses of a piece of the batch, as a module over what they depend on."""

    def __init__(self, held: nn.Module) -> None:
        super().__init__()
        self.held = held

    def forward(self, losses: Losses, *piece: Any) -> Tensor:
        return losses(*piece)


class ReplicatedModel:
    """Every process has all weights, and the gradients of the last piece of a step bring about their sum over all
    processes (DDP).

    A weight that the losses of no process depend on is left without a gradient, as in one process. To look for such
    weights in each step also keeps torch from rearranging its buckets after the first: a resumed run sums in the same
    order.
    """

    def __init__(self, models: Iterable[nn.Module], parameters: list[nn.Parameter]) -> None:
        for model in models:
            _take_from_main(model)
        moving = nn.ParameterList([each for each in parameters if each.requires_grad])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # of `broadcast_buffers`, whose new name torch 2.11 lacks
            self.module = DistributedDataParallel(
                _Losses(moving),
                init_sync=False,
                broadcast_buffers=False,
                find_unused_parameters=True,
                gradient_as_bucket_view=True,
            )

    def losses(
        self, losses: Losses, piece: tuple, *, is_last: bool
    ) -> tuple[Float[Tensor, "*examples"], AbstractContextManager]:
        """The losses of a piece, and what its backward pass must be made inside of."""
        if is_last:
            return self.module(losses, *piece), nullcontext()
        with self.module.no_sync():
            return self.module(losses, *piece), self.module.no_sync()

    @contextmanager
    def whole_weights(self) -> Iterator[None]:
        """Inside, the model holds its whole weights: here it always does."""
        yield


class ShardedModel:
    """Every process keeps a fraction of each weight, its gradient and what the optimizer keeps of it (FSDP2).

    The blocks of a model, such as the layers of a transformer, are gathered one at a time where they are needed. Where
    the optimizer moves only a part of the model, as one of a GAN's, that part is gathered as a whole for the step, and
    must be called as a module.

    Args:
        models: The model whose weights move, and its moving average if there is one.
    """

    def __init__(
        self, models: list[nn.Module], optimizer: torch.optim.Optimizer, device_context: DeviceContext
    ) -> None:
        part = _part_moved(models[0], optimizer)
        self.roots = []
        for model in models:
            _take_from_main(model)
            held = model.get_submodule(part)
            names = {id(each): name for name, each in held.named_parameters()}
            root = held if part else _Losses(held)
            _shard(root, held, device_context)
            if not self.roots:
                now = dict(held.named_parameters())
                for group in optimizer.param_groups:
                    group["params"] = [now[names[id(each)]] for each in group["params"]]
            self.roots.append(root)

    def losses(
        self, losses: Losses, piece: tuple, *, is_last: bool
    ) -> tuple[Float[Tensor, "*examples"], AbstractContextManager]:
        """The losses of a piece, and what its backward pass must be made inside of."""
        root: Any = self.roots[0]
        root.set_requires_gradient_sync(is_last)
        found = root(losses, *piece) if isinstance(root, _Losses) else losses(*piece)
        return found, _resharded_after(root) if is_last else nullcontext()

    @contextmanager
    def whole_weights(self) -> Iterator[None]:
        """Inside, what is evaluated holds its whole weights in every process, which may then call it alone."""
        with _unsharded(self.roots[-1]):
            yield


def parallel_model(
    model: nn.Module, average: nn.Module | None, optimizer: torch.optim.Optimizer, device_context: DeviceContext
) -> ReplicatedModel | ShardedModel:
    """`model` as the processes train it together; the optimizer then has the parameters that this process keeps.

    Args:
        average: The moving average of the model, if there is one.
    """
    models = [model] if average is None else [model, average]
    if device_context.shard:
        return ShardedModel(models, optimizer, device_context)
    return ReplicatedModel(models, [each for group in optimizer.param_groups for each in group["params"]])


def _take_from_main(model: nn.Module) -> None:
    """Give all processes the weights and buffers of the main one."""
    for each in chain(model.parameters(), model.buffers()):
        if isinstance(each, DTensor):  # another part of the model that is sharded already
            continue
        values = each.data.contiguous()
        dist.broadcast(values, 0)
        each.data.copy_(values)


def _shard(root: nn.Module, model: nn.Module, device_context: DeviceContext) -> None:
    scalars = [name for name, each in model.named_parameters() if each.ndim == 0]
    if scalars:
        raise UserError(f"--shard: {scalars[0]} is a single number, which cannot be shared out; leave --shard out")
    mesh = init_device_mesh(device_context.device.type, (device_context.world_size,))
    for block in _blocks(model) if isinstance(root, _Losses) else ():
        fully_shard(block, mesh=mesh)
    fully_shard(root, mesh=mesh, reshard_after_forward=False)
    for each in _sharded_modules(root):
        each.set_reshard_after_backward(False, recurse=False)  # a loss may take gradients itself, and go on
    if isinstance(root, _Losses):
        root(lambda: torch.zeros(()))  # whichever module is called first would be a root of its own
        _reshard(root)


def _part_moved(model: nn.Module, optimizer: torch.optim.Optimizer) -> str:
    """The name of the smallest module that holds all that the optimizer moves; empty for the whole model."""
    moved = {id(each) for group in optimizer.param_groups for each in group["params"]}
    fitting = [
        name
        for name, module in model.named_modules()
        if moved <= {id(each) for each in module.parameters()} and not isinstance(module, nn.ModuleList)
    ]
    return max(fitting, key=lambda name: name.count(".") + bool(name), default="") if len(moved) else ""


def _blocks(model: nn.Module) -> Iterator[nn.Module]:
    """The outermost modules of lists and sequences that share no weight with anything outside them."""
    counts: dict[int, int] = {}
    for module in model.modules():
        for each in module.parameters(recurse=False):
            counts[id(each)] = counts.get(id(each), 0) + 1

    def inside(module: nn.Module) -> Iterator[nn.Module]:
        for child in module.children():
            own: dict[int, int] = {}
            for part in child.modules():
                for each in part.parameters(recurse=False):
                    own[id(each)] = own.get(id(each), 0) + 1
            is_list = isinstance(child, (nn.ModuleList, nn.ModuleDict, nn.Sequential))
            is_block = isinstance(module, (nn.ModuleList, nn.Sequential)) and not is_list
            if is_block and own and all(counts[each] == count for each, count in own.items()):
                yield child
            else:
                yield from inside(child)

    yield from dict.fromkeys(inside(model))


def _sharded_modules(root: nn.Module) -> list[Any]:
    return [each for each in root.modules() if isinstance(each, FSDPModule)]


def _reshard(root: nn.Module) -> None:
    for each in _sharded_modules(root):
        each.reshard()


@contextmanager
def _resharded_after(root: nn.Module) -> Iterator[None]:
    yield
    _reshard(root)


@contextmanager
def _unsharded(root: nn.Module) -> Iterator[None]:
    modules = _sharded_modules(root)
    for each in modules:
        each.set_reshard_after_forward(False, recurse=False)
        each.unshard()
    try:
        yield
    finally:
        for each in modules:
            each.reshard()
            each.set_reshard_after_forward(each is not root, recurse=False)
