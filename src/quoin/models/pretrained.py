"""Weights that another library trained, brought in by name: strictly, so that what loads is what was trained.

A family's file says under which foreign names each of its tensors is kept, and how it is made of them; here is what all
families share.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import safetensors
import safetensors.torch
import torch
from jaxtyping import Shaped
from torch import Tensor, nn

from quoin.errors import UserError, format_value

__all__ = ["WeightSource", "load_converted", "load_renamed", "read_json", "read_safetensors", "stacked", "transposed"]

Weights = Mapping[str, Shaped[Tensor, "..."]] | str | Path

_PICKLES = b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04"  # as torch.save writes them, and as it did
_MAY_LACK = "num_batches_tracked"  # a count that only a cumulative average reads; files older than it go without


def _as_it_is(tensor: Tensor) -> Tensor:
    return tensor


class WeightSource(NamedTuple):
    """The foreign names that one tensor of ours comes from, and how it is made of what they name."""

    names: tuple[str, ...]
    convert: Callable[..., Tensor] = _as_it_is


def transposed(name: str) -> WeightSource:
    """A matrix that is kept (in_features, out_features) there and (out_features, in_features) here."""
    return WeightSource((name,), lambda matrix: matrix.mT)


def stacked(*names: str) -> WeightSource:
    """Maps kept one by one there and as one here, the rows of the first name on top."""
    return WeightSource(names, lambda *matrices: torch.cat(matrices))


def load_renamed(model: nn.Module, weights: Weights, rename: Callable[[str], str]) -> None:
    """Fill every parameter and buffer of `model` from the foreign tensor called `rename(own name)`.

    `weights` is a foreign `state_dict` or the path of a safetensors file. A tensor that lacks, one that is left over
    and one of another shape raise an error by their foreign names, and then the model is unchanged; dtype and device
    stay the model's.

    >>> model = nn.Linear(2, 1)
    >>> weights = {"fc.weight": torch.ones(1, 2), "fc.bias": torch.zeros(1)}
    >>> load_renamed(model, weights, rename=lambda name: f"fc.{name}")
    >>> load_renamed(model, {"fc.weight": torch.ones(1, 2)}, rename=lambda name: f"fc.{name}")
    Traceback (most recent call last):
    quoin.errors.UserError: expected a tensor 'fc.bias', got weights without it; they are another model's: check family
    and depth
    """
    load_converted(model, weights, lambda name: WeightSource((rename(name),)))


def load_converted(model: nn.Module, weights: Weights, source: Callable[[str], WeightSource]) -> None:
    """`load_renamed` where a tensor is kept in another layout, or in pieces: `source(own name)` says how it is made.

    >>> model = nn.Linear(2, 1, bias=False)
    >>> load_converted(model, {"kernel": torch.tensor([[3.0], [4.0]])}, lambda name: transposed("kernel"))
    >>> model(torch.tensor([1.0, 1.0])).item()
    7.0
    """
    state = weights if isinstance(weights, Mapping) else read_safetensors(weights)
    own = model.state_dict()
    sources = {name: source(name) for name in own}
    foreign = [name for each in sources.values() for name in each.names]
    for theirs in foreign:
        if theirs not in state and not theirs.endswith(_MAY_LACK):
            raise UserError(
                f"expected a tensor {format_value(theirs)}, got weights without it; they are another model's: "
                "check family and depth"
            )
        if theirs in state and not isinstance(state[theirs], Tensor):
            raise UserError(
                f"expected a tensor as {format_value(theirs)}, got {type(state[theirs]).__name__}; give the "
                "state_dict alone"
            )
    if surplus := sorted(state.keys() - set(foreign)):
        raise UserError(
            f"expected no tensor beyond the model's, got {format_value(surplus[0])}; the weights belong to another "
            "model, or remove it"
        )
    found = {
        name: _converted(each, [state[theirs] for theirs in each.names], own[name])
        for name, each in sources.items()
        if all(theirs in state for theirs in each.names)
    }
    model.load_state_dict({**own, **found})


def _converted(source: WeightSource, tensors: list[Tensor], own: Tensor) -> Tensor:
    if own.is_meta and not tensors[0].is_meta:  # torch would load nothing, with a warning
        raise UserError(
            "expected a model with memory, got one on the meta device; give it some with model.to_empty(device='cpu')"
        )
    try:
        made = source.convert(*tensors)
    except (RuntimeError, IndexError):  # pieces that do not fit each other
        made = None
    if made is None or made.shape != own.shape:
        names = " and ".join(map(format_value, source.names))
        got = " and ".join(str(tuple(each.shape)) for each in tensors)
        wanted = (
            f"{names} of shape {tuple(own.shape)}"
            if source.convert is _as_it_is
            else f"{names} to make shape {tuple(own.shape)}"
        )
        raise UserError(
            f"expected {wanted}, got {got}; build the model for these weights: same classes, channels and depth"
        )
    return made


def read_safetensors(path: str | Path) -> dict[str, Shaped[Tensor, "..."]]:
    """The tensors of a safetensors file by name; nothing in such a file is ever executed."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise UserError(f"expected a safetensors file at {path}, got {error.strerror}; check the path") from error
    try:
        return safetensors.torch.load(content)
    except safetensors.SafetensorError as error:
        if content.startswith(_PICKLES):
            convert = "from torch import load; from safetensors.torch import save_file"
            convert += f"; save_file(load({str(path)!r}, weights_only=True), 'weights.safetensors')"
            raise UserError(
                f"expected a safetensors file at {path}, got a pickle, which could run code and is never opened; "
                f'convert it once: python -c "{convert}"'
            ) from error
        raise UserError(
            f"expected a safetensors file at {path}, got one that does not read as such; convert it with "
            "safetensors.torch.save_file"
        ) from error


def read_json(path: str | Path) -> dict[str, Any]:
    """The object that a JSON file describes."""
    try:
        found = json.loads(Path(path).read_bytes())
    except OSError as error:
        raise UserError(f"expected a JSON file at {path}, got {error.strerror}; check the path") from error
    except (ValueError, RecursionError) as error:
        raise UserError(
            f"expected JSON in {path}, got something else ({format_value(str(error))}); restore the file"
        ) from error
    if not isinstance(found, dict):
        raise UserError(f"expected a JSON object in {path}, got {format_value(found)}; restore the file")
    return found
