"""Real processes, really killed: SIGKILL at random moments (`make torture` does a thousand), Ctrl-C, and two runs of
one seed."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from commands import stopping, without_progress
from quoin.cli import main
from quoin.train import RunFolder
from tasks import difference, left_behind

QUOIN = [sys.executable, "-m", "quoin.cli"]


@pytest.mark.deep
def test_runs_killed_at_random_moments_end_in_the_same_bits():
    script = Path(__file__).with_name("torture.py")
    ended = subprocess.run([sys.executable, str(script), "10", "--seed", "0"], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert re.search(r"^10 kills, \d+ runs, all equal to the bit", ended.stdout, re.MULTILINE), ended.stdout


def test_one_seed_twice_gives_the_same_bits_and_another_seed_others(tmp_path):
    """Whole default runs in processes of their own, beside each other: nothing may come from the machine's state."""
    runs = {
        name: ["--seed", seed, "--runs", str(tmp_path / name)]
        for name, seed in (("one", "0"), ("two", "0"), ("other", "1"))
    }
    started = [
        subprocess.Popen([*QUOIN, "train", "mlp", "--num-threads", "1", *words], stdout=subprocess.DEVNULL)
        for words in runs.values()
    ]
    assert [process.wait() for process in started] == [0, 0, 0]
    one, two, other = (left_behind(RunFolder.open(tmp_path / name / "mlp-1")) for name in runs)
    assert difference(one, two) is None
    assert difference(one["checkpoint"][0]["task"]["model"], other["checkpoint"][0]["task"]["model"]) is not None


def test_ctrl_c_saves_says_how_to_go_on_and_the_resumed_run_is_the_same(tmp_path):
    words = [
        "train",
        "mlp",
        "--num-threads",
        "1",
        "--device",
        "cpu",
        "--hidden-dims",
        "8",
        "--epochs",
        "12",
        "--checkpoint-every",
        "50",
    ]
    stopped = subprocess.run(stopping(signal.SIGINT, *words, "--runs", tmp_path), capture_output=True, text=True)
    told = without_progress(stopped.stderr)
    assert stopped.returncode == 130, told
    path = tmp_path / "mlp-1"
    assert f"quoin resume {path}" in told
    assert len(told.strip().splitlines()) == 1
    run = RunFolder.open(path)
    assert run.result is None
    assert 1 <= len(run.metrics()) < 12
    assert "interrupted" in (path / "report.html").read_text(encoding="utf-8")
    assert main(["resume", str(path)]) == 0
    assert main([*words, "--runs", str(tmp_path / "whole")]) == 0
    assert (
        difference(left_behind(RunFolder.open(tmp_path / "whole" / "mlp-1")), left_behind(RunFolder.open(path))) is None
    )


def test_ctrl_c_while_it_starts_is_one_line(tmp_path):
    with subprocess.Popen(
        [*QUOIN, "train", "mlp", "--runs", str(tmp_path)], stderr=subprocess.PIPE, text=True
    ) as process:
        end = time.monotonic() + 600  # a bound on waiting for ever, not on its speed
        while time.monotonic() < end and "libtorch" not in Path(f"/proc/{process.pid}/maps").read_text():
            time.sleep(0.01)  # until torch is being imported
        os.kill(process.pid, signal.SIGINT)
        _, told = process.communicate()
    assert process.returncode in (130, -signal.SIGINT)
    assert "Traceback" not in told
