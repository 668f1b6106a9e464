"""A module of the user's own, whose inputs are one tensor: of the dtype and shape that the run remembers, any number of
rows."""

import re

import torch
from torch import Tensor, nn

from quoin.runs.export.exportable import BATCH, Exportable, ExportInput, ExportPart
from quoin.runs.export.written import CannotExportError
from quoin.runs.kinds.own_module import TrainedModule
from quoin.runs.run import Run

__all__ = ["module_parts"]


def module_parts(run: Run) -> Exportable:
    """One part, from inputs as the module takes them to its outputs."""
    trained = run.trained
    assert isinstance(trained, TrainedModule)
    model: nn.Module = trained.model.cpu().eval()
    found = re.fullmatch(r"(\w+) \(((?:\d+,? ?)*)\)", trained.data_info.inputs)
    if found is None:
        raise CannotExportError(
            f"expected a module of one input tensor, got inputs {trained.data_info.inputs}: give --to safetensors, or "
            "call torch.onnx.export with the module and its inputs"
        )
    dtype: torch.dtype = getattr(torch, found[1])
    shape = tuple(map(int, re.findall(r"\d+", found[2])))

    def draw(size: tuple[int, ...], generator: torch.Generator) -> Tensor:
        if dtype.is_floating_point:
            return torch.randn(size, generator=generator, dtype=dtype)
        return torch.randint(2, size, generator=generator).to(dtype)

    names = trained.data_info.feature_names
    told = {"feature_names": list(names), "class_names": list(trained.data_info.class_names or ()) or None}
    inputs = (ExportInput("inputs", (BATCH, *shape), draw, "as the module took them in training"),)
    with torch.no_grad():
        answer = model(draw((BATCH.traced, *shape), torch.Generator()))
    count = len(answer) if isinstance(answer, (tuple, list)) else 1
    outputs = ("output",) if count == 1 else tuple(f"output_{number}" for number in range(count))
    return Exportable((ExportPart("model", model, inputs, outputs),), told)
