"""The benchmarks of the group `attention`: every form at every length that it can bear, forward and training. Imports
no torch.

Forms that grow with n² stop at 16,384 positions, and peers that keep a matrix for every position where a few GiB would
not hold them. Lengths, repeats and calls are so chosen that the whole takes less than ten minutes on two cores: long
sequences get few repeats.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from quoin.bench.benchmark import Benchmark, Implementation

__all__ = ["ATTENTION_BENCHMARKS", "FORMS", "GROUP", "LENGTHS", "WORKS", "Form", "benchmark_name", "calls_per_repeat"]

GROUP = "attention"
LENGTHS = tuple(2**k for k in range(8, 17))
WORKS = {"forward": LENGTHS, "training": (256, 1024, 2048, 4096, 8192, 16_384, 65_536)}
_FEW = {"forward": (1024, 2048, 4096), "training": (1024, 2048)}  # for peers that keep a matrix for every position


@dataclass(frozen=True)
class Form:
    """One way to attend, and the lengths that it is asked for in each work, which may be fewer than those of the
    work."""

    name: str
    module: str
    function: str
    lengths: Mapping[str, tuple[int, ...]]
    needs: tuple[str, ...] = ()


_QUOIN, _PEERS = "quoin.bench.attention_quoin", "quoin.bench.attention_peers"
_PACKAGE = ("performer_pytorch",)

_MIDDLE = {work: tuple(length for length in lengths if length <= 16_384) for work, lengths in WORKS.items()}

FORMS = (
    Form("exact, causal", _QUOIN, "exact", _MIDDLE),
    Form("torch sdpa, causal", _PEERS, "sdpa", _MIDDLE),
    Form("elu + 1", _QUOIN, "elu", WORKS),
    Form("elu + 1, causal", _QUOIN, "elu_causal", WORKS),
    Form("einsum + cumsum, causal", _PEERS, "cumulative", _FEW),
    Form("Performer", _QUOIN, "performer", WORKS),
    Form("performer-pytorch", _PEERS, "performer_pytorch", _MIDDLE, _PACKAGE),
    Form("Performer, causal", _QUOIN, "performer_causal", WORKS),
    Form("performer-pytorch, causal", _PEERS, "performer_pytorch_causal", _FEW, _PACKAGE),
)


def calls_per_repeat(length: int) -> int:
    """So many that a repeat of a short sequence is worth timing."""
    return max(1, 2048 // length)


def benchmark_name(work: str, length: int) -> str:
    return f"{GROUP}-{work}-{length}"


def _benchmark(work: str, length: int) -> Benchmark:
    return Benchmark(
        benchmark_name(work, length),
        f"{work}, {calls_per_repeat(length)} times: "
        f"one sequence of {length:,} positions in float32, 8 heads of head_dim 64, Performers of 256",
        tuple(
            Implementation(form.name, form.module, form.function, needs=form.needs, arguments=(str(length), work))
            for form in FORMS
            if length in form.lengths[work]
        ),
        num_repeats=5 if length <= 4096 else 3,
        group=GROUP,
    )


ATTENTION_BENCHMARKS = tuple(_benchmark(work, length) for work, lengths in WORKS.items() for length in lengths)
