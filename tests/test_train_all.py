"""`make recipes`: stopped and called again it goes on, and its table reaches the documentation."""

import itertools
import json
import os
import signal

import pytest

from generator import recipes as pages
from quoin.cli import train_all
from quoin.runs import multirun, recipe_names
from quoin.runs.multirun import MultirunResult
from quoin.train import NonFiniteLossError, RunFolder
from quoin.train.gradient_updater import GradientUpdater

pytestmark = pytest.mark.usefixtures("one_thread")
QUICK = ["linear-regression", "momentum-phase"]


@pytest.fixture(autouse=True)
def few_recipes(monkeypatch):
    monkeypatch.setattr(train_all, "recipe_names", lambda: QUICK)


def stopped_at(monkeypatch, stop_at: int) -> list[str]:
    """Send Ctrl-C when so many runs of studies have begun; the names of all that begin."""
    begun: list[str] = []
    begin = multirun.fit_member

    def fit_member(folder, name, *arguments, **given):
        begun.append(f"{folder.path.name}/{name}")
        if len(begun) == stop_at:
            os.kill(os.getpid(), signal.SIGINT)
        return begin(folder, name, *arguments, **given)

    monkeypatch.setattr(multirun, "fit_member", fit_member)
    return begun


@pytest.mark.parametrize("stop_at", [2, pytest.param(3, marks=pytest.mark.deep)])
def test_stopped_it_goes_on_where_it_was(stop_at, here, monkeypatch):
    """In the midst of a recipe's seeds, and with the first recipe done."""
    begun = stopped_at(monkeypatch, stop_at)
    with pytest.raises((SystemExit, KeyboardInterrupt)):
        train_all.main(["--seeds", "2", "--table", "table.json"])
    folder = here / "build" / "recipes" / "seeds-2"
    done = json.loads((here / "table.json").read_text())["rows"] if (here / "table.json").exists() else {}
    assert list(done) == QUICK[: (stop_at - 1) // 2]
    first = folder / QUICK[0] / "seed-0" / "result.json"
    assert first.exists() == (QUICK[0] not in done)  # a recipe's folder goes with its row
    value = json.loads(first.read_text())["metrics"] if first.exists() else {}
    code = train_all.main(["--seeds", "2", "--table", "table.json"])
    rows = json.loads((here / "table.json").read_text())["rows"]
    assert list(rows) == QUICK
    assert code == (0 if all(row["met"] for row in rows.values()) else 1)
    assert all(rows[name] == row for name, row in done.items())
    # Each run began once, but for one that was stopped before it had a folder; the first result counts in the mean.
    assert set(begun) == {f"{name}/seed-{seed}" for name in QUICK for seed in range(2)}
    assert len(begun) <= len(set(begun)) + 1
    assert begun.count(f"{QUICK[0]}/seed-0") == 1
    assert not value or value[rows[QUICK[0]]["metric"]] > 0
    assert not folder.exists()  # nothing is left


def test_rows_that_are_done_are_taken_as_they_are(here, monkeypatch):
    def never(*arguments, **given):
        raise NonFiniteLossError("not again")

    row = {"metric": "metric", "target": ">= 1", "reached": 2.0, "met": True, "seconds": 0.1}
    row |= {"date": "2026-11-18", "machine": "another", "torch": "2.13"}
    (here / "table.json").write_text(json.dumps({"seeds": 1, "rows": {QUICK[1]: row}}))
    monkeypatch.setattr(train_all, "fit_recipe", never)
    assert train_all.main(["--runs", "kept", "--table", "table.json"]) == 1
    told = json.loads((here / "table.json").read_text())
    assert list(told["rows"]) == QUICK  # in the order of the recipes, whichever was first
    assert told["rows"][QUICK[1]] == row
    new = told["rows"][QUICK[0]]
    assert (new["reached"], new["met"], new["seconds"]) == ("not again", False, "")
    assert told["seeds"] == 1
    assert len(new["date"]) == 10
    assert new["machine"]
    assert new["machine"] != "another"


@pytest.mark.parametrize(("jobs", "told"), [(0, "3 threads"), (1, "3 threads"), (4, "2 threads"), (8, "1 thread")])
def test_a_row_tells_the_threads_that_one_run_has(jobs, told, monkeypatch):
    monkeypatch.setattr("quoin.runs.jobs.num_cores", lambda: 8)
    monkeypatch.setattr("torch.get_num_threads", lambda: 3)
    assert train_all._here(jobs)["machine"].endswith(f", {told}")


@pytest.mark.parametrize(
    ("held", "told"),
    [
        (json.dumps({"seeds": 10, "rows": {QUICK[0]: {}}}), "expected a table of 1 seeds in table.json, got one of 10"),
        ("{", "expected a table of `make recipes` in table.json, got something else"),
        ("[]", "expected a table of `make recipes` in table.json, got something else"),
    ],
)
def test_another_table_is_refused_and_left_as_it_is(held, told, here, monkeypatch, capsys):
    monkeypatch.setattr(train_all, "fit_recipe", None)
    (here / "table.json").write_text(held)
    with pytest.raises(SystemExit) as ended:
        train_all.main(["--table", "table.json"])
    assert ended.value.code == 2
    assert told in capsys.readouterr().err
    assert (here / "table.json").read_text() == held


def test_some_recipes_by_name_several_seeds_at_a_time(here, monkeypatch):
    asked = []

    def study(recipe, options, run_config, multirun, runs, *, label, jobs):
        asked.append((recipe.name, multirun.count, jobs))
        raise NonFiniteLossError("enough")

    monkeypatch.setattr(train_all, "fit_multirun", study)
    words = ["--seeds", "3", "--jobs", "2", "--table", "table.json", QUICK[1]]
    assert train_all.main(words) == 1
    assert asked == [(QUICK[1], 3, 2)]
    assert list(json.loads((here / "table.json").read_text())["rows"]) == [QUICK[1]]


def test_seeds_that_fail_in_their_own_processes_are_a_miss_like_any_other(here, monkeypatch):
    """The result of such a study is None, as that of one that was stopped."""

    def study(recipe, options, run_config, multirun, runs, *, label, jobs):
        (runs / label.name).mkdir()
        return MultirunResult(RunFolder(runs / label.name), None, None, failures={"seed-7": "the loss is nan"})

    monkeypatch.setattr(train_all, "fit_multirun", study)
    assert train_all.main(["--seeds", "3", "--jobs", "2", "--table", "table.json"]) == 1
    rows = json.loads((here / "table.json").read_text())["rows"]
    assert [(row["reached"], row["met"]) for row in rows.values()] == [("seed-7: the loss is nan", False)] * len(QUICK)
    assert not (here / "build" / "recipes" / "seeds-3").exists()


def test_what_another_call_has_half_done_is_left_as_it_is(here, monkeypatch):
    other = here / "build" / "recipes" / "seeds-1" / QUICK[0] / "checkpoints"
    other.mkdir(parents=True)
    for _ in range(2):  # a row that was printed is measured anew
        assert train_all.main([QUICK[1]]) == 0
        assert [each.name for each in (here / "build" / "recipes" / "seeds-1").iterdir()] == [QUICK[0]]
    assert other.exists()


def test_rows_that_another_session_adds_meanwhile_are_kept(here, monkeypatch):
    theirs = {"metric": "metric", "target": ">= 1", "reached": 2.0, "met": True, "seconds": 0.1}

    def fit(recipe, *arguments, **given):
        (here / "table.json").write_text(json.dumps({"seeds": 1, "rows": {QUICK[0]: theirs}}))
        raise NonFiniteLossError("enough")

    monkeypatch.setattr(train_all, "fit_recipe", fit)
    assert train_all.main(["--table", "table.json", QUICK[1]]) == 1
    assert json.loads((here / "table.json").read_text())["rows"][QUICK[0]] == theirs


def test_jobs_are_for_several_seeds(here, capsys):
    with pytest.raises(SystemExit):
        train_all.main(["--jobs", "2"])
    assert "expected several seeds for --jobs 2, got one; say --seeds" in capsys.readouterr().err


def test_a_misspelt_recipe_is_one_line(here, capsys):
    with pytest.raises(SystemExit):
        train_all.main(["momentum-phas"])
    assert "expected recipes, got momentum-phas; did you mean 'momentum-phase'?" in capsys.readouterr().err


def test_a_single_run_that_was_stopped_is_resumed(here, monkeypatch):
    """Its folder is there with a checkpoint, and no new one is made."""
    update, steps = GradientUpdater.update, itertools.count(1)

    def update_and_stop(updater, *arguments, **given):
        if next(steps) == 5:
            os.kill(os.getpid(), signal.SIGINT)
        return update(updater, *arguments, **given)

    with monkeypatch.context() as patch:
        patch.setattr(train_all, "recipe_names", lambda: ["linear-regression"])
        patch.setattr(GradientUpdater, "update", update_and_stop)
        with pytest.raises((SystemExit, KeyboardInterrupt)):
            train_all.main([])
    assert RunFolder.open(here / "build" / "recipes" / "seeds-1" / "linear-regression").load_checkpoint()
    monkeypatch.setattr(train_all, "recipe_names", lambda: ["linear-regression"])
    monkeypatch.setattr(train_all, "fit_recipe", None)
    assert train_all.main(["--table", "table.json"]) == 0
    assert json.loads((here / "table.json").read_text())["rows"]["linear-regression"]["met"] is True


def test_the_documentation_shows_the_table(tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "REACHED", tmp_path / "recipes.json")
    assert "Measured" not in pages.recipe_pages()["recipes/index.md"]
    row = {"metric": "validation_loss", "target": "<= 1", "reached": "0.5 ± 0.1, 10 of 10 seeds", "met": True}
    row |= {"seconds": 7.5, "date": "2026-11-18", "machine": "a machine, 2 threads", "torch": "2.13"}
    rows = {name: dict(row) for name in recipe_names()[1:]}
    rows[recipe_names()[1]]["met"] = False
    rows[recipe_names()[2]]["machine"] = "another, 8 threads"
    (tmp_path / "recipes.json").write_text(json.dumps({"seeds": 10, "rows": rows}))
    page = pages.recipe_pages()["recipes/index.md"]
    assert "Seeds 0 to 9, on a machine, 2 threads, torch 2.13; another, 8 threads, torch 2.13." in page
    assert f"Not measured yet: {recipe_names()[0]}." in page
    assert page.count("0.5 ± 0.1, 10 of 10 seeds") == len(rows)
    assert page.count("missed") == 1
    assert "<td>another, 8 threads, torch 2.13</td>" in page
