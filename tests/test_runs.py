"""Whole runs by their recipes: studies and folds, evaluation and prediction afterwards, changed data, reports."""

import csv
import importlib
import io
import json
import re
import statistics
from pathlib import Path

import numpy as np
import pytest
import torch

from quoin import runs
from quoin.cli import main
from quoin.data import load
from quoin.errors import UserError
from quoin.runs import Run, find_recipe, resume
from quoin.runs.multirun import resume_multirun
from quoin.tasks.supervised import Classification
from quoin.train import (
    DeviceContext,
    RunFolder,
)
from quoin.train.checkpoint import checkpoint_steps
from tasks import Crash, Disk, difference, left_behind, timeless

QUICK = ["--num-threads", "1", "--device", "cpu", "--hidden-dims", "8", "--epochs", "3"]


@pytest.fixture(autouse=True)
def quick_disk(tmp_path, monkeypatch):
    """No true syncs: nothing here cuts the power."""
    Disk(monkeypatch, tmp_path)


def train(runs: Path, *words: str, recipe: str = "mlp") -> RunFolder:
    assert main(["train", recipe, *words, "--runs", str(runs)]) == 0
    return RunFolder.open(max(runs.glob(f"{recipe}-*"), key=lambda path: int(path.name.rpartition("-")[2])))


def write_csv(path: Path, source: str) -> None:
    """The rows of a source as a table."""
    data = load(source)
    assert data.class_names is not None
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*data.feature_names, data.target_name])
        writer.writerows(
            [*map(repr, row.tolist()), data.class_names[label]] for row, label in zip(data.features, data.targets)
        )


# Studies


@pytest.mark.parametrize(("over", "count"), [("seed", 3), ("fold", 4)])
def test_a_study_holds_its_runs_and_their_mean_and_spread(over, count, tmp_path):
    study = train(tmp_path, *QUICK, "--data", "iris", f"--{over}s", str(count))
    members = [RunFolder.open(study.path / f"{over}-{index}") for index in range(count)]
    results = [member.result or {} for member in members]
    assert study.result is not None
    for name, found in study.result["metrics"].items():
        values = [result["metrics"][name] for result in results]
        assert found["mean"] == pytest.approx(sum(values) / count)
        assert found["std"] == pytest.approx(statistics.stdev(values))
        assert (found["min"], found["max"]) == (min(values), max(values))
    assert (study.path / "report.html").exists()
    assert all((member.path / "report.html").exists() for member in members)
    if over == "seed":
        assert [member.config["options"]["seed"] for member in members] == [0, 1, 2]
        alone = train(tmp_path / "alone", *QUICK, "--data", "iris", "--seed", "1")
        assert difference(left_behind(alone), left_behind(members[1])) is None


def test_the_test_parts_of_the_folds_are_disjoint_and_cover_every_row(tmp_path):
    """Read from the tasks that the recipe builds: each row of iris (its features are not all distinct) is judged
    once."""
    recipe, data = find_recipe("mlp"), load("iris")
    judged = []
    for index in range(4):
        task = recipe.build(recipe.options(data="iris", fold=f"{index}/4"), DeviceContext())  # pyright: ignore
        assert isinstance(task, Classification)
        parts = task.data
        assert parts.train.num_rows + parts.validation.num_rows + parts.test.num_rows == data.num_rows
        judged.append(parts.feature_scaler.inverse_transform(parts.test.features))
    rows = torch.cat(judged)
    assert len(rows) == data.num_rows
    torch.testing.assert_close(rows.sort(0).values, data.features.double().sort(0).values, rtol=1e-6, atol=1e-6)
    whole = sorted(map(tuple, data.features.mul(10).round().int().tolist()))
    assert sorted(map(tuple, rows.mul(10).round().int().tolist())) == whole  # row by row: iris is measured in tenths


