"""The command line as it works: each command for a person and for a machine, exit codes, pipes, signals.

What it says to mistakes is in test_cli_mistakes.py, what it does with random words and tables in
test_cli_hypothesis.py.
"""

import csv
import dataclasses
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris

import quoin
from commands import stopping, tried, without_progress
from quoin.cli import train_all
from quoin.cli.commands import COMMANDS
from quoin.cli.flags import Parser
from quoin.train import NonFiniteLossError, Trainer

QUICK = ["--max-steps", "6", "--checkpoint-every", "3", "--num-threads", "1"]
RESULT = {
    "metrics",
    "target",
    "steps",
    "epochs",
    "best_step",
    "seconds",
    "saving_seconds",
    "peak_memory",
    "num_parameters",
}


def ran(*words: object) -> str:
    """Standard output of a command that succeeds and says nothing else."""
    code, out, err = tried(*words)
    assert (code, err) == (0, ""), (code, out, err)
    return out


def parsed(*words: object):
    """The JSON that a command prints: strict, so NaN and Infinity are refused."""

    def refuse(word: str):
        raise AssertionError(f"{word} is not JSON")

    return json.loads(ran(*words, "--json"), parse_constant=refuse)


def process(*words: str, **how) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", "quoin.cli", *words], capture_output=True, text=True, **how)


