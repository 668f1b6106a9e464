"""`quoin export`: what is written answers as the run does, by the other runtime; and what cannot be, says so."""

import ast
import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import safetensors.torch
import torch

from commands import refused, tried
from quoin.data import BPETokenizer, ByteTokenizer, WordTokenizer
from quoin.runs import Run
from quoin.runs.export import onnx_form, scripts
from quoin.runs.export.compare import compare_part
from quoin.runs.export.export import export_run
from quoin.runs.export.exportable import draw_inputs
from quoin.runs.export.parts import exportable_of
from quoin.runs.export.scripts.tokenizer import JSONTokenizer
from quoin.runs.export.written import Difference

TINY = ["--embed-dim", "16", "--num-heads", "2", "--num-layers", "1", "--context-length", "8", "--max-steps", "2"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A few small runs."""
    folder = tmp_path_factory.mktemp("exports")
    for name, words in {
        "rows": ["logistic-regression", "--epochs", "2", "--threshold", "f1"],
        "images": ["lenet", "--max-steps", "2"],
        "numbers": ["mlp-regression", "--epochs", "1"],
        "lm": ["transformer-lm", *TINY],
        "study": ["momentum-phase"],
    }.items():
        code, _, told = tried("train", *words, "--name", name, "--runs", folder)
        assert code == 0, told
    return folder


def exported(run, to, out):
    code, told, said = tried("export", run, "--to", to, "-o", out, "--json")
    assert code == 0, said
    return json.loads(told)


def session(path):
    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])


def test_raw_rows_go_in_and_the_run_s_answers_come_out(runs, tmp_path):
    out = tmp_path / "rows"
    told = exported(runs / "rows", "onnx", out)
    run = Run.open(runs / "rows")
    rows = run.trained.feature_scaler.mean + torch.linspace(-2, 2, 7)[:, None] * run.trained.feature_scaler.std
    probabilities, classes = session(out / "model.onnx").run(None, {"rows": rows.numpy()})
    ours = run.predict(rows)
    assert np.abs(probabilities - ours.probabilities.numpy()).max() < 1e-6
    assert classes.tolist() == ours.values.tolist()
    # The threshold that was chosen decides, not one half.
    threshold = run.trained.threshold
    assert threshold is not None
    assert classes.tolist() == (probabilities[:, 1] >= threshold).astype(int).tolist()
    info, inside = json.loads((out / "quoin.json").read_text()), onnx.load(out / "model.onnx").metadata_props
    assert info["class_names"] == list(run.data_info.class_names)
    told_inside = {each.key: each.value for each in inside}
    assert json.loads(told_inside["class_names"]) == info["class_names"]
    assert len(told["differences"]) == 3
    assert told["equal"]


@pytest.mark.parametrize(("name", "axis"), [("images", "images"), ("numbers", "rows")])
def test_the_batch_is_free(runs, tmp_path, name, axis):
    exported(runs / name, "onnx", tmp_path / "out")
    (given,) = session(tmp_path / "out/model.onnx").get_inputs()
    assert given.name == axis
    assert given.shape[0] == "batch"


@pytest.mark.parametrize("name", ["rows", "images", "numbers", "lm"])
def test_torch_opens_it_without_quoin(runs, tmp_path, name):
    told = exported(runs / name, "torch", tmp_path / "out")
    assert max(each["difference"] for each in told["differences"]) < 1e-6
    opens = "import sys, torch; torch.export.load(sys.argv[1]); assert 'quoin' not in sys.modules"
    subprocess.run([sys.executable, "-c", opens, tmp_path / "out/model.pt2"], check=True)


def test_the_weights_are_the_run_s_to_the_bit(runs, tmp_path):
    told = exported(runs / "lm", "safetensors", tmp_path / "out")
    assert [each["difference"] for each in told["differences"]] == [0]
    weights, found = (
        Run.open(runs / "lm").model.state_dict(),
        safetensors.torch.load_file(tmp_path / "out/model.safetensors"),
    )
    assert found.keys() == weights.keys()
    assert all(torch.equal(found[name], weights[name]) for name in found)
    scaled = json.loads(
        (exported(runs / "rows", "safetensors", tmp_path / "rows") and tmp_path / "rows/quoin.json").read_text()
    )
    mean = Run.open(runs / "rows").trained.feature_scaler.mean
    assert scaled["saved"]["scales"]["feature_mean"]["values"] == mean.tolist()


def test_a_language_model_with_and_without_cache(runs, tmp_path):
    """Token by token with the cache gives what the whole text gives, and so does the run."""
    out = tmp_path / "lm"
    told = exported(runs / "lm", "onnx", out)
    assert any(each["what"].startswith("generate.py") for each in told["differences"])
    whole, step, run = session(out / "model.onnx"), session(out / "step.onnx"), Run.open(runs / "lm")
    tokens = np.random.default_rng(0).integers(run.data_info.vocab_size, size=(3, 7))
    (logits,) = whole.run(None, {"tokens": tokens})
    names, (heads, dim) = [each.name for each in step.get_inputs()], (2, 8)
    state = [np.zeros((3, heads, 0, dim), "float32") for _ in names[1:]]
    for at in (slice(0, 1), slice(1, 4), slice(4, 7)):
        found, *state = step.run(None, dict(zip(names, [tokens[:, at], *state])))
        assert np.abs(found - logits[:, at]).max() < 1e-5
    with torch.no_grad():
        assert np.abs(run.model(torch.from_numpy(tokens)).numpy() - logits).max() < 1e-5


def test_the_script_samples_by_a_seed(runs, tmp_path):
    exported(runs / "lm", "onnx", tmp_path / "lm")
    command = [sys.executable, tmp_path / "lm/generate.py", "the ", "--max-tokens", "12", "--top-p", "0.9", "--seed"]
    one, same, other = (subprocess.run([*command, seed], capture_output=True, check=True).stdout for seed in "112")
    assert one == same != other


TEXTS = [
    "It's 1 of the  2 café's\n\tnaïve ones, isn't it? ½ × 日本語… _x_",
    " a  b\n\n c ",
    "'ll 've ''s",
    "\x1c\x85 \u2003z",
]


@pytest.mark.parametrize("text", TEXTS)
def test_the_script_s_vocabulary_is_the_tokenizer(text):
    learned = [TEXTS[0] * 3, "the café is one of the naïve ones " * 3]
    for tokenizer in (WordTokenizer.fit([*learned, *TEXTS], 150), ByteTokenizer(), BPETokenizer.fit(learned, 300)):
        ours = JSONTokenizer(tokenizer.as_json())
        tokens = ours.encode(text)
        assert tokens == tokenizer.encode(text).tolist(), tokenizer
        assert ours.decode(tokens) == tokenizer.decode(tokens)


def test_an_answer_that_differs_exits_with_1_and_keeps_the_files(runs, tmp_path, monkeypatch):
    write = onnx_form.write_onnx

    def with_another_weight(part, exportable, folder):
        weight = next(part.module.parameters())
        with torch.no_grad():
            weight[0, 0] += 0.1
        try:
            return write(part, exportable, folder)
        finally:
            with torch.no_grad():
                weight[0, 0] -= 0.1

    monkeypatch.setattr(onnx_form, "write_onnx", with_another_weight)
    code, told, said = tried("export", runs / "images", "--to", "onnx", "-o", tmp_path / "out")
    assert code == 1
    assert "missed" in told
    assert "kept" in said
    assert (tmp_path / "out/model.onnx").exists()


def test_the_comparison_sees_a_shape_that_differs(runs):
    part = exportable_of(Run.open(runs / "images")).parts[0]
    opened = lambda *inputs: (*part.answers(inputs)[:1], torch.zeros(1))  # noqa: E731
    found = [each for each in compare_part(part, opened) if isinstance(each, Difference)]
    assert not found[1].is_met
    assert found[1].value == float("inf")


def test_nothing_is_written_over_unasked(runs, tmp_path):
    out = tmp_path / "out"
    exported(runs / "rows", "safetensors", out)
    before = (out / "model.safetensors").read_bytes()
    assert "--force" in refused("export", runs / "images", "--to", "safetensors", "-o", out)
    assert (out / "model.safetensors").read_bytes() == before
    assert tried("export", runs / "images", "--to", "safetensors", "-o", out, "--force")[0] == 0
    assert (out / "model.safetensors").read_bytes() != before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.txt").write_text("years of work")
    assert "other files" in refused("export", runs / "rows", "--to", "safetensors", "-o", tmp_path / "mine", "--force")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["mine", "out"]


def test_only_an_export_is_written_over(runs, tmp_path):
    """A run has a config.json as Hugging Face's folders have, and so has a model that was downloaded."""
    own = tmp_path / "run"
    shutil.copytree(runs / "rows", own)
    downloaded = tmp_path / "gpt2"
    downloaded.mkdir()
    for name in ("config.json", "README.md", "model.safetensors"):
        (downloaded / name).write_text("{}")
    out = tmp_path / "out"
    assert tried("export", own, "--to", "huggingface", "-o", out)[0] == 0
    assert tried("export", own, "--to", "huggingface", "-o", out, "--force")[0] == 0
    (out / "thesis.pdf").write_text("years of work")
    before = {each: each.read_bytes() for each in tmp_path.rglob("*") if each.is_file()}
    for place, told in ((own, "checkpoints/"), (downloaded, "README.md"), (out, "thesis.pdf"), (tmp_path, "gpt2/")):
        words = refused("export", own, "--to", "torch", "-o", place, "--force")
        assert "other files than an export's" in words
        assert told in words
    assert {each: each.read_bytes() for each in tmp_path.rglob("*") if each.is_file()} == before


def test_a_failure_leaves_nothing_behind(runs, tmp_path, monkeypatch):
    def fail(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr(onnx_form, "open_onnx", fail)
    with pytest.raises(KeyboardInterrupt):
        export_run(Run.open(runs / "images"), "onnx", tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_exported_says_so(runs, tmp_path, monkeypatch):
    def words(run, *others):
        return refused("export", run, *others, "-o", tmp_path / "out")

    assert "study" in words(runs / "study", "--to", "onnx")
    assert "onnx" in words(runs / "rows", "--to", "onyx")
    assert "--to is missing" in words(runs / "rows")
    assert "no/run" in words("no/run", "--to", "onnx")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert "pip install 'quoin[export]'" in words(runs / "rows", "--to", "onnx")


def test_random_inputs_are_of_the_sizes_asked_for(runs):
    model, step = exportable_of(Run.open(runs / "lm")).parts
    assert [each.shape for each in draw_inputs(model, {"batch": 3, "length": 5})] == [(3, 5)]
    assert draw_inputs(step, {"batch": 3, "new": 2, "seen": 4})[1].shape == (3, 2, 4, 8)


SCRIPTS = sorted(Path(scripts.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_flags_of_the_written_scripts_read_numbers_and_files(path):
    calls = [each for each in ast.walk(ast.parse(path.read_text())) if isinstance(each, ast.Call)]
    for call in calls:
        if not (isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument"):
            continue
        settings = {each.arg: ast.unparse(each.value) for each in call.keywords}
        is_flag = ast.literal_eval(call.args[0]).startswith("-")
        assert not is_flag or settings.get("type") in ("int", "float", "Path") or settings.get("dest") == "'label'"
