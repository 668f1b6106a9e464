"""`quoin sweep`: what its values mean, which trial is the best, and what it refuses."""

import itertools
import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from commands import contents, refused, tried
from quoin.cli import main
from quoin.cli.sweep_syntax import _read
from quoin.runs.sweep_space import SweepChoices, SweepRange, grid, grid_size, space_from_json, space_to_json
from quoin.runs.sweep_storage import TrialStorage
from quoin.runs.sweep_trial import TrialOutput
from quoin.train import RunFolder

pytest.importorskip("optuna")
QUOIN = [sys.executable, "-m", "quoin.cli"]
TINY = ["softmax-regression", "--data", "iris", "--epochs", "1", "--max-steps", "2", "--num-threads", "1"]
TINY += ["--device", "cpu"]


# ---- how values are written --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "text", "means"),
    [
        (float, "0.1", 0.1),
        (float, "1e-3..1e-1:log", SweepRange(1e-3, 1e-1, log=True)),
        (float, "0.1..0.5:0.1", SweepRange(0.1, 0.5, step=0.1)),
        (float | None, "0.8,0.9", SweepChoices((0.8, 0.9))),
        (float, "-1...5", SweepRange(-1.0, 0.5)),
        (int, "1..8", SweepRange(1, 8)),
        (int, "16..512:log", SweepRange(16, 512, log=True)),
        (int, "1..8:3", SweepRange(1, 8, step=3)),
        (int, "1..100:log:n=3", SweepChoices((1, 10, 100))),
        (float, "0..1:n=3", SweepChoices((0.0, 0.5, 1.0))),
        (int, "32,64,32", SweepChoices((32, 64))),
        (int, "32,32", 32),
        (bool, "yes,no", SweepChoices((True, False))),
        (bool, "", True),
        (str, r"csv:a\,b.csv,iris", SweepChoices(("csv:a,b.csv", "iris"))),
        (str, "../a..b.csv", "../a..b.csv"),
        (tuple[int, ...], "256 128", (256, 128)),
        (tuple[int, ...], "128, 256 128", SweepChoices(((128,), (256, 128)))),
    ],
)
def test_values_mean_what_the_help_says(kind, text, means):
    assert _read("--x", kind, text.split(" ") if text else []) == means


def test_points_of_a_range_are_exact_decimals_and_end_where_it_ends():
    assert SweepRange(0.1, 0.5, step=0.1).points() == [0.1, 0.2, 0.3, 0.4, 0.5]
    assert SweepRange(1, 8, step=3).points() == [1, 4, 7]
    assert SweepRange(1, 8, step=3).last == 7
    assert SweepRange(0.0, 1.0).points() is None
    assert SweepRange(2, 4).points() == [2, 3, 4]


def test_a_grid_is_the_product_of_its_options():
    space = {"a": SweepRange(1, 3), "b": SweepChoices(("x", "y")), "c": SweepRange(0.0, 0.5, step=0.25)}
    product = list(itertools.product([1, 2, 3], ["x", "y"], [0.0, 0.25, 0.5]))
    assert grid_size(space) == len(product)
    assert [tuple(grid(space, number).values()) for number in range(len(product))] == product


def test_a_space_is_read_back_as_it_was_written():
    from quoin.recipes.mlp import Options

    space = {"hidden_dims": SweepChoices(((8,), (16, 8))), "lr": SweepRange(1e-3, 0.1, log=True)}
    assert space_from_json(Options(), json.loads(json.dumps(space_to_json(space))), "here") == space


def test_mean_and_std_are_those_of_the_sample():
    found = TrialOutput([{"a": 1.0, "b": 2.0}, {"a": 4.0}], 0.0).mean_and_std()
    assert found == {"a": (2.5, pytest.approx(math.sqrt(4.5)))}
    assert TrialOutput([{"a": 1.0}], 0.0).mean_and_std() == {"a": (1.0, 0.0)}