@pytest.fixture(scope="module")
def flowers(tmp_path_factory):
    """A folder with iris as a table, and a run of a few steps on it."""
    folder = tmp_path_factory.mktemp("flowers")
    iris: Any = load_iris()
    with open(folder / "iris.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["a", "b", "c", "d", "species"])
        table.writerows([*row, iris.target_names[label]] for row, label in zip(iris.data, iris.target))
    words = [
        "train",
        "mlp",
        "--data",
        f"csv:{folder / 'iris.csv'}",
        "--target",
        "species",
        "--runs",
        folder / "runs",
        *QUICK,
    ]
    assert tried(*words)[0] == 0
    assert tried(*words, "--lr", "0.2", "--json")[0] == 0
    return folder


def test_train_for_a_person(here):
    out = ran("train", "mlp", *QUICK)
    for word in ("test_accuracy", "at least 0.96", "missed", "6 steps", "runs/mlp-1", "runs/mlp-1/report.html"):
        assert word in out
    names = {path.name for path in (here / "runs" / "mlp-1").iterdir()}
    assert names == {
        "config.json",
        "environment.json",
        "metrics.jsonl",
        "checkpoints",
        "result.json",
        "report.html",
        "lock",
    }
    assert "</svg>" in (here / "runs" / "mlp-1" / "report.html").read_text()


def test_train_for_a_machine(here):
    found = parsed("train", "linear-regression", *QUICK)
    assert set(found) == RESULT | {"run", "finished", "report"}
    assert found["finished"] is True
    assert found["steps"] == 6
    assert found["target"].keys() == {"metric", "bound", "value", "met"}
    assert found["target"]["value"] == found["metrics"]["train_max_abs_z_score"]
    kept = json.loads((here / found["run"] / "result.json").read_text())
    assert {name: found[name] for name in RESULT} == kept
    assert Path(found["report"]).is_file()


def test_the_default_recipe_is_mlp(here):
    assert parsed("train", *QUICK)["run"] == "runs/mlp-1"


def test_a_run_is_a_function_of_its_options(here):
    first, second, other = (parsed("train", "mlp", *QUICK, "--seed", seed)["metrics"] for seed in (5, 5, 6))
    assert first == second != other


def test_flags_reach_the_run(here):
    run = parsed(
        "train", "mlp", *QUICK, "--hidden-dims", "7", "5", "--lr", "0.3", "--no-compile", "--schedule", "step"
    )["run"]
    config = json.loads((here / run / "config.json").read_text())
    assert config["options"]["hidden_dims"] == [7, 5]
    assert config["options"]["lr"] == 0.3
    assert config["options"]["schedule"] == "step"
    assert config["settings"]["max_steps"] == 6
    assert config["settings"]["compile"] is False


def test_a_required_target(here):
    assert tried("train", "mlp", "--require-target", "--epochs", "1", "--lr", "1e-6", "--num-threads", "1")[0] == 1
    assert (
        json.loads((here / "runs/mlp-1/result.json").read_text())["target"]["met"] is False
    )  # a miss is a finished run
    assert tried("resume", "runs/mlp-1", "--require-target")[0] == 1
    assert tried("resume", "runs/mlp-1")[0] == 0
    assert tried("train", "linear-regression", "--require-target", "--num-threads", "1")[0] == 0
    assert tried("resume", "runs/linear-regression-1", "--require-target")[0] == 0


def test_a_loss_that_is_not_finite_fails_the_run(here):
    for steps in (1, 2):  # seen by the evaluation after the last step, and by the step itself
        code, out, err = tried("train", "mlp", "--lr", "1e38", "--max-steps", steps, "--num-threads", "1")
        assert (code, out, len(err.splitlines())) == (1, "", 1)
        assert "not finite" in err
        assert "--lr" in err


def test_numbers_that_are_all_one_and_huge(here):
    (here / "flat.csv").write_text("x,y\n" + "".join(f"{i},1.1707457004896256e16\n" for i in range(20)))
    ran(
        "train", "linear-regression", "--data", "csv:flat.csv", "--target", "y", *QUICK
    )  # no warning from the drawing either


def test_resume_of_a_finished_run_changes_nothing(flowers, here):
    run = shutil.copytree(flowers / "runs" / "mlp-1", here / "run")
    before = json.loads((run / "result.json").read_text())
    again = parsed("resume", "run")
    assert again["metrics"] == before["metrics"]
    assert again["steps"] == before["steps"]
    assert parsed("resume", "run", "--step", "3")["metrics"] == before["metrics"]


def test_a_run_that_goes_on_from_an_older_step_has_no_result_until_it_ends(flowers, here, monkeypatch):
    run = shutil.copytree(flowers / "runs" / "mlp-1", here / "run")
    monkeypatch.setattr(
        Trainer, "_step", lambda loop, rows: os.kill(os.getpid(), signal.SIGINT)
    )  # Ctrl-C before anything is learnt
    assert tried("resume", "run", "--step", "3")[0] == 130
    assert not (run / "result.json").exists()
    assert "interrupted" in (run / "report.html").read_text()


def test_eval_gives_the_metrics_of_the_result(flowers):
    run = flowers / "runs" / "mlp-1"
    result = json.loads((run / "result.json").read_text())
    assert parsed("eval", run) == result["metrics"]
    assert "test_accuracy" in ran("eval", run)


def test_predict_agrees_with_eval_and_with_the_other_format(flowers, here):
    run = flowers / "runs" / "mlp-1"
    data: Any = load_iris()
    rows = list(csv.reader(io.StringIO(ran("predict", run, flowers / "iris.csv"))))
    assert rows[0] == ["species", "p(setosa)", "p(versicolor)", "p(virginica)"]
    chances = np.array(rows[1:])[:, 1:].astype(float)
    assert np.allclose(chances.sum(1), 1, atol=1e-6)
    labels = [row[0] for row in rows[1:]]
    assert labels == [str(data.target_names[label]) for label in chances.argmax(1)]
    truth = [str(data.target_names[label]) for label in data.target]
    accuracy = np.mean([label == true for label, true in zip(labels, truth)])
    found = parsed("eval", run, "--data", f"csv:{flowers / 'iris.csv'}", "--target", "species")
    assert found["accuracy"] == pytest.approx(accuracy)
    assert found["cross_entropy"] == pytest.approx(-np.log(chances[np.arange(150), data.target]).mean(), rel=1e-5)
    np.savez("rows.npz", features=data.data)
    assert "150 predictions of species" in tried("predict", run, "rows.npz", "--out", "out.npz")[2]
    with np.load("out.npz") as archive:
        assert archive["predictions"].tolist() == chances.argmax(1).tolist()
        assert archive["class_names"].tolist() == data.target_names.tolist()
        assert np.allclose(archive["probabilities"], chances, atol=1e-7)
    tried("predict", run, "rows.npz", "--out", "out.csv")
    assert list(csv.reader((here / "out.csv").read_text().splitlines())) == rows


def test_eval_takes_columns_by_name(flowers, here):
    run = flowers / "runs" / "mlp-1"
    with open(flowers / "iris.csv", newline="") as file:
        turned = [[*row[2:4], row[4], *row[:2]] for row in csv.reader(file)]
    with open("turned.csv", "w", newline="") as file:
        csv.writer(file).writerows(turned)
    found = [
        parsed("eval", run, "--data", f"csv:{path}", "--target", "species")
        for path in ("turned.csv", flowers / "iris.csv")
    ]
    assert found[0] == found[1]


def test_predict_takes_columns_by_name(flowers, here):
    run = flowers / "runs" / "mlp-1"
    with open(flowers / "iris.csv") as file:
        turned = [[*row[4:], *row[3::-1]] for row in csv.reader(file)]  # the columns backwards, the target first
    with open("turned.csv", "w", newline="") as file:
        csv.writer(file).writerows(turned)
    assert ran("predict", run, "turned.csv") == ran("predict", run, flowers / "iris.csv")


def test_predict_says_when_a_file_is_on_another_scale(flowers, here):
    run = flowers / "runs" / "mlp-1"
    data: Any = load_iris()
    np.savez("millimetres.npz", features=10 * data.data)
    said = tried("predict", run, "millimetres.npz", "--out", "out.csv")[2]
    assert "training spreads from the training mean; is millimetres.npz on the scale" in said
    assert "training spreads" not in tried("predict", run, flowers / "iris.csv", "--out", "out.csv")[2]


def test_names_too_long_for_a_file_cost_one_line(flowers, here):
    long = "9" * 300
    run = flowers / "runs" / "mlp-1"
    for words in (
        ("resume", long),
        ("eval", f"runs/{long}/x"),
        ("predict", run, flowers / "iris.csv", "--out", f"{long}.csv"),
    ):
        code, _, said = tried(*words)
        assert code == 2
        assert said.startswith("quoin: ")
        assert said.count("\n") == 1


def test_compare(flowers, here):
    runs = [flowers / "runs" / "mlp-1", flowers / "runs" / "mlp-2"]
    found = parsed("compare", *runs)
    assert [run["name"] for run in found["runs"]] == ["mlp-1", "mlp-2"]
    assert found["options"] == {"lr": [0.05, 0.2]}
    for run, folder in zip(found["runs"], runs, strict=True):
        result = json.loads((folder / "result.json").read_text())["metrics"]
        assert {name: each["mean"] for name, each in run["metrics"].items()} == result
    page = (here / "compare.html").read_text()
    assert page.count("<svg") == 2  # loss and accuracy, both runs in each
    assert "mlp-2" in ran("compare", *runs)


def test_compare_spells_options_as_they_are_typed(here):
    for hidden in (["8"], ["8", "4"]):
        ran("train", "mlp", "--data", "iris", *QUICK, "--hidden-dims", *hidden)
    assert re.search(r"^hidden_dims +8 +8 4$", ran("compare", "runs/mlp-1", "runs/mlp-2"), re.MULTILINE)


@pytest.mark.parametrize("over", ["seeds", "folds"])
def test_studies(over, flowers, here):
    words = ["train", "mlp", "--data", f"csv:{flowers / 'iris.csv'}", "--target", "species", f"--{over}", "3", *QUICK]
    found = parsed(*words)
    assert found["multirun"] == {"over": over[:-1], "count": 3}
    members = [
        json.loads((here / found["run"] / f"{over[:-1]}-{index}" / "result.json").read_text()) for index in range(3)
    ]
    for name, told in found["metrics"].items():
        values = [member["metrics"][name] for member in members]
        assert told["mean"] == pytest.approx(np.mean(values))
        assert told["std"] == pytest.approx(np.std(values, ddof=1))
        assert (told["min"], told["max"]) == (min(values), max(values))
    assert "std" in ran("resume", found["run"])
    shutil.rmtree(here / found["run"] / f"{over[:-1]}-2")  # as if killed before the last member
    os.remove(here / found["run"] / "result.json")
    assert parsed("resume", found["run"])["metrics"] == found["metrics"]
    assert tried("eval", found["run"])[0] == 2
    assert parsed("eval", f"{found['run']}/{over[:-1]}-1") == members[1]["metrics"]


def test_list():
    found = parsed("list")
    assert [each["name"] for each in found] == sorted(each["name"] for each in found)
    assert {"mlp", "linear-regression"} <= {each["name"] for each in found}
    for each in found:
        assert set(each) == {"name", "summary", "data", "target", "notes", "subject", "keywords", "origin"}
        assert each["name"] in ran("list")
    assert "csv:PATH" in ran("list")


def test_a_recipe_that_diverges_is_a_miss_and_the_others_have_their_turn(monkeypatch, capsys, here):
    trains = train_all.fit_recipe

    def fit_recipe(recipe, options, config, runs, label):
        if recipe.name == "mlp":
            raise NonFiniteLossError("the loss is not finite at step 7")
        return trains(recipe, dataclasses.replace(options, epochs=2), config, runs, label=label, show_progress=False)

    monkeypatch.setattr(train_all, "recipe_names", lambda: ["mlp", "linear-regression"])
    monkeypatch.setattr(train_all, "fit_recipe", fit_recipe)
    assert train_all.main([]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["recipe", "mlp", "linear-regression"]
    assert "not finite at step 7" in lines[1]
    assert "missed" in lines[1]


def test_map():
    found = parsed("map")
    assert len({entry["id"] for entry in found}) == len(found) == 641
    assert all(
        list(entry)
        == ["id", "title", "kind", "area", "implementations", "claims", "figures", "recipes", "used_by_claims"]
        for entry in found
    )
    table = ran("map")
    assert all(f"{entry['id']} " in table for entry in found)
    (one,) = parsed("map", "Z3.9")
    assert one["claims"] == ["quoin.notes.claims.linear_models.weight_update"]
    assert "linear-regression" in one["recipes"]
    assert parsed("map", "--missing") == []  # the whole of the notes has a home
    assert parsed("map", "--packages").keys() >= {"tensor/", "train/", "cli/", "errors.py"}
    assert ran("map", "--packages").startswith("| package | contents |")


def test_check():
    found = parsed("check", "Z3.9", "ZE7", "--num-workers", "1")
    assert [each["ids"] for each in found] == [["Z3.9"], ["ZE7"]]
    for each in found:
        assert list(each) == ["ids", "statement", "not_shown", "verdict", "evidence", "seconds"]
        assert each["verdict"] == "holds"
    assert found[0]["evidence"]["printed"] is None
    assert found[1]["evidence"]["printed"] is not None  # an erratum's printed form fails
    out = ran("check", "Z3.9")
    assert "holds" in out
    assert "1 of 1 claims hold" in out
    assert "not shown" not in out


def test_check_counts_the_same_in_text_and_json():
    """D1.5-5 and its companion ids share claims: a claim is counted once, whatever number of ids it carries."""
    found = parsed("check", "D1.5-5", "--num-workers", "1")
    assert max(len(each["ids"]) for each in found) > 1
    assert f"{len(found)} of {len(found)} claims hold" in ran("check", "D1.5-5", "--num-workers", "1")


def test_check_says_what_it_does_not_show():
    (one,) = [each for each in parsed("check", "D1.1-8", "--num-workers", "1") if each["not_shown"]][:1]
    assert f"D1.1-8 not shown: {one['not_shown']}" in ran("check", "D1.1-8", "--num-workers", "1")


def test_a_broken_formula_breaks_its_claim(tmp_path):
    """The half of the squared loss lost in a copy of Quoin: Z3.4 says that its derivative is the residual."""
    shutil.copytree(Path(quoin.__file__).parent, tmp_path / "quoin", ignore=shutil.ignore_patterns("__pycache__"))
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    file = tmp_path / "quoin" / "losses" / "regression.py"
    right = ".square() / 2"
    assert file.read_text().count(right) == 1
    file.write_text(file.read_text().replace(right, ".square()"))
    done = process("check", "Z3.4", "Z3.5", "--json", "--num-workers", "1", env=environment)
    assert (done.returncode, done.stderr) == (1, "")
    assert {each["ids"][0]: each["verdict"] for each in json.loads(done.stdout)} == {
        "Z3.4": "fails",
        "Z3.5": "holds",
    }
    done = process("check", "Z3.4", env=environment)
    assert done.returncode == 1
    assert "Z3.4 fails" in done.stdout


def test_figure(here):
    (found,) = parsed("figure", "D1F1", "--out", "pictures")
    assert set(found) == {"ids", "caption", "path"}
    assert Path(found["path"]).read_text().startswith("<svg")
    assert "D1F1" in ran("figure", "D1F1", "--format", "png")
    assert (here / "figures" / "D1F1.png").read_bytes().startswith(b"\x89PNG")


def test_a_gallery_shows_each_figure_under_its_area_with_a_link_to_its_file(here):
    told = ran("figure", "Z2.6", "D1F1", "D1F0", "--out", "pictures", "--gallery")
    assert "gallery: pictures/index.html" in told
    page = (here / "pictures" / "index.html").read_text()
    files = {path.name for path in (here / "pictures").glob("*.svg")}
    assert len(files) == 3
    assert set(re.findall(r'<img src="([^"]*)"', page)) == set(re.findall(r'<a href="([^"#]*)"', page)) == files
    headings = re.findall(r"<h2>(.*?)</h2>", page)
    assert "Contents" not in headings  # two areas need none
    assert len(headings) == 2
    assert page.index("Z2.6.svg") < page.index(headings[1]) < page.index("D1F1.svg")


def test_a_gallery_is_of_pictures(here):
    code, _, told = tried("figure", "D1F1", "--gallery", "--format", "html")
    assert code == 2
    assert "--gallery" in told


def test_doctor(monkeypatch, here):
    found = {each["what"]: each for each in parsed("doctor")}
    assert found["torch"]["ok"] is True
    assert "digits" in ran("doctor")
    monkeypatch.setitem(sys.modules, "torch", None)  # what `import torch` meets where there is none
    code, out, err = tried("doctor", "--json")
    assert (code, err) == (1, "")
    assert {each["what"]: each["ok"] for each in json.loads(out)}["device"] is False


@pytest.mark.parametrize("command", COMMANDS)
def test_every_argument_says_what_it_is(command):
    what, add_words = COMMANDS[command]
    parser = Parser(f"quoin {command}", "")
    add_words(parser, [])
    silent = [each.dest for each in parser._actions if not (each.help or "").strip()]
    assert silent == []
    if not parser.description:  # it has none of its own
        assert f"\n\n{what[0].upper()}{what[1:]}." in ran(command, "--help")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command):
    out = ran(command, "--help")
    assert out.startswith(f"usage: quoin {command}")
    assert command in ran("--help")


# ---- the process ------------------------------------------------------------------------------------------------


def test_the_program_and_the_module():
    done = process("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"quoin {quoin.__version__}\n", "")
    program = Path(sys.executable).with_name("quoin")
    assert subprocess.run([program, "--version"], capture_output=True, text=True).stdout == done.stdout
    done = process("train", "mpl")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "quoin: no recipe 'mpl' (`quoin list` shows all): did you mean 'mlp'?\n"


# As a user has it: into a pipe or file Python writes by the block, and the last one at its end.
BUFFERED = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}


@pytest.mark.parametrize("words", ["map", "map --json", "list", "--help"])
def test_a_reader_that_leaves(words):
    """`quoin map | head`, whether the pipe closes before, under or after the first line."""
    for reader in ("head -1", "true"):
        line = f"set -o pipefail; '{sys.executable}' -m quoin.cli {words} | {reader}"
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, env=BUFFERED)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
@pytest.mark.parametrize("words", ["map", "list", "list --json"])
def test_output_onto_a_full_disk(words):
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "quoin.cli", *words.split()]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, env=BUFFERED)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "disk is full" in done.stderr


def test_names_that_are_not_text_and_terminals_without_greek(tmp_path):
    environment = {**os.environ, "PYTHONIOENCODING": "ascii:strict"}
    assert process("map", "Z3.9", env=environment).returncode == 0
    words = [sys.executable, "-m", "quoin.cli", "train", "mlp", "--runs", os.fsencode(tmp_path) + b"/\xff", *QUICK]
    done = subprocess.run(words, capture_output=True)
    assert (done.returncode, without_progress(done.stderr.decode())) == (0, "")


def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path):
    run, words = tmp_path / "mlp-1", ("train", "mlp", "--checkpoint-every", 50, "--num-threads", 1, "--runs", tmp_path)
    done = subprocess.run(stopping(signal.SIGINT, *words), capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (130, "")
    assert without_progress(done.stderr).rstrip().endswith(f"quoin resume {run}")
    assert not (run / "result.json").exists()
    assert any((run / "checkpoints").iterdir())
    assert parsed("eval", run)["train_accuracy"] > 0.5
