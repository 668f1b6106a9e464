"""The torch form: each part a .pt2 file, which torch runs without Quoin."""

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from quoin.runs.export.exportable import Exportable, ExportPart
from quoin.runs.export.trace import quietly, trace

__all__ = ["open_torch", "write_torch"]

SUFFIX = ".pt2"


def write_torch(part: ExportPart, exportable: Exportable, folder: Path) -> list[Path]:
    """Write the graph of a part into `folder`."""
    path = folder / f"{part.name}{SUFFIX}"
    with quietly():
        torch.export.save(trace(part), path)
    return [path]


def open_torch(folder: Path, name: str) -> Callable[..., tuple[Tensor, ...]]:
    """The part `name`, loaded again."""
    with quietly():
        module = torch.export.load(folder / f"{name}{SUFFIX}").module()

    def call(*inputs: Tensor) -> tuple[Tensor, ...]:
        with torch.no_grad(), quietly():
            found = module(*inputs)
        return found if isinstance(found, tuple) else (found,)

    return call
