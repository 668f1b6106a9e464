"""The run folder: one process trains it, its lines survive a torn end, its files say what is wrong with them."""

import errno
import json
import os
import signal
import subprocess
import sys

import pytest

from quoin.errors import UserError
from quoin.train import RunFolder, durable
from quoin.train.run_files import ResultFile
from tasks import new_folder

HOLD = """
import sys, time
from pathlib import Path
from quoin.train.folder import RunFolder
with RunFolder(Path(sys.argv[1])).locked():
    print("held", flush=True)
    time.sleep(3600)
"""


def test_two_processes_cannot_train_one_run_and_a_killed_one_leaves_no_lock(tmp_path):
    run = new_folder(tmp_path)
    with subprocess.Popen([sys.executable, "-c", HOLD, str(run.path)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(UserError, match=f"is being trained by process {holder.pid}: wait"), run.locked():
            raise AssertionError("two processes hold one run")
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    with run.locked():
        assert (run.path / "lock").read_text() == str(os.getpid())
        with pytest.raises(UserError, match=f"process {os.getpid()}"), RunFolder(run.path).locked():
            raise AssertionError("held twice")
    with run.locked():  # let go when left
        pass


def test_folders_are_numbered_by_recipe_and_never_reused(tmp_path):
    names = [new_folder(tmp_path, recipe).path.name for recipe in ("mlp", "mlp", "mlp-2", "mlp")]
    assert names == ["mlp-1", "mlp-2", "mlp-2-1", "mlp-3"]
    (tmp_path / "mlp-9").mkdir()  # debris of a kill counts too
    assert new_folder(tmp_path, "mlp").path.name == "mlp-10"


def test_a_torn_line_is_cut_off(tmp_path):
    run = new_folder(tmp_path)
    lines = [{"step": step, "epoch": step / 3, "seconds": 0.5, "train_grün": 1 / 3 + step} for step in range(3)]
    for line in lines:
        run.append_metrics(line)
    whole = (run.path / "metrics.jsonl").read_bytes()
    last = whole.rstrip(b"\n").rfind(b"\n") + 1
    for length in range(last, len(whole) - 1):
        (run.path / "metrics.jsonl").write_bytes(whole[:length])
        assert run.metrics() == lines[:2]
        run.truncate_metrics(3)
        run.append_metrics(lines[2])
        assert (run.path / "metrics.jsonl").read_bytes() == whole
    run.truncate_metrics(1)
    assert run.metrics() == lines[:1]


def test_a_folder_that_is_none_says_what_to_do(tmp_path):
    new_folder(tmp_path, "mlp")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="did you mean 'mlp-1'"):
        RunFolder.open(tmp_path / "mlp-2")
    with pytest.raises(UserError, match=r"it has no config\.json"):
        RunFolder.open(tmp_path / "empty")
    with pytest.raises(UserError, match="quoin train RECIPE"):
        RunFolder.open(tmp_path / "nowhere" / "mlp-1")


BAD = ["", "{", "[]", "{}", "[" * 100_000, '{"format": "2", "recipe": "mlp"}', '{"format": 2, "recipe": 3}', "\udcff"]


@pytest.mark.parametrize("text", BAD)
def test_a_bad_config_is_told_in_one_line(tmp_path, text):
    run = new_folder(tmp_path)
    (run.path / "config.json").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(UserError) as caught:
        RunFolder.open(run.path)
    assert len(str(caught.value).splitlines()) == 1
    assert "config.json" in str(caught.value)


@pytest.mark.parametrize("format", [0, 1, 3])
def test_a_run_of_another_format_is_refused(tmp_path, format):
    run = new_folder(tmp_path)
    (run.path / "config.json").write_text(json.dumps({**run.config, "format": format}))
    with pytest.raises(
        UserError,
        match=rf"expected format 2, .*config\.json has format {format}: install the Quoin that wrote it, or train "
        r"again",
    ):
        RunFolder.open(run.path)


def test_a_missing_step_names_those_there_are(tmp_path):
    run = new_folder(tmp_path)
    assert run.load_checkpoint() is None
    with pytest.raises(UserError, match="no checkpoint of step 5: it has none"):
        run.load_checkpoint(5)
    for step in (1, 2, 3):
        run.save_checkpoint({"step": step}, step)
    with pytest.raises(UserError, match="no checkpoint of step 1: it has 2, 3"):
        run.load_checkpoint(1)
    assert run.load_checkpoint() == ({"step": 3}, 3)


def test_another_recipes_checkpoint_moved_here_is_refused(tmp_path):
    mine, theirs = new_folder(tmp_path, "mine"), new_folder(tmp_path, "theirs")
    theirs.save_checkpoint({"a": 1}, 4)
    theirs.checkpoints.rename(mine.checkpoints)
    with pytest.raises(UserError, match="belongs to recipe 'theirs', expected 'mine'"):
        mine.load_checkpoint()


RESULT: ResultFile = {
    "metrics": {"test_a": 1},
    "target": None,
    "steps": 3,
    "epochs": 1,
    "best_step": 2,
    "seconds": 0.5,
    "saving_seconds": 0.25,
}


def test_json_files_are_replaced_whole(tmp_path):
    run = new_folder(tmp_path)
    run.save_result(RESULT)
    (run.path / ".result.json.0123456789abcdef.draft").write_text("{")  # a kill while writing leaves this
    assert run.result == RESULT
    run.save_result({"metrics": {"a": 2}})
    assert json.loads((run.path / "result.json").read_text()) == {"metrics": {"a": 2}}
    assert not list(run.path.glob(".*"))


def test_a_full_disk_between_the_runs_of_a_study_says_how_to_go_on(tmp_path, monkeypatch):
    """With a run that has begun the multirun can be resumed; without one `quoin train` leaves nothing behind."""
    study = RunFolder.create(tmp_path, "small", {"kind": "multirun", "multirun": {"over": "seed", "count": 2}}, {})

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def told(name: str) -> str:
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            with pytest.raises(UserError, match="the disk is full") as caught:
                RunFolder.create_member(study, name, "small", {}, {})
        return str(caught.value)

    assert "quoin resume" not in told("seed-0")
    RunFolder.create_member(study, "seed-0", "small", {}, {})
    assert "`quoin resume` the multirun" in told("seed-1")
    assert study.members() == ["seed-0"]


def test_the_lock_is_taken_only_of_a_file_that_is_one(tmp_path):
    """What holds something else than a process number is not overwritten; a second name of the lock elsewhere keeps its
    content."""
    run = new_folder(tmp_path)
    (run.path / "lock").write_text("my notes on locks")
    with pytest.raises(UserError, match="lock to hold a process number"), run.locked():
        raise AssertionError("taken")
    assert (run.path / "lock").read_text() == "my notes on locks"
    (run.path / "lock").write_text("1")
    os.link(run.path / "lock", tmp_path / "backup")
    with run.locked():
        assert (tmp_path / "backup").read_text() == "1"
        with pytest.raises(UserError, match="by another process"), RunFolder(run.path).locked():
            raise AssertionError("held twice")


def test_drafts_take_names_that_nobody_can_prepare(tmp_path, monkeypatch):
    assert len({durable.draft_name("result.json") for _ in range(1000)}) == 1000
    run, victim = new_folder(tmp_path), tmp_path / "victim"
    victim.mkdir()
    (victim / "file").write_text("mine")
    run.checkpoints.mkdir()
    monkeypatch.setattr(
        durable.secrets, "token_hex", lambda count: "0" * 2 * count
    )  # and if somebody could: a link there is not followed
    (run.path / ".result.json.0000000000000000.draft").symlink_to(victim / "file")
    (run.checkpoints / ".00000001.0000000000000000.draft").symlink_to(victim)
    run.save_result({"metrics": {}})
    with pytest.raises(UserError, match="File exists"):
        run.save_checkpoint({}, 1)
    assert not (run.path / "result.json").is_symlink()
    assert [(path.name, path.read_text()) for path in victim.iterdir()] == [("file", "mine")]
