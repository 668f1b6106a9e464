"""`quoin plan`: will a run fit, and how long will it take, before it is started."""

import argparse
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from quoin.cli.arguments import add_json, run_later
from quoin.cli.flags import Parser, add_options, read_options, whole_number
from quoin.cli.output import format_size, print_json, print_table
from quoin.data import check_source_name
from quoin.errors import UserError, format_value

if TYPE_CHECKING:
    from quoin.runs.plan import Plan

__all__ = ["add_plan", "amount", "plan"]

OWN = ("processes", "shard")  # options of a run that the command has itself
LEFT_OUT = (*OWN, "checkpoint_every", "log", "log_every", "memory_format", "deterministic", "compile")
_UNITS = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}


def add_plan(parser: Parser, words: Sequence[str]) -> None:
    """The words of `quoin plan`: the recipe, on how many processes, what a machine can do, and the recipe's flags."""
    from quoin.runs.catalog import DEFAULT, find_recipe
    from quoin.runs.run_config import RunConfig

    reference = next((word for word in words[:1] if not word.startswith("-")), DEFAULT)
    recipe = find_recipe(reference)
    parser.add_argument(
        "recipe",
        nargs="?",
        default=DEFAULT,
        help=f"name of a recipe, as `quoin list` shows, or a file (default: {DEFAULT})",
    )
    parser.description = (
        "Plan a run before it is started: will it fit in memory, and how long will it take.\n\n"
        "One step is counted with weights that have shapes and no memory, so that a model of any size is planned in "
        "seconds: parameters,\n"
        "memory of one process by kind, operations, and what processes exchange. The step's time is a roofline: each "
        "kernel takes as\n"
        "long as its operations at --flops or its bytes at --bandwidth, whichever is longer. Without these, the "
        "kernels are timed here.\n"
        "Nothing is written, and no weight is trained."
    )
    parser.epilog = """\
examples:
  quoin plan lenet --batch-size 256                    on this machine
  quoin plan transformer-lm --size large --processes 8 --gpu-memory 80GB --flops 400T --bandwidth 3T --link 50G
  quoin plan transformer-lm --embed-dim 8192 --num-heads 64 --num-layers 80 --context-length 4096 --vocab 32000 \\
      --batch-size 1024 --micro-batch-size 1 --precision bfloat16 --tokens 1T \\
      --processes 1024 --shard --gpu-memory 80GB --flops 400T --bandwidth 3T --link 50G

Rates are those that programs reach, not those of data sheets: an H100 sustains some 400T in bfloat16."""
    parser.add_flag("--processes", "processes, one on each GPU (default: 1)", "INT", type=_processes, default=1)
    parser.add_switch("--shard", "FSDP2: divide weights, gradients and optimizer state among the processes")
    parser.add_flag("--gpu-memory", "memory of a process (default: of this machine)", "BYTES", type=amount("80GB"))
    parser.add_flag("--flops", "operations a second of large products", "RATE", type=amount("400T"))
    parser.add_flag("--bandwidth", "bytes a second from and to memory", "RATE", type=amount("3T"))
    parser.add_flag("--link", "bytes a second that a process can send to others", "RATE", type=amount("50G"))
    watts = "power of a process, for the energy (default: 700 for a GPU, 65 for a CPU)"
    parser.add_flag("--watts", watts, "WATTS", type=amount("700"))
    parser.add_flag("--steps", "length of the run in steps (default: that of the recipe's options)", "INT", type=_count)
    tokens = "length of the run in tokens, of a language model: 300G or 1T"
    parser.add_flag("--tokens", tokens, "INT", type=amount("300G"))
    vocab = "plan a language model for a vocabulary of this size, in place of its text's"
    parser.add_flag("--vocab", vocab, "INT", type=_count, default=0)
    add_json(parser)
    add_options(parser, recipe.options, f"options of {recipe.name}")
    add_options(parser, RunConfig, "runtime options", without=LEFT_OUT)
    parser.set_defaults(run=run_later("plan_command.plan"), first_recipe=reference)


def amount(example: str) -> Callable[[str], float]:
    """A reader of positive numbers with a unit, such as `example`: k, M, G, T or P, with B or B/s after it."""

    def read(text: str) -> float:
        found = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)(?:[eE]\+?(\d{1,2}))? ?([kMGTP]?)(?:B|B/s)?", text.strip())
        if found is None or not 0 < (number := float(found[1]) * 10.0 ** int(found[2] or 0)) < 1e30:
            raise argparse.ArgumentTypeError(
                f"expects a positive number with a unit, such as {example}, got {format_value(text)}"
            )
        return number * _UNITS[found[3]]

    return read


def _count(text: str) -> int:
    if not 1 <= (number := whole_number(text)) <= 10**15:
        raise argparse.ArgumentTypeError(f"expects a whole number from 1 to 1e15, got {format_value(text)}")
    return number


def _processes(text: str) -> int:
    if not 1 <= (number := whole_number(text)) <= 10**6:
        raise argparse.ArgumentTypeError(f"expects a whole number from 1 to 1000000, got {format_value(text)}")
    return number


