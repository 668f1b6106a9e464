"""The most memory that a run had at a time."""

import sys
from pathlib import Path

import torch

from quoin.train.run_files import PeakMemory

__all__ = ["describe_peak_memory", "forget_peak_memory", "peak_memory"]


def forget_peak_memory(device: torch.device) -> None:
    """Count from now on, where that can be: the process remembers its own peak for as long as it lives."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)


def peak_memory(device: torch.device) -> PeakMemory | None:
    """On a GPU what torch allocated there, without the space it keeps in reserve; elsewhere what the process had of the
    machine's memory, Python, torch and data included. None where the system does not tell."""
    if device.type == "cuda":
        return {"bytes": torch.cuda.max_memory_allocated(device), "kind": "gpu_allocated"}
    count = _resident_peak()
    return None if count is None else {"bytes": count, "kind": "process_resident"}


def _resident_peak() -> int | None:
    try:  # Linux: `getrusage` would count what the process that started this one had
        status = Path("/proc/self/status").read_text()
        return 1024 * int(status.partition("VmHWM:")[2].split()[0])
    except (OSError, IndexError, ValueError):
        pass
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def describe_peak_memory(peak: PeakMemory) -> str:
    """As a report says it.

    >>> describe_peak_memory({"bytes": 3 * 2**29, "kind": "gpu_allocated"})
    'peak memory 1.5 GiB, allocated by torch on the GPU'
    """
    count = peak["bytes"]
    size = f"{count / 2**20:.0f} MiB" if count < 2**30 else f"{count / 2**30:.1f} GiB"
    of = {"gpu_allocated": "allocated by torch on the GPU", "process_resident": "resident memory of the process"}
    return f"peak memory {size}, {of[peak['kind']]}"
