"""Training in several processes: what it shares with training in one, what is decided together, what is refused, and
what happens when a process dies."""

import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from commands import tried
from process_group import SRC, free_port, in_processes
from quoin.errors import UserError
from quoin.runs import find_recipe, launch
from quoin.runs.processes import check_processes
from quoin.train import DeviceContext, RunFolder, torch_as_it_was
from quoin.train.data_parallel import _blocks
from quoin.train.gradient_updater import _marking_last
from tasks import difference, left_behind
from trained_together import several_things, unused_parameters

QUOIN = [sys.executable, "-m", "quoin"]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(SRC)}
SMALL = ["--device", "cpu", "--num-threads", "1", "--hidden-dims", "8", "--batch-size", "64", "--dropout", "0.2"]
RECIPES = {
    "mlp": {"batch_size": 31, "dropout": 0.2},
    "lenet": {"batch_size": 21},
    str(Path(__file__).with_name("lenet_batch_norm.py")): {"batch_size": 21},
    "resnet": {"batch_size": 7},  # with batch norm
    "transformer-lm": {"batch_size": 5, "context_length": 16, "dropout": 0.1},
    "lstm-lm": {"batch_size": 5},
    "vae": {"batch_size": 15},
    "gan": {"batch_size": 14},
    "diffusion-2d": {"batch_size": 33},
}
# In float64 alone: in one process, too, a change of 1e-7 of the weights moves the losses by 0.1 within 50 steps
# (measured in float32 and float64), as kinks of the ReLUs are crossed and batch norm of seven rows makes much of it.
SENSITIVE = {"resnet"}


def quoin(*words: str, processes: int = 1, check: bool = True) -> str:
    """What a command in a process of its own prints on standard error."""
    several = ["--processes", str(processes)] if processes > 1 else []
    done = subprocess.run([*QUOIN, *words, *several], capture_output=True, text=True, env=ENVIRONMENT, timeout=300)
    assert not check or done.returncode == 0, done.stderr
    return done.stderr


def relative(one: list[float], other: list[float]) -> float:
    assert len(one) == len(other)
    return max(abs(a - b) / abs(a) for a, b in zip(one, other))


def test_two_processes_make_the_steps_of_one():
    with torch_as_it_was():
        one, two = several_things(), in_processes(2, "trained_together:several_things")
    for number, bound in enumerate((1e-10, 1e-10, 1e-4, 1e-4)):  # DDP and FSDP2, in float64 and in float32
        assert relative(one["losses"][number], two[0]["losses"][number]) < bound
        assert two[0]["losses"][number] == two[1]["losses"][number]
    # each keeps its fraction of the weights under FSDP2 alone
    assert one["kept"][0] == one["kept"][1] == two[0]["kept"][0] == two[1]["kept"][0]
    assert two[0]["kept"][1] + two[1]["kept"][1] == one["kept"][0]
    # without a gradient a weight stays where it is: weight decay comes with the gradient
    assert two[0]["unused"] == two[1]["unused"]
    seen, sometimes, unseen = two[0]["unused"]
    assert seen == pytest.approx(by_hand(range(4)))
    assert sometimes == pytest.approx(by_hand((2, 3), start=2.0))
    assert unseen == [3.0] * 3
    assert one["unused"][2] == [3.0] * 3
    # a loss that is not finite in one process ends all, with the same words
    assert two[0]["diverging"] == two[1]["diverging"]
    assert "not finite at step 1" in two[0]["diverging"]
    assert "first bad tensor: the batch's features" in two[0]["diverging"]
    # what one asks for, all do after the same step
    assert two[0]["agreed"] == two[1]["agreed"]
    assert two[0]["agreed"]
    assert min(two[0]["agreed"]) >= 10


def by_hand(rows, start=1.0):
    """A weight after the two steps of `unused_parameters`, whose gradient is the sum of the rows over 4."""
    gradient = torch.arange(12.0).reshape(4, 3)[list(rows)].sum(0) / 4
    weight = torch.full((3,), start)
    for _ in range(2):
        weight = weight - 0.5 * (gradient + 0.1 * weight)
    return weight.tolist()


def test_processes_end_well_while_threads_of_theirs_are_at_work():
    for _ in range(3):  # with sys.exit at the end, seven of eight processes were aborted
        assert in_processes(2, "trained_together:exchanges_under_way") == [True, True]


