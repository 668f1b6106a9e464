"""Runs side by side: the bits of each alone, one that fails costs no other, and nothing outlives whoever started it.

Real worker processes. What is to go wrong in one of them is patched in by a `sitecustomize` on the path that the
workers inherit.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from commands import refused, tried
from quoin.runs import RunConfig, jobs
from quoin.runs.jobs import describe_sharing, with_threads
from quoin.train import RunFolder
from tasks import difference, left_behind

pytestmark = pytest.mark.usefixtures("one_thread")

QUICK = ("train", "mlp", "--data", "iris", "--hidden-dims", 8, "--epochs", 4, "--checkpoint-every", 5)
LONG = ("train", "mlp", "--data", "iris", "--hidden-dims", 8, "--epochs", 400, "--checkpoint-every", 50)

# In a worker, at the tenth step of the run in the folder seed-1.
TROUBLE = """
import os, sys
if any("quoin.runs.worker" in word for word in sys.orig_argv):
    from quoin.train import NonFiniteLossError, Trainer
    step = Trainer._step
    def troubled(trainer, rows):
        if trainer.at.step == 9 and trainer.folder.path.name == "seed-1":
            {trouble}
        return step(trainer, rows)
    Trainer._step = troubled
"""


def members(multirun: Path) -> dict[str, object]:
    return {each.name: left_behind(RunFolder.open(each)) for each in sorted(multirun.glob("*-[0-9]"))}


def settings(run: Path) -> dict[str, object]:
    return json.loads((run / "config.json").read_text())["settings"]


@pytest.fixture
def alone(tmp_path) -> Path:
    """Three seeds one after another in this process."""
    assert tried(*QUICK, "--seeds", 3, "--num-threads", 1, "--runs", tmp_path / "alone")[0] == 0
    return tmp_path / "alone" / "mlp-1"


def test_side_by_side_has_the_bits_of_one_after_another(tmp_path):
    assert tried(*QUICK, "--seeds", 2, "--num-threads", 1, "--runs", tmp_path)[0] == 0
    code, out, err = tried(*QUICK, "--seeds", 2, "--num-threads", 1, "--jobs", 2, "--runs", tmp_path, "--log", "csv")
    assert code == 0, err
    assert "mlp: 2 runs at a time, 1 thread each" in err
    assert difference(members(tmp_path / "mlp-1"), members(tmp_path / "mlp-2")) is None
    assert len(members(tmp_path / "mlp-1")) == 2
    assert all((tmp_path / f"mlp-2/seed-{index}/log/metrics.csv").exists() for index in range(2))
    assert tried("resume", tmp_path / "mlp-2", "--jobs", 2)[1] == out  # finished: nothing is trained again


@pytest.mark.deep
def test_one_worker_and_folds_have_them_too(alone, tmp_path):
    assert tried(*QUICK, "--seeds", 3, "--num-threads", 1, "--jobs", 1, "--runs", tmp_path)[0] == 0
    assert difference(members(alone), members(tmp_path / "mlp-1")) is None
    for words in ((), ("--jobs", 2)):
        assert tried(*QUICK, "--folds", 2, "--num-threads", 1, *words, "--runs", tmp_path)[0] == 0
    assert difference(members(tmp_path / "mlp-2"), members(tmp_path / "mlp-3")) is None
    assert len(members(tmp_path / "mlp-3")) == 2


def test_threads_are_shared_out_and_stored(monkeypatch, tmp_path):
    monkeypatch.setattr(jobs, "num_cores", lambda: 8)
    assert with_threads(RunConfig(), 2).num_threads == 4
    assert with_threads(RunConfig(), 3).num_threads == 2
    assert with_threads(RunConfig(), 9).num_threads == 1
    assert with_threads(RunConfig(num_threads=3), 2).num_threads == 3
    begun = RunFolder.create(tmp_path, "mlp", {"kind": "study", "options": {}, "settings": {}}, {"threads": 5})
    assert with_threads(RunConfig(), 2, [begun]).num_threads == 5  # its bits depend on it, and so do the others'
    assert describe_sharing(RunConfig(device="cpu", num_threads=4), 2) == ["2 runs at a time, 4 threads each"]
    (told,) = describe_sharing(RunConfig(device="cpu", num_threads=1), 9)
    assert "more than the 8 cores" in told


@pytest.mark.deep
def test_the_number_of_threads_is_the_share(tmp_path):
    assert tried(*QUICK, "--seeds", 2, "--jobs", 2, "--runs", tmp_path)[0] == 0
    share = max(1, jobs.num_cores() // 2)
    for run in (tmp_path / "mlp-1", tmp_path / "mlp-1" / "seed-1"):
        assert settings(run)["num_threads"] == share
    environment = json.loads((tmp_path / "mlp-1" / "seed-1" / "environment.json").read_text())
    assert environment["threads"] == share


@pytest.mark.deep
@pytest.mark.parametrize(
    ("trouble", "why"),
    [
        ("os.kill(os.getpid(), 9)", "its process was killed by SIGKILL"),
        ("raise NonFiniteLossError('loss is not finite at step 10')", "loss is not finite"),
        ("os.write(2, b'a fault'); os._exit(3)", "ended with exit code 3: a fault"),
        ("raise ZeroDivisionError('of ours')", "ZeroDivisionError: of ours"),
    ],
)
def test_a_run_that_fails_costs_no_other_and_is_tried_again(trouble, why, alone, tmp_path, monkeypatch):
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "sitecustomize.py").write_text(TROUBLE.format(trouble=trouble))
    with monkeypatch.context() as patch:
        patch.syspath_prepend(str(tmp_path / "path"))
        code, out, err = tried(*QUICK, "--seeds", 3, "--num-threads", 1, "--jobs", 2, "--runs", tmp_path)
    path = tmp_path / "mlp-1"
    assert (code, out) == (1, "")
    told = [line for line in err.splitlines() if line.startswith("quoin: ")]
    assert len(told) == 2, err
    assert told[0].startswith(f"quoin: {path / 'seed-1'} failed: ")
    assert why in told[0]
    assert told[1] == f"quoin: 1 of 3 runs failed; try them again with: quoin resume {path}"
    assert [(path / f"seed-{index}" / "result.json").exists() for index in range(3)] == [True, False, True]
    assert not (path / "result.json").exists()
    assert tried("resume", path, "--jobs", 2)[0] == 0
    assert difference(members(alone), members(path)) is None


@pytest.mark.deep
def test_a_mistake_of_all_is_one_line_and_leaves_nothing(tmp_path):
    words = ("train", "mlp", "--data", "csv:none.csv", "--target", "a", "--seeds", 50, "--jobs", 1, "--json")
    assert "none.csv" in refused(*words, "--runs", tmp_path)  # told once, not fifty times
    assert not list(tmp_path.iterdir())


def test_jobs_are_for_several_runs(tmp_path):
    assert "--seeds or --folds" in refused(*QUICK, "--jobs", 2, "--runs", tmp_path)
    assert "from 1 to 1024" in refused(*QUICK, "--seeds", 2, "--jobs", 0, "--runs", tmp_path)
    assert not list(tmp_path.iterdir())


def started(tmp_path: Path) -> tuple[subprocess.Popen, Path]:
    """A multirun of which two runs have a checkpoint each."""
    words = [*LONG, "--seeds", 3, "--num-threads", 1, "--jobs", 2, "--runs", tmp_path]
    process = subprocess.Popen(
        [sys.executable, "-m", "quoin.cli", *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    path = tmp_path / "mlp-1"
    end = time.monotonic() + 300  # a bound on waiting for ever
    while time.monotonic() < end and len({each.parts[-3] for each in path.glob("seed-*/checkpoints/0*")}) < 2:
        time.sleep(0.01)
    return process, path


def workers(path: Path) -> list[int]:
    """The worker processes that hold a run of the multirun and are alive."""
    numbers = [int(lock.read_text()) for lock in path.glob("seed-*/lock")]
    return [number for number in numbers if _is_worker(number)]


def _is_worker(number: int) -> bool:
    try:
        status = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
        return status != "Z" and b"quoin.runs.worker" in Path(f"/proc/{number}/cmdline").read_bytes()
    except OSError:
        return False


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("undisturbed")
    assert tried(*LONG, "--seeds", 3, "--num-threads", 1, "--runs", root)[0] == 0
    return root / "mlp-1"


@pytest.mark.deep
@pytest.mark.parametrize("words", [(), ("--jobs", 2)])
def test_when_whoever_started_them_is_killed_the_workers_end(words, undisturbed, tmp_path):
    process, path = started(tmp_path)
    assert workers(path)
    process.kill()
    process.communicate()
    end = time.monotonic() + 60
    while time.monotonic() < end and workers(path):
        time.sleep(0.01)
    assert not workers(path)
    assert not (path / "seed-2" / "result.json").exists()
    code, _, told = tried("resume", path, *words)
    assert code == 0, told
    assert difference(members(undisturbed), members(path)) is None


@pytest.mark.deep
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_stops_all_with_whole_checkpoints(number, undisturbed, tmp_path):
    process, path = started(tmp_path)
    os.kill(process.pid, number)
    _, told = process.communicate()
    assert process.returncode == 130, told
    assert not workers(path)
    assert re.search(rf"^quoin: interrupted .* quoin resume {re.escape(str(path))}$", told, re.MULTILINE)
    assert "Traceback" not in told
    assert tried("resume", path, "--jobs", 2)[0] == 0
    assert difference(members(undisturbed), members(path)) is None


@pytest.mark.parametrize("jobs", [0, pytest.param(2, marks=pytest.mark.deep)])
def test_the_memory_format_is_chosen_once(jobs, tmp_path, monkeypatch):
    """In a long run the clock chooses it, and the last bits depend on it: runs that choose each for itself would have
    other bits side by side than one after another."""
    measured = iter(["channels-last", "contiguous", "contiguous"])
    monkeypatch.setattr("quoin.tasks.memory_format.faster_memory_format", lambda task, max_steps: next(measured))
    words = ("train", "lenet", "--max-steps", 2, "--seeds", 2, "--num-threads", 1, "--runs", tmp_path)
    assert tried(*words, *(("--jobs", jobs) if jobs else ()))[0] == 0
    found = [settings(tmp_path / "lenet-1" / name)["memory_format"] for name in ("seed-0", "seed-1")]
    assert found == ["channels-last", "channels-last"]
