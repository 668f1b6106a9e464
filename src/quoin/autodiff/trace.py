"""`trace`: any torch function or module, run once, as the graph of what it computed and of how its output depends on
each value."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from jaxtyping import Num
from torch import Tensor, nn

from quoin.autodiff.graph import Graph, Node
from quoin.autodiff.modules import ModuleStack
from quoin.autodiff.record import Recorder
from quoin.autodiff.snapshot import writable_copy
from quoin.autodiff.trees import leaves, mapped
from quoin.errors import UserError, format_value

__all__ = ["trace"]


def trace(
    f: Callable[..., Any], *inputs: Any, adjoint: Num[Tensor, "..."] | Sequence[Num[Tensor, "..."]] | None = None
) -> Graph:
    """Run `f(*inputs)` once and give back its computational graph: for each value v, v itself and its adjoint ∂f/∂v.

    Adjoints come by torch's reverse mode in one sweep from the output: 1 for a single number, else the `adjoint` given
    (one for each output; without one the graph has none). The inputs are handed over as copies that require gradients,
    so they have adjoints too and writing to them in place leaves yours alone; parameters and buffers are the model's
    own, and `.grad` of nothing is touched. Randomness comes as in a plain call. A module used twice is two sets of
    nodes.

    >>> x = torch.tensor(3.0)
    >>> print(trace(lambda x: x * x + x, x))
    node  op     name  module  from  shape  value  adjoint
    0     input  x                   ()     3      7
    1     mul                  0 0   ()     9      1
    2     add                  1 0   ()     12     1

    Notes: Z2.6, Z5.14, Z5.16.
    """
    if not callable(f):
        raise UserError(
            f"expected a function or a module to trace, got {format_value(f)}; give it first, then its inputs"
        )
    if torch.is_inference_mode_enabled():
        raise UserError(
            "expected to trace outside torch.inference_mode(), which keeps no record; leave it, or use torch.no_grad()"
        )
    modules = ModuleStack(f)
    recorder = Recorder(modules)
    # The names are the function's own; a module's are those of its forward.
    names = _names(f.forward if isinstance(f, nn.Module) else f, len(inputs))
    given = mapped(inputs, lambda value: writable_copy(value) if isinstance(value, Tensor) else value)
    for name, value in zip(names, given):
        for inner, tensor in _named_tensors(name, value):
            recorder.leaf(tensor, "input", inner)
    with modules.watching(), recorder:
        result = f(*given)
    tensors = list(leaves(result, Tensor))
    if not tensors:
        raise UserError(
            f"expected the traced function to give back a tensor, got {format_value(result)}; return the loss or "
            "the output"
        )
    outputs = tuple(map(recorder.use, tensors))
    adjoints = _adjoints(recorder, tensors, _seeds(tensors, adjoint))
    nodes = []
    for index, draft in enumerate(recorder.drafts):
        fields = draft.op, draft.name, draft.module, draft.use, draft.inputs, draft.value
        nodes.append(Node(index, *fields, adjoints.get(index)))
    return Graph(tuple(nodes), tuple(recorder.steps), outputs)


def _seeds(outputs: list[Tensor], adjoint: Tensor | Sequence[Tensor] | None) -> list[Tensor] | None:
    """What the sweep starts from: one tensor for each output, or None where there is nothing to start from."""
    if adjoint is None:
        output = outputs[0]
        single = len(outputs) == 1 and output.numel() == 1 and output.is_floating_point() and output.requires_grad
        return [torch.ones_like(output)] if single else None
    seeds = [adjoint] if isinstance(adjoint, Tensor) else list(adjoint)
    if len(seeds) != len(outputs):
        raise UserError(f"expected {len(outputs)} adjoints, one for each output, got {len(seeds)}; pair them up")
    for number, (seed, output) in enumerate(zip(seeds, outputs)):
        if seed.shape != output.shape:
            expected, got = tuple(output.shape), tuple(seed.shape)
            raise UserError(
                f"expected an adjoint of shape {expected} for output {number}, got {got}; give it the output's shape"
            )
    return seeds


def _adjoints(recorder: Recorder, outputs: list[Tensor], seeds: list[Tensor] | None) -> dict[int, Tensor]:
    if seeds is None:
        return {}
    roots = [output for output in outputs if output.requires_grad]
    starts = [seed.to(output) for output, seed in zip(outputs, seeds) if output.requires_grad]
    if not roots:
        raise UserError("expected an output that depends on a float input or parameter, got none; adjoints need one")
    nodes, edges = list(recorder.edges), list(recorder.edges.values())
    try:
        # The graph is retained because it may reach into the caller's own.
        found = torch.autograd.grad(roots, edges, starts, allow_unused=True, retain_graph=True)
    except RuntimeError as error:
        if "second time" not in str(error):
            raise
        raise UserError(
            "expected a function that leaves its graph whole, got one that ran backward; return the loss without "
            "its backward"
        ) from error
    adjoints = {node: gradient.detach().clone() for node, gradient in zip(nodes, found) if gradient is not None}
    # Where autograd found no way to the output the adjoint is zero. But what was written into another's memory reaches
    # the output under the other's name: of such nodes, and of those that led only to them, autograd cannot say.
    unsaid = recorder.written_through - adjoints.keys()
    for index in range(len(recorder.drafts) - 1, -1, -1):
        if index in unsaid:
            unsaid.update(source for source in recorder.drafts[index].inputs if source not in adjoints)
    return adjoints | {
        node: torch.zeros_like(recorder.drafts[node].value)
        for node in nodes
        if node not in adjoints and node not in unsaid
    }


def _names(f: Callable[..., Any], count: int) -> list[str]:
    try:
        parameters = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):  # a function of C has none
        parameters = []
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)][:count]
    rest = next((p.name for p in parameters if p.kind == p.VAR_POSITIONAL), "input")
    return names + [f"{rest}[{number}]" for number in range(count - len(names))]


def _named_tensors(name: str, value: Any) -> Iterator[tuple[str, Tensor]]:
    found = list(leaves(value, Tensor))
    if isinstance(value, Tensor):
        yield name, value
    else:
        yield from ((f"{name}.{number}", tensor) for number, tensor in enumerate(found))