def test_what_is_to_be_done_at_the_end_of_a_process_is_done():
    body = "import atexit; from quoin.runs.launch import end_process; atexit.register(print, 'done'); end_process({})"
    for world_size, code, said in ((1, 0, "done\n"), (1, 2, "done\n"), (2, 0, "done\n"), (2, 2, "")):
        ended = subprocess.run(
            [sys.executable, "-c", body.format(code)],
            env=os.environ | {"WORLD_SIZE": str(world_size)},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert (ended.returncode, ended.stdout) == (code, said)


def test_one_process_by_hand():
    seen, sometimes, unseen = unused_parameters(0)
    assert seen == pytest.approx(by_hand(range(4)))
    assert sometimes == pytest.approx(by_hand(range(4), start=2.0))
    assert unseen == [3.0] * 3


@pytest.mark.parametrize("number", [0, 1, 2, 5])
def test_the_last_piece_is_known_as_the_last(number):
    assert list(_marking_last(range(number))) == [(each, each == number - 1) for each in range(number)]


def test_blocks_are_the_outermost_of_lists_and_share_no_weight_with_others():
    inner = nn.Linear(2, 2)
    layers = nn.ModuleList([nn.Sequential(inner, nn.ReLU()), nn.TransformerEncoderLayer(4, 2, 8)])
    first, last = nn.Linear(2, 2), nn.Linear(2, 2)
    last.weight = first.weight
    model = nn.ModuleDict({"layers": layers, "first": nn.Sequential(first, nn.Tanh()), "last": last})
    assert list(_blocks(model)) == [inner, layers[1]]


@pytest.mark.parametrize(
    ("commands", "cause"),
    [
        (["exit 1", "kill -9 $$"], 1),  # the first fails as it misses the second
        (["kill -9 $$", "exit 1"], 0),
        (["exit 1", "sleep 60"], 0),  # the second is ended by us
        (["exit 0", "exit 130"], None),
    ],
)
def test_the_process_that_was_killed_is_the_cause(commands, cause, monkeypatch):
    monkeypatch.setattr(launch, "ENDS_WITHIN", 0.1)
    started = [
        launch._Process(rank, subprocess.Popen(["sh", "-c", f"exec 2> /dev/null; {words}"]), None)
        for rank, words in enumerate(commands)
    ]
    if "sleep 60" not in commands:
        for each in started:
            each.process.wait()  # both have ended before anybody looks
    failed = launch._wait(started, [])
    assert (failed and failed.rank) == cause


def test_what_several_processes_cannot_train_is_refused():
    together = DeviceContext(world_size=2)
    recipe = find_recipe("gmm")
    with pytest.raises(UserError, match="gmm is made for one process, got 2"):
        check_processes(recipe, recipe.build(recipe.options(), DeviceContext()), together)
    recipe = find_recipe("mlp")
    options: Any = recipe.options
    task = recipe.build(options(batch_size=1), DeviceContext())
    with pytest.raises(UserError, match="2 processes need at least as many rows in a batch, got 1"):
        check_processes(recipe, task, together)
    check_processes(recipe, task, DeviceContext())


@pytest.mark.parametrize(
    ("words", "environment", "expected"),
    [
        (["train", "mlp", "--processes", "2"], {"WORLD_SIZE": "2", "RANK": "0"}, "leave --processes out"),
        (["train", "mlp", "--processes", "2", "--seeds", "3"], {}, "--seeds with 2 processes"),
        (["train", "mlp", "--folds", "3"], {"WORLD_SIZE": "2", "RANK": "0"}, "--folds with 2 processes"),
        (["train", "mlp", "--processes", "2", "--lr", "auto"], {}, "--lr auto with 2 processes"),
        (["sweep", "mlp", "--lr", "0.1,0.2", "--processes", "2"], {}, "--processes 2: each trial"),
        (["eval", "runs/mlp-1"], {"WORLD_SIZE": "2", "RANK": "0"}, "quoin eval runs in one process"),
        (["train", "mlp"], {"WORLD_SIZE": "2", "RANK": "0"}, "MASTER_ADDR, MASTER_PORT is not set"),
        (["train", "mlp", "--processes", "0"], {}, "--processes"),
        (["resume", "nowhere", "--processes", "x"], {}, "--processes"),
    ],
)
def test_refusals(words, environment, expected, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    code, _, told = tried(*words)
    assert code == 2
    assert told.count("\n") == 1
    assert expected in told
    assert not list(tmp_path.iterdir())


@pytest.mark.deep
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["resume", "nowhere"], "no run folder at nowhere"),  # met by the first process alone
        (["train", "mlp", *SMALL, "--runs", "file/inside"], "the run folder cannot be made in file/inside"),
        (["train", "mlp", *SMALL, "--batch-size", "1"], "2 processes need at least as many rows"),  # by all of them
        (["train", "gmm"], "gmm is made for one process, got 2"),
    ],
)
def test_a_mistake_that_processes_meet_is_told_once(words, expected, tmp_path):
    (tmp_path / "file").write_text("")
    command = [*QUOIN, *words, "--processes", "2"]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, cwd=tmp_path, timeout=300)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1, done.stderr
    assert expected in done.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_sharding_in_one_process_is_remarked_upon(tmp_path):
    code, _, told = tried("train", "mlp", *SMALL, "--max-steps", "2", "--shard", "--runs", tmp_path)
    assert code == 0
    assert "--shard changes nothing: one process keeps all of the model" in told
    assert RunFolder.open(tmp_path / "mlp-1").environment["shard"] is False


