"""The table of docs/scaling.md: language models from 124 M to 70 B parameters on 1 to 1,024 GPUs, planned.

python -m quoin.runs.plan_table > docs/scaling.md
"""

import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from quoin.runs.catalog import find_recipe
from quoin.runs.plan import GPU_WATTS
from quoin.runs.plan_memory import communication, memory_of_process
from quoin.runs.plan_task import CountedStep, StepOfPlan
from quoin.runs.plan_time import Rates, step_time
from quoin.train import DeviceContext

__all__ = ["MODELS", "ModelSize", "page", "rows_of"]

MEMORY, RATES, LINK = 80e9, Rates(flops=400e12, bandwidth=3e12), 50e9
CONTEXT, VOCAB_SIZE, BATCH, TOKENS_PER_PARAMETER = 2048, 50257, 1024, 20
PROCESSES = (1, 8, 64, 1024)


class ModelSize(NamedTuple):
    """A model as the recipe transformer-lm is told it, and the most rows of a micro-batch."""

    name: str
    embed_dim: int
    num_heads: int
    num_layers: int
    rows: int


MODELS = (
    ModelSize("124 M", 768, 12, 12, 16),
    ModelSize("350 M", 1024, 16, 24, 8),
    ModelSize("1.3 B", 2048, 16, 24, 4),
    ModelSize("7 B", 4096, 32, 34, 4),
    ModelSize("13 B", 5120, 40, 40, 2),
    ModelSize("70 B", 8192, 64, 86, 1),
)

HEAD = f"""\
# Scaling: what fits, and how long it takes

Before a run is started, `quoin plan` says whether it fits in memory and how long it takes:

```sh
quoin plan transformer-lm --embed-dim 4096 --num-heads 32 --num-layers 34 --context-length {CONTEXT} \\
    --vocab {VOCAB_SIZE} --batch-size {BATCH} --micro-batch-size 4 --precision bfloat16 \\
    --tokens 140G --processes 64 --shard \\
    --gpu-memory 80GB --flops 400T --bandwidth 3T --link 50G
```

One training step is counted with weights that have shapes and no memory. The table below is made by
`python -m quoin.runs.plan_table`, and a test compares it with this page.

Assumptions:

- Each GPU has 80 GB, sustains 400 T operations a second in products and 3 TB/s from memory, sends 50 GB/s to others,
  and takes {GPU_WATTS:g} W: an H100, at rates that programs reach and not those of its data sheet. None of this was run
  on several GPUs.
- The recipe `transformer-lm`: rotary positions, GELU, weights and AdamW's state in float32, products in bfloat16 by
  autocast, no activation checkpointing, no compilation: every kernel reads and writes its tensors.
- The global batch is {BATCH:,} sequences of {CONTEXT:,} tokens, whatever the number of GPUs; a micro-batch has at most
  the rows that the table shows. A run reads {TOKENS_PER_PARAMETER} tokens a parameter. Evaluations, reading data and
  failures are not in it.
- DDP where a whole model fits on each GPU, else FSDP2 (`--shard`), which gathers weights in bfloat16 and scatters
  gradients in every micro-batch. DDP's exchange is hidden by two thirds of the computation, FSDP2's by all of it.
- A step that does not fit has no time. There is no tensor or pipeline parallelism.

| parameters | GPUs | how | rows | memory of a GPU | step | of it waiting for others | whole run | energy |
|---|---|---|---|---|---|---|---|---|
"""


def page(models: tuple[ModelSize, ...] = MODELS) -> str:
    """All of docs/scaling.md, or with fewer models its beginning."""
    return HEAD + "".join(f"{row}\n" for model in models for row in rows_of(model))


def rows_of(model: ModelSize) -> Iterator[str]:
    """The lines of one model: one for each number of GPUs."""
    counted: dict[int, CountedStep] = {}
    for num_processes in PROCESSES:
        rows = min(model.rows, BATCH // num_processes)
        if rows not in counted:
            counted[rows] = _count(model, rows)
        step = counted[rows].in_pieces(BATCH // num_processes // rows)
        yield _line(model, step, num_processes, rows)


def _count(model: ModelSize, rows: int) -> CountedStep:
    recipe = find_recipe("transformer-lm")
    make_options: Any = recipe.options
    options = make_options(
        embed_dim=model.embed_dim,
        num_heads=model.num_heads,
        num_layers=model.num_layers,
        context_length=CONTEXT,
        batch_size=rows,
    )
    context = DeviceContext(torch.device("cpu"), torch.bfloat16)
    return StepOfPlan(recipe, options, context, rows, VOCAB_SIZE, as_on="cuda").count()


def _line(model: ModelSize, step: CountedStep, num_processes: int, rows: int) -> str:
    shard = memory_of_process(step, num_processes, shard=False).peak > MEMORY and num_processes > 1
    peak = memory_of_process(step, num_processes, shard=shard).peak
    how = "FSDP2" if shard else "DDP" if num_processes > 1 else "one"
    cells = [model.name, f"{num_processes:,}", how, str(rows), f"{peak / 1e9:.0f} GB"]
    if peak > MEMORY:
        return _joined([*cells, "does not fit", "", "", ""])
    compute = step_time(step.operations(update_fraction=1 / num_processes if shard else 1.0), RATES).total
    waiting = communication(step, num_processes, shard=shard).exposed(LINK, compute)
    num_steps = TOKENS_PER_PARAMETER * step.num_parameters / (BATCH * CONTEXT)
    seconds = num_steps * (compute + waiting)
    hours = seconds * GPU_WATTS * num_processes / 3600
    return _joined([*cells, f"{compute + waiting:.2f} s", f"{waiting:.2f} s", _duration(seconds), _energy(hours)])


def _joined(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _duration(seconds: float) -> str:
    sizes = ((365.25 * 86400, "years"), (86400, "days"), (3600, "h"), (60, "min"))
    return next((f"{seconds / size:.3g} {name}" for size, name in sizes if seconds >= 2 * size), f"{seconds:.3g} s")


def _energy(watt_hours: float) -> str:
    return next(
        (f"{watt_hours / size:.3g} {name}" for size, name in ((1e9, "GWh"), (1e6, "MWh")) if watt_hours >= size),
        f"{watt_hours / 1e3:.3g} kWh",
    )


if __name__ == "__main__":
    sys.stdout.write(page())
