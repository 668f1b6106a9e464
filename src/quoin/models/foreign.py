"""Weights that another library trained, brought in by name: strictly, so that what loads is what was trained.

A family's file says under which foreign name each of its tensors is kept; here is what all families share.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import safetensors
import safetensors.torch
from torch import Tensor, nn

from quoin.errors import Mistake, shown

__all__ = ["load_foreign", "read_safetensors"]

Weights = Mapping[str, Tensor] | str | Path

_MAY_LACK = "num_batches_tracked"  # a count that only a cumulative average reads; files older than it go without


def load_foreign(model: nn.Module, weights: Weights, rename: Callable[[str], str]) -> None:
    """Fill every parameter and buffer of `model` from the foreign tensor called `rename(own name)`.

    `weights` is a foreign `state_dict` or the path of a safetensors file. A tensor that lacks, one that is left over and one of
    another shape are refused by their foreign names, and then the model is unchanged; dtype and device stay the model's.

    >>> import torch
    >>> model = nn.Linear(2, 1)
    >>> load_foreign(model, {"fc.weight": torch.ones(1, 2), "fc.bias": torch.zeros(1)}, rename=lambda name: f"fc.{name}")
    >>> load_foreign(model, {"fc.weight": torch.ones(1, 2)}, rename=lambda name: f"fc.{name}")
    Traceback (most recent call last):
    quoin.errors.Mistake: expected a tensor 'fc.bias', came weights without it; they are another model's: check family and depth
    """
    state = weights if isinstance(weights, Mapping) else read_safetensors(weights)
    own = model.state_dict()
    foreign = {name: rename(name) for name in own}
    for theirs in foreign.values():
        if theirs not in state and not theirs.endswith(_MAY_LACK):
            raise Mistake(f"expected a tensor {shown(theirs)}, came weights without it; they are another model's: check family and depth")
    if surplus := sorted(state.keys() - foreign.values()):
        raise Mistake(f"expected no tensor beyond the model's, came {shown(surplus[0])}; the weights belong to another model, or remove it")
    found = {name: state[theirs] for name, theirs in foreign.items() if theirs in state}
    for name, tensor in found.items():
        if not isinstance(tensor, Tensor):
            raise Mistake(f"expected a tensor as {shown(foreign[name])}, came {type(tensor).__name__}; give the state_dict alone")
        if tensor.shape != own[name].shape:
            raise Mistake(
                f"expected {shown(foreign[name])} of shape {tuple(own[name].shape)}, came {tuple(tensor.shape)}; "
                "build the model for these weights: same classes, channels and depth"
            )
        if own[name].is_meta and not tensor.is_meta:  # torch would load nothing, with a warning
            raise Mistake("expected a model with memory, came one on the meta device; give it some with model.to_empty(device='cpu')")
    model.load_state_dict({**own, **found})


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