def plan(parsed: argparse.Namespace) -> int:
    from quoin.runs.catalog import find_recipe
    from quoin.runs.run_config import RunConfig

    if parsed.recipe != parsed.first_recipe:
        raise UserError(f"the recipe comes first: quoin plan {format_value(parsed.recipe)[1:-1]} ...")
    if parsed.shard and parsed.processes == 1:
        raise UserError("--shard divides the model among processes, and there is one: give --processes 2 or more")
    recipe = find_recipe(parsed.recipe)
    options: Any = read_options(recipe.options, parsed)
    if hasattr(options, "data"):
        check_source_name(options.data)
    from quoin.runs.plan import Machine, make_plan

    names = {"gpu_memory": "memory", "flops": "flops", "bandwidth": "bandwidth", "link": "link", "watts": "watts"}
    machine = Machine(**{field: getattr(parsed, name) or 0.0 for name, field in names.items()})
    made = make_plan(
        recipe,
        options,
        read_options(RunConfig, parsed),
        num_processes=parsed.processes,
        shard=parsed.shard,
        machine=machine,
        vocab_size=parsed.vocab,
        num_steps=parsed.steps or 0,
        num_tokens=int(parsed.tokens or 0),
    )
    if parsed.json:
        print_json(as_json(made))
    else:
        _show(made)
    return 0


def as_json(made: "Plan") -> dict[str, Any]:
    """The plan for a machine to read: bytes, seconds, joules."""
    return {
        "recipe": made.recipe,
        "parameters": made.step.num_parameters,
        "processes": made.num_processes,
        "shard": made.shard,
        "batch_size": made.batch_size,
        "rows_per_process": made.rows,
        "micro_batches": made.step.num_pieces,
        "memory": {**made.memory.kinds(), "peak": made.memory.peak, "limit": made.memory_limit, "fits": made.fits},
        "flops_per_step": made.flops,
        "step_seconds": made.step_seconds,
        "compute_seconds": made.time.total,
        "bound": made.time.bound,
        "communication_bytes": made.communication.num_bytes,
        "communication_seconds": made.exchange_seconds,
        "exposed_communication_seconds": made.exposed_seconds,
        "steps": made.num_steps,
        "seconds": made.seconds,
        "joules": made.joules,
        "watts": made.watts,
        "counted_without_memory": made.step.is_fake,
        "remedies": [{"flags": each.flags, "peak": each.peak, "fits": each.fits} for each in made.remedies],
    }


def _show(made: "Plan") -> None:
    rows = -(-made.rows // made.step.num_pieces)
    pieces = f" in {made.step.num_pieces} micro-batches of {rows}" if made.step.num_pieces > 1 else ""
    several = made.num_processes > 1
    how = " with FSDP2" if made.shard else " with DDP" if several else ""
    print(
        f"{made.recipe}: {made.step.num_parameters:,} parameters, {made.precision}; batch of {made.batch_size:,} on "
        f"{made.num_processes:,} process{'es' if several else ''}{how}, {made.rows:,} rows each{pieces}\n"
    )
    kinds = [(name, format_size(size)) for name, size in made.memory.kinds().items() if size]
    verdict = "fits in" if made.fits else "does not fit in"
    peak = f"{format_size(made.memory.peak)}, {verdict} {format_size(int(made.memory_limit))}"
    print_table(("memory of one process", ""), [*kinds, ("peak; not all live at once", peak)])
    print()
    print_table(("time", ""), _time_rows(made))
    if not made.fits:
        print()
        print_table(
            ("what to change", "peak", ""),
            [(each.flags, format_size(each.peak), "fits" if each.fits else "too much") for each in made.remedies],
        )
    if not made.step.is_fake:
        print("\nThis recipe looks at values in its step, so that one was really made to count it.")


def _time_rows(made: "Plan") -> list[tuple[str, str]]:
    time = made.time
    rates = f"{_rate(made.rates.flops)} operations/s, {format_size(int(made.rates.bandwidth))}/s"
    source = "as given" if not made.rates.device else "measured here" + ("; kernels timed" if time.is_timed else "")
    parts = {"products": time.in_products, "memory": time.in_memory, "between kernels": time.in_overhead}
    fractions = ", ".join(f"{name} {value / time.total:.0%}" for name, value in parts.items() if value)
    rows = [
        ("operations of a step", _rate(made.flops)),
        ("rates", f"{rates}, {source}"),
        ("computation of a step", f"{format_seconds(time.total)}: {fractions}; bound by {time.bound}"),
    ]
    if made.num_processes > 1:
        sent = f"{format_size(made.communication.num_bytes)} by {made.communication.how}"
        if made.exchange_seconds is None:
            rows.append(("communication", f"{sent}; give --link for its time, which is not in the step's"))
        else:
            taken = f"{format_seconds(made.exchange_seconds)}, {format_seconds(made.exposed_seconds)} of it not hidden"
            rows.append(("communication", f"{sent}: {taken} by the computation"))
    rows.append(("step", format_seconds(made.step_seconds)))
    rows.append(("run", f"{made.num_steps:,} steps: {format_seconds(made.seconds)}, without evaluations"))
    rows.append(("energy", f"{format_energy(made.joules)} at {made.watts:g} W a process"))
    return rows


def _rate(value: float) -> str:
    for unit, name in ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:.3g} {name}"
    return f"{value:.3g}"


def format_seconds(seconds: float) -> str:
    """In the unit that a person would choose."""
    for size, name in ((86400 * 365.25, "years"), (86400, "days"), (3600, "h"), (60, "min"), (1, "s"), (1e-3, "ms")):
        if seconds >= size:
            return f"{seconds / size:.3g} {name}"
    return f"{seconds * 1e6:.3g} µs"


def format_energy(joules: float) -> str:
    """In watt-hours, but for less than one."""
    hours = joules / 3600
    if hours < 1:
        return f"{joules:.3g} J"
    return f"{_rate(hours)}Wh" if hours >= 1000 else f"{hours:.3g} Wh"