# ---- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--lrr", "1..2"], "did you mean '--lr'"),
        (["--lr=-1..1"], "--lr must be above 0.0, got -1.0"),
        (["--lr", "0.1..2e38"], "--lr must be at most 1e+38"),
        (["--lr", "0..1:log"], "begins above 0"),
        (["--lr", "1..1"], "the range is empty"),
        (["--lr", "2..1"], "the range is empty"),
        (["--lr", "1..2:0"], "a step above 0"),
        (["--lr", "1..2:logg"], ":log, :STEP or :n=POINTS"),
        (["--lr", "1..2:n=1"], "from 2 to 1000 points"),
        (["--lr", "0.1,"], "missing beside a comma"),
        (["--lr", "0.1,1..2"], "--lr expects a number"),
        (["--lr", "0.1"], "nothing to sweep over"),
        (["--lr", "0.1..1", "--sampler", "grid"], "a grid needs points"),
        (["--batch-size", "1..9:n=x"], "whole number"),
        (["--batch-size", "1..1000000", "--sampler", "grid"], "a grid needs points"),
        (["--optimizer", "adam,sgdd"], "did you mean 'sgd'"),
        (["--optimizer", "adam,momentum", "--momentum", "0.5..0.9"], "--momentum is of --optimizer momentum"),
        (["--seed", "1,2"], "--seeds INT"),
        (["--sampler", "grd", "--lr", "1,2"], "did you mean 'grid'"),
        (["--pruner", "med", "--lr", "1,2"], "--pruner is 'med'"),
        (["--lr", "1,2", "--storage", "foo.db"], "sqlite:///FILE or journal:FILE"),
        (["--lr", "1,2", "--name", "a/b"], "a plain folder name"),
        (["--lr", "1,2", "--trials", "0"], "from 1 to 10000"),
        (["--lr", "1,2", "--data", "csv:none.csv"], "none.csv"),
        (["--lr", "1,2", "--monitor", "validation_nothing_loss"], "no metric of every epoch"),
    ],
)
def test_a_wrong_word_is_one_line_and_leaves_nothing(words, told, tmp_path):
    assert told in refused("sweep", "mlp", *words, "--runs", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_without_a_recipe_the_default_is_swept(monkeypatch):
    asked = []
    monkeypatch.setattr("quoin.cli.sweep_command.sweep", lambda parsed: asked.append(parsed.recipe) or 0)
    assert main(["sweep", "--lr", "0.1,0.2"]) == 0
    assert main(["sweep", "svm", "--lr", "0.1,0.2"]) == 0
    assert asked == ["mlp", "svm"]


def test_a_missing_optuna_is_one_line_with_the_pip_line(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert "pip install 'quoin[sweep]'" in refused("sweep", *TINY, "--lr", "0.1,0.2", "--runs", tmp_path)


def test_what_changes_nothing_is_told_and_cores_are_shared_out(capsys, monkeypatch):
    from quoin.recipes.mlp import Options
    from quoin.runs import RunConfig, sweep

    for module in ("sweep", "jobs"):
        monkeypatch.setattr(f"quoin.runs.{module}.num_cores", lambda: 4)
    given = sweep.Sweep({"lr": SweepRange(0.1, 1.0)}, pruner="median", num_jobs=2)
    settled, config = sweep._settled(given, Options(epochs=1), RunConfig())
    assert (settled.num_trials, config.num_threads) == (20, 2)
    assert "with one epoch no trial can be stopped early" in capsys.readouterr().err
    given = sweep.Sweep({"lr": SweepChoices((0.1, 1.0, 2.0))}, "grid", num_trials=2, num_jobs=9)
    settled, config = sweep._settled(given, Options(), RunConfig(num_threads=3))
    assert (settled.num_trials, config.num_threads) == (2, 3)
    told = capsys.readouterr().err
    assert "there are 4 cores" in told
    assert "the grid has 3 combinations, and the others are not tried" in told


# ---- small sweeps ------------------------------------------------------------------------------------------------


def results(sweep: Path) -> dict[int, dict]:
    return {
        int(path.parent.name[6:]): json.loads(path.read_text()) for path in sorted(sweep.glob("trial-*/result.json"))
    }


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> tuple[Path, str, str]:
    """A grid of three, of which one diverges, told to do more trials than it has."""
    runs = tmp_path_factory.mktemp("runs")
    code, out, err = tried(
        "sweep", *TINY, "--lr", "0.001,0.5,1e37", "--sampler", "grid", "--trials", 9, "--runs", runs, "--name", "s"
    )
    assert code == 0, err
    return runs / "s", out, err


def test_the_best_is_that_of_the_least_validation_loss_and_its_test_metrics_are_shown(small):
    sweep, out, err = small
    found = results(sweep)
    best = min(found, key=lambda number: found[number]["metrics"]["validation_loss"])
    stored = json.loads((sweep / "result.json").read_text())
    assert stored["best"]["trial"] == best == 1
    assert stored["best"]["options"] == {"lr": 0.5}
    assert stored["metrics"]["test_loss"]["mean"] == found[best]["metrics"]["test_loss"]
    assert "quoin train softmax-regression" in out
    assert "--lr 0.5" in out
    assert "the grid has 3 combinations, and each is tried once" in err


def test_a_trial_that_fails_ends_no_other(small):
    sweep, out, _ = small
    stored = json.loads((sweep / "result.json").read_text())
    assert (stored["complete"], stored["failed"]) == (2, 1)
    assert "1 trials failed, the first: the loss" in out
    page = (sweep / "report.html").read_text()
    assert "Failed trials" in page
    for heading in ("Parallel coordinates", "Importance of each option", "History", "Loss by epoch"):
        assert f"<h2>{heading}</h2>" in page


def test_a_finished_sweep_is_shown_again_and_does_nothing(small):
    sweep, out, _ = small
    before = contents(sweep)
    code, again, err = tried("resume", sweep)
    assert (code, again) == (0, out), err
    assert contents(sweep) == before


def test_other_commands_ask_for_a_trial(small):
    assert "name one of the trials inside it" in refused("predict", small[0], small[0] / "config.json")


def test_a_name_that_is_taken_by_another_sweep_is_refused(small):
    words = ["--runs", small[0].parent, "--name", "s"]
    assert "differs in space" in refused("sweep", *TINY, "--lr", "0.001,0.6", "--sampler", "grid", *words)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"hello\nworld\n", "damaged or no storage of Optuna"),
        (b'{"op_code": 99, "worker_id": "a"}\n', "damaged or no storage of Optuna"),
        (b'{"op_code":0,"worker_id":"a","study_name":"theirs","directions":[1]}\n', "of another program"),
    ],
)
def test_a_journal_that_is_not_ours_is_refused_and_stays(content, told, tmp_path):
    (tmp_path / "j").write_bytes(content)
    words = ["--lr", "0.1,0.2", "--runs", tmp_path / "runs", "--storage", f"journal:{tmp_path / 'j'}"]
    assert told in refused("sweep", *TINY, *words)
    assert (tmp_path / "j").read_bytes() == content
    assert list((tmp_path / "runs").iterdir()) == []


