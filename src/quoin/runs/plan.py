"""Will it fit, and how long: the plan of a run that is not started.

One step of one process is counted (plan_task.py) without memory for the weights, so that a model that no machine here
can hold is planned in seconds; plan_memory.py divides it among processes, plan_time.py says how long it takes.
"""

import dataclasses
import os
from dataclasses import dataclass
from typing import Any

import torch

from quoin.errors import UserError
from quoin.runs.catalog import Recipe
from quoin.runs.environment import device_context_for
from quoin.runs.plan_kernels import WARM
from quoin.runs.plan_memory import Communication, Memory, communication, memory_of_process
from quoin.runs.plan_task import CountedStep, StepOfPlan
from quoin.runs.plan_time import Rates, StepTime, measure_rates, step_time
from quoin.runs.run_config import RunConfig
from quoin.train import DeviceContext, torch_as_it_was

__all__ = ["GPU_WATTS", "Machine", "Plan", "Remedy", "make_plan"]

GPU_WATTS, CPU_WATTS = 700.0, 65.0  # of one process: an H100 under load, and a desktop's processor


@dataclass(frozen=True)
class Machine:
    """What a process runs on. What is 0 is taken from this machine.

    Args:
        memory: Bytes.
        flops: Operations a second that large products reach, not those of a data sheet.
        bandwidth: Bytes a second from and to the memory.
        link: Bytes a second that a process sends to others; 0 where it is not known.
        watts: Power while it computes.
    """

    memory: float = 0.0
    flops: float = 0.0
    bandwidth: float = 0.0
    link: float = 0.0
    watts: float = 0.0

    def __post_init__(self) -> None:
        if bool(self.flops) != bool(self.bandwidth):
            given, missing = ("--flops", "--bandwidth") if self.flops else ("--bandwidth", "--flops")
            raise UserError(f"{given} is one of the two rates of a machine: give {missing} too, or neither")

    @property
    def is_given(self) -> bool:
        return bool(self.flops)


@dataclass(frozen=True)
class Remedy:
    """A knob that makes the run fit, or nearer to it, and the peak it gives."""

    flags: str
    peak: int
    fits: bool


@dataclass(frozen=True)
class Plan:
    """What a run will take. Bytes, seconds, joules; of one process but for the run's total."""

    recipe: str
    num_processes: int
    shard: bool
    precision: str
    batch_size: int  # the global batch
    rows: int  # of one process
    step: CountedStep
    memory: Memory
    memory_limit: float
    time: StepTime
    rates: Rates
    communication: Communication
    link: float
    num_steps: int
    watts: float
    remedies: tuple[Remedy, ...] = ()

    @property
    def flops(self) -> float:
        """Of a step of one process."""
        return self.step.flops

    @property
    def fits(self) -> bool:
        return self.memory.peak <= self.memory_limit

    @property
    def exchange_seconds(self) -> float | None:
        """Of the exchange in a step; None where the link is not known."""
        return self.communication.seconds(self.link) if self.link else 0.0 if self.num_processes == 1 else None

    @property
    def exposed_seconds(self) -> float:
        return self.communication.exposed(self.link, self.time.total) if self.link else 0.0

    @property
    def step_seconds(self) -> float:
        """With the exchange beside the computation, as far as that hides it."""
        return self.time.total + self.exposed_seconds

    @property
    def seconds(self) -> float:
        return self.num_steps * self.step_seconds

    @property
    def joules(self) -> float:
        """Of all processes."""
        return self.seconds * self.watts * self.num_processes


