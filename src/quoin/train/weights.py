"""A model's weights alone: into it by name, and in one safetensors file to keep, to send, to open again in any model of
the same shapes.

A run's checkpoints, which hold everything that training needs, are in checkpoint.py.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import safetensors.torch
import torch
from jaxtyping import Shaped
from torch import Tensor, nn

from quoin.errors import UserError
from quoin.train import durable
from quoin.train.state import storage_id
from quoin.train.tensor_file import tensor_pieces

__all__ = [
    "ResizableModel",
    "load_state_dict_strict",
    "load_weights",
    "own_optimizer_state",
    "save_weights",
    "shard_like",
]


@runtime_checkable
class ResizableModel(Protocol):
    """A model whose tables are as long as its data asked for, which its options do not say."""

    def resize_buffers(self, shapes: Mapping[str, torch.Size]) -> None:
        """Take on these shapes where they may change."""
        ...


def save_weights(model: nn.Module, path: str | Path) -> Path:
    """Write the parameters and buffers of `model` to `path`, a tied one once.

    Notes: Z6.
    """
    state = model.state_dict()
    firsts = dict.fromkeys(_first_names(state).values())
    durable.replace_file(Path(path), tensor_pieces({name: state[name] for name in firsts}))
    return Path(path)


def load_weights(model: nn.Module, path: str | Path) -> None:
    """Read what `save_weights` wrote into `model`, on whatever device it is; a name or shape that does not fit is an
    error.

    Notes: Z6.
    """
    first = _first_names(model.state_dict())
    try:
        Path(path).open("rb").close()  # the reader's own errors do not say what the system said
        found = safetensors.torch.load_file(path)  # mapped, not read
    except OSError as error:
        raise UserError(f"expected a file of weights at {path}, got {error.strerror}; check the path") from error
    except safetensors.SafetensorError as error:
        raise UserError(
            f"expected a safetensors file at {path}, got one that does not read as such; save the weights again"
        ) from error
    tied = {name: found[origin] for name, origin in first.items() if name not in found and origin in found}
    load_state_dict_strict(model, {**found, **tied})


def load_state_dict_strict(model: nn.Module, weights: dict[str, Shaped[Tensor, "..."]]) -> None:
    """Load weights by name; a name or shape that does not fit is an error in one line."""
    if isinstance(model, ResizableModel):
        model.resize_buffers({name: tensor.shape for name, tensor in weights.items()})
    expected = model.state_dict()
    if missing := sorted(expected.keys() - weights.keys()):
        raise UserError(
            f"the checkpoint lacks the model's {missing[0]!r}: it was written by another model or other options"
        )
    if extra := sorted(weights.keys() - expected.keys()):
        raise UserError(
            f"the checkpoint has a tensor {extra[0]!r} that the model lacks: it was written by another model or "
            "other options"
        )
    for name, tensor in expected.items():
        if tensor.shape != weights[name].shape:
            raise UserError(
                f"{name!r} has shape {tuple(weights[name].shape)} in the checkpoint, {tuple(tensor.shape)} in the "
                "model: "
                "the options are not those of the run"
            )
    model.load_state_dict({name: shard_like(expected[name], each) for name, each in weights.items()})


def shard_like(parameter: Shaped[Tensor, "*shape"], value: Shaped[Tensor, "*shape"]) -> Shaped[Tensor, "*shape"]:
    """This process's fraction of `value`, where it keeps but a fraction of `parameter` (FSDP2); else `value` itself."""
    if not hasattr(parameter, "placements") or hasattr(value, "placements") or value.shape != parameter.shape:
        return value
    from torch.distributed.tensor import distribute_tensor

    where: Any = parameter
    whole = value.to(where.device)
    return distribute_tensor(whole, where.device_mesh, where.placements, src_data_rank=None)


def own_optimizer_state(optimizer: torch.optim.Optimizer) -> None:
    """Copy what an optimizer was given to keep of each weight into memory of its own, with the weight's strides: torch
    keeps the very tensors of a checkpoint, which lie in its file, and in another order steps round otherwise."""
    for parameter, kept in optimizer.state.items():
        for name, value in kept.items():
            if not isinstance(value, Tensor):
                continue
            value = shard_like(parameter, value)
            if value.shape == parameter.shape and value.device == parameter.device:
                kept[name] = torch.empty_like(parameter, dtype=value.dtype, requires_grad=False).copy_(value)
            else:
                kept[name] = value.clone()


def _first_names(state: dict[str, Tensor]) -> dict[str, str]:
    """For each name the first one under which the same tensor stands."""
    if any(isinstance(tensor, nn.UninitializedParameter) for tensor in state.values()):
        raise UserError("expected weights of known shapes, got lazy ones; send one batch through the model first")
    seen: dict[tuple, str] = {}
    names = {}
    for name, tensor in state.items():
        names[name] = seen.setdefault(storage_id(tensor), name) if tensor.numel() else name
    return names