def test_a_database_of_another_program_or_another_optuna_is_refused(tmp_path):
    import sqlite3

    from optuna.storages import RDBStorage

    with sqlite3.connect(tmp_path / "a.db") as database:
        database.execute("CREATE TABLE theirs (a)")
    words = ["sweep", *TINY, "--lr", "0.1,0.2", "--runs", tmp_path / "runs"]
    assert "of another program" in refused(*words, "--storage", f"sqlite:///{tmp_path / 'a.db'}")
    (tmp_path / "b.db").write_text("no database at all, but text that is long enough")
    assert "no SQLite database" in refused(*words, "--storage", f"sqlite:///{tmp_path / 'b.db'}")
    RDBStorage(f"sqlite:///{tmp_path / 'c.db'}")
    with sqlite3.connect(tmp_path / "c.db") as database:
        database.execute("UPDATE alembic_version SET version_num = 'v99.0.0.a'")
    assert "another version of Optuna" in refused(*words, "--storage", f"sqlite:///{tmp_path / 'c.db'}")


def test_a_line_that_a_power_cut_tore_is_taken_out_before_the_next(tmp_path):
    from quoin.runs.sweep_storage import _JournalLock

    path = tmp_path / "j"
    path.write_bytes(b'{"a": 1}\n{"b":')
    lock = _JournalLock(str(path))
    lock.acquire()
    lock.release()
    assert path.read_bytes() == b'{"a": 1}\n'


