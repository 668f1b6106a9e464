"""The safetensors form: the weights of a run's best model by name, and in quoin.json what builds a model for them."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from quoin.models.pretrained import read_safetensors
from quoin.runs.export.written import Difference
from quoin.runs.run import Run
from quoin.train.weights import save_weights

__all__ = ["compare_safetensors", "saved_beside", "write_safetensors"]

NAME = "model.safetensors"


def write_safetensors(run: Run, folder: Path) -> list[Path]:
    """Write the weights into `folder`, a tied one once."""
    return [save_weights(run.model, folder / NAME)]


def saved_beside(run: Run) -> dict[str, Any]:
    """What a checkpoint keeps with the weights: scales, a threshold, which initialisation was the best."""
    return {name: _plain(value) for name, value in run.trained.saved.items() if name != "weights"}


def _plain(value: Any) -> Any:
    if isinstance(value, Tensor):  # float64 and float32 go through JSON unchanged
        return {"dtype": str(value.dtype).removeprefix("torch."), "shape": list(value.shape), "values": value.tolist()}
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, (list, tuple)) else value


def compare_safetensors(run: Run, folder: Path) -> Difference:
    """Whether the file, read again, has every weight of the run's checkpoint, bit for bit: 0 if so, infinite if not."""
    found = read_safetensors(folder / NAME)
    weights: dict[str, Tensor] = run.model.state_dict()
    ours = {each.data_ptr(): name for name, each in reversed(weights.items())}  # of tied ones the first
    lacking = [name for name in weights if name not in found and ours[weights[name].data_ptr()] not in found]
    equal = all(name in weights and _same_bits(each, weights[name]) for name, each in found.items())
    value = 0.0 if equal and not lacking else float("inf")
    return Difference(f"{len(found)} tensors, bit for bit", value, 0.0)


def _same_bits(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    as_bytes = (each.detach().cpu().contiguous().reshape(-1).view(torch.uint8) for each in (one, other))
    return torch.equal(*as_bytes)
