"""A pytest plugin: the shapes and dtypes of tensors in the signatures of `quoin` are checked at every call.

    python -m pytest -p shape_checks tests/test_contract_losses.py src/quoin/losses       (`make shapes` runs all)

jaxtyping's import hook puts a check around every function of the package, so that one name in a signature is one size:
`Float[Tensor, "n d"]` and `Float[Tensor, "n"]` must agree on n. Tests of our own errors are left out, for the hook
would raise before they do, and so are tests of compilation, which cannot trace through it.
"""

import dataclasses
import functools
import inspect
import re
import sys
import typing
from collections.abc import Callable

import pytest
from beartype import BeartypeConf, beartype
from jaxtyping import AbstractArray, install_import_hook, jaxtyped

__all__ = ["check"]

LEFT_OUT = re.compile(r"pytest\.(raises|warns)|UserError|are_told|\brefus|compile|fullgraph|subprocess|\bexport\(")

_checked = beartype(conf=BeartypeConf(is_pep484_tower=True))  # an int may stand for a float


def check(function: Callable) -> Callable:
    """beartype, for the annotations that name a shape. The others are pyright's: at run time a Protocol with attributes
    or a `Self` cannot be checked at all."""
    hints = function.__annotations__
    function.__annotations__ = {name: hint for name, hint in hints.items() if _has_shape(hint)}
    return _checked(function)


def _has_shape(hint: object) -> bool:
    if inspect.isclass(hint) and not typing.get_args(hint):
        return issubclass(hint, AbstractArray)
    return any(map(_has_shape, typing.get_args(hint)))


_seen: set[str] = set()


def pytest_configure() -> None:
    """Only as a plugin: doctests are looked for in this file too, and importing it must not change other tests."""
    install_import_hook("quoin", "shape_checks.check")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what the hook would change."""
    out = [item for item in items if isinstance(item, pytest.Function) and LEFT_OUT.search(_source(item.function))]
    config.hook.pytest_deselected(items=out)
    left_out = set(out)
    items[:] = [item for item in items if item not in left_out]


def pytest_runtest_setup() -> None:
    """The hook does not look into named tuples: check the fields of those that were imported meanwhile."""
    for name in [name for name in sys.modules if name.startswith("quoin") and name not in _seen]:
        _seen.add(name)
        for value in list(vars(sys.modules[name]).values()):
            if inspect.isclass(value) and issubclass(value, tuple) and value.__module__ == name:
                _check_fields(value)


@functools.cache
def _source(function: object) -> str:
    return inspect.getsource(inspect.unwrap(function))  # type: ignore[arg-type]


def _check_fields(cls: type) -> None:
    """Each field of a named tuple has the type it declares, and one name is one size over all of them."""
    hints = getattr(cls, "__annotations__", {})
    fields = {name: typing.Any if isinstance(hints[name], str) else hints[name] for name in getattr(cls, "_fields", ())}
    if not any(map(_has_shape, fields.values())):
        return
    # The hook does look into dataclasses, so one with the same fields is made of every tuple.
    checked = jaxtyped(dataclasses.make_dataclass(cls.__qualname__, fields.items()), typechecker=check)
    plain = cls.__new__

    def new(cls_: type, *args: object, **kwargs: object) -> object:
        made = plain(cls_, *args, **kwargs)
        checked(*made)
        return made

    cls.__new__ = new  # type: ignore[method-assign]
