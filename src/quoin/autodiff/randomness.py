"""The states of torch's default generators, for a call that samples from them and takes no generator, as dropout
does."""

import torch
from jaxtyping import UInt8
from torch import Tensor

__all__ = ["States", "changed_rng_states", "rng_states", "set_rng_states"]

States = tuple[tuple[str, UInt8[Tensor, "_bytes"]], ...]


def rng_states() -> States:
    """device -> state, of the CPU and of every accelerator in use."""
    states = [("cpu", torch.default_generator.get_state())]
    if torch.cuda.is_initialized():
        states += [(f"cuda:{number}", torch.cuda.get_rng_state(number)) for number in range(torch.cuda.device_count())]
    return tuple(states)


def changed_rng_states(before: States, after: States) -> States:
    """Those of `before` that `after` no longer has."""
    now = {device: state.numpy().tobytes() for device, state in after}
    return tuple((device, state) for device, state in before if state.numpy().tobytes() != now[device])


def set_rng_states(states: States) -> None:
    for device, state in states:
        if device == "cpu":
            torch.default_generator.set_state(state)
        else:
            torch.cuda.set_rng_state(state, device)