@pytest.fixture
def storages(tmp_path):
    """Two processes' views of one sweep."""
    folder = RunFolder.create(tmp_path, "sweep", {}, {}, name="s")
    about = {"id": "here", "what": "a test"}
    return [TrialStorage(folder, about, place="", greater_is_better=False, num_trials=5) for _ in range(2)]


def test_a_lock_that_another_has_leaves_nothing_open(storages):
    one, two = storages
    with one.held("claim"):
        before = len(os.listdir("/dev/fd"))
        assert [two._lock("claim") for _ in range(20)] == [None] * 20
        assert len(os.listdir("/dev/fd")) == before
    taken = two._lock("claim")
    assert taken is not None
    os.close(taken)


def test_a_trial_is_cut_where_it_once_was_and_only_there(storages):
    class Pruner:
        asked = 0
        says = False

        def prune(self, study, trial):
            self.asked += 1
            return self.says

    storage, pruner = storages[0], Pruner()
    trial = storage.claim()
    assert storage.report(trial, 1, 0.5, pruner) is False
    pruner.says = True
    assert storage.report(trial, 2, 0.5, pruner) is True
    assert storage.pruned(trial)
    pruner.says = False  # resumed from before it: the word that was given holds, whatever is known by now
    assert [storage.report(trial, epoch, 0.5, pruner) for epoch in (1, 2, 3)] == [False, True, True]
    assert pruner.asked == 2
    trial.release()


# ---- whole sweeps, killed and shared -----------------------------------------------------------------------------

DEEP = ["softmax-regression", "--data", "iris", "--epochs", "3", "--num-threads", "1", "--device", "cpu"]
DEEP += ["--lr", "1e-3..1:log", "--batch-size", "16,32"]


