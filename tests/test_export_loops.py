"""Exported steps, called one after another, beside what the run answers to the whole at once; and samples of PPCA."""

import json
import subprocess
import sys

import numpy as np
import onnxruntime
import pytest
import torch

from commands import tried
from quoin.generate import greedy_token
from quoin.layers.attention.linear_forms import CHUNK
from quoin.runs import Run
from quoin.runs.export import onnx_form
from quoin.runs.export.export import export_run
from quoin.runs.export.parts import recurrent_layers, translation_steps
from quoin.runs.export.parts.language_steps import RecurrentStep, State, TransformerStep
from quoin.runs.export.scripts.tokenizer import open_tokenizer
from quoin.runs.import_weights import import_weights
from seeds import seeded

TINY = ["--embed-dim", "8", "--num-heads", "2", "--num-layers", "1"]
RUNS = {
    "gru": ["gru-lm", "--embed-dim", "8", "--hidden-dim", "8", "--num-layers", "2"],
    "transformer": ["transformer-lm", *TINY],
    "linear": ["transformer-lm", *TINY, "--attention", "linear"],
    "performer": ["transformer-lm", *TINY, "--attention", "performer", "--context-length", "300"],
    "dates": ["translate-dates", "--embed-dim", "8", "--hidden-dim", "8", "--num-layers", "2"],
    "numbers": ["translate-numbers", *TINY],
    "texts": ["sequence-classification", "--embed-dim", "8", "--hidden-dim", "8", "--num-layers", "2"],
    "ppca": ["ppca"],
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run by its name, trained when first asked for."""
    folder = tmp_path_factory.mktemp("loops")

    def trained(name):
        if not (folder / name).exists():
            code, _, told = tried("train", *RUNS[name], "--max-steps", 2, "--name", name, "--runs", folder)
            assert code == 0, told
        return Run.open(folder / name)

    return trained


def differences(run, folder, to="torch"):
    """Those of an export, by the part or the loop that they are of."""
    found = {}
    for each in export_run(run, to, folder, force=True).differences:
        found.setdefault(each.what.split(": ")[0], []).append(each)
    return found


LOOPS = {
    "gru": "step by step",
    "transformer": "step by step",
    "linear": "step by step",
    "dates": "step by step",
    "numbers": "step by step",
    "texts": "position by position",
}
SLOW = ("linear", "numbers", "texts")


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.deep] if n in SLOW else []) for n in LOOPS])
def test_the_loop_is_compared_with_the_whole(name, run, tmp_path):
    found = differences(run(name), tmp_path / "out")
    loop = found[LOOPS[name]]
    # Of two sizes; the language models on their own test text too.
    assert len(loop) == (3 if name in ("gru", "transformer", "linear") else 2)
    assert all(each.is_met for group in found.values() for each in group)


def test_a_step_that_forgets_is_seen(run, tmp_path, monkeypatch):
    right = RecurrentStep.forward

    def forgetting(self, tokens, *state):
        return right(self, tokens, *state)[0], *map(torch.zeros_like, state)

    monkeypatch.setattr(RecurrentStep, "forward", forgetting)
    found = differences(run("gru"), tmp_path / "out")
    assert not any(each.is_met for each in (*found["step"], *found["step by step"]))


def test_a_state_that_does_not_begin_empty_is_seen(run, tmp_path, monkeypatch):
    """By the loop alone: each step by itself is right."""
    right = State.before
    monkeypatch.setattr(State, "before", lambda self, batch_size: right(self, batch_size) + 0.5)
    found = differences(run("gru"), tmp_path / "out")
    assert all(each.is_met for each in found["step"])
    assert not any(each.is_met for each in found["step by step"])


def test_a_transformer_s_step_is_compared_with_the_run_s_own_cache(run, tmp_path, monkeypatch):
    right = TransformerStep.forward

    def with_other_keys(self, tokens, *past):
        logits, *after = right(self, tokens, *past)
        return logits, *(each * 1.01 for each in after)

    monkeypatch.setattr(TransformerStep, "forward", with_other_keys)
    found = differences(run("transformer"), tmp_path / "out")
    assert not any(each.is_met for each in found["step"])
    assert all(each.is_met for each in found["model"])


@pytest.mark.deep
def test_a_layer_and_a_bridge_of_a_recurrent_encoder_are_compared(run, tmp_path, monkeypatch):
    right = recurrent_layers.LayerStep.forward
    with monkeypatch.context() as patched:
        # Both directions read from the front.
        patched.setattr(
            recurrent_layers.LayerStep, "forward", lambda self, first, last, *state: right(self, first, first, *state)
        )
        for name, loop in (("dates", "step by step"), ("texts", "position by position")):
            found = differences(run(name), tmp_path / name)
            assert not any(each.is_met for each in (*found["layer_0"], *found[loop])), name
    bridge = translation_steps.Bridge.forward
    monkeypatch.setattr(translation_steps.Bridge, "forward", lambda self, *last: bridge(self, *last[::-1]))
    found = differences(run("dates"), tmp_path / "bridge")
    assert not any(each.is_met for each in found["step by step"])


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_running_maxima_for_onnx_are_torch_s(dim):
    x = torch.randn(4, 5, 6, generator=seeded(3))
    x[0] = float("-inf")  # as a scale before the first position
    ours, theirs = onnx_form.cummax(x, dim), torch.cummax(x, dim)
    assert torch.equal(ours[0], theirs.values)
    assert torch.equal(x.gather(dim, ours[1]), theirs.values)  # among equals any is right


@pytest.mark.deep
def test_performer_attention_has_an_onnx_form(run, tmp_path):
    """At lengths beyond those that the command tries, and beyond a chunk of its attention."""
    trained = run("performer")
    found = differences(trained, tmp_path / "out", "onnx")
    assert all(each.is_met for group in found.values() for each in group)
    session = onnxruntime.InferenceSession(tmp_path / "out/model.onnx", providers=["CPUExecutionProvider"])
    for size in ((1, 5), (2, CHUNK + 1), (3, 300)):
        tokens = torch.randint(trained.data_info.vocab_size, size, generator=seeded(4))
        with torch.no_grad():
            expected = trained.model(tokens)
        (logits,) = session.run(None, {"tokens": tokens.numpy()})
        torch.testing.assert_close(torch.from_numpy(logits), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("to", ["torch", pytest.param("onnx", marks=pytest.mark.deep)])
def test_samples_of_ppca_have_its_noise(run, tmp_path, to):
    """Their covariance is that of the model, D (W Wᵀ + s² I) D with D the scales of the data."""
    trained, out = run("ppca"), tmp_path / "out"
    found = differences(trained, out, to)
    assert all(each.is_met for group in found.values() for each in group)
    assert "sample.py --noise" in found
    count = 40_000
    words = ["-n", str(count), "--seed", "1", "--out", tmp_path / "samples.npy"]
    subprocess.run([sys.executable, out / "sample.py", *words], check=True, capture_output=True)
    samples, model = np.load(tmp_path / "samples.npy"), trained.model
    weight, scale = model.decoder.weight.detach().numpy(), model.scale.numpy()
    noise = float(model.decoder.noise.detach())
    expected = (weight @ weight.T + noise**2 * np.eye(len(weight))) * scale[:, None] * scale
    deviations = np.sqrt(np.diag(expected))
    away = np.abs(np.cov(samples.T) - expected) / np.outer(deviations, deviations)
    assert away.max() < 6 * (2 / count) ** 0.5  # the standard error of a correlation or variance is at most √(2/n)
    assert noise**2 * scale.max() ** 2 > 0.05 * expected.max()  # so that means alone would be seen
    mean = model.loc.numpy() + scale * model.decoder.bias.detach().numpy()
    assert (np.abs(samples.mean(0) - mean) / deviations).max() < 6 / count**0.5


def test_a_tokenizer_that_was_imported_is_the_script_s(tmp_path):
    """generate.py and the command write what transformers' tokenizer says, its special token before the bytes."""
    tokenizers = pytest.importorskip("tokenizers")
    from test_import import gpt2_folder

    folder = gpt2_folder(tmp_path / "gpt2")
    library = tokenizers.Tokenizer(tokenizers.models.BPE())
    library.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    library.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=290, show_progress=False, initial_alphabet=alphabet, special_tokens=["<|endoftext|>"]
    )
    library.train_from_iterator(["The cat sat on the mat. " * 20], trainer)
    library.enable_truncation(4)  # settings of training, which a file keeps: a text has all of its tokens, and no more
    library.enable_padding(length=64)
    library.save(str(folder / "tokenizer.json"))
    library.no_truncation()
    library.no_padding()
    text = "The cat sat on the mat. A dog ran away, and the rain fell on the cat.\n" * 40
    (tmp_path / "book.txt").write_text(text)
    code, _, err = tried("import", folder, "-o", tmp_path / "run", "--data", f"text:{tmp_path / 'book.txt'}")
    assert code == 0, err
    code, told, said = tried("export", tmp_path / "run", "--to", "torch", "-o", tmp_path / "out", "--json")
    assert code == 0, told
    assert "random inputs alone" not in said
    own = [each for each in json.loads(told)["differences"] if "test data" in each["what"]]
    assert len(own) == 2
    command = [sys.executable, tmp_path / "out/generate.py", "The cat", "--max-tokens", "12", "--temperature", "0"]
    written = subprocess.run(command, capture_output=True, check=True).stdout.decode(errors="replace")
    trained = Run.open(tmp_path / "run").trained
    assert written == "The cat" + trained.generate("The cat", max_tokens=12, choose=greedy_token) + "\n"
    # Of an untrained model these may be parts of characters alone, which are all shown alike.
    script = open_tokenizer(json.loads((tmp_path / "out/quoin.json").read_text())["vocabulary"])
    for sentence in ("The cat sat, naïvely… on\tthe mat.", "<|endoftext|>A dog"):
        tokens = script.encode(sentence)
        assert tokens == library.encode(sentence, add_special_tokens=False).ids
        assert script.decode(tokens) == sentence


def test_the_test_text_is_read_by_the_tokenizer_of_the_run(tmp_path):
    """Not by one that is learned anew, whose tokens another model reads."""
    from quoin.runs.export.own_text import own_test_tokens
    from test_import import gpt2_folder

    text = "The cat sat on the mat.\n" * 100
    (tmp_path / "book.txt").write_text(text)
    run = Run.open(import_weights(gpt2_folder(tmp_path / "gpt2"), tmp_path / "run").path)
    with pytest.raises(Exception, match="without any"):
        own_test_tokens(run)
    code, _, err = tried("import", tmp_path / "gpt2", "-o", tmp_path / "own", "--data", f"text:{tmp_path / 'book.txt'}")
    assert code == 0, err
    tokens = own_test_tokens(Run.open(tmp_path / "own"))
    assert text.encode().endswith(bytes(tokens.tolist()))  # its tokens are bytes
