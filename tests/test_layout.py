"""Channels first or last: the same learning, chosen by the clock, remembered by the run; and the step compiled for one
shape."""

import math

import pytest
import torch
from torch import nn

from commands import tried
from quoin.cli import main
from quoin.data import Dataset, Split, prepare
from quoin.errors import UserError
from quoin.losses import cross_entropy
from quoin.tasks import memory_format as layout
from quoin.tasks.memory_format import choose_memory_format, faster_memory_format, set_memory_format
from quoin.tasks.supervised import Classification
from quoin.train import DeviceContext, RunFolder
from quoin.train.checkpoint import checkpoint_steps
from quoin.train.device_context import compiler
from tasks import classification, copy_state, difference, left_behind, numbers_dataset, parted

ROWS, BATCH = 22, 8  # three batches an epoch, the last of six rows
CHANNELS_LAST = torch.channels_last


def images():
    generator = torch.Generator().manual_seed(3)
    features, targets = torch.rand(ROWS + 8, 2, 8, 8, generator=generator), torch.arange(ROWS + 8) % 3
    names = tuple(f"x{index}" for index in range(2 * 8 * 8))
    rows = torch.arange(ROWS + 8).split([ROWS, 4, 4])
    return prepare(Dataset("noise", features, targets, names, ("a", "b", "c")), Split(*rows))


def momentum(weights) -> torch.optim.Optimizer:
    return torch.optim.SGD(weights, 0.1, momentum=0.9)


def adam(weights) -> torch.optim.Optimizer:
    return torch.optim.Adam(weights, 0.01)


def learner(make_optimizer=momentum, *, dtype=torch.float32, dropout=0.2, epochs=4):
    """Everything that a layout could trip over: 1 x 1 kernels, running averages, dropout's draws, a flattening."""
    torch.manual_seed(7)
    model = nn.Sequential(
        nn.Conv2d(2, 6, 3, padding=1),
        nn.BatchNorm2d(6),
        nn.ReLU(),
        nn.Conv2d(6, 4, 1),
        nn.Dropout(dropout),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64, 3),
    ).to(dtype)
    how = {
        "batch_size": BATCH,
        "epochs": epochs,
        "seed": 0,
        "device_context": DeviceContext(),
        "augment": lambda batch, generator: batch.to(dtype),
    }
    return Classification(model, cross_entropy, make_optimizer(model.parameters()), images(), **how)


def epochs(task, count: int) -> None:
    for _ in range(count):
        for rows in task.batches:
            task.step(rows)


def everything(task) -> dict:
    return copy_state({"task": task.state_dict(), "generator": torch.get_rng_state(), "training": task.model.training})


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_either_layout_has_the_same_gradients(dtype):
    """Without dropout, which draws its mask in the order of memory."""
    gradients = []
    for name in ("contiguous", "channels-last"):
        task = learner(dtype=dtype, dropout=0.0)
        set_memory_format(task, name)
        kernels = [each for each in task.model.parameters() if each.ndim == 4]
        assert all(each.is_contiguous(memory_format=task.memory_format) for each in kernels)
        task.step(torch.arange(BATCH))
        assert all(each.grad is not None and each.grad.stride() == each.stride() for each in kernels)
        gradients.append([each.grad for each in task.model.parameters()])
    tolerance = 1e-4 if dtype is torch.float32 else 1e-11
    torch.testing.assert_close(gradients[1], gradients[0], rtol=tolerance, atol=tolerance)


def test_batches_come_in_the_layout_of_the_kernels():
    task = learner()
    seen = []
    task.model.register_forward_pre_hook(
        lambda module, inputs: seen.append(inputs[0].is_contiguous(memory_format=CHANNELS_LAST))
    )
    task.step(torch.arange(4))
    set_memory_format(task, "channels-last")
    task.step(torch.arange(4))
    assert seen == [False, True]


def test_measuring_changes_nothing_of_the_run(monkeypatch):
    monkeypatch.setattr(layout, "WORTH", 0.0)
    task, untouched = learner(), learner()
    strides = [each.stride() for each in task.model.parameters()]
    task.model.eval()
    untouched.model.eval()
    torch.manual_seed(11)
    before = everything(untouched)
    torch.manual_seed(11)
    assert faster_memory_format(task) in ("contiguous", "channels-last")
    assert difference(before, everything(task)) is None
    assert [each.stride() for each in task.model.parameters()] == strides
    assert all(each.grad is None for each in task.model.parameters())
    torch.manual_seed(11)
    epochs(task, 1)
    after = everything(task)
    torch.manual_seed(11)
    epochs(untouched, 1)
    assert difference(everything(untouched), after) is None


@pytest.mark.parametrize(("last", "chosen"), [(1.0, "contiguous"), (0.98, "contiguous"), (0.96, "channels-last")])
def test_channels_last_must_be_clearly_quicker(monkeypatch, last, chosen):
    """Seconds by layout as a clock would tell them, and a first call that sets kernels up."""
    calls = []

    def seconds(task, rows):
        calls.append(rows)
        return (
            (0.02 if task.memory_format is torch.contiguous_format else 0.02 * last)
            * rows
            / BATCH
            * (10 if len(calls) == 1 else 1)
        )

    monkeypatch.setattr(layout, "_seconds", seconds)
    task = learner(epochs=1000)
    assert choose_memory_format(task, "auto") == (
        chosen,
        f"layout: {chosen} was the quicker, so measured; --memory-format {chosen} pins it",
    )
    assert task.memory_format is (CHANNELS_LAST if chosen == "channels-last" else torch.contiguous_format)
    assert max(calls) == BATCH


