"""Recording: a mode that stands between a function and torch, and writes down every call on its way.

It works above autograd, so a node is what the author of the function wrote (`linear`, `cross_entropy`), not the kernels
beneath. Not seen are writes through numpy, and operations that torch hides: of those the result is a leaf.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Shaped
from torch import Tensor, nn
from torch._C._functorch import is_functorch_wrapped_tensor
from torch.autograd.graph import GradientEdge, get_gradient_edge
from torch.overrides import TorchFunctionMode

from quoin.autodiff.graph import Call, GeneratorState, Leaf, Ref
from quoin.autodiff.modules import ModuleStack
from quoin.autodiff.randomness import States, changed_rng_states, rng_states
from quoin.autodiff.snapshot import copy_storage, restride, storage_key
from quoin.autodiff.trees import leaves, mapped
from quoin.errors import UserError

__all__ = ["Draft", "Recorder"]

# Their memory holds what happened to be there: a replay must be given it, as it is given an input.
_UNSET = {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided"}
# Asked often, answered without a tensor, and changing nothing: not worth looking for changes.
_QUESTIONS = {
    "size",
    "dim",
    "numel",
    "stride",
    "is_floating_point",
    "is_complex",
    "element_size",
    "is_contiguous",
    "nelement",
    "__len__",
}
# They change what follows though they give no new tensor.
_ACTS = {"backward", "requires_grad_", "retain_grad", "detach_"}


@dataclass(frozen=True)
class Draft:
    """A node before its adjoint is known."""

    op: str
    name: str
    module: str
    use: int
    inputs: tuple[int, ...]
    value: Shaped[Tensor, "..."]


@dataclass
class _Known:
    """The node that a tensor is now; holding the tensor keeps its id from being given to another."""

    tensor: Tensor
    node: int
    version: int


class Recorder(TorchFunctionMode):
    """Every torch call made under it, as drafts of nodes, steps to replay and, in `edges`, autograd's edge for each
    node.
    """

    def __init__(self, modules: ModuleStack):
        super().__init__()
        self.drafts: list[Draft] = []
        self.steps: list[Leaf | Call] = []
        self.edges: dict[int, GradientEdge] = {}
        self.written_through: set[int] = (
            set()
        )  # nodes that others saw through shared memory, past autograd's edge of them
        self._modules = modules
        self._known: dict[int, _Known] = {}
        self._storages: dict[int, Tensor] = {}  # a copy of each leaf's storage as it was at first sight
        self._ran_backward = False
        self._writers: dict[int, int] = {}  # storage -> the node that last wrote to it

    def __torch_function__(self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        if func.__name__ == "backward" or (func == Tensor.grad.__get__ and not self._ran_backward):  # pyright: ignore
            self._seen(args, {})
            self._bring_gradients()
            self._ran_backward |= func.__name__ == "backward"
        if func.__name__ == "__get__" or func.__name__ in _QUESTIONS:
            result = func(*args, **kwargs)
            if isinstance(result, Tensor):
                self._record(func, self._seen(args, kwargs), result, [], ())
            return result
        seen = self._seen(args, kwargs)
        given = list({id(tensor): tensor for tensor in leaves((args, kwargs), Tensor)}.values())
        versions = [tensor._version for tensor in given]
        before = [self._known[id(tensor)].node for tensor in given]
        states = rng_states()
        result = func(*args, **kwargs)
        changed_states = changed_rng_states(states, rng_states())
        written = [(t, node) for t, node, version in zip(given, before, versions) if t._version != version]
        if func.__name__ == "__set__":
            written = [(given[0], before[0])]
        self._record(func, seen, result, written, changed_states)
        return result

    def use(self, tensor: Shaped[Tensor, "..."]) -> int:
        """The node that `tensor` is at this moment, a new one where it is new here or was written to through another's
        memory."""
        known = self._known.get(id(tensor))
        if known is None:
            return self.leaf(tensor)
        writer = self._writers.get(storage_key(tensor) or -1, -1)
        if writer > known.node:
            self.written_through.add(writer)
            node = self._add("after write", (known.node, writer), tensor)
            self._step(_first, (Ref(known.node), Ref(writer)), {}, (node,), (), ())
            return node
        if known.version != tensor._version:  # written to by something not seen: take it as it is now
            self._storages.pop(storage_key(tensor) or -1, None)
            return self.leaf(tensor)
        if known.node not in self.edges and tensor.requires_grad:
            self.edges[known.node] = get_gradient_edge(tensor)
        return known.node

    def leaf(self, tensor: Shaped[Tensor, "..."], op: str = "", name: str = "") -> int:
        """A node for a tensor from outside, with all a replay needs to make it again."""
        if is_functorch_wrapped_tensor(tensor):
            raise UserError(
                "expected operations on plain tensors, got one inside vmap, grad or another transform of torch.func; "
                "trace the function that it transforms"
            )
        if not op:
            owned = self._modules.name_of(tensor)
            other = (
                "parameter" if isinstance(tensor, nn.Parameter) else "variable" if tensor.requires_grad else "constant"
            )
            op, name = owned or (other, name)
        key = storage_key(tensor)
        if key is not None and key in self._storages:
            copy = restride(tensor, self._storages[key].untyped_storage())
            value = None
        else:
            copy = value = copy_storage(tensor)
            if key is not None:
                self._storages[key] = copy
        node = self._add(op, (), tensor, name, value)
        self.steps.append(Leaf(node, key, copy, tensor.requires_grad, tensor.is_leaf))
        return node

    def _bring_gradients(self) -> None:
        """Gradients that lay at the leaves before any backward was run here come from outside, as the leaves do."""
        for known in list(self._known.values()):
            tensor = known.tensor
            if tensor.is_leaf and tensor.grad is not None and id(tensor.grad) not in self._known:
                gradient = self.leaf(tensor.grad, "constant", "gradient")
                self._step(_lay_gradient, (Ref(known.node), Ref(gradient)), {}, (), (), ())

    def _record(
        self,
        func: Callable,
        seen: tuple[tuple, dict],
        result: Any,
        written: list[tuple[Tensor, int]],
        changed_states: States,
    ) -> None:
        made = list(leaves(result, Tensor))
        rewritten = {id(tensor) for tensor, _ in written}
        fresh = [tensor for tensor in made if id(tensor) not in self._known]
        if not (fresh or written or changed_states or func.__name__ in _ACTS):
            return
        if func.__name__ in _UNSET and not written:
            for tensor in fresh:
                self.leaf(tensor, "constant", "empty")
            return
        args, kwargs = seen
        inputs = tuple(reference.node for reference in leaves((args, kwargs), Ref))
        name = _op(func)
        writes, outputs = [], []
        for tensor, before in written:
            node = self._add(name, inputs, tensor)
            writes.append((before, node))
            if (key := storage_key(tensor)) is not None:
                self._writers[key] = node
        for number, tensor in enumerate(made):
            if id(tensor) not in self._known:
                self._add(name if len(made) == 1 else f"{name}[{number}]", inputs, tensor)
            elif id(tensor) not in rewritten and tensor.requires_grad:
                self.edges.setdefault(self._known[id(tensor)].node, get_gradient_edge(tensor))
            outputs.append(self._known[id(tensor)].node)
        self._step(func, args, kwargs, tuple(outputs), tuple(writes), changed_states)

    def _add(
        self, op: str, inputs: tuple[int, ...], tensor: Tensor, name: str = "", value: Tensor | None = None
    ) -> int:
        node = len(self.drafts)
        copy = tensor.detach().clone() if value is None else value
        self.drafts.append(Draft(op, name, *self._modules.here(), inputs, copy))
        self._known[id(tensor)] = _Known(tensor, node, tensor._version)
        if tensor.requires_grad:
            self.edges[node] = get_gradient_edge(tensor)
        return node

    def _step(
        self, func: Callable, args: tuple, kwargs: dict, outputs: tuple, writes: tuple, changed_states: States
    ) -> None:
        devices = ("cpu", "cuda") if torch.cuda.is_initialized() else ("cpu",)
        autocast = tuple((kind, torch.get_autocast_dtype(kind)) for kind in devices if torch.is_autocast_enabled(kind))
        self.steps.append(Call(func, args, kwargs, outputs, writes, changed_states, torch.is_grad_enabled(), autocast))

    def _seen(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """The arguments with a Ref for each tensor, and the state of each generator."""

        def reference(value: Any) -> Any:
            if isinstance(value, Tensor):
                return Ref(self.use(value))
            return GeneratorState(value.device, value.get_state()) if isinstance(value, torch.Generator) else value

        return mapped(args, reference), mapped(kwargs, reference)


def _first(tensor: Tensor, *others: Tensor) -> Tensor:
    return tensor


def _lay_gradient(tensor: Tensor, gradient: Tensor) -> None:
    tensor.grad = gradient


def _op(func: Callable) -> str:
    """A function's name as one reads it: `add` for `__add__`, `T` for the getter of `Tensor.T`."""
    name = func.__name__
    if name in ("__get__", "__set__"):
        name = getattr(getattr(func, "__self__", None), "__name__", name) + (" =" if name == "__set__" else "")
    return name.strip("_") + "_" if name.endswith("_") and not name.endswith("__") else name.strip("_")
