"""Runs compared: spreads, tests against a baseline, groups, and what is told; on folders written by hand."""

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from commands import tried
from made_runs import write_multirun, write_run
from quoin.runs.compare import comparison

OURS, THEIRS = [0.91, 0.95, 0.93], [0.90, 0.92, 0.91]


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def accuracies(values, **more: float) -> list:
    return [None if value is None else {"test_accuracy": value, **more} for value in values]


def compared(*words: object) -> dict:
    code, out, err = tried("compare", *words, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


def refused(*words: object) -> str:
    code, _, err = tried("compare", *words)
    assert (code, err.count("\n")) == (2, 1), err
    return err


# ---- mean, spread, interval -------------------------------------------------------------------------------------


@pytest.mark.parametrize("confidence", [0.95, 0.9])
def test_mean_std_and_interval_of_each_metric(confidence, here):
    write_multirun(here / "a", accuracies(OURS), lr=0.1)
    write_multirun(here / "b", accuracies(THEIRS), lr=0.2)
    found = compared("a", "b", "--confidence", confidence)
    for run, values in zip(found["runs"], (OURS, THEIRS), strict=True):
        spread = run["metrics"]["test_accuracy"]
        assert spread["values"] == values
        assert (spread["mean"], spread["std"]) == pytest.approx((np.mean(values), np.std(values, ddof=1)))
        theirs = scipy.stats.t.interval(confidence, 2, loc=np.mean(values), scale=scipy.stats.sem(values))
        assert (spread["low"], spread["high"]) == pytest.approx(theirs)
        assert (run["planned"], run["finished"], run["seeds"]) == (3, 3, [0, 1, 2])
    assert found["options"] == {"lr": [0.1, 0.2]}
    assert any("Student's t" in note and f"{confidence:g}" in note for note in found["notes"])


def test_a_run_alone_has_no_spread(here):
    write_run(here / "a", {"test_accuracy": 0.5}, lr=1)
    write_run(here / "b", {"test_accuracy": 0.6}, lr=2)
    found = compared("a", "b")
    assert [run["metrics"]["test_accuracy"]["std"] for run in found["runs"]] == [None, None]
    assert found["notes"] == []
    assert "±" not in tried("compare", "a", "b")[1]


def test_shown_are_the_target_and_test_metrics_unless_others_are_asked_for(here):
    metrics = {"train_loss": 0.1, "validation_loss": 0.2, "test_loss": 0.3, "test_accuracy": 0.9}
    write_run(here / "a", metrics, lr=1, target=("test_loss", "at most 0.5"))
    write_run(here / "b", metrics, lr=2)
    assert compared("a", "b")["metrics"] == ["test_loss", "test_accuracy"]  # the target's first
    assert compared("a", "b", "--metric", "train_loss")["metrics"] == ["train_loss"]
    assert "validation_loss" in compared("a", "b")["runs"][0]["metrics"]  # a machine gets all
    assert "did you mean 'train_loss'" in refused("a", "b", "--metric", "trian_loss")
    write_run(here / "c", {"bits": 3.0})
    write_run(here / "d", {"bits": 4.0}, lr=3)
    assert compared("c", "d")["metrics"] == ["bits"]  # nothing is called test: all there is


def test_the_target_says_which_direction_is_better(here):
    for name, value in (("a", 1.0), ("b", 2.0)):
        write_run(here / name, {"test_x": value, "test_loss": value}, lr=value, target=("test_x", "at least 0.5"))
    assert compared("a", "b")["better"] == {"test_x": "high", "test_loss": "low"}
    assert [group.name for group in comparison([Path("a"), Path("b")]).ranked()] == ["b", "a"]


# ---- the test against a baseline --------------------------------------------------------------------------------


def test_paired_where_the_seeds_match(here):
    write_multirun(here / "a", accuracies(OURS, test_loss=0.5), lr=0.1)
    write_multirun(here / "b", accuracies(THEIRS, test_loss=0.75), lr=0.2)
    found = compared("a", "b", "--baseline", "b")
    accuracy, loss = found["differences"]
    differences = np.subtract(OURS, THEIRS)
    theirs = scipy.stats.permutation_test((differences,), np.mean, permutation_type="samples")
    assert accuracy["p_value"] == pytest.approx(theirs.pvalue)
    assert (accuracy["run"], accuracy["metric"], accuracy["n"]) == ("a", "test_accuracy", 3)
    assert (accuracy["paired"], accuracy["exact"], accuracy["smallest_p"]) == (True, True, 0.25)
    assert accuracy["difference"] == pytest.approx(differences.mean())
    interval = scipy.stats.t.interval(0.95, 2, loc=differences.mean(), scale=scipy.stats.sem(differences))
    assert (accuracy["low"], accuracy["high"]) == pytest.approx(interval)
    assert (accuracy["is_better"], loss["is_better"]) == (True, True)  # the lower loss
    assert any("0.25 of 3 pairs" in note for note in found["notes"])
    assert not any("Holm" in note for note in found["notes"])


def test_seeds_that_both_have_are_the_pairs(here):
    write_multirun(here / "a", accuracies([0.9, 0.8, 0.7, 0.6]), lr=0.1)
    write_multirun(here / "b", accuracies([0.5, 0.4, 0.1]), lr=0.2, first_seed=2)  # seeds 2, 3, 4
    (only,) = compared("a", "b", "--baseline", "b")["differences"]
    assert (only["paired"], only["n"]) == (True, 2)
    assert only["difference"] == pytest.approx(0.2)  # 0.7 - 0.5 and 0.6 - 0.4


def test_unpaired_where_no_seed_matches(here):
    write_multirun(here / "a", accuracies(OURS), lr=0.1)
    write_multirun(here / "b", accuracies(THEIRS), lr=0.2, first_seed=10)
    found = compared("a", "b", "--baseline", "b")
    (only,) = found["differences"]
    theirs = scipy.stats.permutation_test(
        (OURS, THEIRS), lambda x, y: abs(np.mean(x) - np.mean(y)), alternative="greater"
    )
    assert (only["paired"], only["low"]) == (False, None)
    assert only["p_value"] == pytest.approx(theirs.pvalue)
    assert any("unpaired" in note and "0.1 of 3 and 3 runs" in note for note in found["notes"])


def test_several_runs_against_one_baseline_are_adjusted(here):
    write_multirun(here / "base", accuracies([0.5] * 6), lr=0.1)
    write_multirun(here / "a", accuracies([0.6, 0.61, 0.62, 0.6, 0.6, 0.6]), lr=0.2)  # p = 2/64
    write_multirun(here / "b", accuracies([0.6, 0.6, 0.6, 0.6, 0.6, 0.4]), lr=0.3)  # p = 14/64: 1 and 6 flips, twice
    found = compared("base", "a", "b", "--baseline")
    assert found["baseline"] == "base"
    p = {each["run"]: (each["p_value"], each["p_holm"]) for each in found["differences"]}
    assert p == {"a": (2 / 64, 4 / 64), "b": (14 / 64, 14 / 64)}
    assert any("Holm" in note for note in found["notes"])


def test_a_baseline_need_not_be_named_twice(here):
    write_multirun(here / "a", accuracies(OURS), lr=0.1)
    write_multirun(here / "b", accuracies(THEIRS), lr=0.2)
    found = compared("a", "--baseline", "b")
    assert [run["name"] for run in found["runs"]] == ["b", "a"]
    assert found["baseline"] == "b"
    assert len(compared("a", "b", "--baseline", here / "b")["runs"]) == 2  # the same folder by another path
    assert "two or more" in refused("a")
    assert "two or more" in refused("a", "--baseline")
    assert "no run folder at c" in refused("a", "b", "--baseline", "c")


def test_one_seed_is_no_test(here):
    write_run(here / "a", {"test_accuracy": 0.5}, lr=1)
    write_multirun(here / "b", accuracies(OURS), lr=2)
    found = compared("a", "b", "--baseline", "b")
    assert found["differences"] == []
    assert any("a could not be tested against b: a test needs two or more" in note for note in found["notes"])


# ---- groups -----------------------------------------------------------------------------------------------------


def test_runs_that_differ_only_in_the_seed_are_one_group(here):
    for seed, value in enumerate(OURS):
        write_run(here / f"a-{seed}", {"test_accuracy": value}, seed=seed, lr=0.1)
    write_multirun(here / "whole", accuracies(OURS), lr=0.1)
    write_run(here / "b", {"test_accuracy": 0.7}, seed=5, lr=0.2)
    found = compared("a-0", "b", "a-1", "whole", "a-2")
    assert [run["name"] for run in found["runs"]] == ["a-0 and 2 more", "b", "whole"]
    grouped, _, multirun = found["runs"]
    assert grouped["metrics"] == multirun["metrics"]
    assert (grouped["over"], grouped["seeds"], grouped["folders"]) == ("seed", [0, 1, 2], ["a-0", "a-1", "a-2"])
    assert any("a-0, a-1, a-2 differ in nothing but the seed" in note for note in found["notes"])
    assert len(compared("a-0", "b", "a-1", "whole", "a-2", "--no-group")["runs"]) == 5
    tested = compared("a-0", "a-1", "a-2", "whole", "--baseline", "a-1")  # a run of the group stands for it
    assert (tested["baseline"], tested["differences"][0]["p_value"]) == ("a-0 and 2 more", 1.0)


def test_a_seed_that_is_there_twice_makes_no_group(here):
    for name, seed in (("a", 0), ("b", 1), ("c", 1)):
        write_run(here / name, {"test_accuracy": 0.5}, seed=seed)
    found = compared("a", "b", "c")
    assert len(found["runs"]) == 3
    assert any("the same seed" in note for note in found["notes"])
    assert [run["name"] for run in compared("a", "a")["runs"]] == ["a", "a (2)"]
    write_run(here / "deep" / "a", {"test_accuracy": 0.5}, lr=3)
    assert [run["name"] for run in compared("a", "deep/a")["runs"]] == ["a", "deep/a"]


def test_seeds_and_folds_are_told_apart(here):
    write_multirun(here / "seeds", accuracies(OURS))
    write_multirun(here / "folds", accuracies(THEIRS), over="fold")
    found = compared("seeds", "folds", "--baseline", "seeds")
    assert found["differences"] == []
    told = " ".join(found["notes"])
    assert "seeds and folds are mixed" in told
    assert "folds share training examples" in told
    write_multirun(here / "more", accuracies(OURS), over="fold", lr=3)
    assert compared("folds", "more", "--baseline")["differences"][0]["paired"]  # the same fold of the same seed


# ---- what is not whole ------------------------------------------------------------------------------------------


def test_unfinished_runs_are_told(here):
    write_multirun(here / "a", accuracies([0.9, 0.8, None]), lr=0.1)
    write_run(here / "a" / "seed-2", None, seed=2, curve=[{"train_loss": 1.0}], lr=0.1)
    write_run(here / "b", None, lr=0.2, curve=[{"train_loss": 2.0}])
    found = compared("a", "b")
    assert [(run["finished"], run["planned"]) for run in found["runs"]] == [(2, 3), (0, 1)]
    assert found["runs"][0]["metrics"]["test_accuracy"]["mean"] == pytest.approx(0.85)
    assert "a is not finished: 2 of 3 seeds so far" in found["notes"]
    out = tried("compare", "a", "b")[1]
    assert "a (2 of 3 seeds)" in out
    assert "b (unfinished)" in out
    write_run(here / "c", None, lr=0.3)
    assert tried("compare", "b", "c")[0] == 0  # nothing to compare yet but options and curves
    assert "none of the runs is finished" in refused("b", "c", "--metric", "test_loss")


def test_a_damaged_member_costs_itself(here):
    write_multirun(here / "a", accuracies(OURS), lr=0.1)
    write_multirun(here / "b", accuracies(THEIRS), lr=0.2)
    (here / "a" / "seed-1" / "result.json").write_text('{"metrics": [1]}')
    found = compared("a", "b", "--baseline", "b")
    assert any(note.startswith("a/seed-1 is left out: ") for note in found["notes"])
    assert found["runs"][0]["metrics"]["test_accuracy"]["values"] == [0.91, 0.93]
    assert found["differences"][0]["n"] == 2
    write_run(here / "c", {"test_accuracy": 0.5})
    (here / "c" / "metrics.jsonl").write_text("[1]\n[2]\n")
    assert "metrics.jsonl, line 1" in refused("a", "c")  # one that was named is not left out


def test_the_code_of_a_run_is_not_needed(here, monkeypatch):
    import quoin.runs.catalog as catalog

    def unexpected(*words: object) -> None:
        raise AssertionError(words)

    monkeypatch.setattr(catalog, "find_recipe", unexpected)
    monkeypatch.setattr(catalog, "recipe_names", unexpected)
    write_run(here / "a", {"test_accuracy": 0.5}, recipe="my-own", kind="of-my-own", depth=3)
    write_run(here / "b", {"test_accuracy": 0.6}, recipe="mlp", lr=0.2)
    found = compared("a", "b")
    assert found["options"] == {"recipe": ["my-own", "mlp"], "depth": [3, None], "lr": [None, 0.2]}


def test_metrics_that_only_some_have_are_told(here):
    write_run(here / "a", {"test_accuracy": 0.5, "test_auc": 0.7}, lr=1)
    write_run(here / "b", {"test_accuracy": 0.6}, lr=2)
    found = compared("a", "b")
    assert found["notes"] == ["no test_auc in b"]
    assert "test_auc" not in found["runs"][1]["metrics"]


def test_values_beyond_floats_are_told(here):
    write_multirun(here / "a", accuracies([1e308, 1e308]), lr=0.1)
    write_multirun(here / "b", accuracies([1.0, 2.0]), lr=0.2)
    assert "mean a float can hold" in refused("a", "b")


def test_flags_out_of_range(here):
    write_run(here / "a", {"test_accuracy": 0.5})
    assert "--confidence" in refused("a", "a", "--confidence", "95")
    assert "--precision" in refused("a", "a", "--precision", "99")
    assert ".csv" in refused("a", "a", "--csv", "a/config.json")
    assert ".tex" in refused("a", "a", "--latex", "a.html")
    assert "only one" in refused("a", "a", "--csv", "-", "--latex", "-")
    assert "only one" in refused("a", "a", "--csv", "-", "--json")
    assert "nowhere/a.csv" in refused("a", "a", "--csv", "nowhere/a.csv")
