"""A process that trains on the CPU keeps the memory its tensors free, until the training ends."""

import json
import os
import subprocess
import sys

import pytest

from quoin.train import host_memory, setup_device, torch_as_it_was
from quoin.train.host_memory import keep_freed_memory

pytestmark = pytest.mark.skipif(host_memory._glibc() is None, reason="only glibc can be told what to keep")

# Steps that hold 30 tensors of 8 MiB at once and free them all; the pages that each of the last steps had to be given.
STEPS = """
import json, resource, sys, torch
from quoin.train import setup_device
from quoin.train.host_memory import release_freed_memory

def resident():
    return int(open("/proc/self/statm").read().split()[1])

def step():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    held = [torch.zeros(2**21).add_(1) for _ in range(30)]
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

if sys.argv[1] == "kept":
    setup_device("cpu", threads=1)
faults = [step() for _ in range(6)][3:]
kept = resident()
release_freed_memory()
print(json.dumps({"faults": faults, "released": kept - resident()}))
"""
PAGES = 30 * 8 * 2**20 // os.sysconf("SC_PAGE_SIZE")


def steps(how: str, **environment: str) -> dict:
    ended = subprocess.run(
        [sys.executable, "-c", STEPS, how],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(ended.stdout)


def test_a_step_is_given_no_page_that_the_one_before_had():
    assert max(steps("kept")["faults"]) < PAGES / 20


def test_what_lies_free_is_handed_back_at_the_end():
    assert steps("kept")["released"] > PAGES / 2


def test_an_environment_that_chose_is_left_as_it_is(monkeypatch):
    """glibc's smallest threshold hands every tensor back: with it a step is given all of its pages anew."""
    assert min(steps("kept", MALLOC_MMAP_THRESHOLD_="65536")["faults"]) > PAGES / 2
    for name in ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES", "LD_PRELOAD"):
        with monkeypatch.context() as patched:
            patched.setenv(name, "1")
            assert not keep_freed_memory(), name


def test_training_on_the_cpu_asks_for_it_and_gives_it_back(monkeypatch):
    for each in host_memory._CHOSEN:
        monkeypatch.delenv(each, raising=False)
    told = []

    class Library:
        def mallopt(self, parameter: int, value: int) -> int:
            told.append((parameter, value))
            return 1

        def malloc_trim(self, pad: int) -> int:
            told.append(("trim", pad))
            return 1

    monkeypatch.setattr(host_memory, "_glibc", Library)
    with torch_as_it_was():
        setup_device("cpu")
        assert told == [(-3, 2**25), (-1, 2**30)]
    assert told[2:] == [(-1, 2**26), ("trim", 0)]  # glibc's own threshold is twice the least that is mapped alone
    del told[:]
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "1")
    with torch_as_it_was():
        setup_device("cpu")
    assert told == []  # whoever chose for themselves is left alone, before and after


def test_where_the_library_is_another_nothing_happens(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not keep_freed_memory()
    host_memory.release_freed_memory()
