"""What the system tells of the processor, read where it tells it; every place that names the machine says the same."""

import os
import re
from pathlib import Path

import pytest

import quoin
from quoin import processor
from quoin.bench.measurement import Measurement
from quoin.bench.overview import KeptResults
from quoin.bench.result import BenchmarkResult
from quoin.cli import train_all
from quoin.cli.doctor import examine
from quoin.data.image_workers import num_workers
from quoin.processor import num_cores, processor_family, processor_name
from quoin.train.device_context import describe_environment, setup_device

LINUX = "x86_64\nvendor_id\t: AuthenticAMD\ncpu family\t: 26\nmodel\t\t: 2\nmodel name\t: AMD EPYC \n"
WINDOWS = "AMD64 Family 26 Model 68 Stepping 0, AuthenticAMD"
ARM = "\nprocessor\t: 0\nBogoMIPS\t: 50.00\nCPU implementer\t: 0x41\n"


@pytest.mark.parametrize(
    ("told", "family", "name"),
    [
        (LINUX, 26, "AMD EPYC, family 26"),
        (LINUX.replace("26", "25"), 25, "AMD EPYC, family 25"),
        ("model name : Neoverse N1\n", 0, "Neoverse N1"),
        (f"{WINDOWS}\n", 26, WINDOWS),
        (f"aarch64{ARM}", 0, "aarch64"),
        ("arm", 0, "arm"),
        (ARM, 0, "CPU"),  # Debian's uname on ARM says "unknown", which Python takes for nothing
        ("\n", 0, "CPU"),
        ("", 0, "CPU"),
    ],
)
def test_name_and_family_are_read_where_the_system_tells_them(told, family, name):
    assert (processor_family(told), processor_name(told)) == (family, name)


def test_all_who_name_the_machine_name_its_processor(monkeypatch, tmp_path):
    """A run goes on to the same bits on the same kind of processor only, so its folder must tell which that was."""
    monkeypatch.setattr(processor, "processor_text", lambda: LINUX)
    assert describe_environment(setup_device("cpu")[0], 0)["device_name"] == "AMD EPYC, family 26"
    assert {each.what: each.found for each in examine()}["processor"] == "AMD EPYC, family 26"
    assert train_all._here(0)["machine"].startswith("AMD EPYC, family 26, ")
    kept = KeptResults(tmp_path)
    kept.write(BenchmarkResult("one", "One", 1, (Measurement("first", absent="not here"),), (None,)))
    assert kept.measured("one").endswith(f"AMD EPYC, family 26, {num_cores()} cores")


def test_cores_are_those_this_process_may_use(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {3, 5, 7}, raising=False)
    assert num_cores() == 3
    assert (num_workers(10_000), num_workers(40), num_workers(1)) == (3, 2, 1)
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert num_cores() == 6
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert num_cores() == 1


def test_nobody_else_asks_the_system():
    asks = re.compile(r"cpuinfo|cpu_count|platform\.processor|len\(os\.sched_getaffinity")
    root = Path(quoin.__file__).parent
    asking = [str(each.relative_to(root)) for each in root.rglob("*.py") if asks.search(each.read_text("utf-8"))]
    assert asking == ["processor.py"]