@pytest.mark.parametrize("operation", [12, 40, 75, 110, 150])
def test_a_killed_study_resumes_to_the_same_bits(operation, tmp_path, monkeypatch):
    words = ["train", "mlp", *QUICK, "--data", "iris", "--folds", "2", "--checkpoint-every", "2"]
    assert main([*words, "--runs", str(tmp_path / "whole")]) == 0
    with monkeypatch.context() as patch:
        Disk(patch, tmp_path, fatal=operation)
        with pytest.raises(Crash):
            main([*words, "--runs", str(tmp_path / "killed")])
    path = tmp_path / "killed" / "mlp-1"
    finished = [each.parent for each in path.glob("fold-*/report.html")]
    stamps = {each: (each / "result.json").stat().st_mtime_ns for each in finished}
    assert main(["resume", str(path)]) == 0
    assert all(
        (each / "result.json").stat().st_mtime_ns == stamp for each, stamp in stamps.items()
    )  # what is finished stays
    for name in ("fold-0", "fold-1", "."):
        whole = left_behind(RunFolder.open(tmp_path / "whole" / "mlp-1" / name))
        assert difference(whole, left_behind(RunFolder.open(path / name))) is None
        assert (path / name / "report.html").exists()


def test_a_member_killed_before_its_report_gets_one(tmp_path):
    study = train(tmp_path, *QUICK, "--data", "iris", "--seeds", "2")
    before = timeless(study.result)
    (study.path / "seed-0" / "report.html").unlink()
    (study.path / "result.json").unlink()
    resume_multirun(Run.open(study.path), show_progress=False)
    assert (study.path / "seed-0" / "report.html").exists()
    assert timeless(study.result) == before


# After training


@pytest.mark.parametrize("recipe", ["mlp", "linear-regression"])
def test_eval_gives_the_metrics_of_the_result(recipe, tmp_path, capsys):
    words = QUICK if recipe == "mlp" else ["--num-threads", "1", "--epochs", "3"]
    run = train(tmp_path, *words, recipe=recipe)
    capsys.readouterr()
    assert main(["eval", str(run.path), "--json"]) == 0
    assert run.result is not None
    assert json.loads(capsys.readouterr().out) == run.result["metrics"]


def test_the_result_is_that_of_the_best_epoch(tmp_path):
    run = train(
        tmp_path,
        "--num-threads",
        "1",
        "--hidden-dims",
        "8",
        "--data",
        "wine",
        "--epochs",
        "12",
        "--lr",
        "1",
        "--schedule",
        "constant",
    )
    lines, monitor = run.metrics(), find_recipe("mlp").monitor
    assert monitor is not None
    best = max(lines, key=lambda line: line[monitor.metric] if monitor.greater_is_better else -line[monitor.metric])
    assert best["step"] < lines[-1]["step"]  # else this test could not fail
    assert run.result is not None
    assert run.result["best_step"] == best["step"]
    assert run.result["metrics"]["validation_accuracy"] == best["validation_accuracy"]
    assert run.result["metrics"]["validation_loss"] == best["validation_loss"]


def test_predict_gives_the_models_outputs_even_when_the_training_file_is_gone(tmp_path, capsys):
    table = tmp_path / "iris.csv"
    write_csv(table, "iris")
    data = load("iris")
    run = train(tmp_path / "runs", *QUICK, "--data", f"csv:{table}", "--target", data.target_name)
    asked = tmp_path / "ask.csv"
    table.rename(asked)
    capsys.readouterr()
    assert main(["predict", str(run.path), str(asked)]) == 0
    rows = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    opened = Run.open(run.path).trained
    state, _ = run.load_checkpoint() or ({}, 0)
    saved = state["best"] or state["task"]["model"]
    # A second way to the outputs: standardise and multiply by hand.
    x = (data.features.double() - saved["scales"]["feature_mean"]) / saved["scales"]["feature_std"]
    matrices = [value.double() for name, value in saved["weights"].items() if name.endswith("weight")]
    biases = [value.double() for name, value in saved["weights"].items() if name.endswith("bias")]
    logits = (x @ matrices[0].T + biases[0]).relu() @ matrices[1].T + biases[1]
    torch.testing.assert_close(opened.outputs(data.features).double(), logits, rtol=1e-4, atol=1e-5)
    probabilities = torch.tensor([[float(cell) for cell in row[1:]] for row in rows[1:]], dtype=torch.float64)
    torch.testing.assert_close(probabilities, logits.softmax(-1), rtol=1e-4, atol=1e-5)
    names = opened.data_info.class_names
    assert names is not None
    assert [row[0] for row in rows[1:]] == [names[int(best)] for best in logits.argmax(-1)]


