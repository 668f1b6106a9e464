"""Activation checkpointing: a block keeps its input alone, and computes the rest again when the backward pass needs it.

Memory for time, and the same values: dropout draws in the second computation what it drew in the first, and what counts
its passes counts one (`is_recomputing`). All that a second computation must know of the first belongs here.
"""

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar

import torch
from jaxtyping import Shaped
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

__all__ = ["call_block", "checkpoint_activations", "is_recomputing"]

_recomputing: ContextVar[bool] = ContextVar("recomputing", default=False)


def checkpoint_activations(model: nn.Module) -> int:
    """From now on, every block of `model` computes its activations again in the backward pass; how many blocks there
    are. A block is a module whose class says so by `checkpoints_activations`, and which is called by `call_block`."""
    blocks = [module for module in model.modules() if hasattr(module, "checkpoints_activations")]
    for block in blocks:
        block.checkpoints_activations = True  # pyright: ignore[reportArgumentType]
    return len(blocks)


def call_block(block: nn.Module, call: Callable[..., Tensor], *inputs: Shaped[Tensor, "..."]) -> Shaped[Tensor, "..."]:
    """call(*inputs), which calls `block`: as it is, or with its activations checkpointed.

    Args:
        call: `block` itself, or with other arguments than tensors filled in.
    """
    if not getattr(block, "checkpoints_activations", False) or not torch.is_grad_enabled():
        return call(*inputs)
    if torch.compiler.is_compiling():  # the compiler has contexts of its own, and takes no others
        return checkpoint(call, *inputs, use_reentrant=False)  # pyright: ignore[reportReturnType]
    return checkpoint(call, *inputs, use_reentrant=False, context_fn=_contexts)  # pyright: ignore[reportReturnType]


def is_recomputing() -> bool:
    """Whether a block is being computed a second time, for its gradient."""
    return _recomputing.get()


def _contexts() -> tuple[contextlib.AbstractContextManager, contextlib.AbstractContextManager]:
    return contextlib.nullcontext(), _second_computation()


@contextlib.contextmanager
def _second_computation() -> Iterator[None]:
    token = _recomputing.set(True)
    try:
        yield
    finally:
        _recomputing.reset(token)
