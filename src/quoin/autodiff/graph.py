"""A recorded computation: values, the calls that made them, and the numbers on both. Recording is trace.py, running
again replay.py.

A node is one tensor at one moment: a call with three outputs makes three nodes, and a tensor written to in place is a
new node from there on. The graph owns copies of all its numbers, so nothing done later can change them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Inexact, Shaped, UInt8
from torch import Tensor

from quoin.display import short, shown, table

__all__ = ["Call", "GeneratorState", "Graph", "Leaf", "Node", "Ref", "same_bits", "summarize"]

LEAVES = ("input", "parameter", "buffer", "variable", "constant")


@shown
@dataclass(frozen=True)
class Node:
    """One value of the computation: the operation that made it, from which nodes, the value, and its adjoint
    ∂output/∂value.

    A leaf's `op` is input, parameter, buffer, variable (some other tensor that requires a gradient) or constant.
    `module` is the path of the innermost module at work, `use` how often that module had been called, itself included.
    The adjoint is None where the value is no float, where autograd was off, or where the graph was traced without one.
    """

    index: int
    op: str
    name: str
    module: str
    use: int
    inputs: tuple[int, ...]
    value: Shaped[Tensor, "*shape"]
    adjoint: Inexact[Tensor, "*shape"] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.value.shape)

    @property
    def is_leaf(self) -> bool:
        return self.op in LEAVES

    @property
    def location(self) -> str:
        """Where in the model this happened: `features.1`, and `features.1 (use 2)` when that module is used again."""
        return f"{self.module} (use {self.use})" if self.use > 1 else self.module


@dataclass(frozen=True)
class Ref:
    """The position of a tensor among the arguments of a call."""

    node: int


@dataclass(frozen=True)
class GeneratorState:
    """The position of a generator among the arguments of a call, and its state before it."""

    device: torch.device
    state: UInt8[Tensor, "_bytes"]


@shown
@dataclass(frozen=True)
class Leaf:
    """A tensor from outside, as it was when first used: its numbers (in `copy`), its layout, its part of a storage."""

    node: int
    storage: int | None  # leaves of one storage overlap or lie side by side, and share it again in a replay
    copy: Shaped[Tensor, "..."]
    requires_grad: bool
    is_autograd_leaf: bool


@shown
@dataclass(frozen=True)
class Call:
    """One operation as it was called; `outputs` are the nodes of the tensors it gave back, `writes` of those it wrote
    to.

    What a result may depend on beside the arguments is kept too: the states of torch's generators where the call
    sampled from them, whether gradients were on, and autocast.
    """

    function: Callable[..., Any]
    args: tuple
    kwargs: dict[str, Any]
    outputs: tuple[int, ...]
    writes: tuple[tuple[int, int], ...]  # (node before, node after), of one tensor
    random_states: tuple[tuple[str, UInt8[Tensor, "_bytes"]], ...]  # device -> state of its default generator
    grad_enabled: bool
    autocast: tuple[tuple[str, torch.dtype], ...]  # device type -> dtype, where it was on


@shown
@dataclass(frozen=True)
class Graph:
    """The directed acyclic graph of one computation: nodes in the order they were computed, each after its inputs.

    Notes: Z5.16.
    """

    nodes: tuple[Node, ...]
    steps: tuple[Leaf | Call, ...]
    outputs: tuple[int, ...]

    @property
    def output(self) -> Shaped[Tensor, "..."]:
        """The value of the first output."""
        return self.nodes[self.outputs[0]].value

    @property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """(from, to), once for each pair."""
        return tuple(dict.fromkeys((source, node.index) for node in self.nodes for source in node.inputs))

    def find(self, word: str) -> list[Node]:
        """The nodes whose op, name or module is `word`."""
        return [node for node in self.nodes if word in (node.op, node.name, node.module)]

    def __repr__(self) -> str:
        return f"Graph({len(self.nodes)} nodes, {len(self.outputs)} outputs, the first {short(self.output)})"

    def _repr_html_(self) -> str:
        from quoin.autodiff.picture import MOST_PICTURED, plot_graph

        if len(self.nodes) <= MOST_PICTURED:
            return plot_graph(self).figure_html(f"{len(self.nodes)} nodes; v value, dv adjoint")
        rows = [
            (node.index, node.op, node.name, node.location, node.inputs, str(node.shape), summarize(node.value))
            for node in self.nodes
        ]
        return table(("node", "op", "name", "module", "from", "shape", "value"), rows, caption=repr(self))

    def __str__(self) -> str:
        rows = [("node", "op", "name", "module", "from", "shape", "value", "adjoint")]
        for node in self.nodes:
            sources = " ".join(map(str, node.inputs))
            numbers = summarize(node.value), summarize(node.adjoint) if node.adjoint is not None else "-"
            rows.append((str(node.index), node.op, node.name, node.location, sources, str(node.shape), *numbers))
        widths = [max(map(len, column)) for column in zip(*rows)]
        return "\n".join("  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip() for row in rows)


def summarize(tensor: Shaped[Tensor, "..."], max_entries: int = 3) -> str:
    """The numbers of a small tensor, the mean and the range of a large one.

    >>> summarize(torch.tensor([1.0, -0.5]))
    '1 -0.5'
    >>> summarize(torch.arange(5.0))
    'mean 2, 0 to 4'
    """
    values = tensor.detach().cpu()
    if values.is_sparse:
        values = values.to_dense()
    if values.numel() <= max_entries or values.is_complex():
        few = values.reshape(-1)[:max_entries].tolist()
        return " ".join(f"{value:.4g}" for value in few) + (" ..." if values.numel() > max_entries else "")
    values = values.double()
    low, high = values.aminmax()
    return f"mean {float(values.mean()):.3g}, {float(low):.3g} to {float(high):.3g}"


def same_bits(left: Shaped[Tensor, "..."], right: Shaped[Tensor, "..."]) -> bool:
    """Whether two tensors have the same type, shape and bits; a NaN equals itself, and 0 is not -0."""
    if left.dtype != right.dtype or left.shape != right.shape or left.device != right.device:
        return False
    if left.is_sparse or right.is_sparse:
        return left.is_sparse == right.is_sparse and same_bits(left.to_dense(), right.to_dense())
    flat = [tensor.detach().resolve_conj().resolve_neg().contiguous().reshape(-1) for tensor in (left, right)]
    return torch.equal(flat[0].view(torch.uint8), flat[1].view(torch.uint8))
