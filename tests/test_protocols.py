"""Protocols say how something is called: whatever has all of a protocol's methods takes its defaults too."""

import importlib
import inspect
import pkgutil
from typing import Any

import pytest

import quoin


def classes() -> list[type]:
    found = {}
    for module in pkgutil.walk_packages(quoin.__path__, "quoin."):
        if ".bench" in module.name or module.name.endswith("__main__") or ".kernels" in module.name:
            continue
        for each in vars(importlib.import_module(module.name)).values():
            if inspect.isclass(each) and each.__module__ == module.name:
                found[f"{each.__module__}.{each.__qualname__}"] = each
    return list(found.values())


def methods(protocol: type) -> dict[str, Any]:
    functions = {name: each for name, each in vars(protocol).items() if inspect.isfunction(each)}
    return {name: each for name, each in functions.items() if name == "__call__" or not name.startswith("__")}


def defaults(function: Any) -> dict[str, Any]:
    parameters = inspect.signature(function).parameters.values()
    return {each.name: each.default for each in parameters if each.default is not inspect.Parameter.empty}


def has(kind: type, name: str, method: Any) -> bool:
    """A method of this name with parameters of the same names."""
    own, asked = inspect.getattr_static(kind, name, None), inspect.signature(method).parameters
    return inspect.isfunction(own) and set(inspect.signature(own).parameters) >= set(asked)


def kin_of(protocol: type) -> list[type]:
    asked = methods(protocol)
    if not any(map(defaults, asked.values())):
        return []
    return [each for each in CLASSES if each is not protocol and all(has(each, *method) for method in asked.items())]


CLASSES = classes()
PAIRS = [(each, kin) for each in CLASSES if getattr(each, "_is_protocol", False) for kin in kin_of(each)]


def test_protocols_are_found():
    assert len({protocol for protocol, _ in PAIRS}) >= 6
    assert len(PAIRS) >= 20


@pytest.mark.parametrize(("protocol", "kin"), PAIRS, ids=lambda each: each.__name__)
def test_defaults_are_the_protocol_s(protocol, kin):
    for name, method in methods(protocol).items():
        given = defaults(getattr(kin, name))
        assert {parameter: given.get(parameter, default) for parameter, default in defaults(method).items()} == (
            defaults(method)
        ), name
