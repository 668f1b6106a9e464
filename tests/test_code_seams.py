"""Own code where several things meet: multiruns, workers, sweeps, comparisons, config files of runs. What a run folder
names never runs by itself, all runs of one study have the same code, and none is lost for want of it."""

import fcntl
import json
import shutil
from pathlib import Path

import pytest

from commands import refused, tried
from quoin.runs.run_code import CodeAccess, _file_for

QUICK = ("--data", "iris", "--max-steps", 3, "--num-threads", 1)
ACTIVATION = """
import torch
{more}
class Act(torch.nn.Module):
    def forward(self, x):
        {body}
        return {value}
"""


def write(path: str, value: str = "x.tanh()", more: str = "", body: str = "pass") -> None:
    Path(path).parent.mkdir(exist_ok=True)
    Path(path).write_text(ACTIVATION.format(value=value, more=more, body=body))


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def config(run: str) -> dict:
    return json.loads(Path(run, "config.json").read_text())


def hashes(run: str) -> list[str]:
    return [each["sha256"] for each in config(run)["code"]]


def test_a_recipe_that_a_run_folder_names_does_not_run():
    assert tried("train", "mlp", *QUICK, "--name", "a")[0] == 0
    Path("evil.py").write_text("open('ran', 'w').close()\n")
    Path("runs/a/config.json").write_text(json.dumps(config("runs/a") | {"recipe": "evil.py", "code": []}))
    for words in ((), ("mlp",)):
        assert "expected the name of a recipe" in refused("train", *words, "--config", "runs/a", "--print-config")
    assert not Path("ran").exists()


def test_each_of_two_files_of_one_name_is_itself():
    recorded = [{"path": path, "use": "option"} for path in ("sub/my.py", "my.py")]
    both = CodeAccess(("my.py", "sub/my.py"))
    assert [_file_for(both, each["path"], recorded) for each in recorded] == ["sub/my.py", "my.py"]
    one = CodeAccess(("my.py",))
    assert [_file_for(one, each["path"], recorded) for each in recorded] == [None, "my.py"]
    elsewhere = CodeAccess(("/b/sub/my.py", "/b/my.py"))
    assert [_file_for(elsewhere, each["path"], recorded) for each in recorded] == ["/b/sub/my.py", "/b/my.py"]


def test_copies_of_a_multirun_and_of_a_sweep_have_what_the_files_import():
    Path("helper.py").write_text("SCALE = 2.0\n")
    write("att.py", "x * SCALE", more="from helper import SCALE")
    assert tried("train", "mlp", *QUICK, "--activation", "att.py:Act", "--seeds", 2, "--name", "m")[0] == 0
    words = ("--activation", "relu,att.py:Act", "--sampler", "grid", "--name", "s")
    assert tried("sweep", "mlp", *QUICK, *words)[0] == 0
    for run in ("runs/m", "runs/s"):
        assert {each.name for each in Path(run, "code").iterdir()} == {"att.py", "helper.py"}
    shutil.rmtree("runs/m/seed-1")
    for file in ("att.py", "helper.py"):
        Path(file).unlink()
    assert tried("resume", "runs/m", "--trust-code")[0] == 0


def test_a_sweep_without_its_code_loses_no_trial():
    write("att.py")
    words = ("sweep", "mlp", *QUICK, "--activation", "relu,att.py:Act", "--sampler", "grid", "--name", "s")
    assert "Nope" in refused(*words[:-4], "--activation", "relu,att.py:Nope")
    assert tried(*words)[0] == 0
    shutil.rmtree("runs/s/trial-1")
    Path("runs/s/result.json").unlink()
    assert "--code att.py" in refused("resume", "runs/s")
    code, out, _ = tried("resume", "runs/s", "--code", "att.py", "--json")
    assert code == 0
    assert json.loads(out)["failed"] == 0


def test_a_sweep_of_other_code_or_other_settings_is_another():
    write("att.py")
    words = ("sweep", "mlp", *QUICK, "--activation", "relu,att.py:Act", "--sampler", "grid", "--name", "s")
    assert tried(*words)[0] == 0
    assert "differs in settings" in refused(*words, "--max-steps", 5)
    write("att.py", "x.sin()")
    assert "differs in code" in refused(*words)
    assert tried("train", "mlp", *QUICK, "--name", "t")[0] == 0
    assert "is no sweep of mlp" in refused("sweep", "mlp", *QUICK, "--lr", "0.1,0.2", "--name", "t")


def test_runs_of_other_code_are_no_seeds_of_one(capsys):
    for seed, value in ((0, "x.tanh()"), (1, "x.sin()")):
        write("att.py", value)
        assert tried("train", "mlp", *QUICK, "--activation", "att.py:Act", "--seed", seed, "--name", f"c{seed}")[0] == 0
    code, out, err = tried("compare", "runs/c0", "runs/c1")
    assert code == 0
    assert "one group" not in out + err


def test_a_file_that_changes_meanwhile_is_the_same_for_all_seeds():
    body = "__import__('pathlib').Path('att.py').write_text('# changed')"  # by the run itself
    write("att.py", body=body)
    assert tried("train", "mlp", *QUICK, "--activation", "att.py:Act", "--seeds", 2, "--name", "m")[0] == 0
    assert hashes("runs/m") == hashes("runs/m/seed-0") == hashes("runs/m/seed-1")


def test_code_that_ends_the_program_while_it_trains_is_told():
    write("att.py", more="import sys", body="sys.exit(0) if len(x) == 32 and self.training else None")
    assert "ends the program" in refused("train", "mlp", *QUICK, "--activation", "att.py:Act")
    words = ("--activation", "att.py:Act,relu", "--sampler", "grid", "--json")
    code, out, _ = tried("sweep", "mlp", *QUICK, *words)
    assert code == 0
    assert json.loads(out)["failed"] == 1


def test_a_sweep_at_work_is_running():
    assert tried("sweep", "mlp", *QUICK, "--lr", "0.1,0.2", "--sampler", "grid", "--name", "s", "--tag", "t")[0] == 0
    with open("runs/s/locks/trial-0", "r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert json.loads(tried("runs", "--tag", "t", "--json")[1])["runs"][0]["state"] == "running"
        assert "is being trained" in refused("runs", "rm", "s", "--yes")
    assert tried("runs", "rm", "s", "--yes")[0] == 0


@pytest.mark.deep
def test_workers_of_a_sweep_may_print_much_and_find_no_module_in_the_present_folder():
    Path("optuna.py").write_text("open('ran', 'w').close()\nraise RuntimeError\n")
    body = "print('x' * 20_000, file=__import__('sys').stderr)"  # more than a pipe holds
    write("att.py", body=body)
    words = ("--activation", "att.py:Act", "--lr", "0.1,0.2,0.3", "--sampler", "grid", "--jobs", 2, "--json")
    code, out, _ = tried("sweep", "mlp", *QUICK, *words)
    assert code == 0
    assert json.loads(out)["complete"] == 3
    assert not Path("ran").exists()


def test_resume_of_a_sweep_takes_jobs_and_no_target(monkeypatch):
    assert tried("sweep", "mlp", *QUICK, "--lr", "0.1,0.2", "--sampler", "grid", "--name", "s")[0] == 0
    assert "a sweep has no target" in refused("resume", "runs/s", "--require-target")
    Path("runs/s/result.json").unlink()
    started = []
    monkeypatch.setattr("quoin.runs.sweep.run_workers", lambda run, storage, jobs, *rest: started.append(jobs))
    assert tried("resume", "runs/s", "--jobs", 2)[0] == 0
    assert started == [2]
