"""One training step, counted: the operations of every kernel, the bytes it moves, and which bytes live at once.

`StepCounter` is a dispatch mode: it sees each kernel that torch calls, in the forward pass, in the backward pass and in
the optimizer, on fake tensors (shapes without memory) as on real ones. Operations are those of torch's flop counter;
bytes are what an operation reads and writes, views none; the memory is that of storages, from the call that made each
until nothing holds it any more. Work space inside a kernel is not seen.
"""

import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from jaxtyping import Shaped
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_leaves
from torch.utils.flop_counter import flop_registry, sdpa_backward_flop_count, sdpa_flop_count

__all__ = ["Kernel", "Operation", "StepCounter", "TensorSpec", "total_bytes"]

aten: Any = torch.ops.aten
_GATHERED = {"embedding", "index", "index_select", "gather"}  # read as much as they give, not the whole table
_UNTOUCHED = {"_unsafe_view", "empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"}


class TensorSpec(NamedTuple):
    """A tensor without its numbers."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype


class Kernel(NamedTuple):
    """A call of torch's, by its arguments: tensors as `TensorSpec`, all others as they are."""

    function: Any
    leaves: tuple[Any, ...]
    tree: Any  # how positional and named arguments are made of the leaves


class Operation(NamedTuple):
    """A kernel as the roofline sees it, and how to call it again."""

    name: str
    flops: int  # of products and convolutions; 0 for the rest, which memory bounds
    num_bytes: int  # read and written
    kernel: Kernel | None = None


def total_bytes(tensors: Iterable[Shaped[Tensor, "..."]]) -> int:
    """Bytes of the memory behind these tensors, each once."""
    return sum({id(storage): storage.nbytes() for storage in [each.untyped_storage() for each in tensors]}.values())


class StepCounter(TorchDispatchMode):
    """Counts what is called inside it.

    Args:
        held: Tensors that live through the step: weights, buffers, the optimizer's state.
        reads_floats: Whether reading a number from a fake tensor, which has none, gives 1.0: a loss that is looked at
            to see whether it is finite. Whole numbers decide on shapes and are refused.
    """

    def __init__(self, held: Iterable[Shaped[Tensor, "..."]] = (), *, reads_floats: bool = False) -> None:
        super().__init__()
        self.operations: Counter[Operation] = Counter()  # of forward and backward passes
        self.update_operations: Counter[Operation] = Counter()  # of the optimizer
        self.is_updating = False
        self.reads_floats = reads_floats
        self.live = self.peak = 0  # bytes made inside that something still holds
        self.saved_at_peak = 0
        self._seen: dict[int, weakref.ref] = {}
        self._held = {id(each.untyped_storage()): each.untyped_storage() for each in held}
        self.saved = self.peak_saved = 0  # bytes kept for the backward pass, without copies of weights
        self.live_at_peak_saved = 0
        self.copies = 0  # bytes of weights in half precision, which autocast keeps through a forward pass
        self._copies: set[int] = set()
        self._saved: dict[int, list[int]] = {}  # by storage: how often it is kept, and its bytes

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None) -> Any:
        named = kwargs or {}
        if func is aten._local_scalar_dense.default and self.reads_floats and args[0].is_floating_point():
            return 1.0
        output = func(*args, **named)
        if func.namespace != "prim":
            self._count(func, args, named, output)
        return output

    def _count(self, func: Any, args: tuple, named: dict[str, Any], output: Any) -> None:
        outputs = _tensors(output)
        for each in outputs:
            self._watch(each.untyped_storage())
        if _is_view(func):
            return
        inputs, name = _tensors((args, named)), func._schema.name.partition("::")[2]
        self._add_work_space(name, args, output)
        if name == "_to_copy" and id(args[0].untyped_storage()) in self._held:
            self._note_copy(outputs[0].untyped_storage())
        packet, flops = func._overloadpacket, 0
        if packet in _OURS:
            flops = _OURS[packet](args)
        elif packet in flop_registry:
            flops = flop_registry[packet](*args, **named, out_val=output)
        written = sum(map(_touched, _with_changed(func, args, outputs)))
        read = (
            sum(map(_touched, outputs))
            if name in _GATHERED
            else sum({id(each): _touched(each) for each in inputs}.values())
        )
        if name in _UNTOUCHED:
            read = written = 0
        operations = self.update_operations if self.is_updating else self.operations
        operations[Operation(name, flops, read + written, _kernel(func, args, named))] += 1

    def _watch(self, storage: Any) -> None:
        """Count a storage from now on until it is freed."""
        key = id(storage)  # a storage has one Python object as long as it lives
        if key in self._seen or key in self._held:
            return
        size = storage.nbytes()
        self.live += size
        self._see_peak()
        self._seen[key] = weakref.ref(storage, lambda _: self._free(key, size))

    def _note_copy(self, storage: Any) -> None:
        self.copies += storage.nbytes()
        self._copies.add(id(storage))
        weakref.finalize(storage, self._copies.discard, id(storage))

    def _see_peak(self, more: int = 0) -> None:
        if self.live + more > self.peak:
            self.peak, self.saved_at_peak = self.live + more, self.saved

    def _free(self, key: int, size: int) -> None:
        self.live -= size
        self._seen.pop(key, None)

    def _add_work_space(self, name: str, args: tuple, output: tuple) -> None:
        """What oneDNN's LSTM keeps for its backward pass, which a fake one does not, and what it uses meanwhile: its
        gates and copies of its weights. By what torch was seen to allocate, within 2%."""
        if name not in ("mkldnn_rnn_layer", "mkldnn_rnn_layer_backward"):
            return
        (steps, batch, inputs), hidden = args[0].shape, args[2].shape[1]
        copies = (args[1].nbytes + args[2].nbytes) * (2 if name.endswith("backward") else 1)
        if name == "mkldnn_rnn_layer" and not output[3].numel():
            size = int(4 * batch * (steps + 1) * (9.3 * hidden + 6.1 * max(inputs, hidden)))
            storage = output[3].untyped_storage()
            self.live += size
            self._add_saved(id(storage), size)
            weakref.finalize(storage, self._free_work_space, id(storage), size)
        self._see_peak(16 * (steps + 1) * batch * hidden + copies)

    def _free_work_space(self, key: int, size: int) -> None:
        self.live -= size
        self._drop_saved(key)

    @contextmanager
    def counting_saved(self) -> Iterator[None]:
        """Inside, what autograd keeps for the backward pass is counted, each storage once, weights not at all."""
        with saved_tensors_hooks(self._pack, lambda kept: kept.tensor):
            yield

    def _pack(self, tensor: Tensor) -> "_Kept":
        storage = tensor.untyped_storage()
        if id(storage) in self._held or id(storage) in self._copies:
            return _Kept(tensor)
        kept = _Kept(tensor)
        self._add_saved(id(storage), storage.nbytes())
        weakref.finalize(kept, self._drop_saved, id(storage))
        return kept

    def _add_saved(self, key: int, size: int) -> None:
        count = self._saved.setdefault(key, [0, size])
        if count[0] == 0:
            self.saved += size
            if self.saved > self.peak_saved:
                self.peak_saved, self.live_at_peak_saved = self.saved, self.live
        count[0] += 1

    def _drop_saved(self, key: int) -> None:
        count = self._saved[key]
        count[0] -= 1
        if count[0] == 0:
            self.saved -= count[1]
            del self._saved[key]


