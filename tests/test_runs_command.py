"""`quoin runs`: what it lists, in which order and for which terminal; and `quoin runs rm`: what it removes and refuses.

Most runs here are written by hand as `quoin train` writes them; one of each kind is trained.
"""

import fcntl
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands import contents, refused, tried
from quoin.cli.commands import COMMANDS
from quoin.cli.flags import Parser
from quoin.cli.runs_table import format_runs
from quoin.runs.listing_runs import ListedRun, find_runs, sort_runs, usual_metrics
from quoin.runs.run_label import RunLabel
from quoin.train import RunFolder
from quoin.train.run_lock import TRIES

QUICK = ["--max-steps", "2", "--num-threads", "1", "--json"]


def write_run(name: str, *, root: str = "runs", result: dict[str, Any] | None = None, **more: Any) -> Path:
    """A run as the trainer begins it, finished if it has a result."""
    config = {"kind": "classification", "options": {"epochs": 9, "seed": 0}, "settings": {}, "data": None}
    started = more.pop("started", "2026-01-02T03:04:05+00:00")
    recipe = more.pop("recipe", "mlp")
    folder = RunFolder.create(Path(root), recipe, config | more, {"started": started}, name=name)
    if result is not None:
        folder.save_result(result)  # type: ignore[arg-type]
    return folder.path


def result(value: float, *, seconds: float = 1.0, metric: str = "test_accuracy", met: bool | None = None) -> Any:
    target = None if met is None else {"metric": metric, "bound": "at least 0.96", "value": value, "met": met}
    metrics = {metric: value, "test_loss": 1 - value}
    return {
        "metrics": metrics,
        "target": target,
        "steps": 5,
        "epochs": 9,
        "best_step": 5,
        "seconds": seconds,
        "saving_seconds": 0.1,
    }


def write_multirun(name: str, count: int, values: list[float]) -> Path:
    """A multirun over seeds of which as many runs are finished as there are values."""
    path = write_run(name, multirun={"over": "seed", "count": count}, kind="multirun")
    for index, value in enumerate(values):
        write_run(f"seed-{index}", root=str(path), result=result(value, met=True))
    return path


@pytest.fixture
def several(here) -> Path:
    write_run("mlp-2", result=result(0.9, seconds=100.0, met=False), started="2026-01-05T00:00:00+00:00")
    write_run("mlp-10", result=result(0.97, seconds=5.0, met=True), tags=["base"], note="The first\none")
    write_run("cnn", recipe="lenet", tags=["base", "slow"], started="2025-12-01T10:00:00+00:00")
    (write_run("dead") / "config.json").write_text('{"format": 2,')
    write_multirun("study", 3, [0.8])
    (here / "runs" / "notes").mkdir()  # no run
    (here / "runs" / "notes" / "a.txt").write_text("x")
    (here / "runs" / "file.txt").write_text("x")
    return here


def listed(*words: object) -> list[dict[str, Any]]:
    code, out, err = tried("runs", *words, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)["runs"]


def names(*words: object) -> list[str]:
    return [run["name"] for run in listed(*words)]


# ---- the list ---------------------------------------------------------------------------------------------------


def test_what_is_listed(several):
    found = {run["name"]: run for run in listed()}
    assert found.keys() == {"mlp-2", "mlp-10", "cnn", "dead", "study"}
    assert {name: run["state"] for name, run in found.items()} == {
        "mlp-2": "finished",
        "mlp-10": "finished",
        "cnn": "interrupted",
        "dead": "damaged",
        "study": "interrupted",
    }
    run = found["mlp-10"]
    assert (run["recipe"], run["note"], run["tags"], run["seconds"]) == ("mlp", "The first\none", ["base"], 5.0)
    assert (run["metric"], run["metrics"]["test_accuracy"], run["target"]["met"]) == ("test_accuracy", 0.97, True)
    assert run["started"].startswith("2026-01-0")
    assert "config.json" in found["dead"]["reason"]
    assert found["study"]["multirun"] == {"over": "seed", "count": 3, "finished": 1}
    assert "members" not in found["study"]
    study = next(run for run in listed("--all") if run["name"] == "study")
    assert [(each["name"], each["state"]) for each in study["members"]] == [("study/seed-0", "finished")]


def test_filters(several):
    assert names("--recipe", "lenet") == ["cnn"]
    assert names("--tag", "base") == ["cnn", "mlp-10"]
    assert names("--tag", "base", "--tag", "slow") == ["cnn"]
    assert names("--state", "damaged") == ["dead"]
    assert names("FIRST") == ["mlp-10"]  # in the note
    assert names("slow") == ["cnn"]  # a tag
    assert names("mlp", "base") == ["mlp-10"]
    assert names("nothing") == []
    assert names("--runs", "runs/study") == ["study"]


