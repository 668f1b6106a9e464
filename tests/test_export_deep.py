"""Recipes of different kinds by every form: what `make exports` makes of all of them, on a small set."""

import json

import pytest

from quoin.errors import UserError
from quoin.runs import Run
from quoin.runs.export.export import export_run
from quoin.runs.export.parts import PARTS
from quoin.runs.export.table import BEGIN, END, SMALL_SET, main, table_text, write_table
from quoin.runs.kinds import KINDS

KINDS_TRAINED = {  # one run of each kind that the small set has not
    "diffusion-2d": [],
    "flow-matching-2d": [],
    "pixelcnn": [],
    "gmm": [],
    "hmm": [],
    "markov-chain": [],
    "ngram": [],
    "sequence-classification": [],
    "translate-dates": [],
    "translate-numbers": [],
}


@pytest.mark.deep
def test_a_small_set_by_every_form(tmp_path, capsys):
    folder, page = tmp_path / "exports", tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    assert main([*SMALL_SET, "--folder", str(folder), "--page", str(page)]) == 0
    results = json.loads((folder / "results.json").read_text())
    assert set(results) == set(SMALL_SET)
    for name, found in results.items():
        for form in ("onnx", "torch", "safetensors"):
            assert found[form].get("equal"), (name, form, found[form])
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert all(f"| {name} |" in text for name in SMALL_SET)
    # What is done is not done again.
    runs = {name: (folder / name / "result.json").stat().st_mtime_ns for name in SMALL_SET}
    assert main([*SMALL_SET, "--folder", str(folder)]) == 0
    assert runs == {name: (folder / name / "result.json").stat().st_mtime_ns for name in SMALL_SET}


@pytest.mark.deep
@pytest.mark.parametrize("recipe", KINDS_TRAINED)
def test_every_kind_is_exported(recipe, tmp_path):
    from commands import tried

    code, _, told = tried("train", recipe, "--max-steps", "2", "--name", "run", "--runs", tmp_path)
    assert code == 0, told
    for form in ("onnx", "torch"):
        written = export_run(Run.open(tmp_path / "run"), form, tmp_path / form)
        assert written.is_equal, (form, written.differences)


def test_every_kind_with_a_model_has_parts():
    assert set(KINDS) - set(PARTS) == {"study"}


def test_the_table_shows_what_differs_and_what_is_missing(tmp_path):
    results = {
        "one": {"onnx": {"difference": 2e-7, "equal": True}, "torch": {"difference": 0.0, "equal": True}},
        "two": {"onnx": {"difference": 0.5, "equal": False}, "huggingface": {"miss": "got runs/two, it has none"}},
    }
    text = table_text(results)
    assert "| one | 2.0e-07 | 0 |  |  |" in text
    assert "| two | **5.0e-01** |  | – |  |" in text
    assert "- two (huggingface): got the run, it has none" in text
    (tmp_path / "page.md").write_text(BEGIN)
    with pytest.raises(UserError, match="markers"):
        write_table(results, tmp_path / "page.md")