class _Kept:
    """A tensor that autograd keeps; that it is let go is seen by this being freed."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


def _tensors(values: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, Tensor)]


def _kernel(func: Any, args: tuple, named: dict[str, Any]) -> Kernel:
    leaves, tree = tree_flatten((args, named))
    return Kernel(func, tuple(map(_leaf, leaves)), tree)


def _leaf(value: Any) -> Any:
    if isinstance(value, Tensor):
        return TensorSpec(tuple(value.shape), tuple(value.stride()), value.dtype)
    return None if isinstance(value, torch.Generator) else value


def _touched(tensor: Tensor) -> int:
    """Bytes that are read where all of a tensor is: an expanded one repeats some."""
    return min(tensor.numel() * tensor.element_size(), tensor.untyped_storage().nbytes())


def _is_view(func: Any) -> bool:
    returned = [each.alias_info for each in func._schema.returns]
    return any(alias is not None and not alias.is_write for alias in returned)


def _with_changed(func: Any, args: tuple, outputs: list[Tensor]) -> list[Tensor]:
    """What it writes: what it gives, and what it changes without giving it, as fused optimizers do."""
    changed = (
        value
        for argument, value in zip(func._schema.arguments, args)
        if argument.alias_info is not None and argument.alias_info.is_write
    )
    return list({id(each): each for each in [*outputs, *_tensors(list(changed))]}.values())


def _attention(args: tuple) -> int:
    query, key, value = args[:3]
    return sdpa_flop_count(query.shape, key.shape, value.shape)


def _attention_backward(args: tuple) -> int:
    grad, query, key, value = args[:4]
    return sdpa_backward_flop_count(grad.shape, query.shape, key.shape, value.shape)


def _lstm(args: tuple) -> int:
    inputs, input_weight, hidden_weight = args[:3]
    return 2 * inputs.shape[0] * inputs.shape[1] * (input_weight.numel() + hidden_weight.numel())


def _lstm_backward(args: tuple) -> int:
    return 2 * _lstm(args)


_OURS: dict[Any, Callable[[tuple], int]] = {  # of the CPU, for which torch's counter has no formula
    aten._scaled_dot_product_flash_attention_for_cpu: _attention,
    aten._scaled_dot_product_flash_attention_for_cpu_backward: _attention_backward,
    aten.mkldnn_rnn_layer: _lstm,
    aten.mkldnn_rnn_layer_backward: _lstm_backward,
}