def test_data_that_changed_are_refused_when_resuming_and_evaluating(tmp_path):
    table = tmp_path / "iris.csv"
    write_csv(table, "iris")
    target = load("iris").target_name
    run = train(tmp_path / "runs", *QUICK, "--data", f"csv:{table}", "--target", target)
    text = table.read_text()
    table.write_text(text.replace("5.0", "5.5", 1))
    for attempt in (lambda: resume(run.path, step=12, show_progress=False), lambda: Run.open(run.path).evaluate()):
        with pytest.raises(UserError, match=r"the data of .* changed since it was started"):
            attempt()
    table.write_text(text)
    assert main(["resume", str(run.path)]) == 0


def test_a_damaged_checkpoint_is_refused_by_every_command_and_the_way_out_works(tmp_path, capsys):
    run = train(tmp_path, *QUICK, "--data", "iris", "--checkpoint-every", "1")
    whole = left_behind(run)
    older, newest = checkpoint_steps(run.checkpoints)
    file = run.checkpoints / f"{newest:08d}" / "tensors.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    asked = tmp_path / "ask.csv"
    write_csv(asked, "iris")
    for words in (
        ["resume", str(run.path), "--step", str(newest)],
        ["eval", str(run.path)],
        ["predict", str(run.path), str(asked)],
    ):
        capsys.readouterr()
        assert main(words) == 2
        told = capsys.readouterr().err
        assert len(told.splitlines()) == 1
        assert "tensors.safetensors is not as it was written" in told
        assert f"--step {older}" in told
    assert main(["resume", str(run.path), "--step", str(older)]) == 0
    assert difference(whole, left_behind(run)) is None


def test_a_rate_far_too_large_fails_with_one_line_and_exit_code_1(tmp_path, capsys):
    assert main(["train", "mlp", *QUICK, "--lr", "1e30", "--checkpoint-every", "1", "--runs", str(tmp_path)]) == 1
    told = capsys.readouterr().err
    assert re.search(r"not finite at step 2; first bad tensor: \S", told)
    assert len(told.splitlines()) == 1
    state, step = RunFolder.open(tmp_path / "mlp-1").load_checkpoint() or ({}, 0)
    assert step == 1
    assert all(value.isfinite().all() for value in state["task"]["model"]["weights"].values())


# Reports


@pytest.mark.parametrize(
    ("recipe", "shows"),
    [
        ("mlp", ("Confusion matrix", "Misclassified examples", "Loss by epoch")),
        ("linear-regression", ("Predicted vs. true",)),
    ],
)
def test_the_report_is_one_page_that_asks_nothing_of_the_network(recipe, shows, tmp_path):
    words = QUICK if recipe == "mlp" else ["--num-threads", "1", "--epochs", "3"]
    page = (train(tmp_path, *words, recipe=recipe).path / "report.html").read_text(encoding="utf-8")
    assert all(f"<h2>{title}</h2>" in page for title in shows)
    assert page.count("<svg") >= len(shows)
    assert re.findall(r"<script[^>]*>", page) == ["<script>"]  # which enlarges plots, and is all inside
    assert "Content-Security-Policy" in page  # by which a browser would refuse any request
    assert "@import" not in page
    for reference in re.findall(r"""(?:src|href|data)\s*=\s*["']([^"']*)""", page) + re.findall(
        r"url\(([^)]*)\)", page
    ):
        assert reference.startswith(("#", "data:")), reference
    # What looks like an address is the name of an XML namespace and nothing else.
    assert all(re.search(r"xmlns(:\w+)?=[\"']$", page[: found.start()]) for found in re.finditer("https?://", page))