def test_long_steps_are_measured_on_fewer_rows_and_not_for_long(monkeypatch):
    now, calls = 0.0, []

    def seconds(task, rows):
        nonlocal now
        calls.append(rows)
        now += rows / 10
        return rows / 10

    monkeypatch.setattr(layout, "_seconds", seconds)
    monkeypatch.setattr(layout.time, "perf_counter", lambda: now)
    monkeypatch.setattr(layout, "FIRST_ROWS", 2)
    assert faster_memory_format(learner(epochs=1000)) == "contiguous"
    assert calls == [2, 2] + [7] * (2 + 6)  # set up and planned, warmed up, three rounds until three seconds are over


def test_a_batch_is_measured_whole_where_the_run_is_worth_it(monkeypatch):
    calls = []
    monkeypatch.setattr(layout, "_seconds", lambda task, rows: calls.append(rows) or rows / 100)
    faster_memory_format(learner(epochs=1000))
    assert set(calls[2:]) == {BATCH}


@pytest.mark.parametrize(("epochs", "max_steps"), [(1, 0), (10**6, 3)])
def test_a_short_run_is_not_measured(monkeypatch, epochs, max_steps):
    monkeypatch.setattr(layout, "_seconds", lambda task, rows: 0.001)
    assert choose_memory_format(learner(epochs=epochs), "auto", max_steps=max_steps) == ("contiguous", "")


def test_where_the_clock_must_not_decide_it_is_not_asked(monkeypatch):
    monkeypatch.setattr(layout, "_seconds", lambda task, rows: pytest.fail("measured"))
    task = learner()
    task.device_context = DeviceContext(compile=True)
    assert choose_memory_format(task, "auto") == ("auto", "")
    monkeypatch.setattr(torch, "are_deterministic_algorithms_enabled", lambda: True)
    assert choose_memory_format(learner(), "auto") == ("auto", "")


def test_a_model_without_images_has_no_layout():
    task = classification(parted(numbers_dataset(classes=3), 16, 6))
    assert choose_memory_format(task, "auto") == ("auto", "")
    assert choose_memory_format(task, "contiguous") == ("contiguous", "")
    with pytest.raises(
        UserError, match=r"expected images and 2-D convolutions for --memory-format channels-last, got .*; leave it out"
    ):
        choose_memory_format(task, "channels-last")


@pytest.mark.parametrize("make_optimizer", [momentum, adam])
def test_what_the_optimiser_keeps_comes_back_in_the_layout_of_the_weights(make_optimizer):
    whole = learner(make_optimizer)
    set_memory_format(whole, "channels-last")
    epochs(whole, 1)
    saved = everything(whole)
    assert all(each.is_contiguous() for each in saved["task"]["model"]["weights"].values())
    epochs(whole, 2)
    resumed = learner(make_optimizer)
    set_memory_format(resumed, "channels-last")
    resumed.load_state_dict(saved["task"])
    torch.set_rng_state(saved["generator"])
    for parameter, kept in resumed.updater.optimizer.state.items():
        assert all(value.stride() == parameter.stride() for value in kept.values() if value.shape == parameter.shape)
    for parameter, other in zip(resumed.model.parameters(), whole.model.parameters()):
        assert parameter.stride() == other.stride()
    epochs(resumed, 2)
    assert difference(everything(whole)["task"], everything(resumed)["task"]) is None


def test_a_run_with_channels_last_goes_on_to_the_same_bits_and_remembers_its_layout(tmp_path):
    """To batches of 256, the five steps of an epoch; taken up again from step 2 of what is on the disk."""
    words = [
        "--num-threads",
        "1",
        "--epochs",
        "1",
        "--batch-size",
        "256",
        "--checkpoint-every",
        "1",
        "--memory-format",
        "channels-last",
    ]
    assert main(["train", "lenet", *words, "--runs", str(tmp_path)]) == 0
    run = RunFolder.open(tmp_path / "lenet-1")
    assert run.config["settings"]["memory_format"] == "channels-last"
    whole = left_behind(run)
    steps = checkpoint_steps(run.checkpoints)
    assert main(["resume", str(run.path), "--step", str(steps[0])]) == 0
    assert difference(whole, left_behind(run)) is None
    assert steps[0] < steps[-1]


@pytest.mark.skipif(compiler() is None, reason="no C++ compiler")
def test_compilation_that_changes_nothing_is_told(tmp_path):
    code, _, told = tried(
        "train", "gmm", "--compile", "--max-iter", 1, "--num-init", 1, "--num-threads", 1, "--runs", tmp_path
    )
    assert code == 0
    assert "--compile changes nothing here: gmm" in told
    assert not DeviceContext().compiled_nothing  # nor asked for


@pytest.mark.skipif(compiler() is None, reason="no C++ compiler")
@pytest.mark.filterwarnings(
    "ignore:.*script_method:DeprecationWarning"
)  # of torch's own, when its compiler is imported
def test_a_compiled_step_is_the_plain_one_and_a_short_batch_makes_no_second_graph():
    """The one real compilation of the suite; a small network, as each kernel costs seconds of a C++ compiler."""
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    tasks = []
    for compile in (False, True):
        torch.manual_seed(7)
        model = nn.Sequential(nn.Conv2d(2, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(72, 3))
        sgd = torch.optim.SGD(model.parameters(), 0.1)
        device_context = DeviceContext(compile=compile)
        tasks.append(
            Classification(
                model, cross_entropy, sgd, images(), batch_size=BATCH, epochs=2, seed=0, device_context=device_context
            )
        )
        epochs(tasks[-1], 2)
        assert not device_context.compiled_nothing
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1
    plain, compiled = (dict(task.model.named_parameters()) for task in tasks)
    torch.testing.assert_close(compiled, plain, rtol=1e-4, atol=1e-5)
    assert math.isfinite(tasks[1].evaluate("test")["loss"])
