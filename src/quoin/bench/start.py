"""The benchmark `start`: how long a fresh Python takes for nothing, for `import quoin`, and for two commands that need
no torch.
"""

import subprocess
import sys

from quoin.bench.worker import Repeats

__all__ = ["floor", "helping", "importing", "listing"]


def floor(repeats: Repeats) -> dict[str, float]:
    return _run(repeats, "-c", "pass")


def importing(repeats: Repeats) -> dict[str, float]:
    return _run(repeats, "-c", "import quoin")


def helping(repeats: Repeats) -> dict[str, float]:
    return _run(repeats, "-m", "quoin.cli", "--help")


def listing(repeats: Repeats) -> dict[str, float]:
    return _run(repeats, "-m", "quoin.cli", "list")


def _run(repeats: Repeats, *arguments: str) -> dict[str, float]:
    repeats.timed(lambda: subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL))
    return {}