@pytest.mark.deep
def test_processes_start_write_one_folder_and_go_on_in_another_number(tmp_path):
    """Two processes are stopped by a signal to the command, resumed by one, and end as one process does."""
    words = ["train", "mlp", *SMALL, "--checkpoint-every", "10", "--max-steps", "60"]
    quoin(*words, "--runs", str(tmp_path / "one"))
    started = subprocess.Popen(
        [*QUOIN, *words, "--runs", str(tmp_path / "two"), "--processes", "2"],
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    run = tmp_path / "two" / "mlp-1"
    while started.poll() is None and not list(run.glob("checkpoints/0*")):
        time.sleep(0.01)
    started.send_signal(signal.SIGTERM)
    told = started.communicate(timeout=120)[1]
    assert started.returncode in (0, 130), told  # the last steps may have come first
    if started.returncode == 130:
        assert re.search(
            r"interrupted at step \d+; everything is saved. Go on with: quoin resume \S+ --processes 2", told
        )
        told = quoin("resume", str(run))
        assert "processes 2 is now 1: the run goes on, but not to the bits it would have had" in told
    assert RunFolder.open(run).config["settings"]["processes"] == 2
    assert RunFolder.open(run).environment["processes"] == 2
    results: Any = [RunFolder.open(tmp_path / name / "mlp-1").result for name in ("one", "two")]
    assert results[0]["metrics"] == pytest.approx(results[1]["metrics"], rel=1e-4)


@pytest.mark.deep
@pytest.mark.parametrize("name", RECIPES)
def test_losses_over_fifty_steps_are_those_of_one_process(name):
    dtypes = ("float64",) if name in SENSITIVE else ("float64", "float32")
    cases = [[name, RECIPES[name], 50, dtype] for dtype in dtypes]
    one = in_processes(1, "trained_together:losses_of", cases, timeout=900)[0]
    sharing = [[*case, shard] for case in cases for shard in (False, True)]
    two = in_processes(2, "trained_together:losses_of", sharing, timeout=900)
    again = in_processes(2, "trained_together:losses_of", sharing[:2], timeout=900)
    assert again[0] == two[0][:2]  # the same number twice: equal bits
    for number, (_, _, _, dtype, _) in enumerate(sharing):
        bound = 1e-10 if dtype == "float64" else 1e-4
        assert relative(one[number // 2], two[0][number]) < bound, sharing[number]
        assert two[0][number] == two[1][number]


@pytest.mark.deep
def test_micro_batches_in_several_processes():
    cases = [["mlp", {"batch_size": 31, "dropout": 0.2, "micro_batch_size": size}, 20] for size in (0, 4, 15)]
    one = in_processes(1, "trained_together:losses_of", cases[:1])[0][0]
    sharing = [[*case, "float64", shard] for case in cases for shard in (False, True)]
    for found in in_processes(3, "trained_together:losses_of", sharing):
        assert all(relative(one, each) < 1e-10 for each in found)


@pytest.mark.deep
def test_killed_processes_end_in_the_same_bits():
    script = Path(__file__).with_name("processes_torture.py")
    done = subprocess.run([sys.executable, str(script), "20"], capture_output=True, text=True, env=ENVIRONMENT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^20 kills, \d+ runs, all as those never stopped", done.stdout, re.MULTILINE), done.stdout


@pytest.mark.deep
@pytest.mark.parametrize("victim", [0, 1])
def test_a_killed_process_takes_the_others_down_with_one_line(tmp_path, victim):
    words = ["train", "mlp", *SMALL, "--checkpoint-every", "10", "--epochs", "5000", "--runs", str(tmp_path)]
    started = subprocess.Popen([*QUOIN, *words, "--processes", "2"], stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    while started.poll() is None and not list(tmp_path.glob("mlp-1/checkpoints/0*")):
        time.sleep(0.01)
    children = Path(f"/proc/{started.pid}/task/{started.pid}/children").read_text().split()
    by_rank = {Path(f"/proc/{child}/environ").read_bytes().split(b"\0RANK=")[1][:1]: int(child) for child in children}
    os.kill(by_rank[str(victim).encode()], signal.SIGKILL)
    began = time.monotonic()
    told = started.communicate(timeout=60)[1]
    assert time.monotonic() - began < 30
    assert started.returncode == 1
    lines = [line for line in told.splitlines() if line.startswith("quoin: ")]
    assert lines == [
        f"quoin: process {victim} of 2 was killed by SIGKILL (the memory may be full), and the others were ended; "
        f"go on with: quoin resume {tmp_path / 'mlp-1'} --processes 2"
    ]
    assert "Traceback" not in told


@pytest.mark.deep
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_before_there_is_anything_to_save(tmp_path, number):
    words = ["train", "mlp", *SMALL, "--epochs", "5000", "--runs", str(tmp_path), "--processes", "2"]
    started = subprocess.Popen([*QUOIN, *words], stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    children = Path(f"/proc/{started.pid}/task/{started.pid}/children")
    while started.poll() is None and len(children.read_text().split()) < 2:
        time.sleep(0.01)
    started.send_signal(number)
    assert started.communicate(timeout=60)[1] == "quoin: stopped\n"
    assert started.returncode == 130


@pytest.mark.deep
def test_two_nodes_by_torchrun_one_of_which_has_no_run_folder(tmp_path):
    """Two agents over loopback, each with a folder of its own to write to: only the first writes."""
    words = ["train", "mlp", *SMALL, "--max-steps", "60", "--runs", "here"]
    port, started = str(free_port()), []
    for node in (0, 1):
        (tmp_path / str(node)).mkdir()
        place = ["--nnodes", "2", "--node-rank", str(node), "--master-addr", "127.0.0.1", "--master-port", port]
        command = [
            sys.executable,
            "-m",
            "torch.distributed.run",
            *place,
            "--nproc-per-node",
            "2",
            "-m",
            "quoin",
            *words,
        ]
        started.append(
            subprocess.Popen(
                command, cwd=tmp_path / str(node), env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        )
    ended = [each.communicate(timeout=300) for each in started]
    assert [each.returncode for each in started] == [0, 0], ended
    assert not (tmp_path / "1" / "here").exists()
    assert ended[1][0] == b""
    assert b"test_accuracy" in ended[0][0]
    found = RunFolder.open(tmp_path / "0" / "here" / "mlp-1")
    assert found.environment["processes"] == 4
    quoin(*words[:-1], str(tmp_path / "one"))
    one = RunFolder.open(tmp_path / "one" / "mlp-1").result
    assert one is not None
    assert found.result is not None
    assert one["metrics"] == pytest.approx(found.result["metrics"], rel=1e-4)


@pytest.mark.deep
@pytest.mark.parametrize("recipe", ["gan", "diffusion-2d", "lenet"])
def test_a_sharded_run_stopped_and_resumed_has_the_same_bits(tmp_path, recipe):
    words = ["train", recipe, "--device", "cpu", "--num-threads", "1", "--shard", "--checkpoint-every", "4"]
    quoin(*words, "--max-steps", "12", "--runs", str(tmp_path / "whole"), processes=2)
    quoin(*words, "--max-steps", "12", "--runs", str(tmp_path / "resumed"), processes=2)
    run = tmp_path / "resumed" / f"{recipe}-1"
    quoin("resume", str(run), "--step", "8", processes=2)
    whole, resumed = (left_behind(RunFolder.open(tmp_path / name / f"{recipe}-1")) for name in ("whole", "resumed"))
    assert difference(whole, resumed) is None
    assert math.isfinite(json.loads((run / "result.json").read_text())["seconds"])
