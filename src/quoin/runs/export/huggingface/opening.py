"""The other library, asked for only to compare: quiet, offline, and not needed."""

import contextlib
import importlib
import importlib.util
import logging
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["is_there", "not_compared", "own_code_aside", "quiet"]


def is_there(library: str) -> bool:
    """Whether the library can be imported."""
    return importlib.util.find_spec(library) is not None


def not_compared(library: str) -> str:
    """What to tell where it cannot."""
    return (
        f"written and not compared: {library} is not installed; to compare, pip install {library}, then export again "
        "with --force"
    )


@contextmanager
def quiet() -> Iterator[None]:
    """Inside, libraries of Hugging Face ask no network and print nothing: no bars, no advice."""
    names = ("HF_HUB_OFFLINE", "TRANSFORMERS_VERBOSITY", "DIFFUSERS_VERBOSITY", "HF_HUB_DISABLE_PROGRESS_BARS")
    before = {name: os.environ.get(name) for name in names}
    os.environ |= dict(zip(names, ("1", "error", "error", "1"), strict=True))
    loggers = [logging.getLogger(name) for name in ("transformers", "diffusers")]
    levels = [each.level for each in loggers]
    try:
        with warnings.catch_warnings(), open(os.devnull, "w") as nowhere, contextlib.redirect_stderr(nowhere):
            warnings.simplefilter("ignore")
            for each in loggers:
                each.setLevel(logging.ERROR)
            yield
    finally:
        for each, level in zip(loggers, levels, strict=True):
            each.setLevel(level)
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def own_code_aside() -> Iterator[None]:
    """Inside, transformers copies the code that it is let run to a folder that is gone afterwards, and not into the
    user's cache."""
    used: Any = importlib.import_module("transformers.dynamic_module_utils")
    before, path, known = used.HF_MODULES_CACHE, list(sys.path), set(sys.modules)
    with tempfile.TemporaryDirectory() as aside:
        used.HF_MODULES_CACHE = aside
        try:
            yield
        finally:
            used.HF_MODULES_CACHE, sys.path[:] = before, path
            for name in set(sys.modules) - known:
                if name.startswith(_COPIES):
                    del sys.modules[name]


_COPIES = "transformers_modules"  # what transformers calls the package of the code that it copied
