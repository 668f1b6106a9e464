"""`quoin plan`: what it says beside what runs, by arithmetic, and on the command line."""

import dataclasses
import json
import resource
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from commands import tried
from quoin.bench.plan_check import allocated_peak, measured_step
from quoin.cli.plan_command import amount
from quoin.errors import UserError
from quoin.runs import plan_table
from quoin.runs.catalog import find_recipe, recipe_names
from quoin.runs.plan import Machine, make_plan
from quoin.runs.plan_count import Operation, StepCounter
from quoin.runs.plan_memory import communication, memory_of_process
from quoin.runs.plan_task import StepOfPlan
from quoin.runs.plan_time import Rates, step_time
from quoin.runs.run_config import RunConfig
from quoin.train import DeviceContext

H100 = Machine(memory=80e9, flops=400e12, bandwidth=3e12, link=50e9)
WITHOUT_GRADIENTS = (  # EM, counting, closed form, and studies of several optimizers
    "cross-entropy-descent",
    "gd-bound",
    "gmm",
    "hmm",
    "markov-chain",
    "momentum-phase",
    "nadaraya-watson",
    "ngram",
    "optimizer-race",
    "polynomial-fit",
    "random-features",
)
GIVEN = ("--gpu-memory", "80GB", "--flops", "400T", "--bandwidth", "3T")


def chosen(name, **given) -> Any:
    """The options of a recipe."""
    return find_recipe(name).options(**given)


def counted(name, num_rows=None, **given):
    recipe, options = find_recipe(name), chosen(name, **given)
    return StepOfPlan(recipe, options, DeviceContext(), num_rows or options.batch_size).count()


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("mlp", {}),
        ("lenet", {}),
        ("transformer-lm", {}),
        ("transformer-lm", {"micro_batch_size": 4}),
        ("vae", {}),
        ("lstm-lm", {}),
        ("diffusion-2d", {}),
    ],
)
def test_memory_is_what_torch_allocates(name, given):
    """Within 15% of the peak that torch's profiler sees in a real step."""
    allocated = allocated_peak(measured_step(name, find_recipe(name).options(**given)))
    step = counted(name, **given)
    assert step.is_fake
    assert abs(step.peak / allocated - 1) < 0.15


def test_a_second_micro_batch_holds_the_gradients_of_the_first():
    """Where these are a sixth of all: a plan without them would be that much too small."""
    given = {"batch_size": 4, "micro_batch_size": 1}
    allocated = allocated_peak(measured_step("transformer-lm", find_recipe("transformer-lm").options(**given)))
    step = counted("transformer-lm", **given)
    assert step.gradients > 0.1 * allocated
    assert step.peak == pytest.approx(allocated, rel=0.05)


def test_saved_activations_by_hand():
    """A linear layer keeps its input, ReLU its output, which the next layer keeps too: one storage, counted once."""
    net, x = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 3)), torch.randn(11, 5)
    counter = StepCounter(net.parameters())
    with counter, counter.counting_saved():
        output = net(x)
        assert counter.saved == 4 * 11 * (5 + 7)
        output.sum().backward()
        del output
    assert counter.saved == 0
    assert counter.peak_saved == 4 * 11 * (5 + 7)


def test_operations_by_hand_and_by_torch():
    """An MLP: forward, gradients of both weights, and of the hidden layer's output."""
    net, x = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 3)), torch.randn(11, 5)
    with FlopCounterMode(display=False) as theirs, StepCounter() as ours:
        net(x).sum().backward()
    found = sum(each.flops * count for each, count in ours.operations.items())
    assert found == theirs.get_total_flops() == 2 * 11 * (2 * 5 * 7 + 3 * 7 * 3)