def test_scores_of_a_margin_are_not_passed_off_as_probabilities(tmp_path, capsys):
    assert main(["train", "svm", "--max-steps", "20", "--num-threads", "1", "--runs", str(tmp_path)]) == 0
    data = load("breast-cancer")
    np.savez(tmp_path / "rows.npz", features=data.features.numpy())
    capsys.readouterr()
    assert main(["predict", str(tmp_path / "svm-1"), str(tmp_path / "rows.npz")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert data.class_names is not None
    assert set(lines[1:]) <= set(data.class_names)
    assert len(lines) == 1 + data.num_rows
    assert set(Run.open(tmp_path / "svm-1").evaluate(data)) == {"accuracy", "auc"}  # no cross-entropy


def test_a_finished_run_says_so_when_resumed_and_its_result_stays(tmp_path, capsys):
    words = ["train", "linear-regression", "--max-steps", "20", "--num-threads", "1", "--runs", str(tmp_path)]
    assert main(words) == 0
    before = RunFolder.open(tmp_path / "linear-regression-1").result
    capsys.readouterr()
    assert main(["resume", str(tmp_path / "linear-regression-1")]) == 0
    assert "finished already" in capsys.readouterr().err
    after = RunFolder.open(tmp_path / "linear-regression-1").result
    assert before is not None
    assert after is not None
    assert after["metrics"] == before["metrics"]


def test_json_is_not_interleaved_with_progress(tmp_path, capsys, monkeypatch):
    words = ["train", "linear-regression", "--max-steps", "20", "--num-threads", "1", "--runs", str(tmp_path)]
    shown = []

    def watched(function):
        return lambda *given, **named: shown.append(named["show_progress"]) or function(*given, **named)

    places = {"fit_recipe": runs, "resume_run": importlib.import_module("quoin.runs.fit")}
    for name, place in places.items():
        monkeypatch.setattr(place, name, watched(getattr(place, name)))
    for number, json_or_not in enumerate(([], ["--json"]), 1):
        assert main([*words, *json_or_not]) == 0
        assert main(["resume", str(tmp_path / f"linear-regression-{number}"), *json_or_not]) == 0
    assert shown == [True, True, False, False]


def test_a_study_that_misses_says_how_many_runs_kept_the_target(tmp_path, capsys):
    words = ["train", "mlp", "--seeds", "2", "--max-steps", "1", "--num-threads", "1", "--runs", str(tmp_path)]
    assert main(words) == 0
    assert "met by 0 of 2 runs; missed" in capsys.readouterr().out


def test_a_run_that_goes_on_with_another_torch_says_so(tmp_path, capsys):
    path = train(tmp_path, "--max-steps", "3").path
    told = json.loads((path / "environment.json").read_text())
    (path / "environment.json").write_text(json.dumps({**told, "torch": "1.0"}))
    capsys.readouterr()
    assert main(["resume", str(path), "--step", "3"]) == 0
    assert "torch 1.0 is now" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["WORLD_SIZE", "RANK", "MASTER_PORT"])
@pytest.mark.parametrize("value", ["abc", "-1", "1.5", "٣"])
def test_an_environment_without_numbers_is_refused(tmp_path, capsys, monkeypatch, name, value):
    whole = {"WORLD_SIZE": "2", "RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1", name: value}
    for each, text in whole.items():
        monkeypatch.setenv(each, text)
    assert main(["train", "mlp", "--runs", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert len(told.splitlines()) == 1
    assert f"expected a whole number in the environment's {name}, got" in told
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("missing", ["RANK", "MASTER_ADDR", "MASTER_PORT"])
def test_an_environment_that_is_not_all_of_torchruns_is_refused(tmp_path, capsys, monkeypatch, missing):
    """A scheduler that sets WORLD_SIZE alone: to wait for processes that nobody started would be for ever."""
    whole = {"WORLD_SIZE": "2", "RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}
    for name, value in whole.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv(missing)
    assert main(["train", "mlp", "--runs", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert len(told.splitlines()) == 1
    assert f"WORLD_SIZE is 2, and {missing} is not set: start the processes with torchrun" in told
    assert not list(tmp_path.iterdir())
