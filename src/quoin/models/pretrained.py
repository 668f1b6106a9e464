"""Weights that another library trained, brought in by name: strictly, so that what loads is what was trained. And the
other way: ours under its names.

A family's file says under which foreign names each of its tensors is kept, how it is made of them, and they of it; here
is what all families share.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import safetensors
import safetensors.torch
import torch
from jaxtyping import Shaped
from torch import Tensor, nn

from quoin.display import shown
from quoin.errors import UserError, format_value

__all__ = [
    "WeightSource",
    "check_finite_weights",
    "foreign_weights",
    "load_converted",
    "load_renamed",
    "read_json",
    "read_safetensors",
    "stacked",
    "transposed",
]

Weights = Mapping[str, Shaped[Tensor, "..."]] | str | Path

_PICKLES = b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04"  # as torch.save writes them, and as it did
_MAY_LACK = "num_batches_tracked"  # a count that only a cumulative average reads; files older than it go without


def _as_it_is(tensor: Tensor) -> Tensor:
    return tensor


def _alone(tensor: Tensor) -> tuple[Tensor, ...]:
    return (tensor,)


@shown
class WeightSource(NamedTuple):
    """The foreign names that one tensor of ours comes from, how it is made of what they name, and they of it."""

    names: tuple[str, ...]
    convert: Callable[..., Tensor] = _as_it_is
    invert: Callable[[Tensor], Sequence[Tensor]] = _alone  # one for each name; `convert` of them gives the tensor back


def transposed(name: str) -> WeightSource:
    """A matrix that is kept (in_features, out_features) there and (out_features, in_features) here."""
    return WeightSource((name,), lambda matrix: matrix.mT, lambda matrix: (matrix.mT,))


def stacked(*names: str, rows: Sequence[int] | None = None) -> WeightSource:
    """Maps kept one by one there and as one here, the rows of the first name on top.

    Args:
        rows: Of each map; all have as many unless given.
    """
    return WeightSource(
        names,
        lambda *matrices: torch.cat(matrices),
        lambda matrix: matrix.split(list(rows)) if rows is not None else matrix.chunk(len(names)),
    )


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


def foreign_weights(model: nn.Module, source: Callable[[str], WeightSource]) -> dict[str, Shaped[Tensor, "..."]]:
    """The weights of `model` under the other library's names and in its layout: `load_converted` by the same `source`
    gives them back bit for bit.

    >>> model = nn.Linear(2, 1, bias=False)
    >>> foreign_weights(model, lambda name: transposed("kernel"))["kernel"].shape
    torch.Size([2, 1])
    """
    found = {}
    for name, tensor in model.state_dict().items():
        each = source(name)
        found |= zip(each.names, each.invert(tensor), strict=True)
    return found


def check_finite_weights(weights: Mapping[str, Shaped[Tensor, "..."]]) -> None:
    """Raise an error that names the first tensor with a NaN or an infinity."""
    for name, tensor in weights.items():
        if tensor.is_floating_point() and not torch.isfinite(tensor.float()).all():
            raise UserError(f"expected finite weights, got NaN or infinity in {format_value(name)}; get the file again")


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
    """The tensors of a safetensors file by name, mapped: they come into memory where they are used, and writing into
    one does not change the file. Nothing in such a file is ever executed."""
    try:
        with Path(path).open("rb") as file:  # the reader's own errors do not say what the system said
            beginning = file.read(4)
    except OSError as error:
        raise UserError(f"expected a safetensors file at {path}, got {error.strerror}; check the path") from error
    try:
        return safetensors.torch.load_file(path)
    except (safetensors.SafetensorError, OSError) as error:  # OSError: what cannot be mapped, such as a device
        if beginning.startswith(_PICKLES):
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
