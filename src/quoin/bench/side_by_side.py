"""The benchmark `jobs`: four seeds of a convolutional network with `--jobs 2` and one after another, a thread each.

Whole commands, from start to report. The figure `checksum` is of the weights and the final metrics of all four: equal
numbers are equal bits.
"""

import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from quoin.bench.worker import Repeats

__all__ = ["one_after_another", "two_at_a_time"]

# Some twenty seconds a run and more on one core, beside which the start of a process matters little. The memory format
# is given: `auto` chooses by the clock, and another choice has other bits.
TRAINING = ("train", "lenet", "--epochs", "160", "--seeds", "4", "--num-threads", "1", "--device", "cpu")
FORMAT = ("--memory-format", "channels-last")


def two_at_a_time(repeats: Repeats) -> dict[str, float]:
    return _train(repeats, "--jobs", "2")


def one_after_another(repeats: Repeats) -> dict[str, float]:
    return _train(repeats)


def _train(repeats: Repeats, *words: str) -> dict[str, float]:
    repeats.end()  # every repeat is a process of its own: there is nothing to warm up
    checksum = 0
    for _ in range(repeats.count - 1):
        with tempfile.TemporaryDirectory() as runs:
            command = [sys.executable, "-m", "quoin.cli", *TRAINING, *FORMAT, *words, "--runs", runs, "--json"]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            checksum = _checksum(Path(runs) / "lenet-1")
        repeats.end()
    return {"checksum": checksum}


def _checksum(multirun: Path) -> int:
    """The first 48 bits of a hash, which a float holds exactly."""
    found = hashlib.sha256()
    for member in sorted(multirun.glob("seed-*")):
        newest = max(member.glob("checkpoints/0*"))
        found.update((newest / "tensors.safetensors").read_bytes())
        found.update(json.dumps(json.loads((member / "result.json").read_text())["metrics"]).encode())
    return int.from_bytes(found.digest()[:6])