def test_step_of_a_recipe_by_hand():
    """Weights, gradients and Adam's two averages in float32; micro-batches do the same operations."""
    whole = counted("transformer-lm", batch_size=8)
    model = find_recipe("transformer-lm").build(find_recipe("transformer-lm").options(), DeviceContext()).model  # type: ignore[attr-defined]
    num_parameters = sum(each.numel() for each in model.parameters())
    assert whole.num_parameters == num_parameters
    assert whole.weights == whole.gradients == 4 * num_parameters
    assert whole.optimizer_state == pytest.approx(8 * num_parameters, rel=1e-3)  # and a step count for each
    pieces = counted("transformer-lm", batch_size=8, micro_batch_size=2)
    assert pieces.num_pieces == 4
    assert pieces.flops == pytest.approx(whole.flops, rel=1e-6)
    assert pieces.activations == pytest.approx(whole.activations / 4, rel=0.05)


def test_logits_come_in_the_pieces_of_the_machine_that_is_planned():
    """64 x 512 tokens over 50,257 classes, padded to 50,304: on a GPU four pieces of 8,192 tokens, whose logits one
    kernel reads and writes, with targets read and losses written; on the CPU pieces of 256 tokens."""
    recipe, sizes = find_recipe("transformer-lm"), {"embed_dim": 16, "num_heads": 2, "num_layers": 1}
    options = chosen("transformer-lm", context_length=512, batch_size=64, **sizes)
    cuda, cpu = (
        StepOfPlan(recipe, options, DeviceContext(), 64, 50257, as_on=device).count().piece_operations
        for device in ("cuda", "cpu")
    )
    found = {each: count for each, count in cuda.items() if each.name == "softmax_gradient"}
    assert [(each.num_bytes, count) for each, count in found.items()] == [(8192 * (2 * 4 * 50304 + 8 + 4), 4)]
    assert not any(each.name == "softmax_gradient" for each in cpu)
    assert sum(count for each, count in cpu.items() if each.name == "logsumexp") == 64 * 512 / 256


def test_what_an_operator_changes_is_written():
    """A fused optimizer gives nothing back: AdamW reads four numbers for each and writes them (torch's schema has the
    gradient among them)."""
    weight = nn.Parameter(torch.ones(1000))
    weight.grad = torch.ones(1000)
    optimizer = torch.optim.AdamW([weight], fused=True)
    optimizer.step()
    with StepCounter() as counter:
        optimizer.step()
    (fused,) = [each for each in counter.operations if each.name == "_fused_adamw_"]
    assert fused.num_bytes == pytest.approx(2 * 4 * 4 * 1000, rel=0.01)


def test_processes_exchange_what_rings_send():
    step = counted("mlp")
    size = 4 * step.num_parameters
    assert communication(step, 1, shard=False).num_bytes == 0
    assert communication(step, 4, shard=False).num_bytes == round(2 * 3 / 4 * size)
    assert communication(step, 4, shard=True).num_bytes == round(3 * 3 / 4 * size)
    hidden = communication(step, 4, shard=False)
    seconds = hidden.seconds(1e6)
    assert hidden.exposed(1e6, 0.0) == seconds
    assert hidden.exposed(1e6, 1.5 * seconds) == pytest.approx(0, abs=1e-12)
    assert hidden.exposed(1e6, 0.75 * seconds) == pytest.approx(seconds / 2)


