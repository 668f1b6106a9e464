"""Whatever draws: the same seed gives the same draw, another seed another, and nobody's global generator has moved.

What draws is found in the packages' public names: a function or method that takes `generator`, `seed` or
`random_state`, or is called sample... or draw...; a new one needs a case in chance_cases.py, or a reason there why it
is none.
"""

import importlib
import inspect
import pkgutil
import random
from collections.abc import Iterator
from typing import Any

import numpy
import pytest
import torch

import quoin
from chance_cases import CASES, HEAVY, NO_CHANCE
from observing import digest

CHANCE = {"generator", "seed", "random_state"}
DRAWS = ("sample", "draw")


def _parameters(thing: Any) -> set[str]:
    try:
        return set(inspect.signature(thing).parameters)
    except (TypeError, ValueError):  # what C has made tells nothing
        return set()


def _draws(name: str, thing: Any) -> bool:
    return callable(thing) and bool(_parameters(thing) & CHANCE or name.startswith(DRAWS))


def _is_interface(kind: type) -> bool:
    return inspect.isabstract(kind) or getattr(kind, "_is_protocol", False)


def drawing_names() -> Iterator[str]:
    """Everything public that draws, as package.name or package.Class.method; interfaces have nothing of their own to
    draw."""
    inside = [f"notes.{found.name}" for found in pkgutil.iter_modules(quoin.notes.__path__) if found.ispkg]
    for path in [*(found.name for found in pkgutil.iter_modules(quoin.__path__)), *inside]:
        package = importlib.import_module(f"quoin.{path}")
        for name in getattr(package, "__all__", []):
            thing = getattr(package, name)
            if not inspect.isclass(thing):
                if _draws(name, thing):
                    yield f"{path}.{name}"
            elif not _is_interface(thing):
                if _parameters(thing) & CHANCE:
                    yield f"{path}.{name}"
                for way, method in inspect.getmembers(thing, callable):
                    if not way.startswith("_") and _draws(way, method):
                        yield f"{path}.{name}.{way}"


def test_everything_that_draws_has_a_case_or_a_reason():
    names = set(drawing_names())
    assert len(names) > 200
    assert names == CASES.keys() | NO_CHANCE.keys()
    assert not CASES.keys() & NO_CHANCE.keys()


def _global_states() -> tuple[Any, ...]:
    return digest(torch.get_rng_state()), digest(list(numpy.random.get_state())), random.getstate()


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.deep] if name in HEAVY else []) for name in sorted(CASES)]
)
def test_a_draw_is_a_function_of_its_seed(name):
    before = _global_states()
    one, again, other = (digest(CASES[name](seed)) for seed in (0, 0, 1))
    assert one == again, "the same seed drew something else"
    assert one != other, "another seed drew the same"
    assert _global_states() == before, "a global generator was drawn from"
