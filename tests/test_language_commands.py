"""What is done with trained language models: generate, compress --model, compare; on small runs of each kind."""

import argparse
import io
import json
import math
import os
import signal
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from commands import refused, tried
from quoin.cli.generating import _show
from quoin.data import TextStream, load_text
from quoin.errors import UserError
from quoin.info import compress, decompress, read_header
from quoin.metrics import sliding_window_nll
from quoin.runs import Run
from quoin.runs.language_codec import LanguageCodec

SMALL = {
    "ngram": "--order 4",
    "lstm-lm": "--hidden-dim 24 --embed-dim 12 --context-length 16 --batch-size 8 --epochs 1",
    "transformer-lm": "--embed-dim 16 --num-heads 2 --num-layers 1 --context-length 16 --batch-size 8 --epochs 1 "
    "--tokenizer byte",
}
TEXT = load_text("topics").content[:6000].replace("z", "s") + "\u00fc\n"


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    """A folder of trained runs, one of each kind; the text that they learnt from is gone."""
    folder = tmp_path_factory.mktemp("language")
    text = folder / "text.txt"
    text.write_text(TEXT)
    for recipe, options in SMALL.items():
        code, _, err = tried(
            "train", recipe, "--data", f"text:{text}", *options.split(), "--runs", folder, "--num-threads", 1, "--json"
        )
        assert code == 0, err
    text.unlink()
    return folder


# ---- as compressors ---------------------------------------------------------------------------------------------

PIECES = st.one_of(st.text("abe \nthe\u00fcz\u6c34", max_size=12).map(str.encode), st.binary(max_size=5))


@pytest.mark.parametrize("recipe", SMALL)
def test_any_bytes_come_back_from_a_model_opened_again(runs, recipe):
    one, other = (LanguageCodec(Run.open(runs / f"{recipe}-1").trained) for _ in range(2))
    assert one.fingerprint == other.fingerprint

    @settings(max_examples=8, deadline=None)
    @given(st.lists(PIECES, max_size=6).map(b"".join))
    def comes_back(content):
        assert other.decode(one.encode(content), len(content)) == content  # even where storing it is shorter
        assert decompress(compress(content, one), other) == content

    comes_back()
    for content in (b"", b"t", b"\xff", b"\xc3", b"\r\n\0", b"\xef\xbb\xbfthe", TEXT[500:900].encode()):
        assert other.decode(one.encode(content), len(content)) == content


