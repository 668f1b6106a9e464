"""A part as a graph, by torch.export, with its free axes free; and the exporters kept quiet."""

import contextlib
import inspect
import logging
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import Any, cast

import torch
from torch.export import Dim, ExportedProgram

from quoin.runs.export.exportable import Axis, ExportPart, draw_inputs
from quoin.runs.export.written import CannotExportError

__all__ = ["dynamic_shapes", "quietly", "trace", "why_no_graph"]

_CHATTY = ("torch.onnx", "torch.export", "torch._dynamo", "torch.fx", "onnxscript", "onnx_ir", "onnxruntime")
# What torch.export says of a model's code, and what to do about it.
_HINTS = {
    "Constraints violated": "its code makes a size a constant, as len(x) does: write x.shape[0]",
    "data-dependent": "its code branches on the values of a tensor: write torch.where",
}


class _WithoutThisThread:
    """Standard error less what this thread writes: torch.export prints a graph that fails, by no logger. The bar is
    another thread's."""

    def __init__(self, stream: Any) -> None:
        self.stream, self.thread = stream, threading.get_ident()

    def write(self, text: str) -> int:
        return len(text) if threading.get_ident() == self.thread else self.stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Inside, the exporters keep to themselves what no user can act on."""
    loggers = [logging.getLogger(name) for name in _CHATTY]
    below = tuple(f"{name}." for name in _CHATTY)
    known = logging.root.manager.loggerDict.items()
    loggers += [each for name, each in known if isinstance(each, logging.Logger) and name.startswith(below)]
    before = [each.level for each in loggers]
    for each in loggers:
        each.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stderr(cast(Any, _WithoutThisThread(sys.stderr))):
            warnings.simplefilter("ignore")
            yield
    finally:
        for each, level in zip(loggers, before):
            each.setLevel(level)


def dynamic_shapes(part: ExportPart, *, by_name: bool = False) -> tuple[Any, ...]:
    """The free axes of each input, by number: as torch.export takes them, or by their names alone."""
    dims: dict[Axis, Any] = {
        axis: axis.name if by_name else Dim(axis.name, min=axis.least, max=axis.at_most) for axis in part.free_axes
    }
    found = [
        {number: dims[axis] for number, axis in enumerate(each.axes) if isinstance(axis, Axis)} for each in part.inputs
    ]
    parameters = [*inspect.signature(part.module.forward).parameters.values()]
    if parameters[-1].kind is inspect.Parameter.VAR_POSITIONAL:  # *state is one argument to torch.export
        named = len(parameters) - 1
        return (*found[:named], *([tuple(found[named:])] if found[named:] else []))
    return tuple(found)


def trace(part: ExportPart) -> ExportedProgram:
    """The graph of a part."""
    inputs = draw_inputs(part, {axis.name: axis.traced for axis in part.free_axes})
    try:
        with torch.no_grad(), quietly():
            return torch.export.export(part.module.eval(), inputs, dynamic_shapes=dynamic_shapes(part))
    except Exception as error:  # whatever torch.export finds in a model's code, a user's own too
        raise CannotExportError(
            f"torch.export cannot make a graph of the part {part.name} ({why_no_graph(error)}); --to safetensors keeps "
            "its weights"
        ) from error


def why_no_graph(error: Exception) -> str:
    """In one line: what a user can do about it, where that is known, else the first line of what torch says."""
    told = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return next((hint for words, hint in _HINTS.items() if words in told), told[:300])
