"""Columns far from zero, such as seconds since 1970: what a model learns is what it learns of the same numbers near
zero."""

import csv
import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.base import is_classifier, is_regressor

import quoin.estimators
from commands import refused, tried
from quoin.data import TabularInfo, load, read_features, split
from quoin.data.prepared import prepare
from quoin.runs import find_recipe, recipe_names

OFFSET = 1_700_000_000.0
TABULAR = [
    name
    for name in recipe_names()
    if {"data", "target", "missing"} <= {each.name for each in dataclasses.fields(find_recipe(name).options)}
]
NO_LOSS = {"nadaraya-watson"}  # pooled, not trained
REGRESSION = {"linear-regression", "polynomial-fit", "random-features", "mlp-regression", "ridge", *NO_LOSS}
QUICK = {
    "linear-regression",
    "logistic-regression",
    "polynomial-fit",
    "softmax-regression",
}  # the others wait for make deep
pytestmark = pytest.mark.usefixtures("one_thread")


def numbers(rows: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Features on a grid that float64 holds at the offset as well, and a line through them."""
    drawn = np.random.default_rng(0)
    features = drawn.integers(-2048, 2048, (rows, 2)) / 1024
    return features, np.round((features @ [1.5, -0.5] + 0.1 * drawn.normal(size=rows)) * 1024) / 1024


def written(path: Path, features: np.ndarray, targets: np.ndarray) -> str:
    if path.suffix == ".npz":
        np.savez(path, features=features, targets=targets)
        return f"npz:{path}"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["t", "u", "y"])
        writer.writerows([*map(repr, map(float, row)), target] for row, target in zip(features, targets.tolist()))
    return f"csv:{path}"


def trained(folder: Path, recipe: str, source: str, *more: object) -> tuple[Path, dict[str, float]]:
    words = ["train", recipe, "--data", source, "--num-threads", 1, "--runs", folder, *more]
    code, out, err = tried(*words)
    assert code == 0, err or out
    (run,) = folder.iterdir()
    return run, json.loads((run / "result.json").read_text())["metrics"]


@pytest.mark.parametrize("ending", [".csv", ".npz"])
@pytest.mark.parametrize("classify", [True, False], ids=["classes", "numbers"])
def test_the_scaled_parts_are_those_without_the_offset(tmp_path, ending, classify):
    features, targets = numbers()
    labels = (targets > 0).astype(np.int64)
    parts = []
    for name, offset in (("near", 0.0), ("far", OFFSET)):
        data = load(
            written(tmp_path / f"{name}{ending}", features + offset, labels if classify else targets + offset),
            target=None,
        )
        assert data.is_classification == classify
        parts.append(prepare(data, split(data, 0)))
    near, far = parts
    for part in ("train", "validation", "test"):
        for of in ("features", "targets"):
            found, expected = getattr(getattr(far, part), of), getattr(getattr(near, part), of)
            assert found.dtype == (torch.int64 if classify and of == "targets" else torch.float32)
            torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    "recipe", [pytest.param(name, marks=[] if name in QUICK else pytest.mark.deep) for name in TABULAR]
)
def test_every_recipe_of_tables_learns_the_same_at_an_offset(tmp_path, recipe):
    features, targets = numbers()
    goals = {"near": targets, "far": targets + OFFSET}
    if recipe not in REGRESSION:
        goals = dict.fromkeys(goals, np.where(targets > 0, "b", "a"))
    found, one = [], ["--ignore", "u"] if recipe == "polynomial-fit" else []
    for name, offset in (("near", 0.0), ("far", OFFSET)):
        source = written(tmp_path / f"{name}.csv", features[:, :1] * [1, 0.5] + offset, goals[name])
        code, _, err = tried(
            "train", recipe, "--data", source, "--num-threads", 1, "--runs", tmp_path / name, "--max-steps", 3, *one
        )
        if code == 2 and "expected images" in err:
            return
        assert code == 0, err
        (run,) = (tmp_path / name).iterdir()
        found.append(json.loads((run / "result.json").read_text())["metrics"])
    near, far = found
    assert near.keys() == far.keys()
    for metric, value in near.items():
        if "second" not in metric:
            assert far[metric] == pytest.approx(value, rel=1e-3, abs=1e-4), metric


@pytest.mark.parametrize("recipe", sorted(REGRESSION - NO_LOSS))
def test_every_regression_tells_loss_and_rmse_in_one_unit(tmp_path, recipe):
    """Of (prediction - target)²/2 the mean is half the square of the rmse, whatever the unit; here the targets' is a
    thousand."""
    features, targets = numbers()
    own = [] if recipe == "ridge" else ["--data", written(tmp_path / "table.csv", features, 1000 * targets)]
    more = ["--ignore", "u"] if recipe == "polynomial-fit" else []
    code, _, err = tried(
        "train", recipe, *own, *more, "--num-threads", 1, "--runs", tmp_path / "runs", "--max-steps", 3
    )
    assert code == 0, err
    (run,) = (tmp_path / "runs").iterdir()
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    told = json.loads((run / "result.json").read_text())["metrics"]
    assert "test_rmse" in told
    for found in (*lines, told):
        for part in ("validation", "test"):
            if f"{part}_rmse" in found:
                assert found[f"{part}_loss"] == pytest.approx(found[f"{part}_rmse"] ** 2 / 2, rel=1e-4)
    if recipe != "ridge":  # while it learns, the loss is in this unit too: no number near one
        assert all(line["train_loss"] > 1000 for line in lines if "train_loss" in line)


def test_time_stamps_are_told_apart_in_training_judging_and_predicting(tmp_path):
    """Two classes a minute apart, of which float32 makes one: 128 seconds lie between its numbers there."""
    seconds = np.arange(120.0).reshape(-1, 1) * [1, 1] + OFFSET
    labels = np.where(np.arange(120) < 60, "a", "b")
    source = written(tmp_path / "stamps.csv", seconds, labels)
    run, metrics = trained(tmp_path / "runs", "logistic-regression", source, "--epochs", 60)
    assert metrics["test_accuracy"] == 1.0
    code, out, _ = tried("eval", run, "--data", source, "--json")
    assert code == 0
    assert json.loads(out)["accuracy"] >= 0.99
    code, out, _ = tried("predict", run, tmp_path / "stamps.csv")
    assert [line.split(",")[0] for line in out.splitlines()[1:]].count("a") in (59, 60, 61)


@pytest.mark.parametrize("ending", [".csv", ".npz"])
def test_predictions_of_a_large_target_have_their_last_digits(tmp_path, ending):
    features, targets = numbers(200)
    source = written(tmp_path / f"far{ending}", features + OFFSET, targets + OFFSET)
    run, metrics = trained(tmp_path / "runs", "linear-regression", source, "--epochs", 30)
    assert metrics["test_rmse"] < 0.2
    code, out, _ = tried("eval", run, "--data", source, "--json")
    assert code == 0
    assert json.loads(out)["rmse"] < 0.2
    code, out, _ = tried("predict", run, tmp_path / f"far{ending}")
    predicted = np.array([float(line) for line in out.splitlines()[1:]])
    assert np.sqrt(np.mean((predicted - targets - OFFSET) ** 2)) < 0.2


def test_what_64_bits_cannot_tell_apart_is_said(tmp_path):
    path = tmp_path / "fine.csv"
    path.write_text("t,u,y\n" + "".join(f"{10**18 + row},{row},{row % 2}\n" for row in range(40)))
    said = refused("train", "logistic-regression", "--data", f"csv:{path}", "--runs", tmp_path / "runs")
    assert "distinguish in column 't'" in said
    assert "--ignore" in said
    without = ["--ignore", "t", "--max-steps", 2, "--runs", tmp_path / "runs"]
    assert tried("train", "logistic-regression", "--data", f"csv:{path}", *without)[0] == 0
    path.write_text(
        "t,u,y\n" + "".join(f"{row % 3},5,{row % 2}\n" for row in range(40))
    )  # a constant column is no such thing
    assert load(f"csv:{path}", target=None).num_rows == 40
    path.write_text("t,u,y\n" + "".join(f"{10**18 + row},{row},{row % 2}\n" for row in range(2)))
    assert read_features(path, TabularInfo("t", "", 1, ("t", "u"), (2,), ("y",), None)).features.shape == (
        2,
        2,
    )  # rows to predict for may be alike
    np.savez(tmp_path / "fine.npz", features=10**18 + np.arange(80).reshape(40, 2), targets=np.arange(40) % 2)
    assert "are one there" in refused(
        "train", "logistic-regression", "--data", f"npz:{tmp_path / 'fine.npz'}", "--runs", tmp_path / "runs"
    )


ESTIMATORS = [name for name in quoin.estimators.__all__ if hasattr(getattr(quoin.estimators, name), "score")]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_score_the_same_at_an_offset(name):
    features, targets = numbers(200)
    found = []
    for offset in (0.0, OFFSET):
        estimator = getattr(quoin.estimators, name)()
        goals = [] if is_density(estimator) else [targets > 0] if is_classifier(estimator) else [targets + offset]
        found.append(estimator.fit(features + offset, *goals).score(features + offset, *goals))
    assert found[1] == pytest.approx(found[0], abs=1e-6)


def is_density(estimator) -> bool:
    return not (is_classifier(estimator) or is_regressor(estimator))