@pytest.mark.deep
@pytest.mark.parametrize("sampler", ["grid", "random", "tpe"])
def test_a_sweep_killed_ten_times_has_the_same_trials_and_the_same_best(sampler):
    script = Path(__file__).with_name("sweep_torture.py")
    words = [sys.executable, str(script), "10", "--seed", "0", "--sampler", sampler]
    ended = subprocess.run(words, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert f"{sampler}: 10 kills" in ended.stdout


def journal(path: Path, code: int) -> list[dict]:
    return [line for line in map(json.loads, path.read_bytes().splitlines()) if line["op_code"] == code]


@pytest.mark.deep
@pytest.mark.parametrize("together", [True, False], ids=["one folder", "two folders"])
def test_two_processes_on_one_storage_do_no_trial_twice(together, tmp_path):
    words = [*QUOIN, "sweep", *DEEP, "--trials", "12", "--storage", f"journal:{tmp_path / 'j'}"]
    one = subprocess.Popen([*words, "--runs", str(tmp_path / "one"), "--name", "s"])
    if together:
        while not (tmp_path / "one" / "s" / "locks").exists():
            time.sleep(0.05)
    place = [str(tmp_path / ("one" if together else "two")), "--name", "s"]
    two = subprocess.Popen([*words, "--runs", *place])
    assert (one.wait(), two.wait()) == (0, 0)
    assert tried("resume", tmp_path / "one" / "s")[0] == 0
    finished = [line["trial_id"] for line in journal(tmp_path / "j", 6) if line["state"] == 1]
    assert sorted(finished) == list(range(12))
    trained = sorted(path.parent.name for path in tmp_path.glob("*/s/trial-*/result.json"))
    assert trained == sorted(f"trial-{number}" for number in range(12))
    assert (tmp_path / "one" / "s" / "report.html").exists()
    best = {path.read_text() for path in tmp_path.glob("*/s/result.json")}
    assert len(best) == 1


@pytest.mark.deep
def test_two_jobs_give_the_bits_of_one_and_over_seeds_the_best_by_their_mean(tmp_path):
    words = ["sweep", *DEEP, "--trials", "5", "--seeds", "2", "--sampler", "random"]
    assert tried(*words, "--runs", tmp_path / "one")[0] == 0
    assert (
        tried(*words, "--jobs", "2", "--storage", f"sqlite:///{tmp_path / 'a.db'}", "--runs", tmp_path / "two")[0] == 0
    )
    one, two = (next((tmp_path / name).glob("sweep-*")) for name in ("one", "two"))
    found = {}
    for path in sorted(one.glob("trial-*/seed-*/result.json")):
        same = two / path.relative_to(one)
        metrics = json.loads(path.read_text())["metrics"]
        assert json.loads(same.read_text())["metrics"] == metrics
        assert json.loads((same.parent / "config.json").read_text())["settings"]["num_threads"] == 1
        found.setdefault(int(path.parts[-3][6:]), []).append(metrics["validation_loss"])
    assert [len(values) for values in found.values()] == [2] * 5
    best = min(found, key=lambda number: sum(found[number]))
    stored = json.loads((one / "result.json").read_text())["best"]
    assert (stored["trial"], stored["mean"]) == (best, pytest.approx(sum(found[best]) / 2, rel=1e-12))
    assert stored["std"] == pytest.approx(abs(found[best][0] - found[best][1]) / math.sqrt(2), rel=1e-9)
    assert json.loads((two / "result.json").read_text())["best"] == stored


@pytest.mark.deep
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_workers_that_are_stopped_save_and_the_sweep_goes_on(how, tmp_path):
    words = [*QUOIN, "sweep", *DEEP, "--trials", "6", "--jobs", "2", "--sampler", "random"]
    sweep = tmp_path / "s"
    process = subprocess.Popen([*words, "--runs", str(tmp_path), "--name", "s"], stderr=subprocess.PIPE, text=True)
    while not list(sweep.glob("trial-*/result.json")):
        time.sleep(0.05)
    os.kill(process.pid, how)
    _, told = process.communicate()
    if how != signal.SIGKILL:
        assert process.returncode == 130
        assert f"quoin resume {sweep}" in told
        assert "Traceback" not in told
    assert tried("resume", sweep)[0] == 0
    finished = [line["trial_id"] for line in journal(sweep / "journal.jsonl", 6) if line["state"] == 1]
    assert sorted(finished) == list(range(6))


@pytest.mark.deep
@pytest.mark.parametrize("pruner", ["median", "hyperband"])
def test_an_unpromising_trial_is_stopped_early(pruner, tmp_path):
    words = ["sweep", *DEEP, "--epochs", "9", "--trials", "12", "--sampler", "random", "--pruner", pruner]
    assert tried(*words, "--runs", tmp_path, "--name", "s")[0] == 0
    pruned = {line["trial_id"] for line in journal(tmp_path / "s" / "journal.jsonl", 6) if line["state"] == 2}
    found = results(tmp_path / "s")
    assert pruned
    assert all(result["epochs"] == 9 for number, result in found.items() if number not in pruned)
    assert any(found[number]["epochs"] < 9 for number in pruned)
    assert json.loads((tmp_path / "s" / "result.json").read_text())["pruned"] == len(pruned)
