"""The benchmark `compress`: English prose as the context mix, xz and bzip2 pack it, each at its best setting."""

import bz2
import lzma
import statistics
from collections.abc import Callable
from pydoc_data.topics import topics

from quoin.bench.worker import Repeats
from quoin.info import compress, decompress

__all__ = ["bzip2", "compressing", "decompressing", "help_texts", "xz"]


def help_texts() -> bytes:
    """What `help("topics")` can show, topics in order of name and each paragraph only where it first stands."""
    paragraphs = (each.strip("\n") for name in sorted(topics) for each in topics[name].split("\n\n") if each.strip())
    return "\n\n".join(dict.fromkeys(paragraphs)).encode()


def compressing(repeats: Repeats) -> dict[str, float]:
    return _packed(repeats, compress)


def decompressing(repeats: Repeats) -> dict[str, float]:
    archive = compress(help_texts())
    return _packed(repeats, lambda content: _undone(archive, content))


def xz(repeats: Repeats) -> dict[str, float]:
    return _packed(repeats, lambda content: lzma.compress(content, preset=9 | lzma.PRESET_EXTREME))


def bzip2(repeats: Repeats) -> dict[str, float]:
    return _packed(repeats, lambda content: bz2.compress(content, 9))


def _undone(archive: bytes, content: bytes) -> bytes:
    assert decompress(archive) == content
    return archive


def _packed(repeats: Repeats, work: Callable[[bytes], bytes]) -> dict[str, float]:
    content, seconds = help_texts(), []

    def pack() -> bytes:
        began = repeats.clock()
        archive = work(content)
        seconds.append(repeats.clock() - began)
        return archive

    archive = repeats.timed(pack)
    return {"bytes": float(len(archive)), "kB/s": len(content) / statistics.median(seconds) / 1000}
