"""One batch, one result: `python tests/processes_invariance.py [RECIPE ...]` prints how far the losses of a run in two
processes are from those of one, and those of micro-batches from those of whole batches.

Each number is the greatest relative difference over 50 steps from one process with whole batches: two processes by DDP
and by FSDP2, micro-batches in one process and in two. `again` says whether two processes give the same bits twice.
Where a model has batch normalization, micro-batches are left out: it normalises what is in memory at once. Exits with 1
where a difference is over its bound, 1e-10 in float64 and 1e-4 in float32, or a bit differs.
"""

import sys
from pathlib import Path
from typing import Any

from process_group import in_processes

STEPS = 50
BOUNDS = {"float64": 1e-10, "float32": 1e-4}
LENET_BATCH_NORM = str(Path(__file__).with_name("lenet_batch_norm.py"))
RECIPES: dict[str, dict[str, Any]] = {
    "mlp": {"batch_size": 31, "dropout": 0.2},
    "lenet": {"batch_size": 21},
    LENET_BATCH_NORM: {"batch_size": 21},
    "transformer-lm": {"batch_size": 5, "context_length": 16, "dropout": 0.1},
    "lstm-lm": {"batch_size": 5},
    "vae": {"batch_size": 15},
    "gan": {"batch_size": 14},
    "diffusion-2d": {"batch_size": 33},
}
NORMALISED = {LENET_BATCH_NORM}


def relative(one: list[float], other: list[float]) -> float:
    """The greatest relative difference of two lists of losses."""
    assert len(one) == len(other) > 0
    return max(abs(a - b) / abs(a) for a, b in zip(one, other))


def compared(name: str, dtype: str) -> tuple[list[float | None], bool]:
    """The differences of the columns, and whether two processes gave the same bits twice."""
    options = RECIPES[name]
    pieces = options | {"micro_batch_size": max(2, options["batch_size"] // 4)}
    whole, cut = [name, options, STEPS, dtype], [name, pieces, STEPS, dtype]
    with_pieces = name not in NORMALISED
    one = in_processes(1, "trained_together:losses_of", [whole, cut] if with_pieces else [whole], timeout=900)[0]
    cases = [[*case, shard] for case in ((whole, cut) if with_pieces else (whole,)) for shard in (False, True)]
    two, again = (in_processes(2, "trained_together:losses_of", cases, timeout=900) for _ in range(2))
    assert two[0] == two[1], "processes disagree about the loss"
    found = [relative(one[0], each) for each in two[0]]
    if not with_pieces:
        return [*found, None, None, None], again == two
    return [*found[:2], relative(one[0], one[1]), *found[2:]], again == two


def main(names: list[str]) -> int:
    """Print the table; 1 where it shows a difference."""
    columns = ("DDP", "FSDP2", "micro, 1", "micro, DDP", "micro, FSDP2")
    print(f"greatest relative difference over {STEPS} steps from one process and whole batches, gloo on the CPU")
    print(f"{'recipe':<20}{'dtype':<9}" + "".join(f"{each:>14}" for each in columns) + "  again", flush=True)
    code = 0
    for name in names:
        for dtype, bound in BOUNDS.items():
            found, same = compared(name, dtype)
            far = any(each is not None and not each < bound for each in found)
            code = 1 if far or not same else code
            cells = "".join(f"{'-' if each is None else f'{each:.1e}':>14}" for each in found)
            words = ("equal bits" if same else "OTHER BITS") + (f"  OVER {bound:g}" if far else "")
            print(f"{Path(name).stem:<20}{dtype:<9}{cells}  {words}", flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or list(RECIPES)))