def test_orders(several):
    assert names("--sort", "name") == ["cnn", "dead", "mlp-2", "mlp-10", "study"]
    assert names()[:2] == ["cnn", "mlp-10"]  # by when they were started; the damaged one, of which that is not known,
    assert names()[-1] == "dead"  # is the last
    assert names("--reverse")[0] == "mlp-2"
    assert names("--reverse")[-1] == "dead"
    assert names("--sort", "time") == ["study", "mlp-10", "mlp-2", "cnn", "dead"]
    assert names("--sort", "test_accuracy") == ["mlp-2", "mlp-10", "cnn", "dead", "study"]
    assert names("--sort", "test_accuracy", "--reverse")[:2] == ["mlp-10", "mlp-2"]
    assert names("--sort", "recipe")[:2] == ["cnn", "mlp-2"]
    assert names("--sort", "state")[:2] == ["mlp-2", "mlp-10"]
    assert "did you mean 'test_accuracy'" in refused("runs", "--sort", "test_acuracy")
    assert "did you mean 'test_accuracy'" in refused("runs", "nothing", "--sort", "test_acuracy")
    assert "did you mean 'finished'" in refused("runs", "--state", "finishd")


def test_every_flag_is_tried_here():
    text = Path(__file__).read_text()
    for words in ([], ["rm"]):
        parser = Parser("quoin runs", "")
        COMMANDS["runs"][1](parser, words)
        assert len(parser.flags) > 4
        assert all(f'"{flag}"' in text for flag in parser.flags if flag != "--help")


def test_for_a_person(several):
    code, out, err = tried("runs", "--all")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].split() == ["name", "recipe", "state", "result", "target", "started", "time", "note"]
    assert re.search(
        r"^mlp-10 +mlp +finished +test_accuracy 0.97 +met +Jan 0\d .* 5 s +#base The first one$", out, re.M
    )
    assert re.search(r"^study +mlp × 3 seeds +interrupted +1 of 3 seeds ", out, re.M)
    assert re.search(r"^  seed-0 ", out, re.M)
    assert re.search(r"^dead +damaged\n    runs/dead/config.json cannot be read", out, re.M)
    assert lines[-1] == "5 runs in runs: 2 finished, 2 interrupted, 1 damaged"
    assert tried("runs", "--state", "damaged")[1].splitlines()[-1] == "1 of 5 runs in runs: 1 damaged"
    assert "test_loss 0.03" in tried("runs", "--sort", "test_loss")[1]


def test_no_runs(here):
    assert tried("runs") == (0, "", "no runs in runs: `quoin train RECIPE` makes one\n")
    assert "no such folder" in refused("runs", "--runs", "there")
    write_run("a")
    assert "none of the 1 runs" in tried("runs", "b")[2]
    assert "quoin runs --runs runs" in tried("runs", "runs")[2]


def test_a_finished_multirun_is_a_line_with_mean_and_std(here):
    path = write_multirun("study", 2, [0.8, 0.9])
    spread = {"mean": 0.85, "std": 0.07, "min": 0.8, "max": 0.9}
    target = {"metric": "test_accuracy", "bound": "at least 0.96", "met_runs": 1, "runs": 2, "met": False}
    told = {"multirun": {"over": "seed", "count": 2}, "metrics": {"test_accuracy": spread}, "target": target}
    RunFolder.open(path).save_result(told | {"seconds": 2.0})  # type: ignore[arg-type]
    assert re.search(r"study +mlp × 2 seeds +finished +test_accuracy 0.85 ± 0.07 +missed 1/2 ", tried("runs")[1])
    assert listed()[0]["stds"] == {"test_accuracy": 0.07}


def test_running_is_known_by_the_lock_and_nothing_is_written(several):
    before = contents(several)
    with RunFolder.open(Path("runs/cnn")).locked():
        assert names("--state", "running") == ["cnn"]
    assert names("--state", "running") == []
    with RunFolder.open(Path("runs/study/seed-0")).locked():  # as by a process of its own for each seed
        assert names("--state", "running") == ["study"]
    assert contents(several) == before


