"""The generators of Python and NumPy, which transforms of somebody's own may sample from: their states as tensors."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from quoin.data import keyed_generator
from quoin.train.state import generator_states, load_generator_states

__all__ = ["generators_as_they_were", "host_generator_states", "load_host_generator_states", "own_generators"]


def host_generator_states() -> dict[str, Any]:
    """Where Python's and NumPy's own generators stand."""
    version, numbers, normal = random.getstate()
    found: Any = np.random.get_state(legacy=False)
    return {
        "python": {"version": version, "numbers": torch.tensor(numbers), "normal": normal},
        "numpy": {
            "key": torch.from_numpy(found["state"]["key"].astype(np.int64)),
            "position": int(found["state"]["pos"]),
            "has_normal": int(found["has_gauss"]),
            "normal": float(found["gauss"]),
        },
    }


def load_host_generator_states(states: dict[str, Any]) -> None:
    python, numpy = states["python"], states["numpy"]
    random.setstate((python["version"], tuple(python["numbers"].tolist()), python["normal"]))
    np.random.set_state(
        {
            "bit_generator": "MT19937",
            "state": {"key": numpy["key"].numpy().astype(np.uint32), "pos": numpy["position"]},
            "has_gauss": numpy["has_normal"],
            "gauss": numpy["normal"],
        }
    )


@contextmanager
def own_generators(seed: int) -> Iterator[None]:
    """While entered, Python's and NumPy's generators are a function of the seed; afterwards these and torch's are as
    they were."""
    start = keyed_generator("host", seed).initial_seed() % 2**32
    with generators_as_they_were():
        random.seed(start)
        np.random.seed(start)
        yield


@contextmanager
def generators_as_they_were() -> Iterator[None]:
    """Afterwards, the generators of torch, NumPy and Python stand where they stood: who reads a run in a notebook goes
    on with their own random numbers."""
    host, of_torch = host_generator_states(), generator_states()
    try:
        yield
    finally:
        load_host_generator_states(host)
        load_generator_states(of_torch)
