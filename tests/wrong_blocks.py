"""Every block that a claim runs, made wrong: which of them are ours, and ways to be wrong that keep shape and dtype."""

import contextlib
import copy
import functools
import importlib
import math
import pkgutil
import types
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Distribution

from quoin.notes.claims.claim import Claim, Evidence

OURS = "quoin."
CLAIMS = "quoin.notes"
NO_BLOCKS = ("quoin.display", "quoin.errors", "quoin.options")
NOT_MEASURED = ("__init__", "__repr__", "__str__", "__post_init__", "__init_subclass__", "__class_getitem__")

Wrong = Callable[[Any], Any]


def slightly(x: Tensor) -> Tensor:
    """Off by percents, each number by others."""
    ramp = torch.linspace(0.5, 1.5, x.numel(), dtype=x.dtype, device=x.device).reshape(x.shape)
    return x * (1 + 0.02 * ramp) + 0.01 * ramp


def clearly(x: Tensor) -> Tensor:
    return -2 * x - 1


def reversed_order(x: Tensor) -> Tensor:
    return x.flatten().flip(0).reshape(x.shape)


def nothing(x: Tensor) -> Tensor:
    return x * 0


def by_chance(x: Tensor) -> Tensor:
    """Off by percents, by others at every call: no law of the form f(x) = f(y) outlives it."""
    noise = torch.rand(x.shape, generator=_CHANCE, dtype=torch.float64).to(x)
    return x * (1 + 0.2 * (noise - 0.5)) + 0.05 * (noise - 0.5)


def costs_twice(x: Tensor) -> Tensor:
    """Right, but computed twice: for claims that count operations (see `wrapped`)."""
    return x


def not_a_number(x: Tensor) -> Tensor:
    return x * math.nan


_CHANCE = torch.Generator().manual_seed(0)
WAYS: tuple[Callable[[Tensor], Tensor], ...] = (slightly, clearly, reversed_order, nothing, by_chance, costs_twice)


def changed(value: Any, way: Callable[[Tensor], Tensor]) -> Any:
    """The value with every number in it changed in that way; what holds no number stays."""
    if isinstance(value, Tensor):
        if value.is_floating_point() or value.is_complex():
            return way(value) if value.is_floating_point() else value
        return ~value if value.dtype == torch.bool else value.flatten().flip(0).reshape(value.shape)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return float(way(torch.tensor(value, dtype=torch.float64)))
    if isinstance(value, str):
        return value + "0" if value and not set(value) - {"0", "1"} else value  # a codeword; other words are names
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(changed(each, way) for each in value))
    if isinstance(value, (tuple, list)):
        kept = value[:-1] if way is nothing and len(value) > 1 and isinstance(value, list) else value
        return type(value)(changed(each, way) for each in kept)
    if isinstance(value, Distribution):
        made = copy.copy(value)
        made.log_prob = wrapped(value.log_prob, way)  # pyright: ignore[reportAttributeAccessIssue]
        return made
    if isinstance(value, types.FunctionType):  # what is made of a function is wrong where it is called
        return wrapped(value, way)
    if isinstance(value, nn.Module):
        value.forward = wrapped(value.forward, way)
    elif is_dataclass(value) and not isinstance(value, type):
        numbers = {each.name: getattr(value, each.name) for each in fields(value) if each.init}
        made = copy.copy(value)
        for name, number in numbers.items():
            if not isinstance(number, int):  # sizes stay what they are
                object.__setattr__(made, name, changed(number, way))
        return made
    return value


def twice(function: Callable) -> Callable:
    """The same answer, at twice the cost."""

    def wrong(*arguments: Any, **named: Any) -> Any:
        function(*arguments, **named)
        return function(*arguments, **named)

    return wrong


def wrapped(function: Callable, way: Callable[[Tensor], Tensor]) -> Callable:
    if way is costs_twice:
        return twice(function)

    def wrong(*arguments: Any, **named: Any) -> Any:
        return changed(function(*arguments, **named), way)

    return wrong


def globals_used(function: Any) -> Iterator[tuple[dict[str, Any], str, Any]]:
    """Where a function finds what it speaks of: the namespace, the name and the value, of nested functions too."""
    codes, names = [function.__code__], set()
    while codes:
        code = codes.pop()
        names |= set(code.co_names)
        codes += [each for each in code.co_consts if isinstance(each, types.CodeType)]
    for name in sorted(names):
        if name in function.__globals__:
            value = function.__globals__[name]
            yield function.__globals__, name, value
            if isinstance(value, types.ModuleType) and value.__name__.startswith(OURS):
                yield from (
                    (value.__dict__, each, getattr(value, each)) for each in sorted(names) if hasattr(value, each)
                )


def functions_of(value: Any) -> list[Any]:
    """The Python functions behind a value: itself, the methods of a class, what a partial or a claim holds."""
    if isinstance(value, types.FunctionType):
        return [value, *functions_of(getattr(value, "__wrapped__", None))]
    if isinstance(value, Claim):
        return [each for part in (value.function, value.right, value.printed) for each in functions_of(part)]
    if isinstance(value, type):
        return [each for each in vars(value).values() if isinstance(each, types.FunctionType)]
    if isinstance(value, (tuple, list)):
        return [each for part in value for each in functions_of(part)]
    if isinstance(value, dict):
        return [each for part in value.values() for each in functions_of(part)]
    inner = getattr(value, "func", None) or getattr(value, "__wrapped__", None)
    return functions_of(inner) if inner is not None else []