def test_a_listing_does_not_keep_a_run_from_being_trained(here, monkeypatch):
    """Who lists holds the lock for a moment; who trains tries again."""
    folder = RunFolder.open(write_run("a"))
    with folder.locked():
        pass
    handle = os.open("runs/a/lock", os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_SH)
    pauses: list[float] = []

    def wait(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            os.close(handle)

    monkeypatch.setattr("quoin.train.run_lock.time.sleep", wait)
    with folder.locked():
        assert len(pauses) == 2
        with pytest.raises(ValueError, match="is being trained"), folder.locked():
            pass
    assert len(pauses) == 2 + TRIES - 1


DAMAGES = {
    "config.json": ["", "[]", '{"format": 1}', '{"format": 2, "recipe": 3}', "\0"],
    "environment.json": ["", "[1]", None],
    "result.json": ["", "{}", '{"metrics": {"a": "b"}}'],
    "metrics.jsonl": ['{"a": 1}\n{"step": 1}\n'],
}


@pytest.mark.parametrize(("file", "text"), [(file, text) for file, texts in DAMAGES.items() for text in texts])
def test_a_damaged_run_is_a_line(file, text, here):
    write_run("whole", result=result(0.9))
    path = write_run("a")
    if text is None:
        (path / file).unlink()
    else:
        (path / file).write_text(text)
    found = {run["name"]: run for run in listed()}
    assert found["whole"]["state"] == "finished"
    assert found["a"]["state"] == "damaged"
    assert file in found["a"]["reason"]
    assert tried("runs")[0] == 0


def test_other_damages(here):
    for name in ("link", "pipe", "debris", "date"):
        write_run(name)
    (here / "runs/link/checkpoints").symlink_to(here)
    (here / "runs/pipe/result.json").unlink(missing_ok=True)
    os.mkfifo("runs/pipe/result.json")
    (here / "runs/debris/config.json").unlink()
    (here / "runs/date/environment.json").write_text('{"started": "yesterday"}')
    (here / "runs/nowhere").symlink_to("gone")
    found = {run["name"]: run for run in listed()}
    assert {name: run["state"] for name, run in found.items()} == {
        **dict.fromkeys(("link", "pipe", "debris"), "damaged"),
        "date": "interrupted",
    }
    assert found["date"]["started"] is None


def test_torch_is_not_imported(several):
    code = "import sys; from quoin.cli import main; main(['runs']); main(['runs', 'rm', 'cnn', '--yes']); "
    code += "main(['train', 'mlp', '--print-config']); sys.exit('torch' in sys.modules or 'rich' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "cnn: removed" in done.stdout


# ---- the table --------------------------------------------------------------------------------------------------

RUNS = st.builds(
    ListedRun,
    path=st.just(Path("runs/x")),
    name=st.text("abc-", min_size=1, max_size=30),
    state=st.sampled_from(["finished", "running", "interrupted", "damaged"]),
    reason=st.sampled_from(["", "a file cannot be read: restore it or train again"]),
    recipe=st.sampled_from(["mlp", "linear-regression"]),
    note=st.text("ab \n", max_size=90),
    tags=st.lists(st.sampled_from(["x", "baseline"]), max_size=2).map(tuple),
    seconds=st.none() | st.floats(0, 1e7),
    metrics=st.sampled_from([{}, {"test_accuracy": 0.97}, {"test_bits_per_character": 1.234567}]),
    epoch=st.none() | st.floats(0, 99),
)


@given(st.lists(RUNS, min_size=1, max_size=6), st.none() | st.integers(60, 220))
def test_nothing_is_lost_in_any_width(runs, width):
    lines = format_runs(runs, usual_metrics(), width=width)
    text = "\n".join(line.text for line in lines)
    words = re.findall(r"\S+", text)
    for run in runs:
        assert run.name in text
        assert run.state in words
        for word in (*(f"#{tag}" for tag in run.tags), *run.note.split()):
            if not run.reason:
                assert word in words or len(word) > 25
        for metric in run.metrics:
            assert metric in words
    for line in lines:
        assert all(0 <= start < end for start, end, _ in line.styles)
        if width is not None and line.text.startswith("    "):
            assert len(line.text) <= width


def test_eighty_columns_hold_a_usual_list():
    runs = [
        ListedRun(Path(), f"mlp-{i}", "finished", recipe="mlp", metrics={"test_accuracy": 0.97222}, seconds=12.3)
        for i in range(3)
    ]
    runs.append(ListedRun(Path(), "lstm-lm-1", "interrupted", recipe="lstm-lm", epoch=3, num_epochs=20))
    lines = format_runs(runs, usual_metrics(), width=80)
    assert len(lines) == 5
    assert all(len(line.text) <= 80 for line in lines)
    assert "recipe" not in lines[0].text  # the names say it


@given(st.lists(RUNS, max_size=8), st.sampled_from(["name", "time", "test_accuracy"]), st.booleans())
def test_sorting_keeps_every_run(runs, by, reverse):
    if by == "test_accuracy" and not any(by in run.metrics for run in runs):
        return
    found = sort_runs(runs, by, reverse=reverse)
    assert sorted(map(id, found)) == sorted(map(id, runs))
    if by == "time":
        times = [run.seconds for run in found if run.seconds is not None]
        assert times == sorted(times, reverse=reverse)
        assert all(run.seconds is None for run in found[len(times) :])


# ---- removal ----------------------------------------------------------------------------------------------------


def test_rm_asks_first(several, monkeypatch):
    before = contents(several)
    line = tried("runs", "rm", "mlp-2")
    assert line[0] == 2
    assert "runs/mlp-2  mlp, finished, " in line[2]
    assert "nothing removed: give --yes" in line[2]
    for answer, left in (("", True), ("n\n", True), ("yes please\n", True), ("y\n", False)):
        terminal = io.StringIO(answer)
        terminal.isatty = lambda: True  # type: ignore[method-assign]
        monkeypatch.setattr(sys, "stdin", terminal)
        code, _, err = tried("runs", "rm", "mlp-2", "runs/mlp-10")
        assert ("remove these 2 runs" in err, code) == (True, 2 if left else 0)
        assert (contents(several) == before) is left
    assert sorted(path.name for path in Path("runs").iterdir()) == ["cnn", "dead", "file.txt", "notes", "study"]


def test_rm_for_a_machine(several):
    code, out, _ = tried("runs", "rm", "study", "mlp-2", "--yes", "--json")
    assert code == 0
    told = json.loads(out)
    assert told["removed"] == ["runs/study", "runs/mlp-2"]
    assert told["bytes"] > 500
    assert not Path("runs/study").exists()
    assert "rm" in refused("runs", "rm")
    assert tried("runs", "rm", "cnn", "--runs", "runs", "--yes")[0] == 0


def test_rm_refuses(several, monkeypatch):
    (several / "elsewhere").mkdir()
    (several / "elsewhere" / "config.json").write_text("{}")
    (several / "runs" / "link").symlink_to("cnn")
    (several / "runs" / "cnn" / "mine.txt").write_text("x")
    (several / "mlp-2").mkdir()
    before = contents(several)
    wrong = {
        "runs/notes": "is no run folder",
        "runs": "is no run folder",
        "runs/file.txt": "no run folder at",
        "elsewhere": "is damaged",
        "runs/link": "is a link",
        "runs/cnn": "'mine.txt', which is no part of a run",
        "runs/study/seed-0": "quoin runs rm runs/study",
        "study/seed-0": "quoin runs rm runs/study",
        "mlp-2": "may be ./mlp-2 or runs/mlp-2",
        "mlp-11": "did you mean 'mlp-10'",
        "dead": "--force",
        ".": "from outside",
        "..": "from outside",
        "/": "from outside",
        "x" * 300: "no run folder",
        "a\0b": "",
    }
    for name, why in wrong.items():
        assert why in refused("runs", "rm", "mlp-10", name, "--yes"), name
    assert contents(several) == before  # not even the one that may be removed
    monkeypatch.chdir(several / "runs" / "study")
    assert f"quoin runs rm {several}/runs/study" in refused("runs", "rm", "seed-0", "--yes").replace("\n", "")
    monkeypatch.chdir(several)
    with RunFolder.open(Path("runs/mlp-10")).locked():
        assert "is being trained" in refused("runs", "rm", "runs/mlp-2", "mlp-10", "--yes", "--force")
    assert Path("runs/mlp-2").exists()
    with RunFolder.open(Path("runs/study/seed-0")).locked():
        assert "is being trained" in refused("runs", "rm", "study", "--yes")


def test_rm_with_force(several):
    for name in ("cnn", "dead"):
        shutil.copytree(f"runs/{name}", f"runs/{name}-2")
    Path("runs/cnn/mine.txt").write_text("x")
    Path("runs/dead-2/mine.txt").write_text("x")  # damaged, with something else in it: may be anything
    (several / "outside").mkdir()
    (several / "outside" / "kept").write_text("x")
    Path("runs/cnn-2/checkpoints").symlink_to(several / "outside")
    Path("runs/cnn-2/more").symlink_to(several / "outside")
    assert "more" in refused("runs", "rm", "cnn-2", "--yes", "--force")  # damaged by its link
    Path("runs/cnn-2/more").unlink()
    assert tried("runs", "rm", "cnn", "dead", "cnn-2", "--yes", "--force")[0] == 0
    assert (several / "outside" / "kept").read_text() == "x"
    assert "by other means" in refused("runs", "rm", "dead-2", "--yes", "--force")
    Path("code").mkdir()
    Path("code/config.json").write_text("{}")
    Path("code/main.py").write_text("x")
    for folder in ("code", "runs/notes", "outside", "runs"):
        refused("runs", "rm", folder, "--yes", "--force")
        assert Path(folder).exists()
    assert not list(Path("runs").glob(".*"))  # and nothing half-removed


@pytest.mark.deep
def test_rm_takes_all_that_commands_leave_in_a_run(here):
    """A run of its own with what `inspect` and `generate` write beside it."""
    words = ["mlp", "--data", "iris", "--hidden-dims", "3", *QUICK]
    assert tried("train", *words)[0] == 0
    for more in ([], ["--format", "svg"]):
        assert tried("inspect", "runs/mlp-1", *more)[0] == 0
    assert tried("train", "gmm", *QUICK)[0] == 0
    assert tried("generate", "runs/gmm-1", "-n", 3)[0] == 0
    Path("runs/mlp-1/.metrics.jsonl.0123456789abcdef.draft").write_text("of a kill")
    assert tried("runs", "rm", "mlp-1", "gmm-1", "--yes")[:2] == (0, "runs/mlp-1: removed\nruns/gmm-1: removed\n")
    assert not list(Path("runs").iterdir())


def test_a_run_that_cannot_be_removed_whole(here, monkeypatch):
    write_run("a")
    monkeypatch.setattr("quoin.train.durable.Directory.clear", lambda directory, name: None)
    line = refused("runs", "rm", "a", "--yes")
    assert "removed in part" in line
    assert names() == []


# ---- labels -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("a/b", "holds a /"),
        ("/tmp/x", "holds a /"),
        ("..", "begins with ."),
        (".a", "begins with ."),
        ("", "plain folder name"),
        ("a\nb", "cannot be printed"),
        ("a\0b", "cannot be printed"),
        ("a\udc80", "cannot be printed"),
        (" a", "space"),
        ("a" * 101, "longer"),
        ("語" * 40, "longer"),
    ],
)
@pytest.mark.parametrize("more", [[], ["--seeds", "2"]], ids=["run", "multirun"])
def test_a_name_that_is_none(name, why, more, here):
    assert why in refused("train", "mlp", f"--name={name}", *more, *QUICK)
    assert "begins with -" in refused("train", "mlp", "--name=-a", *more, *QUICK)
    assert not list(here.iterdir())


