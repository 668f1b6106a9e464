"""The row `start`: how long a fresh Python takes for nothing, for `import quoin`, and for two commands that need no torch."""

import subprocess
import sys

from quoin.bench.worker import Laps

__all__ = ["floor", "helping", "importing", "listing"]


def floor(laps: Laps) -> dict[str, float]:
    return _run(laps, "-c", "pass")


def importing(laps: Laps) -> dict[str, float]:
    return _run(laps, "-c", "import quoin")


def helping(laps: Laps) -> dict[str, float]:
    return _run(laps, "-m", "quoin.cli", "--help")


def listing(laps: Laps) -> dict[str, float]:
    return _run(laps, "-m", "quoin.cli", "list")


def _run(laps: Laps, *arguments: str) -> dict[str, float]:
    for _ in range(laps.count):
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
        laps.end()
    return {}
