"""Lazy imports of the public names of packages: a run loads only what it uses.

A package lists its exports where type checkers and documentation tools look for them, under `if TYPE_CHECKING`, and
calls `export_lazily(__name__)`.
"""

import ast
import importlib
import inspect
import sys
from types import ModuleType
from typing import Any

__all__ = ["export_lazily"]


def export_lazily(package: str) -> None:
    """Let the package import each name of its `if TYPE_CHECKING` block on first use."""
    module = sys.modules[package]
    module.__dict__["_origins"] = _exports(inspect.getsource(module))
    module.__class__ = _LazyPackage


class _LazyPackage(ModuleType):
    _origins: dict[str, str]  # name -> the module that has it

    def __getattr__(self, name: str) -> Any:
        if name not in self._origins:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name, obj=self)
        found = getattr(importlib.import_module(self._origins[name]), name)
        setattr(self, name, found)
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        # Importing a submodule binds it to its package. Where an export has the same name, the name stays the export's.
        if not (isinstance(value, ModuleType) and name in self._origins):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._origins})


def _exports(source: str) -> dict[str, str]:
    blocks = [
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    imports = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)]
    return {each.asname or each.name: node.module or "" for node in imports for each in node.names}
