"""Every recipe, found by its file: well-formed, and through a few steps with a kill, a resume and a report."""

import dataclasses
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from commands import stopping
from quoin import notes
from quoin.cli import main
from quoin.data import check_source_name
from quoin.options import ValidatedOptions, options_from_json
from quoin.runs import Run, RunConfig, find_recipe, recipe_names
from quoin.runs.catalog import SUBJECTS
from quoin.tasks.options import RunOptions
from quoin.tasks.target import Target
from quoin.train import Monitor
from report_words import has_words, raw_names

RECIPES = recipe_names()
# Three runs each: one recipe of every quick kind here, all of them in `make deep`.
QUICK = {"mlp", "ridge", "ngram", "gmm", "cross-entropy-descent", "hmm"}


def test_there_are_recipes():
    assert {"mlp", "linear-regression"} <= set(RECIPES)


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_says_what_it_is(name):
    recipe = find_recipe(name)
    assert recipe.summary.endswith(".")
    assert len(recipe.summary) <= 110
    assert len(set(recipe.keywords)) == len(recipe.keywords) > 0
    assert all(word == word.lower() for word in recipe.keywords)
    assert recipe.subject in SUBJECTS
    assert notes.known(recipe.notes) == recipe.notes  # raises for an id that is none
    assert len(set(recipe.notes)) == len(recipe.notes) > 0
    assert isinstance(recipe.target, Target)
    assert (recipe.target.at_least is None) != (recipe.target.at_most is None)
    assert recipe.monitor is None or isinstance(recipe.monitor, Monitor)
    assert callable(recipe.module.model)
    assert callable(recipe.module.build)


@pytest.mark.parametrize("name", RECIPES)
def test_default_options_are_valid_and_survive_json(name):
    kind = find_recipe(name).options
    assert issubclass(kind, RunOptions)
    options = kind()
    assert options.num_epochs >= 1
    assert dataclasses.is_dataclass(options)
    assert isinstance(options, ValidatedOptions)
    with pytest.raises(dataclasses.FrozenInstanceError):
        options.seed = 1  # pyright: ignore
    assert options_from_json(kind, json.loads(json.dumps(dataclasses.asdict(options))), "here") == options
    assert all(each.metadata.get("help") for each in (*dataclasses.fields(kind), *dataclasses.fields(RunConfig)))
    if (data := getattr(options, "data", None)) is not None:
        check_source_name(data)
    assert find_recipe(name).target_for(options) is find_recipe(name).target


def test_recipe_files_import_no_torch():
    code = (
        "import sys\nfrom quoin.runs import find_recipe, recipe_names\n[find_recipe(name).options() for name in "
        "recipe_names()]"
    )
    done = subprocess.run([sys.executable, "-c", f"{code}\nsys.exit('torch' in sys.modules)"])
    assert done.returncode == 0


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.deep) for name in RECIPES]
)
def test_killed_and_resumed_it_ends_like_one_that_never_stopped(name, tmp_path):
    """SIGKILL in the middle of an epoch, after the first checkpoints: the same metrics to the last bit, and a
    report."""
    words = ["train", name, "--num-threads", "1", "--max-steps", "50", "--json"]
    run = tmp_path / "killed" / f"{name}-1"
    command = stopping(signal.SIGKILL, *words, "--checkpoint-every", 1, "--runs", tmp_path / "killed")
    killed = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert killed.returncode == -signal.SIGKILL, "it was over before it could be killed"
    assert not (run / "result.json").exists()

    assert main(["resume", str(run), "--json"]) == 0
    assert main([*words, "--runs", str(tmp_path / "whole")]) == 0
    whole = tmp_path / "whole" / f"{name}-1"
    results = [json.loads((folder / "result.json").read_text()) for folder in (run, whole)]
    for part in ("metrics", "target", "steps", "epochs", "best_step"):
        assert results[0][part] == results[1][part], part
    assert _weights(run) == _weights(whole)
    assert _lines(run) == _lines(whole)
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "<svg" in page
    assert find_recipe(name).target.metric in page
    assert [metric for metric in results[0]["metrics"] if not has_words(metric)] == []
    assert raw_names(page) == []


def _weights(run: Path) -> dict[str, list]:
    return {key: value.tolist() for key, value in Run.open(run).model.state_dict().items()}


def _lines(run: Path) -> list[dict]:
    """The metrics of every epoch, without the clock."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key != "seconds"} for line in lines]
