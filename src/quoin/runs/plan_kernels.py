"""Kernels of a step, called again with numbers of our own and timed: how long each takes at its own size, here."""

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_unflatten

from quoin.runs.plan_count import Kernel, TensorSpec

__all__ = ["WARM", "best_time", "clock", "is_known", "kernel_time"]

WARM = 2**19  # bytes that a step may make and still find in the cache of a core
CACHE = 4 * 2**20  # bytes that are written between two calls otherwise: they leave a cold cache

_Key = tuple[Kernel | None, str, bool]
_known: dict[_Key, float | None] = {}  # seconds on a device, cold or not; None for one that cannot be called


def is_known(kernel: Kernel | None, device: str, *, cold: bool) -> bool:
    """Whether it was timed before."""
    return (kernel, device, cold) in _known


def kernel_time(kernel: Kernel | None, device: str, *, cold: bool = False) -> float | None:
    """Seconds of one call of a kernel; None where such a call fails or cannot be made. Kept for the life of the
    process.

    Args:
        cold: Whether its tensors have left the processor's cache, as in a step that moves much between two calls.
    """
    if kernel is None:
        return None
    key = (kernel, device, cold)
    if key not in _known:
        scratch = torch.zeros(CACHE, dtype=torch.uint8) if cold and device == "cpu" else None
        try:
            with torch.no_grad():
                call = _call(kernel, device)
                once = best_time(call, device, repeats=1)
                _known[key] = best_time(call, device, repeats=min(20, max(5, int(0.05 / once))), scratch=scratch)
        except Exception:  # of any kind, for any numbers may not do
            _known[key] = None
    return _known[key]


def clock(device: str) -> Callable[[], float]:
    """What seconds are taken from: of one thread those it computes, so that other programs do not count."""
    return time.process_time if device == "cpu" and torch.get_num_threads() == 1 else time.perf_counter


def best_time(call: Callable[[], Any], device: str, *, repeats: int = 5, scratch: torch.Tensor | None = None) -> float:
    """The least seconds of a call: what disturbs it only adds to it.

    Args:
        scratch: Is written before each call, so that what the call needs is not in the processor's cache.
    """
    wait = torch.cuda.synchronize if device.startswith("cuda") else int
    inner = 10 if device.startswith("cuda") else 1  # a queue of them, so that the call itself is hidden
    now, found = clock(device), float("inf")
    call()
    wait()
    for number in range(repeats):
        if scratch is not None:
            scratch.fill_(number)
        began = now()
        for _ in range(inner):
            call()
        wait()
        found = min(found, (now() - began) / inner)
    return found


def _call(kernel: Kernel, device: str) -> Callable[[], Any]:
    made: Any = tree_unflatten([_made(leaf, device) for leaf in kernel.leaves], kernel.tree)
    args, named = made
    name = kernel.function._schema.name
    if name.startswith("aten::_scaled_dot_product_flash_attention_for_cpu") and device != "cpu":
        return _attention_call(name.endswith("backward"), args, named)
    if name == "aten::mkldnn_rnn_layer_backward":  # of what a forward pass kept: nothing else will do
        return _lstm_backward_call(args)
    return lambda: kernel.function(*args, **named)


def _made(leaf: Any, device: str) -> Any:
    if isinstance(leaf, torch.device):
        return torch.device(device)
    if not isinstance(leaf, TensorSpec):
        return leaf
    made = torch.empty_strided(leaf.shape, leaf.stride, dtype=leaf.dtype, device=device)
    if leaf.dtype.is_floating_point:
        return made.uniform_(0.1, 0.9)
    return made.fill_(True) if leaf.dtype is torch.bool else made.zero_()  # 0 is an index of any table


def _attention_call(is_backward: bool, args: tuple[Any, ...], named: dict[str, Any]) -> Callable[[], Any]:
    """Attention as a GPU does it: what is counted are the kernels of the CPU."""
    gradient, *rest = args
    inputs = [each.detach().requires_grad_() for each in (rest[:3] if is_backward else args[:3])]
    causal = bool(args[7] if is_backward else args[4] if len(args) > 4 else named.get("is_causal", False))

    def forward() -> Tensor:
        return nn.functional.scaled_dot_product_attention(*inputs, is_causal=causal)

    if not is_backward:
        return forward
    with torch.enable_grad():
        output = forward()
    return lambda: torch.autograd.grad(output, inputs, gradient, retain_graph=True)


def _lstm_backward_call(args: tuple[Any, ...]) -> Callable[[], Any]:
    reverse, mode, hidden_dim, num_layers, has_biases, _, bidirectional, batch_sizes, batch_first = args[13:22]
    output, hidden, cell, work_space = torch.ops.aten.mkldnn_rnn_layer(
        *args[:7], reverse, batch_sizes, mode, hidden_dim, num_layers, has_biases, bidirectional, batch_first, True
    )  # fmt: skip
    given = (*args[:7], output, hidden, cell, *args[10:22], work_space)
    return lambda: torch.ops.aten.mkldnn_rnn_layer_backward(*given)
