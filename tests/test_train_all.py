"""`make recipes`: stopped and called again it goes on, and its table reaches the documentation."""

import itertools
import json
import os
import signal

import pytest

from generator import recipes as pages
from quoin.cli import train_all
from quoin.runs import multirun, recipe_names
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
    assert not (here / "table.json").exists()
    folder = here / "build" / "recipes" / "seeds-2"
    done = json.loads((folder / "rows.json").read_text()) if (folder / "rows.json").exists() else {}
    assert list(done) == QUICK[: (stop_at - 1) // 2]
    first = json.loads((folder / QUICK[0] / "seed-0" / "result.json").read_text())
    code = train_all.main(["--seeds", "2", "--table", "table.json"])
    rows = json.loads((here / "table.json").read_text())["rows"]
    assert [row[0] for row in rows] == QUICK
    assert code == (0 if all(row[4] for row in rows) else 1)
    assert all(rows[index] == row for index, row in enumerate(done.values()))
    # Each run began once, but for one that was stopped before it had a folder; the first result counts in the mean.
    assert set(begun) == {f"{name}/seed-{seed}" for name in QUICK for seed in range(2)}
    assert len(begun) <= len(set(begun)) + 1
    assert begun.count(f"{QUICK[0]}/seed-0") == 1
    assert first["metrics"][rows[0][1]] > 0
    assert not folder.exists()  # nothing is left


def test_rows_that_are_done_are_taken_as_they_are(here, monkeypatch):
    def never(*arguments, **given):
        raise NonFiniteLossError("not again")

    folder = here / "kept" / "seeds-1"
    folder.mkdir(parents=True)
    row = [QUICK[1], "metric", ">= 1", 2.0, True, 0.1]
    (folder / "rows.json").write_text(json.dumps({QUICK[1]: row}))
    monkeypatch.setattr(train_all, "fit_recipe", never)
    assert train_all.main(["--runs", "kept", "--table", "table.json"]) == 1
    told = json.loads((here / "table.json").read_text())
    assert told["rows"][1] == row
    assert told["rows"][0][3:] == ["not again", False, ""]
    assert told["seeds"] == 1
    assert len(told["date"]) == 10
    assert told["machine"]


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
    assert json.loads((here / "table.json").read_text())["rows"][0][4] is True


def test_the_documentation_shows_the_table(tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "REACHED", tmp_path / "recipes.json")
    assert "Measured" not in pages.recipe_pages()["recipes/index.md"]
    rows = [[name, "validation_loss", "<= 1", "0.5 ± 0.1, 10 of 10 seeds", True, 7.5] for name in recipe_names()]
    rows[0][4] = False
    told = {"date": "2026-11-18", "machine": "a machine, 2 threads", "torch": "2.13", "seeds": 10, "rows": rows}
    (tmp_path / "recipes.json").write_text(json.dumps(told))
    page = pages.recipe_pages()["recipes/index.md"]
    assert "Seeds 0 to 9, 2026-11-18, on a machine, 2 threads" in page
    assert page.count("0.5 ± 0.1, 10 of 10 seeds") == len(rows)
    assert page.count("missed") == 1
