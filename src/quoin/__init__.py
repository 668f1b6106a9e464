"""Quoin: deep learning, block by block.

`quoin.fit` trains a module of your own, `quoin.resume` goes on with a run, `quoin.open_run` opens one. `import quoin`
costs nothing: each package (`quoin.tensor`, `quoin.layers`, ...) is imported when it is first named.
"""

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quoin.runs.fit_module import fit, open_run, resume

__all__ = ["__version__", "fit", "open_run", "resume"]

__version__ = "0.1.0"

_HERE = Path(__file__).parent


def _packages() -> list[str]:
    """The packages that stand in this folder: a package or a module each."""
    inside = (path.stem for path in _HERE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists())
    return sorted(name for name in inside if not name.startswith("_"))


def __getattr__(name: str) -> Any:
    if name in ("fit", "open_run", "resume"):  # the short way to runs
        return getattr(importlib.import_module("quoin.runs.fit_module"), name)
    if name in _packages():
        return importlib.import_module(f"quoin.{name}")
    raise AttributeError(f"quoin has no package {name!r}; its packages: {', '.join(_packages())}")


def __dir__() -> list[str]:
    return [*__all__, *_packages()]
