"""The rows of the group `attention`: every form at every length that it can bear, forward and training. Imports no torch.

Forms that grow with n² stop at 16,384 positions, and peers that keep a matrix for every position where a few GiB would not hold them.
Lengths, rounds and calls are so chosen that the whole takes less than ten minutes on two cores: long sequences get few rounds.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from quoin.bench.row import Contestant, Row

__all__ = ["ATTENTION_ROWS", "FORMS", "GROUP", "LENGTHS", "WORKS", "Form", "calls_in_a_lap", "row_name"]

GROUP = "attention"
LENGTHS = tuple(2**k for k in range(8, 17))
WORKS = {"forward": LENGTHS, "training": (256, 1024, 2048, 4096, 8192, 16_384, 65_536)}
_FEW = {"forward": (1024, 2048, 4096), "training": (1024, 2048)}  # for peers that keep a matrix for every position


@dataclass(frozen=True)
class Form:
    """One way to attend, and the lengths that it is asked for in each work, which may be fewer than those of the work."""

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


def calls_in_a_lap(length: int) -> int:
    """So many that a lap of a short sequence is worth timing."""
    return max(1, 2048 // length)


def row_name(work: str, length: int) -> str:
    return f"{GROUP}-{work}-{length}"


def _row(work: str, length: int) -> Row:
    return Row(
        row_name(work, length),
        f"{work}, {calls_in_a_lap(length)} times: one sequence of {length:,} positions in float32, 8 heads of width 64, Performers of 256",
        tuple(
            Contestant(form.name, form.module, form.function, needs=form.needs, arguments=(str(length), work))
            for form in FORMS
            if length in form.lengths[work]
        ),
        rounds=5 if length <= 4096 else 3,
        group=GROUP,
    )


ATTENTION_ROWS = tuple(_row(work, length) for work, lengths in WORKS.items() for length in lengths)
