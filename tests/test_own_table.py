"""A table of one's own through the command line: train, resume, evaluate, predict; its test set; its place."""

import json
import shutil

import numpy as np
import polars
import pytest
import torch

from quoin.cli import main
from quoin.data import load, prepare, split, with_test_set
from quoin.errors import UserError
from quoin.runs import Run

QUICK = ["--epochs", "2", "--num-threads", "1"]


def messy(rows, seed=0, cities=("Bonn", "Oslo", "Rome")):
    rng = np.random.default_rng(seed)
    age, city = rng.normal(40, 10, rows).round(1), rng.choice(cities, rows)
    return polars.DataFrame(
        {
            "age": [None if i % 9 == 4 else value for i, value in enumerate(age)],
            "city": city,
            "joined": [f"20{10 + i % 10}-03-1{i % 9}" for i in range(rows)],
            "spent": (10 * age + rng.normal(size=rows)).round(2),
            "label": np.where((age > 40) ^ (city == "Oslo"), "yes", "no"),
        }
    )


def train(words, capsys):
    assert main(["train", *words, *QUICK]) == 0
    return capsys.readouterr()


def test_a_test_set_of_ones_own_is_the_test_and_nothing_else(here):
    messy(60).write_csv("t.csv")
    messy(30, 1, ("Bonn", "Kyiv")).write_csv("u.csv")
    messy(30, 2, ("Bonn", "Lima")).write_csv("v.csv")
    data = load("csv:t.csv", missing="mean", ignore=["spent"])
    ready = []
    for source in ("csv:u.csv", "csv:v.csv"):
        joined = with_test_set(data, source, missing="mean")
        rows = split(joined, 0)
        assert rows.test.tolist() == list(range(60, 90))
        ready.append(prepare(joined, rows, missing="mean"))
    one, two = ready
    assert torch.equal(one.train.features, two.train.features)  # no test row moves what is learnt
    assert one.data_info.columns == two.data_info.columns
    assert not torch.equal(one.test.features, two.test.features)
    names = messy(30, 1, ("Bonn", "Kyiv"))["city"]
    bonn = one.feature_scaler.inverse_transform(one.test.features)[:, one.data_info.feature_names.index("city=Bonn")]
    assert bonn.round().tolist() == [float(name == "Bonn") for name in names]  # levels by name, not by their number
    assert [one.data_info.class_names[label] for label in one.test.targets] == messy(30, 1, ("Bonn", "Kyiv"))[
        "label"
    ].to_list()


def test_a_test_set_by_command(here, capsys):
    messy(60).write_csv("t.csv")
    messy(30, 1).write_parquet("u.parquet")
    words = ["mlp", "--data", "csv:t.csv", "--missing", "mean", "--ignore", "spent"]
    train([*words, "--test-data", "parquet:u.parquet"], capsys)
    found = json.loads((here / "runs/mlp-1/result.json").read_text())["metrics"]["test_accuracy"]
    assert main(["eval", "runs/mlp-1", "--data", "parquet:u.parquet", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] == pytest.approx(found)
    assert main(["train", *words, "--test-data", "parquet:u.parquet", "--folds", "2"]) == 2
    assert "--test-data with --folds" in capsys.readouterr().err
    polars.DataFrame({"age": [1.0], "city": ["Bonn"], "joined": ["2020-01-01"], "label": ["maybe"]}).write_csv("w.csv")
    assert main(["train", *words, "--test-data", "csv:w.csv"]) == 2
    assert "has 'maybe': leave those rows out" in capsys.readouterr().err


def test_several_targets_by_command(here, capsys):
    frame = messy(60).with_columns(polars.Series("weight", np.arange(60) * 2.5))
    frame.write_csv("t.csv")
    words = ["--data", "csv:t.csv", "--target", "spent", "weight", "--ignore", "label", "--missing", "mean"]
    train(["mlp-regression", *words], capsys)
    run = Run.open("runs/mlp-regression-1")
    assert run.data_info.target_names == ("spent", "weight")
    assert main(["predict", "runs/mlp-regression-1", "t.csv"]) == 0
    header, *lines = capsys.readouterr().out.splitlines()
    assert header == "spent,weight"
    ours = np.array([line.split(",") for line in lines], dtype=float)
    assert main(["eval", "runs/mlp-regression-1", "--data", "csv:t.csv", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    for at, name in enumerate(("spent", "weight")):
        assert found[f"rmse_{name}"] == pytest.approx(np.sqrt(np.mean((ours[:, at] - frame[name].to_numpy()) ** 2)))
    assert main(["train", "linear-regression", *words]) == 2
    assert "which predicts several" in capsys.readouterr().err


def test_a_run_finds_its_data_from_anywhere(here, capsys, monkeypatch):
    (here / "project").mkdir()
    monkeypatch.chdir("project")
    messy(60).write_csv("t.csv")
    words = ["mlp", "--data", "csv:t.csv", "--missing", "mean", "--max-steps", "2"]
    train(words, capsys)
    assert main(["eval", "runs/mlp-1", "--json"]) == 0
    found = capsys.readouterr().out
    monkeypatch.chdir(here)
    assert main(["eval", "project/runs/mlp-1", "--json"]) == 0
    assert capsys.readouterr().out == found
    shutil.move("project", "moved")  # as a whole
    assert main(["eval", "moved/runs/mlp-1", "--json"]) == 0
    assert capsys.readouterr().out == found
    shutil.move("moved/t.csv", "elsewhere.csv")
    (here / "moved/runs/mlp-1/report.html").unlink()
    assert main(["resume", "moved/runs/mlp-1"]) == 2
    assert "t.csv" in capsys.readouterr().err
    messy(60, 5).write_csv("other.csv")
    assert main(["resume", "moved/runs/mlp-1", "--data", "csv:other.csv"]) == 2
    assert "changed since it was started" in capsys.readouterr().err
    assert main(["resume", "moved/runs/mlp-1", "--data", "csv:elsewhere.csv"]) == 0


def test_training_says_how_columns_became_features(here, capsys):
    messy(60).write_csv("t.csv")
    told = train(["softmax-regression", "--data", "csv:t.csv", "--missing", "mean"], capsys).err
    assert "4 columns give 7 features: 'joined' as days since 1970-01-01; 'city' one-hot (3 levels);" in told
    assert "missing cells of 'age' by the training mean, with an indicator" in told


def test_unknown_test_sets_are_refused(here):
    messy(60).write_csv("t.csv")
    data = load("csv:t.csv", missing="mean", target="spent", ignore=["label"])
    messy(20).drop("spent").write_csv("u.csv")
    with pytest.raises(UserError, match="expected a column 'spent'"):
        with_test_set(data, "csv:u.csv", missing="mean")
    with pytest.raises(UserError, match="expected test rows of shape"):
        with_test_set(load("digits"), "iris")