@torch_as_it_was()
def make_plan(
    recipe: Recipe,
    options: Any,  # those of the recipe
    run_config: RunConfig,
    *,
    num_processes: int = 1,
    shard: bool = False,
    machine: Machine | None = None,
    vocab_size: int = 0,
    num_steps: int = 0,
    num_tokens: int = 0,
) -> Plan:
    """Plan a run of `recipe`.

    Args:
        machine: That of each process; this one, unless given.
        vocab_size: Of a language model, another vocabulary than that of its text.
        num_steps: The length of the run; that of the options, unless given.
        num_tokens: The same by the tokens that a language model reads.
    """
    machine, options = machine or Machine(), options.resolved()
    context, rates = _context(run_config, machine)
    batch_size = getattr(options, "batch_size", 0)
    rows = -(-batch_size // num_processes)
    planned = StepOfPlan(
        recipe, options, context, rows or 1, vocab_size, as_on="cpu" if rates.device == "cpu" else "cuda"
    )
    if not batch_size:  # a recipe that always takes all of its rows
        batch_size = rows = planned.num_rows = planned.task.batches.batch_size
    step = planned.count()
    memory = memory_of_process(step, num_processes, shard=shard)
    limit = machine.memory or _memory_here(context.device, num_processes)
    if num_tokens:
        length = getattr(options, "context_length", 0)
        if not length:
            raise UserError(f"--tokens is for a language model, which reads a context of them, not {recipe.name}")
        num_steps = -(-num_tokens // (batch_size * length))
    found = Plan(
        recipe=recipe.name,
        num_processes=num_processes,
        shard=shard,
        precision=run_config.precision,
        batch_size=batch_size,
        rows=rows,
        step=step,
        memory=memory,
        memory_limit=limit,
        time=step_time(
            step.operations(update_fraction=1 / num_processes if shard else 1.0), rates, cold=step.made > WARM
        ),
        rates=rates,
        communication=communication(step, num_processes, shard=shard),
        link=machine.link,
        num_steps=num_steps or _steps(planned, options, batch_size, run_config.max_steps),
        watts=machine.watts or (CPU_WATTS if rates.device == "cpu" else GPU_WATTS),
    )
    if found.fits:
        return found
    return dataclasses.replace(found, remedies=tuple(_remedies(found, planned, options, context)))


def _context(run_config: RunConfig, machine: Machine) -> tuple[DeviceContext, Rates]:
    """How the step is counted, always with tensors of the CPU, and the rates it is timed by."""
    # Sizes are those of any half precision; of float16 the scaling of the loss is left out.
    dtype = None if run_config.precision == "float32" else torch.bfloat16
    counted = DeviceContext(torch.device("cpu"), dtype)
    if machine.is_given:
        return counted, Rates(machine.flops, machine.bandwidth)
    if dtype is not None and run_config.device in ("auto", "cpu") and not torch.cuda.is_available():
        raise UserError(
            f"--precision {run_config.precision} is for a GPU, and there is none here: give its rates, such as "
            "--flops 400T --bandwidth 3T"
        )
    here, _ = device_context_for(run_config)
    kind = here.device.type if here.device.type != "mps" else "cpu"
    return counted, measure_rates(kind, run_config.precision, torch.get_num_threads())


def _memory_here(device: torch.device, num_processes: int) -> float:
    if torch.cuda.is_available():
        return float(torch.cuda.get_device_properties(0).total_memory)
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / num_processes


def _steps(planned: StepOfPlan, options: Any, batch_size: int, max_steps: int) -> int:
    steps = options.num_epochs * -(-planned.rows_of_data // batch_size)
    return min(steps, max_steps) if max_steps else steps


def _remedies(plan: Plan, planned: StepOfPlan, options: Any, context: DeviceContext) -> list[Remedy]:
    """What to turn, each alone, with the peak it gives. Rows are taken to make as many activations each."""
    found: list[tuple[str, int]] = []
    step, processes, rows = plan.step, plan.num_processes, planned.micro_batch_size

    def peak(fraction: float, num_processes: int, *, shard: bool, accumulates: bool) -> int:
        return memory_of_process(_with_rows(step, fraction, accumulates), num_processes, shard=shard).peak

    if hasattr(options, "micro_batch_size") and rows > 1:
        smaller = rows // 2
        while smaller > 1 and peak(smaller / rows, processes, shard=plan.shard, accumulates=True) > plan.memory_limit:
            smaller //= 2
        given = peak(smaller / rows, processes, shard=plan.shard, accumulates=True)
        found.append((f"--micro-batch-size {smaller}", given))
    if processes > 1 and not plan.shard:
        found.append(("--shard", peak(1, processes, shard=True, accumulates=step.num_pieces > 1)))
    more, given = processes, plan.memory.peak
    while more < 2**14 and given > plan.memory_limit:
        more *= 2
        fraction = min(rows, -(-plan.batch_size // more)) / rows
        given = peak(fraction, more, shard=True, accumulates=step.num_pieces > 1)
    if given <= plan.memory_limit:
        found.append((f"--processes {more} --shard", given))
    length = getattr(options, "context_length", 0)
    if rows == 1 and length > 1:  # the last resort, for it changes what is learnt
        found.append(
            (f"--context-length {length // 2}", peak(0.5, processes, shard=plan.shard, accumulates=step.num_pieces > 1))
        )
    if plan.precision == "float32":
        half = dataclasses.replace(context, autocast_dtype=torch.bfloat16)
        found.append(("--precision bfloat16", _peak(plan, planned, planned.options, half)))
    if getattr(options, "checkpoint_activations", None) is False:
        again = dataclasses.replace(planned.options, checkpoint_activations=True)
        found.append(("--checkpoint-activations", _peak(plan, planned, again, context)))
    remedies = [Remedy(flags, peak, peak <= plan.memory_limit) for flags, peak in found if peak < plan.memory.peak]
    return sorted(remedies, key=lambda each: (not each.fits, each.peak))


def _with_rows(step: CountedStep, fraction: float, accumulates: bool) -> CountedStep:
    """The step of a micro-batch of fewer rows, whose gradients add to those of others where it accumulates them."""
    own = step.made - (0 if step.is_before_gradients else step.gradients)
    with_gradients = accumulates or not step.is_before_gradients
    made = round(own * fraction) + (step.gradients if with_gradients else 0)
    return dataclasses.replace(
        step,
        activations=round(step.activations * fraction),
        made=made,
        peak=step.peak - step.made + made,
        is_before_gradients=not with_gradients,
    )


def _peak(plan: Plan, planned: StepOfPlan, options: Any, context: DeviceContext) -> int:
    step = StepOfPlan(
        planned.recipe, options, context, planned.num_rows, planned.vocab_size, as_on=planned.as_on
    ).count()
    return memory_of_process(step, plan.num_processes, shard=plan.shard).peak
