"""Run a recorded graph again, from its own copies: every node comes out bit for bit as it was, or as a changed node
makes it."""

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import torch
from jaxtyping import Shaped
from torch import Tensor

from quoin.autodiff.graph import Call, GeneratorState, Graph, Leaf, Ref
from quoin.autodiff.randomness import set_rng_states
from quoin.autodiff.snapshot import restride, writable_copy
from quoin.autodiff.trees import leaves, mapped
from quoin.errors import UserError

__all__ = ["replay"]


def replay(
    graph: Graph, changed: Mapping[int, Shaped[Tensor, "..."]] | None = None
) -> tuple[Shaped[Tensor, "..."], ...]:
    """The value of every node, computed anew in the recorded order; the nodes in `changed` are given those values
    instead.

    On the same machine, with as many threads, each has the bits of `graph.nodes[i].value`: random samples start from
    the recorded generator states (yours are left alone). With `changed` it answers what-if questions: a finite
    difference of the output in one node approximates that node's adjoint. The way that `if` and `for` took when
    recorded is kept.

    Notes: Z5.16.
    """
    changed = {} if changed is None else dict(changed)
    for index, value in changed.items():
        if not 0 <= index < len(graph.nodes):
            raise UserError(f"expected nodes from 0 to {len(graph.nodes) - 1} to change, got {index}; see print(graph)")
        node = graph.nodes[index]
        if value.shape != node.value.shape or value.dtype != node.value.dtype:
            expected, got = f"{node.value.dtype} of shape {node.shape}", f"{value.dtype} of shape {tuple(value.shape)}"
            raise UserError(f"expected {expected} for node {index}, got {got}; keep the node's type and shape")
    cards = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else []
    with torch.random.fork_rng(devices=cards):
        return _Player(changed).play(graph)


class _Player:
    def __init__(self, changed: dict[int, Tensor]):
        self._changed = changed
        self._now: dict[
            int, Tensor
        ] = {}  # the tensor that a node lives in; several nodes may share one, written in place
        self._values: dict[int, Tensor] = {}
        self._storages: dict[int, Any] = {}

    def play(self, graph: Graph) -> tuple[Tensor, ...]:
        for step in graph.steps:
            if isinstance(step, Leaf):
                self._set(step.node, self._remade(step))
            else:
                self._call(step)
        return tuple(self._values[node.index] for node in graph.nodes)

    def _remade(self, leaf: Leaf) -> Tensor:
        if leaf.storage is None:
            made = leaf.copy.clone()
        else:
            if leaf.storage not in self._storages:
                self._storages[leaf.storage] = leaf.copy.untyped_storage().clone()
            made = restride(leaf.copy, self._storages[leaf.storage])
        if leaf.requires_grad and leaf.is_autograd_leaf:
            return made.requires_grad_()
        if leaf.requires_grad:
            made = writable_copy(made)
            if leaf.storage is not None:
                self._storages[leaf.storage] = made.untyped_storage()
        return made

    def _call(self, call: Call) -> None:
        def argument(value: Any) -> Any:
            if isinstance(value, Ref):
                return self._now[value.node]
            if isinstance(value, GeneratorState):
                generator = torch.Generator(value.device)
                generator.set_state(value.state)
                return generator
            return value

        args, kwargs = mapped(call.args, argument), mapped(call.kwargs, argument)
        with ExitStack() as stack:
            stack.enter_context(torch.set_grad_enabled(call.grad_enabled))
            for device, dtype in call.autocast:
                stack.enter_context(torch.autocast(device, dtype, cache_enabled=False))
            set_rng_states(call.random_states)
            result = call.function(*args, **kwargs)
        for before, after in call.writes:
            self._set(after, self._now[before])
        for node, tensor in zip(call.outputs, leaves(result, Tensor), strict=True):
            if node not in self._now:
                self._set(node, tensor)

    def _set(self, node: int, tensor: Tensor) -> None:
        if node in self._changed:
            tensor = self._changed[node].clone()
        self._now[node] = tensor
        self._values[node] = tensor.detach().clone()
