"""The time of steps, the device's own where it has one; and the most memory a run had, called what it is."""

import subprocess
import sys

import pytest
import torch

from quoin.cli import main
from quoin.data.transfer import to_device
from quoin.train import DeviceContext, RunFolder
from quoin.train.peak_memory import describe_peak_memory, peak_memory
from quoin.train.step_clock import StepClock


class DeviceTime:
    """A GPU's clock, on which a step takes a second, though the program only queues it."""

    now, waits = 0.0, 0

    def __init__(self, *, enable_timing: bool) -> None:
        assert enable_timing

    def record(self) -> None:
        self.at = DeviceTime.now

    def synchronize(self) -> None:
        DeviceTime.waits += 1

    def elapsed_time(self, later: "DeviceTime") -> float:
        return 1000 * (later.at - self.at)


def test_on_a_gpu_steps_are_timed_by_its_clock_which_is_read_only_when_asked(monkeypatch):
    monkeypatch.setattr(torch.cuda, "Event", DeviceTime)
    monkeypatch.setattr(DeviceTime, "now", 0.0)
    monkeypatch.setattr(DeviceTime, "waits", 0)
    clock = StepClock(DeviceContext(torch.device("cuda")))
    for steps in (3, 5):
        for _ in range(steps):
            with clock.step():
                DeviceTime.now += 1.0
        assert DeviceTime.waits == (steps == 5)
        clock.settle()
        DeviceTime.now += 100.0  # an evaluation
    assert clock.state_dict() == {"seconds": 8.0, "num_steps": 8}
    assert clock.steps_per_second() == 1.0
    assert DeviceTime.waits == 2


def test_a_step_that_compiles_does_not_count(monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda function, dynamic: function)
    context = DeviceContext(compile=True)
    clock, step = StepClock(context), context.compiled(torch.sum, 2)
    counts = []
    for _ in range(3):
        with clock.step():
            step(torch.ones(2))
        counts.append(clock.state_dict()["num_steps"])
    assert counts == [0, 1, 2]


def test_what_was_measured_before_a_kill_counts_after_it():
    clock = StepClock(DeviceContext())
    with clock.step():
        sum(range(1000))
    other = StepClock(DeviceContext())
    other.load_state_dict(clock.state_dict())
    assert other.state_dict() == clock.state_dict()
    assert other.steps_per_second() > 0
    assert StepClock(DeviceContext()).steps_per_second() == 0


def test_a_copy_to_the_same_device_is_the_tensor():
    tensor = torch.arange(3)
    assert to_device(tensor, None) is tensor
    assert to_device(tensor, "cpu") is tensor


def test_the_peak_is_that_of_the_process_and_grows_with_what_it_holds():
    """By a process of its own: this one may have had more before. The operating system counts whole pages."""
    code = """
import torch
from quoin.train.peak_memory import peak_memory
before = peak_memory(torch.device("cpu"))["bytes"]
held = torch.ones(25_000_000)
print(peak_memory(torch.device("cpu"))["bytes"] - before)
"""
    grown = int(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
    assert 90e6 < grown < 130e6


@pytest.mark.parametrize(
    ("count", "kind", "told"),
    [
        (3 * 2**20, "process_resident", "peak memory 3 MiB, resident memory of the process"),
        (3 * 2**29, "gpu_allocated", "peak memory 1.5 GiB, allocated by torch on the GPU"),
    ],
)
def test_the_peak_is_called_what_it_is(count, kind, told):
    assert describe_peak_memory({"bytes": count, "kind": kind}) == told


def test_a_run_reports_its_peak(tmp_path):
    words = ["--hidden-dims", "4", "--epochs", "1", "--device", "cpu", "--num-threads", "1", "--runs", str(tmp_path)]
    assert main(["train", "mlp", *words]) in (0, 1)
    peak = RunFolder.open(tmp_path / "mlp-1").result["peak_memory"]  # type: ignore[index]
    assert peak["kind"] == "process_resident"
    assert 0 < peak["bytes"] <= (peak_memory(torch.device("cpu")) or peak)["bytes"]
    assert describe_peak_memory(peak) in (tmp_path / "mlp-1" / "report.html").read_text()
