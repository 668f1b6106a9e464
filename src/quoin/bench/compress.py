"""The row `compress`: English prose as the context mix, xz and bzip2 pack it, each at its best setting."""

import bz2
import lzma
import statistics
from collections.abc import Callable
from pydoc_data.topics import topics

from quoin.bench.worker import Laps
from quoin.info import pack, unpack

__all__ = ["bzip2", "compressing", "decompressing", "help_texts", "xz"]


def help_texts() -> bytes:
    """What `help("topics")` can show, topics in order of name and each paragraph only where it first stands."""
    paragraphs = (each.strip("\n") for name in sorted(topics) for each in topics[name].split("\n\n") if each.strip())
    return "\n\n".join(dict.fromkeys(paragraphs)).encode()


def compressing(laps: Laps) -> dict[str, float]:
    return _packed(laps, pack)


def decompressing(laps: Laps) -> dict[str, float]:
    archive = pack(help_texts())
    return _packed(laps, lambda content: _undone(archive, content))


def xz(laps: Laps) -> dict[str, float]:
    return _packed(laps, lambda content: lzma.compress(content, preset=9 | lzma.PRESET_EXTREME))


def bzip2(laps: Laps) -> dict[str, float]:
    return _packed(laps, lambda content: bz2.compress(content, 9))


def _undone(archive: bytes, content: bytes) -> bytes:
    assert unpack(archive) == content
    return archive


def _packed(laps: Laps, work: Callable[[bytes], bytes]) -> dict[str, float]:
    content, archive, seconds = help_texts(), b"", []
    for _ in range(laps.count):
        began = laps.clock()
        archive = work(content)
        seconds.append(laps.clock() - began)
        laps.end()
    return {"bytes": float(len(archive)), "kB/s": len(content) / statistics.median(seconds) / 1000}
