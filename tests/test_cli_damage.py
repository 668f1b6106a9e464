"""Runs that are damaged, foreign, newer, locked or gone, and disks that are full: exit code 2, one line, nothing
lost."""

import errno
import fcntl
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import quoin.train.checkpoint
import quoin.train.folder
from commands import contents, refused, tried

QUICK = ["--max-steps", "4", "--checkpoint-every", "2", "--num-threads", "1"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A finished run of each recipe, of a few steps, with two checkpoints."""
    runs = tmp_path_factory.mktemp("trained")
    for name in ("mlp", "linear-regression"):
        assert tried("train", name, "--runs", runs, *QUICK)[0] == 0
    return runs


@pytest.fixture
def runs(trained, here):
    """A copy of the trained runs that a test may damage."""
    return Path(shutil.copytree(trained, here / "runs"))


GOOD = "a,b,label\n" + "".join(f"{i},{i * i},{'xy'[i % 2]}\n" for i in range(20))


# ---- runs and checkpoints ---------------------------------------------------------------------------------------


def test_predict_names_what_is_wrong_with_its_rows(runs, here):
    (here / "other.csv").write_text("a,b\n1,2\n")
    np.savez("other.npz", features=np.zeros((3, 2)))
    (here / "rows.txt").write_text("1")
    assert "pixel" in refused("predict", "runs/mlp-1", "other.csv")
    assert "64 features" in refused("predict", "runs/mlp-1", "other.npz")
    assert "rows.txt" in refused("predict", "runs/mlp-1", "rows.txt")
    np.savez("rows.npz", features=np.zeros((3, 64)))
    assert "'out.xls'" in refused("predict", "runs/mlp-1", "rows.npz", "--out", "out.xls")
    assert "--out" in refused("predict", "runs/mlp-1", "rows.npz", "--out", "none/out.csv")
    assert "4 features" in refused("eval", "runs/mlp-1", "--data", "iris")
    assert "--data" in refused("eval", "runs/mlp-1", "--target", "x")


# A finished run tells its result and reads no checkpoint: it is asked to go on from one.
COMMANDS = (["resume", "runs/mlp-1", "--step", "4"], ["eval", "runs/mlp-1"], ["predict", "runs/mlp-1", "rows.npz"])


@pytest.mark.parametrize("name", ["tensors.safetensors", "state.json", "manifest.json"])
@pytest.mark.parametrize("harm", ["cut", "flipped", "missing"])
def test_damaged_checkpoints(name, harm, runs, here):
    np.savez("rows.npz", features=np.zeros((3, 64)))
    file = runs / "mlp-1" / "checkpoints" / "00000004" / name
    content = file.read_bytes()
    if harm == "cut":
        file.write_bytes(content[:-7])
    elif harm == "flipped":
        middle = len(content) // 2
        file.write_bytes(content[:middle] + bytes([content[middle] ^ 4]) + content[middle + 1 :])
    else:
        file.unlink()
    before = contents(here)
    for words in COMMANDS:
        message = refused(*words)
        assert "00000004" in message
        assert name in message
        assert "--step 2" in message
        assert contents(here) == before
    assert tried("resume", "runs/mlp-1", "--step", "2")[0] == 0  # as the message says


def test_a_step_that_was_not_saved(runs):
    for words in (["resume", "runs/mlp-1"], ["eval", "runs/mlp-1"]):
        assert "it has 2, 4" in refused(*words, "--step", "3")


def test_a_checkpoint_of_another_recipe(runs, here):
    np.savez("rows.npz", features=np.zeros((3, 64)))
    shutil.rmtree(runs / "mlp-1" / "checkpoints")
    shutil.copytree(runs / "linear-regression-1" / "checkpoints", runs / "mlp-1" / "checkpoints")
    before = contents(here)
    for words in COMMANDS:
        message = refused(*words)
        assert "'linear-regression'" in message
        assert "'mlp'" in message
    assert contents(here) == before


@pytest.mark.parametrize("module", [quoin.train.checkpoint, quoin.train.folder], ids=["checkpoint", "folder"])
def test_a_newer_format(module, here, monkeypatch):
    """Written by a Quoin whose format is 99, read by this one."""
    np.savez("rows.npz", features=np.zeros((3, 64)))
    with monkeypatch.context() as newer:
        newer.setattr(module, "FORMAT", 99)
        assert tried("train", "mlp", *QUICK)[0] == 0
    before = contents(here)
    for words in COMMANDS:
        message = refused(*words)
        assert "format 99" in message
        assert "install" in message
    assert contents(here) == before


def test_runs_that_are_none(runs, here):
    assert "did you mean 'mlp-1'?" in refused("resume", "runs/mpl-1")
    assert "config.json" in refused("resume", "runs")
    (here / "file").write_text("x")
    assert "file" in refused("resume", "file")
    assert "file/x" in refused("eval", "file/x")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"format": 1, "recipe": "mlp"}', '{"format": "x", "recipe": "mlp"}', "\udcff"]
)
def test_damaged_configs(text, runs):
    (runs / "mlp-1" / "config.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    for words in (["resume"], ["eval"], ["compare", "runs/linear-regression-1"]):
        assert "config.json" in refused(*words, "runs/mlp-1")


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("recipe", "mpl"),
        ("options", {"lr": "x"}),
        ("options", {"lrr": 1}),
        ("options", 3),
        ("data", 3),
        ("data", {}),
        ("settings", {"num_threads": []}),
    ],
)
def test_configs_that_say_what_cannot_be(part, value, runs, here):
    np.savez("rows.npz", features=np.zeros((3, 64)))
    file = runs / "mlp-1" / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {part: value}))
    refused("predict", "runs/mlp-1", "rows.npz")
    if part != "data" or value:
        refused("resume", "runs/mlp-1")
    (runs / "linear-regression-1" / "environment.json").write_text("{}")
    assert "environment.json" in refused("resume", "runs/linear-regression-1", "--step", "4")


def test_data_that_changed_since(here):
    (here / "good.csv").write_text(GOOD)
    assert tried("train", "mlp", "--data", "csv:good.csv", *QUICK)[0] == 0
    (here / "good.csv").write_text(GOOD.replace("3,9", "3,8"))
    before = contents(here)
    for words in (["resume", "--step", "4"], ["eval"]):
        assert "changed" in refused(*words, "runs/mlp-1")
    assert contents(here) == before
    (here / "good.csv").unlink()
    assert "good.csv" in refused("resume", "runs/mlp-1", "--step", "4")
    assert tried("resume", "runs/mlp-1")[0] == 0  # it is finished: its result needs no data


def test_a_run_that_is_being_trained(runs):
    before = contents(runs)
    with open(runs / "mlp-1" / "lock", "r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        message = refused("resume", "runs/mlp-1", "--step", "4")
    assert "being trained" in message
    assert "wait" in message
    assert contents(runs) == before
    assert tried("resume", "runs/mlp-1")[0] == 0


# ---- disks ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["file/runs", "file", "/proc/quoin/runs"])
def test_runs_cannot_be_made_there(where, here):
    (here / "file").write_text("x")
    before = contents(here)
    for more in ([], ["--folds", "2"]):
        message = refused("train", "mlp", "--runs", where, *QUICK, *more)
        assert where in message
        assert "--runs" in message
    assert contents(here) == before


@pytest.mark.parametrize("more", [[], ["--folds", "2"]], ids=["run", "study"])
def test_a_disk_that_is_full_from_the_start(more, here, monkeypatch):
    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    message = refused("train", "mlp", *QUICK, *more)
    assert "the disk is full" in message
    assert "resume" not in message  # there is nothing to go on with
    assert not list(here.glob("runs/*"))


@pytest.mark.parametrize("share", [0.2, 0.4, 0.6, 0.8, 0.99])
def test_a_disk_that_fills_up_on_the_way(share, trained, here, monkeypatch):
    """The run stops in one line; with space again it goes on, and ends as one that never stopped."""
    syncs, room, real = [0], [10**9], os.fsync

    def full_later(handle):
        syncs[0] += 1
        if syncs[0] > room[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(handle)

    with monkeypatch.context() as filling:
        filling.setattr(os, "fsync", full_later)
        assert tried("train", "mlp", "--runs", "whole", *QUICK)[0] == 0
        syncs[0], room[0] = 0, int(share * syncs[0])
        message = refused("train", "mlp", *QUICK)
    assert "the disk is full" in message
    assert "quoin resume" in message
    assert [path.name for path in here.glob("runs/*")] == ["mlp-1"]
    assert tried("resume", "runs/mlp-1")[0] == 0
    metrics = [json.loads((runs / "mlp-1" / "result.json").read_text())["metrics"] for runs in (here / "runs", trained)]
    assert metrics[0] == metrics[1]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_outputs_onto_a_full_disk(runs, here):
    np.savez("rows.npz", features=np.zeros((3, 64)))
    for name in ("out.csv", "out.html", "figures/D1F1.svg"):
        (here / name).parent.mkdir(exist_ok=True)
        (here / name).symlink_to("/dev/full")
    for words in (
        "predict runs/mlp-1 rows.npz --out out.csv",
        "compare runs/mlp-1 runs/mlp-1 --out out.html",
        "figure D1F1",
    ):
        assert "No space left" in refused(*words.split())


def test_outputs_to_where_nothing_can_be(runs, here):
    (here / "file").write_text("x")
    np.savez("rows.npz", features=np.zeros((3, 64)))
    places = {
        "predict runs/mlp-1 rows.npz": "file/a.csv",
        "compare runs/mlp-1 runs/mlp-1": "file/a.html",
        "figure D1F1": "file/a",
    }
    for words, place in places.items():
        assert place in refused(*words.split(), "--out", place)


def test_outputs_do_not_overwrite_what_was_given(runs, here):
    np.savez("rows.npz", features=np.zeros((3, 64)))
    before = contents(here)
    assert "would be lost" in refused("predict", "runs/mlp-1", "rows.npz", "--out", "rows.npz")
    assert ".html" in refused("compare", "runs/mlp-1", "runs/linear-regression-1", "--out", "rows.npz")
    assert contents(here) == before
