"""The benchmarks of the group `gpu`: what is only worth measuring on CUDA. Imports no torch.

An implementation ends each repeat with `torch.cuda.synchronize`, or with numbers on the host, so that the clock sees
what the GPU does. Without CUDA the group is refused in one line, and left out where all benchmarks are asked for.
"""

from quoin.bench.benchmark import Benchmark, Implementation
from quoin.bench.targets import FigureAtMost, RatioAtLeast, SameFigureAs, Target

__all__ = ["GPU_BENCHMARKS", "GROUP"]

GROUP = "gpu"
THREADS = 8  # of the host: peers compile on the way

_DECODE, _TRANSFORMERS = "quoin.bench.gpu_decode", ("transformers",)
_TEXT = "256 tokens, greedily, after 32 of one sequence: GPT-2 of 124 M parameters"

DECODE_BENCHMARKS = (
    Benchmark(
        "gpu-decode",
        f"{_TEXT} in bfloat16",
        (
            Implementation("Quoin, captured step", _DECODE, "quoin", arguments=("bfloat16",)),
            Implementation("Quoin, ordinary steps", _DECODE, "quoin_ordinary", arguments=("bfloat16",)),
            Implementation(
                "transformers generate",
                _DECODE,
                "transformers_generate",
                RatioAtLeast(4.0),
                _TRANSFORMERS,
                arguments=("bfloat16", "dynamic"),
            ),
            Implementation(
                "transformers generate, static cache, compiled",
                _DECODE,
                "transformers_generate",
                RatioAtLeast(1.0),
                _TRANSFORMERS,
                arguments=("bfloat16", "static"),
            ),
        ),
        num_repeats=7,
        num_warmup=3,
        threads=THREADS,
        group=GROUP,
        needs_cuda=True,
    ),
    Benchmark(
        "gpu-decode-float32",
        f"{_TEXT} in float32: the same tokens",
        (
            Implementation("Quoin, captured step", _DECODE, "quoin", arguments=("float32",)),
            Implementation(
                "transformers generate",
                _DECODE,
                "transformers_generate",
                SameFigureAs("Quoin, captured step", "checksum"),
                _TRANSFORMERS,
                arguments=("float32", "dynamic"),
            ),
        ),
        num_repeats=3,
        threads=THREADS,
        group=GROUP,
        needs_cuda=True,
    ),
)

_ATTENTION, _FLA = "quoin.bench.gpu_attention", ("fla",)


def _attention(
    length: int, passes: str, way: str, *, bound: Target | None = None, performer: bool = False
) -> Benchmark:
    """Linear attention ahead of exact attention, and where both are eager four times as quick as
    flash-linear-attention."""
    arguments = (str(length), passes, way)
    of_peer = RatioAtLeast(4.0) if length == 65_536 else None
    peers = [Implementation("exact, torch sdpa", _ATTENTION, "exact", RatioAtLeast(1.0), arguments=arguments)]
    if performer:
        most = FigureAtMost("ms a call", 5.0) if passes == "forward" else None
        peers.append(Implementation("Performer, 256 features", _ATTENTION, "performer", most, arguments=arguments))
    if way == "eager":
        name = "flash-linear-attention, normalised"
        peers.append(Implementation(name, _ATTENTION, "flash_linear_attention", of_peer, _FLA, arguments=arguments))
    return Benchmark(
        f"gpu-attention-{passes}-{length}-{way}",
        f"{passes}, {way}: one sequence of {length:,} positions in bfloat16, 16 heads of 64, causal",
        (Implementation("linear, elu + 1", _ATTENTION, "linear", bound, arguments=arguments), *peers),
        num_repeats=5,
        threads=THREADS,
        group=GROUP,
        needs_cuda=True,
    )


ATTENTION_BENCHMARKS = (
    _attention(2048, "forward", "graph"),
    _attention(2048, "both", "graph"),
    _attention(8192, "forward", "eager"),
    _attention(8192, "both", "eager"),
    _attention(65_536, "forward", "eager", bound=FigureAtMost("ms a call", 0.40), performer=True),
    _attention(65_536, "both", "eager", bound=FigureAtMost("ms a call", 1.5), performer=True),
)

_TRAIN = "quoin.bench.gpu_train"

TRAIN_BENCHMARK = Benchmark(
    "gpu-train",
    "20 training steps of GPT-2 of 124 M parameters on 32 windows of 1024 tokens, bfloat16, compiled, AdamW",
    (
        Implementation("Quoin", _TRAIN, "quoin", FigureAtMost("GPU GiB", 0.7 * 21.2)),  # of nanoGPT's on torch 2.11
        Implementation("nanoGPT's loop", _TRAIN, "nanogpt", RatioAtLeast(1.05)),
    ),
    num_repeats=7,
    threads=THREADS,
    group=GROUP,
    needs_cuda=True,
)

GPU_BENCHMARKS = (*ATTENTION_BENCHMARKS, *DECODE_BENCHMARKS, TRAIN_BENCHMARK)
