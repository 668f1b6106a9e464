"""Is everything here that Quoin needs? Each finding says what to do if not."""

import importlib.metadata
import platform
import shutil
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from quoin.processor import num_cores, processor_name

__all__ = ["Finding", "examine"]


class Finding(NamedTuple):
    """One thing looked at."""

    what: str
    found: str
    ok: bool
    needed: bool = True
    help: str = ""

    def __bool__(self) -> bool:
        return self.ok


def examine() -> list[Finding]:
    """Look at everything, from Python to the disk."""
    ok = sys.version_info >= (3, 11)
    found = [Finding("Python", platform.python_version(), ok, help="Quoin needs Python 3.11 or newer")]
    for name in (
        "torch",
        "numpy",
        "safetensors",
        "scikit-learn",
        "networkx",
        "rich",
        "matplotlib",
        "jaxtyping",
        "pillow",
        "polars",
        "platformdirs",
    ):
        found.append(_package(name, needed=True, help=f"pip install -c constraints.txt {name}"))
    for name, extra, use in (
        ("pooch", "fetch", "quoin fetch"),
        ("optuna", "sweep", "quoin sweep"),
        ("tensorboard", "log", "quoin train --log tensorboard"),
        ("keras", "bench", "quoin bench"),
        ("jax", "bench", "quoin bench"),
    ):
        found.append(_package(name, needed=False, help=f"only for `{use}`: pip install 'quoin[{extra}]'"))
    return [*found, *_torch(), _disk(), _data()]


def _package(name: str, *, needed: bool, help: str) -> Finding:
    try:
        return Finding(name, importlib.metadata.version(name), True, needed)
    except importlib.metadata.PackageNotFoundError:
        return Finding(name, "not installed", False, needed, help)


def _torch() -> list[Finding]:
    try:
        import torch

        from quoin.train.device_context import compiler, setup_device
    except ImportError as error:
        return [Finding("device", str(error), False, help="install what is missing above, then look again")]
    device_context, _ = setup_device()
    name = compiler()
    return [
        Finding("device", str(device_context.device), True),
        Finding("processor", processor_name(), True),
        Finding("threads", f"{torch.get_num_threads()} of {num_cores()} cores", True),
        Finding("C++ compiler", name or "none", name is not None, False, "only for --compile; runs go on without"),
    ]


def _disk() -> Finding:
    try:
        with tempfile.TemporaryDirectory(dir=Path.cwd()):
            free = shutil.disk_usage(Path.cwd()).free / 1e9
    except OSError as error:
        return Finding(
            "this folder",
            str(error.strerror),
            False,
            help="cannot be written: run Quoin elsewhere or use --runs FOLDER",
        )
    return Finding("this folder", f"writable, {free:.0f} GB free", free > 0.1, help="the disk is nearly full")


def _data() -> Finding:
    from quoin.data import load

    try:
        dataset = load("digits")
    except ImportError as error:
        return Finding("embedded data", str(error), False, help="install what is missing above, then look again")
    return Finding(
        "embedded data", f"digits: {dataset.num_rows} rows", dataset.num_rows == 1797, help="reinstall scikit-learn"
    )
