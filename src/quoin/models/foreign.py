"""Weights that another library trained, brought in by name: strictly, so that what loads is what was trained.

A family's file says under which foreign names each of its tensors is kept, and how it is made of them; here is what all families share.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from quoin.errors import Mistake, shown

__all__ = ["Origin", "load_converted", "load_foreign", "read_json", "read_safetensors", "stacked", "transposed"]

Weights = Mapping[str, Tensor] | str | Path

_MAY_LACK = "num_batches_tracked"  # a count that only a cumulative average reads; files older than it go without


def _as_it_is(tensor: Tensor) -> Tensor:
    return tensor


class Origin(NamedTuple):
    """The foreign names that one tensor of ours comes from, and how it is made of what they name."""

    names: tuple[str, ...]
    convert: Callable[..., Tensor] = _as_it_is


def transposed(name: str) -> Origin:
    """A matrix that is kept (inputs, outputs) there and (outputs, inputs) here."""
    return Origin((name,), lambda matrix: matrix.mT)


def stacked(*names: str) -> Origin:
    """Maps kept one by one there and as one here, the rows of the first name on top."""
    return Origin(names, lambda *matrices: torch.cat(matrices))


def load_foreign(model: nn.Module, weights: Weights, rename: Callable[[str], str]) -> None:
    """Fill every parameter and buffer of `model` from the foreign tensor called `rename(own name)`.

    `weights` is a foreign `state_dict` or the path of a safetensors file. A tensor that lacks, one that is left over and one of
    another shape are refused by their foreign names, and then the model is unchanged; dtype and device stay the model's.

    >>> model = nn.Linear(2, 1)
    >>> load_foreign(model, {"fc.weight": torch.ones(1, 2), "fc.bias": torch.zeros(1)}, rename=lambda name: f"fc.{name}")
    >>> load_foreign(model, {"fc.weight": torch.ones(1, 2)}, rename=lambda name: f"fc.{name}")
    Traceback (most recent call last):
    quoin.errors.Mistake: expected a tensor 'fc.bias', came weights without it; they are another model's: check family and depth
    """
    load_converted(model, weights, lambda name: Origin((rename(name),)))


def load_converted(model: nn.Module, weights: Weights, origin: Callable[[str], Origin]) -> None:
    """`load_foreign` where a tensor is kept in another layout, or in pieces: `origin(own name)` says how it is made.

    >>> model = nn.Linear(2, 1, bias=False)
    >>> load_converted(model, {"kernel": torch.tensor([[3.0], [4.0]])}, lambda name: transposed("kernel"))
    >>> model(torch.tensor([1.0, 1.0])).item()
    7.0
    """
    state = weights if isinstance(weights, Mapping) else read_safetensors(weights)
    own = model.state_dict()
    origins = {name: origin(name) for name in own}
    foreign = [name for each in origins.values() for name in each.names]
    for theirs in foreign:
        if theirs not in state and not theirs.endswith(_MAY_LACK):
            raise Mistake(f"expected a tensor {shown(theirs)}, came weights without it; they are another model's: check family and depth")
        if theirs in state and not isinstance(state[theirs], Tensor):
            raise Mistake(f"expected a tensor as {shown(theirs)}, came {type(state[theirs]).__name__}; give the state_dict alone")
    if surplus := sorted(state.keys() - set(foreign)):
        raise Mistake(f"expected no tensor beyond the model's, came {shown(surplus[0])}; the weights belong to another model, or remove it")
    found = {
        name: _converted(each, [state[theirs] for theirs in each.names], own[name])
        for name, each in origins.items()
        if all(theirs in state for theirs in each.names)
    }
    model.load_state_dict({**own, **found})


def _converted(origin: Origin, tensors: list[Tensor], own: Tensor) -> Tensor:
    if own.is_meta and not tensors[0].is_meta:  # torch would load nothing, with a warning
        raise Mistake("expected a model with memory, came one on the meta device; give it some with model.to_empty(device='cpu')")
    try:
        made = origin.convert(*tensors)
    except (RuntimeError, IndexError):  # pieces that do not fit each other
        made = None
    if made is None or made.shape != own.shape:
        names = " and ".join(map(shown, origin.names))
        came = " and ".join(str(tuple(each.shape)) for each in tensors)
        wanted = f"{names} of shape {tuple(own.shape)}" if origin.convert is _as_it_is else f"{names} to make shape {tuple(own.shape)}"
        raise Mistake(f"expected {wanted}, came {came}; build the model for these weights: same classes, channels and depth")
    return made


def read_safetensors(path: str | Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file by name; nothing in such a file is ever executed."""
    try:
        return safetensors.torch.load(Path(path).read_bytes())
    except OSError as error:
        raise Mistake(f"expected a safetensors file at {path}, came {error.strerror}; check the path") from error
    except safetensors.SafetensorError as error:
        raise Mistake(
            f"expected a safetensors file at {path}, came one that does not read as such; convert it with safetensors.torch.save_file"
        ) from error


def read_json(path: str | Path) -> dict[str, Any]:
    """The object that a JSON file describes."""
    try:
        found = json.loads(Path(path).read_bytes())
    except OSError as error:
        raise Mistake(f"expected a JSON file at {path}, came {error.strerror}; check the path") from error
    except (ValueError, RecursionError) as error:
        raise Mistake(f"expected JSON in {path}, came something else ({shown(str(error))}); restore the file") from error
    if not isinstance(found, dict):
        raise Mistake(f"expected a JSON object in {path}, came {shown(found)}; restore the file")
    return found