def parts_of(value: Any) -> Iterator[Any]:
    """A value, or what the containers in it hold."""
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, (tuple, list)):
        for each in value:
            yield from parts_of(each)
    else:
        yield value


def swapped(value: Any, block: Any, mutant: Any) -> Any:
    """The value with the mutant where the block was, in containers too."""
    if value is block:
        return mutant
    if isinstance(value, dict):
        return {key: swapped(each, block, mutant) for key, each in value.items()}
    if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
        return type(value)(swapped(each, block, mutant) for each in value)
    return value


def is_ours(value: Any) -> bool:
    """A block of the packages, and not a part of the claims themselves."""
    module = getattr(value, "__module__", None) or ""
    is_block = isinstance(value, (types.FunctionType, type))
    return is_block and module.startswith(OURS) and not module.startswith(CLAIMS)


def blocks_of(claim: Claim) -> dict[Any, list[tuple[dict[str, Any], str]]]:
    """The blocks that a claim's functions speak of, and every place where they find them."""
    found: dict[Any, list[tuple[dict[str, Any], str]]] = {}
    seen: set[int] = set()
    waiting = functions_of(claim)
    for form in (claim.right, claim.printed):
        if is_ours(form):
            found.setdefault(form, [])
    while waiting:
        function = waiting.pop()
        if id(function) in seen:
            continue
        seen.add(id(function))
        for namespace, name, value in globals_used(function):
            for block in parts_of(value):
                if is_ours(block):
                    found.setdefault(block, []).append((namespace, name))
            if not is_ours(value) and not isinstance(value, types.ModuleType):
                waiting += [each for each in functions_of(value) if each.__module__.startswith(CLAIMS)]
    return {block: places for block, places in found.items() if not block.__module__.startswith(NO_BLOCKS)}


def claim_modules() -> list[types.ModuleType]:
    """Every file of claims."""
    package = importlib.import_module("quoin.notes.claims")
    return [
        importlib.import_module(f"{package.__name__}.{each.name}") for each in pkgutil.iter_modules(package.__path__)
    ]


def blinded(claim: Claim) -> Claim:
    """The claim with 0 for whatever it measured."""

    @functools.wraps(claim.function)
    def blind(generator: torch.Generator) -> Evidence:
        return replace(claim.function(generator), value=0.0)

    return replace(claim, function=blind)


def wrong_forms(
    claim: Claim, block: Any, places: list[tuple[dict[str, Any], str]], way: Callable[[Tensor], Tensor]
) -> Iterator[tuple[str, contextlib.AbstractContextManager[Claim]]]:
    """The claim with that block wrong: a function as a whole, a class one method at a time."""
    if isinstance(block, types.FunctionType):
        yield block.__name__, _with_function(claim, block, places, way)
    elif isinstance(block, type):
        for name in _methods(block):
            yield f"{block.__name__}.{name}", _with_method(claim, block, name, way)


def _methods(owner: type) -> list[str]:
    found = []
    for each in owner.__mro__:
        if not (each.__module__ or "").startswith(OURS):
            continue
        for name, value in vars(each).items():
            if name in NOT_MEASURED or (name.startswith("__") and name != "__call__"):
                continue
            if isinstance(value, (types.FunctionType, property, staticmethod, classmethod)) and name not in found:
                found.append(name)
    if issubclass(owner, nn.Module) and "forward" not in found:
        found.append("forward")  # of torch's own class, nn.Sequential for instance
    taken = set(getattr(owner, "_fields", ()))
    return [name for name in found if name not in taken]


@contextlib.contextmanager
def _with_function(claim: Claim, block: Any, places: list, way: Callable[[Tensor], Tensor]) -> Iterator[Claim]:
    mutant = wrapped(block, way)
    was = [(namespace, name, namespace[name]) for namespace, name in places if name in namespace]
    for namespace, name, _ in was:
        namespace[name] = swapped(namespace[name], block, mutant)
    forms = {name: mutant if getattr(claim, name) is block else getattr(claim, name) for name in ("right", "printed")}
    try:
        yield replace(claim, **forms)
    finally:
        for namespace, name, value in was:
            namespace[name] = value


@contextlib.contextmanager
def _with_method(claim: Claim, owner: type, name: str, way: Callable[[Tensor], Tensor]) -> Iterator[Claim]:
    holder = next(each for each in owner.__mro__ if name in vars(each))
    value = vars(holder)[name]
    if isinstance(value, property):
        mutant: Any = property(wrapped(value.fget, way))  # pyright: ignore[reportArgumentType]
    elif isinstance(value, (staticmethod, classmethod)):
        mutant = type(value)(wrapped(value.__func__, way))
    else:
        mutant = wrapped(value, way)
    is_own = name in vars(owner)
    setattr(owner, name, mutant)
    try:
        yield claim
    finally:
        if is_own:
            setattr(owner, name, value)
        else:
            delattr(owner, name)
