"""The benchmarks on decoding: token after token from one GPT-2 beside `transformers`, and from long contexts by every
attention. No torch.
"""

from quoin.bench.benchmark import Benchmark, Implementation
from quoin.bench.targets import RatioAtLeast, TimesAsQuickAs

__all__ = ["DECODE_BENCHMARKS", "LONG", "SHORT"]

_QUOIN, _PEERS = "quoin.bench.decode_quoin", "quoin.bench.decode_peers"
SHORT, LONG = 256, 4096  # tokens read before the first repeat
FLAT = 0.9  # a token after many others may take this much longer than one after few, which is what runs differ by


def _from_contexts(attention: str, name: str, bound: float | None) -> tuple[Implementation, Implementation]:
    short, long = (f"{name}, after {length}" for length in (SHORT, LONG))
    flat = None if bound is None else TimesAsQuickAs(short, bound)
    return (
        Implementation(short, _QUOIN, "from_context", arguments=(attention, str(SHORT))),
        Implementation(long, _QUOIN, "from_context", flat, arguments=(attention, str(LONG))),
    )


DECODE_BENCHMARKS = (
    Benchmark(
        "decode",
        "128 tokens, greedily, after 16 of one sequence: "
        "GPT-2 of 4 layers and embed_dim 128 in float32, the same weights",
        (
            Implementation("Quoin", _QUOIN, "greedily"),
            Implementation(
                "transformers generate", _PEERS, "transformers_generate", RatioAtLeast(4.0), ("transformers",)
            ),
            Implementation(
                "transformers generate, static cache, compiled",
                _PEERS,
                "transformers_static",
                RatioAtLeast(1.0),
                ("transformers",),
            ),
        ),
        num_repeats=15,
        on_torch=("Quoin", "transformers generate"),
    ),
    Benchmark(
        "decode-context",
        f"64 tokens after {SHORT} and after {LONG:,} others: "
        "a GPT of 4 layers and embed_dim 128 in float32, by its attention",
        (
            *_from_contexts("linear", "linear", FLAT),
            *_from_contexts("performer", "Performer", FLAT),
            *_from_contexts("exact", "exact", None),
        ),
        num_repeats=9,
    ),
)
