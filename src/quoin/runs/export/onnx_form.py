"""The ONNX form: each part a graph for onnxruntime, with its names and scales."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Shaped
from torch import Tensor
from torch.export import ExportedProgram

from quoin.errors import UserError
from quoin.runs.export.exportable import Exportable, ExportPart
from quoin.runs.export.trace import dynamic_shapes, quietly, trace
from quoin.runs.export.written import CannotExportError

__all__ = ["check_extra", "cummax", "open_onnx", "write_onnx"]

SUFFIX = ".onnx"
LARGE = 2**26  # bytes of weights that go into a file of their own
_NEEDED = ("onnx", "onnxscript", "onnxruntime")


def cummax(x: Shaped[Tensor, "..."], dim: int) -> tuple[Shaped[Tensor, "..."], Shaped[Tensor, "..."]]:
    """Running maxima and where they are, for ONNX, which has no operator for them: the largest of each beginning, of n²
    numbers. Performer's are over a chunk."""
    moved = x.movedim(dim, -1)
    at = torch.arange(moved.shape[-1], device=x.device)
    values, indices = moved[..., None, :].masked_fill(at > at[:, None], float("-inf")).max(dim=-1)
    return values.movedim(-1, dim), indices.movedim(-1, dim)


_WRITTEN_OUT: dict[Any, Any] = {torch.ops.aten.cummax.default: cummax}


def check_extra() -> None:
    """Raise an error that tells the pip line, where a package is missing."""
    if missing := [name for name in _NEEDED if importlib.util.find_spec(name) is None]:
        raise UserError(f"--to onnx needs {missing[0]}, which is not installed: pip install 'quoin[export]'")


def write_onnx(part: ExportPart, exportable: Exportable, folder: Path) -> list[Path]:
    """Write the graph of a part into `folder`; weights that are large go into a file beside it."""
    path = folder / f"{part.name}{SUFFIX}"
    program: ExportedProgram = trace(part)
    try:
        with torch.no_grad(), quietly():
            graphs = [each.graph for each in program.graph_module.modules() if isinstance(each, torch.fx.GraphModule)]
            if any(node.target in _WRITTEN_OUT for graph in graphs for node in graph.nodes):
                program = program.run_decompositions(_WRITTEN_OUT)
            made: Any = torch.onnx.export(
                program,
                dynamic_shapes=dynamic_shapes(part, by_name=True),
                input_names=[each.name for each in part.inputs],
                output_names=list(part.outputs),
                dynamo=True,
                verbose=False,
            )
    except Exception as error:
        told = " ".join(str(error.__cause__ or error).split()) or type(error).__name__
        raise CannotExportError(
            f"ONNX has no form of the part {part.name} ({told[:300]}): give --to torch instead"
        ) from error
    for name, value in exportable.info.items():
        made.model.metadata_props[name] = value if isinstance(value, str) else json.dumps(value)
    # Beside the graph, the weights are written one by one; inside it, all are first copied into one message.
    num_bytes = sum(each.nbytes for each in program.state_dict.values())
    made.save(path, external_data=True if num_bytes > LARGE else None)
    beside = path.with_name(path.name + ".data")
    return [path, beside] if beside.exists() else [path]


class OpenedONNX:
    """A written graph in onnxruntime."""

    def __init__(self, path: Path) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        # Some calls only: copies of the weights, laid out for speed, are not worth their memory.
        options.enable_cpu_mem_arena = False
        options.add_session_config_entry("session.disable_prepacking", "1")
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.names = [each.name for each in self.session.get_inputs()]

    def __call__(self, *inputs: Shaped[Tensor, "..."]) -> tuple[Shaped[Tensor, "..."], ...]:
        given = {name: each.numpy() for name, each in zip(self.names, inputs, strict=True)}
        return tuple(torch.from_numpy(each) for each in self.session.run(None, given))


def open_onnx(folder: Path, name: str) -> OpenedONNX:
    """The part `name` as onnxruntime computes it."""
    return OpenedONNX(folder / f"{name}{SUFFIX}")
