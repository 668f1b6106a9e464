"""The processor, as the system tells of it: its name, its family, how many cores this process may use.

Virtual machines call processors of several generations by one name, "AMD EPYC"; the family tells them apart.
"""

import contextlib
import functools
import os
import platform
import re
from pathlib import Path

__all__ = ["num_cores", "processor_family", "processor_name", "processor_text"]


def num_cores() -> int:
    """Processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@functools.cache
def processor_text() -> str:
    """What the system says of the processor."""
    told = platform.processor()  # of Windows: "AMD64 Family 26 Model ..."
    with contextlib.suppress(OSError):
        told += "\n" + Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    return told


def processor_family(told: str) -> int:
    """The family of the processor as its maker numbers it; 0 where the system does not tell.

    >>> processor_family("cpu family : 26"), processor_family("AMD64 Family 26 Model 68")
    (26, 26)
    """
    found = re.search(r"^cpu family\s*:\s*(\d+)|\bFamily (\d+)\b", told, re.MULTILINE)
    return int(found[1] or found[2]) if found else 0


def processor_name(told: str | None = None) -> str:
    """The name and the family, such as "AMD EPYC, family 26"; "CPU" where the system tells nothing.

    Args:
        told: What the system says; asked for unless given.
    """
    told = processor_text() if told is None else told
    named = re.search(r"^model name\s*:\s*(.*\S)", told, re.MULTILINE)
    if named is None:
        return told.partition("\n")[0].strip() or "CPU"
    family = processor_family(told)
    return f"{named[1]}, family {family}" if family else named[1]