def test_shards_are_fractions():
    step = counted("transformer-lm")
    whole, part = memory_of_process(step, 8, shard=False), memory_of_process(step, 8, shard=True)
    for kind in ("weights", "gradients", "optimizer_state"):
        assert getattr(part, kind) == -(-getattr(whole, kind) // 8)
    assert part.activations == whole.activations
    assert part.gathered > 0
    many = memory_of_process(step, 10**6, shard=True)
    assert many.peak >= step.activations + many.gathered


def test_roofline_takes_the_longer_of_two():
    operations = {Operation("mm", 4_000, 10): 2.0, Operation("add", 0, 300): 3.0}
    found = step_time(operations, Rates(flops=1000.0, bandwidth=100.0))
    assert found.in_products == 8.0
    assert found.in_memory == 9.0
    assert found.total == 17.0
    assert found.bound == "memory"


def test_a_model_that_no_machine_holds_gets_no_memory():
    """Seven billion parameters, 112 GB with gradients and Adam's state, counted in a process that grows by little."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    recipe = find_recipe("transformer-lm")
    options = chosen("transformer-lm", embed_dim=12288, num_heads=96, num_layers=4, context_length=512, batch_size=1)
    found = make_plan(recipe, options, RunConfig(precision="bfloat16"), machine=H100, vocab_size=10_000)
    assert found.step.num_parameters == pytest.approx(12 * 4 * 12288**2 + 10_000 * 12288, rel=2e-3)
    assert found.memory.weights == 4 * found.step.num_parameters
    assert found.memory.copies == pytest.approx(2 * found.step.num_parameters, rel=0.01)
    assert not found.fits
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1_000_000  # kilobytes
    flops = 6 * 512 * (found.step.num_parameters) + 3 * 4 * 4 * 512**2 * 12288  # products, and attention's two
    assert found.flops == pytest.approx(flops, rel=0.05)


def test_remedies_are_what_they_say():
    """The peak that a remedy promises is near that of a plan with its flags."""
    recipe, config = find_recipe("transformer-lm"), RunConfig()
    options = chosen("transformer-lm", batch_size=32)
    machine = dataclasses.replace(H100, memory=25e6)
    found = make_plan(recipe, options, config, machine=machine)
    assert not found.fits
    remedies = {each.flags: each for each in found.remedies}
    assert "--precision bfloat16" in remedies
    micro = next(each for each in found.remedies if each.flags.startswith("--micro-batch-size"))
    assert micro.fits
    size = int(micro.flags.split()[1])
    again = make_plan(recipe, dataclasses.replace(options, micro_batch_size=size), config, machine=machine)
    assert again.memory.peak == pytest.approx(micro.peak, rel=0.1)
    half = make_plan(recipe, options, RunConfig(precision="bfloat16"), machine=machine)
    assert half.memory.peak == remedies["--precision bfloat16"].peak < found.memory.peak
    (spread,) = (each for each in found.remedies if each.flags.startswith("--processes"))
    several = int(spread.flags.split()[1])
    shared = make_plan(recipe, options, config, machine=machine, num_processes=several, shard=True)
    assert spread.fits
    assert shared.memory.peak == pytest.approx(spread.peak, rel=0.1)


def test_length_of_the_run():
    recipe, config = find_recipe("transformer-lm"), RunConfig()
    options = chosen("transformer-lm", batch_size=16, context_length=64)
    found = make_plan(recipe, options, config, machine=H100, num_processes=4, num_tokens=10 * 16 * 64 + 1)
    assert (found.num_steps, found.batch_size, found.rows) == (11, 16, 4)
    assert found.seconds == pytest.approx(11 * found.step_seconds)
    assert found.joules == pytest.approx(found.seconds * 700 * 4)
    digits = find_recipe("mlp")
    task = digits.build(digits.options(), DeviceContext())
    own = make_plan(digits, digits.options(), config, machine=H100, num_processes=3)
    assert own.num_steps == digits.options().num_epochs * task.batches.num_batches  # type: ignore[attr-defined]
    capped = make_plan(digits, digits.options(), RunConfig(max_steps=7), machine=H100)
    assert capped.num_steps == 7


@pytest.mark.parametrize(
    ("text", "value"),
    [("80GB", 80e9), ("400T", 4e14), ("3T", 3e12), ("50G", 5e10), ("1.5TB/s", 1.5e12), ("7e9", 7e9), ("64", 64.0)],
)
def test_numbers_with_units(text, value):
    assert amount("80GB")(text) == value


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("lenet", "--gpu-memory", "80XB"), "such as 80GB"),
        (("lenet", "--flops", "-4T"), "--flops"),
        (("lenet", "--flops", "nan"), "such as 400T"),
        (("lenet", "--flops", "4T"), "--bandwidth"),
        (("lenet", "--processes", "0"), "from 1"),
        (("lenet", "--shard"), "--processes 2"),
        (("lenet", "--precision", "bfloat16"), "--flops"),
        (("lenet", "--tokens", "1G", *GIVEN), "language model"),
        (("lenet", "--vocab", "100", *GIVEN), "language model"),
        (("gmm",), "no gradient"),
        (("ngram",), "no gradient"),
        (("optimizer-race",), "no gradient"),
    ],
)
def test_mistakes_are_one_line(words, said):
    code, out, told = tried("plan", *words)
    assert (code, out) == (2, "")
    assert len(told.splitlines()) == 1
    assert said in told


def test_command_shows_and_prints_json():
    words = ("plan", "lenet", "--batch-size", "64", "--processes", "4", "--shard", "--link", "50G", *GIVEN)
    code, shown, _ = tried(*words)
    assert code == 0
    for word in ("parameters", "weights", "optimizer state", "activations", "peak", "FSDP2", "energy", "fits in 80 GB"):
        assert word in shown
    found = json.loads(tried(*words, "--json")[1])
    assert found["rows_per_process"] == 16
    assert found["memory"]["weights"] * 4 == pytest.approx(4 * found["parameters"], rel=0.01)
    assert found["memory"]["fits"] is True


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        (("--processes", "4"), "rows_per_process"),
        (("--processes", "2", "--shard"), "shard"),
        (("--gpu-memory", "1MB"), "remedies"),
        (("--flops", "1T"), "compute_seconds"),
        (("--bandwidth", "1G"), "compute_seconds"),
        (("--processes", "2", "--link", "1k"), "exposed_communication_seconds"),
        (("--watts", "300"), "joules"),
        (("--steps", "5"), "steps"),
        (("--tokens", "1M"), "steps"),
        (("--max-steps", "3"), "steps"),
        (("--vocab", "1000"), "parameters"),
        (("--precision", "bfloat16"), "memory"),
        (("--num-layers", "1"), "flops_per_step"),
    ],
)
def test_every_flag_changes_the_plan(words, changed):
    usual = ("plan", "transformer-lm", "--context-length", "16", *GIVEN, "--json")
    with_flag, without = (json.loads(tried(*each)[1]) for each in ((*usual, *words), usual))
    assert with_flag[changed] != without[changed]


def test_kernels_are_timed_here():
    """Without rates the plan measures this machine's: no zero, no infinity."""
    recipe = find_recipe("lstm-lm")
    found = make_plan(recipe, recipe.options(), RunConfig(device="cpu"))
    assert found.time.is_timed
    assert 0 < found.step_seconds < 60
    assert found.rates.flops > 1e8
    assert found.rates.bandwidth > 1e7


def test_scaling_page_begins_as_its_command_prints():
    page = Path(__file__).parents[1] / "docs" / "scaling.md"
    assert page.read_text().startswith(plan_table.page(plan_table.MODELS[:1]))


@pytest.mark.deep
def test_scaling_page_is_what_its_command_prints():
    page = Path(__file__).parents[1] / "docs" / "scaling.md"
    assert page.read_text() == plan_table.page()


@pytest.mark.deep
@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_has_a_plan_or_says_why_not(name):
    recipe = find_recipe(name)
    if name in WITHOUT_GRADIENTS:
        with pytest.raises(UserError, match="no gradient"):
            make_plan(recipe, recipe.options(), RunConfig(), machine=H100)
        return
    found = make_plan(recipe, recipe.options(), RunConfig(), machine=H100)
    assert found.step.num_parameters > 0
    assert found.memory.weights > 0
    assert found.fits
    assert found.num_steps > 0
    assert found.step_seconds > 0