@pytest.mark.parametrize("recipe", SMALL)
def test_the_code_is_as_long_as_the_text_is_surprising(runs, recipe):
    """Within a hundredth of -log2 P by one forward pass, or by the windows that a text is judged by; several lanes
    among it."""
    run = Run.open(runs / f"{recipe}-1").trained
    text = TEXT[1000:4000]
    tokens = run.tokenizer.encode(text)
    if run.window is None:
        with torch.no_grad():
            logits = run.model(tokens[None, :-1])[0]
        nats = torch.nn.functional.cross_entropy(logits.double(), tokens[1:], reduction="sum")
    else:
        nats = sliding_window_nll(run.model, tokens, window=run.window, stride=run.window // 2).double().sum()
    bits = float(nats) / math.log(2) + math.log2(run.tokenizer.vocab_size)  # of the first token nothing is known
    spent = 8 * len(LanguageCodec(run).encode(text.encode()))
    assert abs(spent - bits) < 0.01 * bits


def test_there_and_back_by_a_model(runs, here):
    content = TEXT[2000:3000].encode() + b"\xff\xfe z\x00"
    (here / "a.txt").write_bytes(content)
    model = runs / "ngram-1"
    code, out, _ = tried("compress", "a.txt", "--model", model)
    assert code == 0
    assert f"{len(content):,} bytes became" in out
    os.remove("a.txt")
    assert "made by the model 'ngram, Quoin" in refused("decompress", "a.txt.quoin")
    assert "expected the model that coded the archive, 'ngram" in refused(
        "decompress", "a.txt.quoin", "--model", runs / "lstm-lm-1"
    )
    assert not (here / "a.txt").exists()
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(threads + 1)  # coding takes one thread, whatever there are
        assert tried("decompress", "a.txt.quoin", "--model", model)[0] == 0
        assert torch.get_num_threads() == threads + 1
    finally:
        torch.set_num_threads(threads)
    assert (here / "a.txt").read_bytes() == content
    assert (
        tried("compress", "a.txt", "-o", "plain.quoin")[0] == 0
    )  # an archive that needs no model takes one and ignores it
    assert tried("decompress", "plain.quoin", "-o", "b.txt", "--model", model)[0] == 0
    assert (here / "b.txt").read_bytes() == content


def test_another_weight_or_another_token_is_another_model(runs):
    run = Run.open(runs / "lstm-lm-1").trained
    archive = compress(TEXT[:1000].encode(), LanguageCodec(run))
    assert read_header(archive).method == LanguageCodec.method
    with torch.no_grad():
        run.model.token_embedding.weight[0, 0] += 1e-7
    with pytest.raises(UserError, match="expected the model that coded the archive"):
        decompress(archive, LanguageCodec(run))


def test_other_numbers_than_the_fingerprint_promised_are_refused(runs):
    """As where two machines of one name differ in a last bit: what comes out is never taken for the content."""
    run = Run.open(runs / "lstm-lm-1").trained
    codec = LanguageCodec(run)
    archive = compress(TEXT[:1000].encode(), codec)
    with torch.no_grad():
        run.model.token_embedding.weight += 0.5
    with pytest.raises(UserError, match=r"other numbers here|does not come out as it was given"):
        decompress(archive, codec)


# ---- as writers -------------------------------------------------------------------------------------------------


def generated(*words: object) -> dict:
    code, out, err = tried("generate", *words, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


@pytest.mark.parametrize("recipe", SMALL)
def test_a_seed_gives_its_text(runs, recipe):
    words = (runs / f"{recipe}-1", "--prompt", "The ", "--max-tokens", 40)
    one = generated(*words, "--seed", 1)
    assert one["text"] == generated(*words, "--seed", 1)["text"]
    assert one["text"] != generated(*words, "--seed", 2)["text"]
    assert (one["prompt"], one["tokens"], one["reached_max_tokens"]) == ("The ", 40, True)
    code, out, err = tried("generate", *words, "--seed", 1)
    assert (code, out) == (0, "The " + one["text"] + "\n")
    assert "ended at --max-tokens after 40 tokens" in err
    assert len(generated(runs / f"{recipe}-1", "--max-tokens", 3)["text"]) >= 1  # without a prompt


@pytest.mark.parametrize("recipe", SMALL)
def test_the_likeliest_text_is_that_of_full_recomputation(runs, recipe):
    run = Run.open(runs / f"{recipe}-1").trained
    tokens = run.tokenizer.encode("The ").tolist()
    nats = 0.0
    for _ in range(11):  # within the Transformer's window of 16
        with torch.no_grad():
            law = run.model(torch.tensor([tokens]))[0, -1].log_softmax(-1)
        nats -= float(law.max())
        tokens.append(int(law.argmax()))
    for way in (("--top-k", 1), ("--num-beams", 1), ("--temperature", 1e-6)):
        found = generated(runs / f"{recipe}-1", "--prompt", "The ", "--max-tokens", 11, *way)
        assert "The " + found["text"] == run.tokenizer.decode(tokens)
        assert found["log_probability"] == pytest.approx(-nats, rel=1e-4)
    wide = generated(runs / f"{recipe}-1", "--prompt", "The ", "--max-tokens", 25, "--num-beams", 4)  # beams slide too
    assert wide["tokens"] == 25


def test_mistakes_are_one_line(runs, here):
    run = runs / "ngram-1"
    assert "'z' (U+007A) at position 2" in refused("generate", run, "--prompt", "a z")
    assert "num_beams of 1 or more" in refused("generate", run, "--num-beams", 0)
    assert "leave one of them out" in refused("generate", run, "--num-beams", 2, "--top-k", 3)
    assert "temperature above 0" in refused("generate", run, "--temperature", 0)
    assert "expects a number" in refused("generate", run, "--temperature", "hot")
    assert "top-k" in refused("generate", run, "--top-k", 0)
    assert "nucleus" in refused("generate", run, "--top-p", 1.5)
    assert "maximum of 1 token" in refused("generate", run, "--max-tokens", 0)
    assert "did you mean '--max-tokens'" in refused("generate", run, "--max-token", 3)
    assert "nowhere" in refused("generate", "nowhere")
    (here / "f").write_text("x")
    assert "nowhere" in refused("compress", "f", "--model", "nowhere")
    assert "quoin generate" in refused("predict", run, "f")
    assert not (here / "f.quoin").exists()


def test_a_run_of_another_kind_is_told(here):
    assert tried("train", "linear-regression", "--epochs", 1, "--json")[0] == 0
    line = refused("generate", "runs/linear-regression-1")
    assert "predicts rows of numbers and cannot generate: use `quoin predict`" in line
    assert "linear-regression" in line


def test_an_interruption_ends_the_line(runs, monkeypatch):
    push, left = TextStream.push, iter(range(5))

    def interrupted(self, token):
        if next(left, None) is None:
            raise KeyboardInterrupt
        return push(self, token)

    monkeypatch.setattr(TextStream, "push", interrupted)
    code, out, err = tried("generate", runs / "ngram-1", "--prompt", "The ")
    assert code == 130
    assert out.startswith("The ")
    assert out.endswith("\n")
    assert err.startswith("quoin: stopped after 6 tokens")
    assert len(err.splitlines()) == 1


def test_text_comes_as_it_is_drawn_and_stops_when_asked(runs):
    """In a process of its own: what it has said is read before it ends, and it would not end by itself for hours."""
    code = "import sys; from quoin.cli import main; sys.exit(main(sys.argv[1:]))"
    words = ["generate", str(runs / "ngram-1"), "--prompt", "The ", "--max-tokens", "100000000"]
    with subprocess.Popen(
        [sys.executable, "-c", code, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.read(30).startswith(b"The ")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
    assert process.returncode == 130
    assert err.startswith(b"quoin: stopped after ")
    assert err.count(b"\n") == 1


# ---- side by side -----------------------------------------------------------------------------------------------


def test_language_models_are_compared_in_one_table(runs, here):
    folders = [runs / f"{recipe}-1" for recipe in SMALL]
    found = json.loads(tried("compare", *folders, "--json")[1])["language_models"]
    assert [line["run"] for line in found] == [f"{recipe}-1" for recipe in SMALL]
    assert [line["tokens"] for line in found] == ["char", "char", "byte"]
    metrics = [json.loads((folder / "result.json").read_text())["metrics"] for folder in folders]
    assert [line["perplexity"] for line in found] == [each["test_perplexity"] for each in metrics]
    assert [line["bits_per_character"] for line in found] == [each["test_bits_per_character"] for each in metrics]
    v, w, h = len(set(TEXT)), 12, 24
    assert found[1]["parameters"] == v * w + 4 * h * (w + h) + 8 * h + h * v + v
    assert all(line["parameters"] > 0 and line["seconds"] > 0 for line in found)
    code, out, _ = tried("compare", *folders)
    assert code == 0
    assert "bits per character" in out
    assert "Language models, on their test text" in (here / "compare.html").read_text()


def test_no_control_character_reaches_a_terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    shown = Terminal()
    monkeypatch.setattr("sys.stdout", shown)
    _show("".join(map(chr, range(0x110))), argparse.Namespace(json=False))
    assert {each for each in shown.getvalue() if unicodedata.category(each) == "Cc"} == {"\n", "\t"}


# ---- judged on another text -------------------------------------------------------------------------------------


@pytest.mark.parametrize("recipe", SMALL)
def test_another_text_is_judged_as_all_at_once(runs, recipe, tmp_path, monkeypatch):
    monkeypatch.setattr("quoin.runs.kinds.language_modeling.TOKENS_PER_STEP", 7)
    run = Run.open(runs / f"{recipe}-1").trained
    text = "The statement is a statement.\n"
    (tmp_path / "other.txt").write_text(text)
    code, out, err = tried("eval", run.run.path, "--data", f"text:{tmp_path / 'other.txt'}", "--json")
    assert code == 0, err
    tokens = run.tokenizer.encode("\n" + text)  # a text begins as after a line
    laws = run.token_model()(tokens[None])[0].detach().double().log_softmax(dim=-1)
    nats = -sum(float(law[token]) for law, token in zip(laws, tokens[1:].tolist()))
    found = json.loads(out)
    assert found["bits_per_character"] == pytest.approx(nats / math.log(2) / len(text), rel=1e-5)
    assert found["perplexity"] == pytest.approx(math.exp(nats / (len(tokens) - 1)), rel=1e-5)


def test_tokens_are_judged_by_the_model_of_their_vocabulary_alone(runs, tmp_path):
    (tmp_path / "text.txt").write_text("The statement is a statement.\n")
    kept = {}
    for vocabulary in ("byte", "char"):
        kept[vocabulary] = tmp_path / vocabulary
        code, _, err = tried("tokenize", tmp_path / "text.txt", "-o", kept[vocabulary], "--tokenizer", vocabulary)
        assert code == 0, err
    folder = runs / "transformer-lm-1"
    found = [
        tried("eval", folder, "--data", data, "--json")[1]
        for data in (f"tokens:{kept['byte']}", f"text:{tmp_path / 'text.txt'}")
    ]
    assert json.loads(found[0]) == json.loads(found[1])
    assert "has another (char" in refused("eval", folder, "--data", f"tokens:{kept['char']}")
    (tmp_path / "text.txt").write_text("a quiz of waterfalls")
    assert "got 'z'" in refused("eval", runs / "lstm-lm-1", "--data", f"text:{tmp_path / 'text.txt'}")
    assert "leave it out" in refused("eval", folder, "--data", "topics", "--target", "x")
    assert "expected a text" in refused("eval", folder, "--data", "digits")