@pytest.mark.parametrize("tag", ["", "a b", "x" * 51, "a\tb"])
def test_a_tag_that_is_none(tag, here):
    assert "--tag expects a word" in refused("train", "mlp", "--tag", "good", "--tag", tag, *QUICK)
    assert not list(here.iterdir())


def test_a_name_that_is_taken_is_told_before_the_work(here, monkeypatch):
    write_run("mine")
    monkeypatch.setattr("quoin.runs.lr_range.find_lr", None)  # what `--lr auto` would do first
    for more in ([], ["--seeds", "2"], ["--lr", "auto"]):
        line = refused("train", "mlp", "--name", "mine", *more, *QUICK)
        assert "choose another --name" in line
        assert "quoin resume runs/mine" in line


@pytest.mark.parametrize("more", [[], ["--seeds", "2"]], ids=["run", "multirun"])
def test_labels_stand_in_report_and_list(more, here):
    words = ["mlp", "--data", "iris", "--hidden-dims", "3", *QUICK, *more]
    label = ["--name", "語-1", "--note", "a <b> &\n“note”", "--tag", "x", "--tag", "y<", "--tag", "x"]
    code, out, err = tried("train", *words, *label)
    assert code == 0, err
    assert json.loads(out)["run"] == "runs/語-1"
    run = listed("--tag", "x", "--tag", "y<")[0]
    assert (run["name"], run["note"], run["tags"], run["state"]) == ("語-1", "a <b> &\n“note”", ["x", "y<"], "finished")
    page = Path("runs/語-1/report.html").read_text()
    assert "a &lt;b&gt; &amp;\n“note”</p>" in page
    assert '<span class="tag">y&lt;</span>' in page
    if more:  # what is said of all is not said of each
        member = json.loads(Path("runs/語-1/seed-0/config.json").read_text())
        assert (member["note"], member["tags"]) == ("", [])
    assert run["started"] is not None
    assert find_runs(Path("runs"))[0].seconds == pytest.approx(run["seconds"])


def test_a_label_in_python():
    assert RunLabel("a", "b", ("c", "d", "c")).as_json() == {"note": "b", "tags": ["c", "d"]}
    with pytest.raises(ValueError, match="--note"):
        RunLabel(note="x" * 10_001)
