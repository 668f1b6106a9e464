"""`quoin inspect` of a language model: the attention of every head in a text, and one line where there is none."""

import json
import re

import pytest
import torch

from commands import refused, tried
from quoin.inspect import attention_maps
from quoin.runs.run import Run

QUICK = ["--max-steps", "2", "--num-threads", "1", "--json"]
TINY = ["--embed-dim", "16", "--num-layers", "2", "--num-heads", "2", "--context-length", "16", "--batch-size", "4"]
TEXT = "the law of data\n"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    (folder / "text.txt").write_text("the model of a law is drawn from data and so are these words again\n" * 40)
    source = ["--data", f"text:{folder / 'text.txt'}", "--runs", folder, *QUICK]
    for words in (["transformer-lm", *TINY], ["rnn-lm", "--hidden-dim", "8"], ["ngram"], ["mlp"]):
        code, _, err = tried("train", *words, *(source if words[0] != "mlp" else [*QUICK, "--runs", folder]))
        assert code == 0, err
    return folder


def test_the_page_shows_what_each_head_attends_to(runs, tmp_path):
    code, out, err = tried("inspect", runs / "transformer-lm-1", "--text", TEXT, "--out", tmp_path / "page.html")
    assert (code, err) == (0, "")
    assert "parameters" in out
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Attention of “the law of data”" in re.findall("<h2>(.*?)</h2>", page)
    (beside,) = [path for path in tmp_path.glob("page-*.html") if f'href="{path.name}"' in page]
    maps = beside.read_text(encoding="utf-8")
    told = json.loads(re.findall(r'id="layers">(.*?)</script>', maps)[0])
    trained = Run.open(runs / "transformer-lm-1").trained
    found = attention_maps(trained.model, trained.tokenizer.encode(TEXT)[None])  # type: ignore[attr-defined]
    assert [(each["name"], each["heads"]) for each in told] == [(each.layer, 2) for each in found]
    assert len(told) == 2
    assert "".join(told[0]["query_labels"]) == "the␣law␣of␣data↵"
    weights = found[0].weights
    assert torch.equal(weights, weights.tril())  # causal: no token attends to one behind it


def test_without_a_text_it_reads_its_own_and_a_layer_chooses(runs, tmp_path):
    code, _, err = tried("inspect", runs / "transformer-lm-1", "--out", tmp_path / "own.html")
    assert (code, err) == (0, "")
    assert "Attention of “" in (tmp_path / "own.html").read_text(encoding="utf-8")
    one = Run.open(runs / "transformer-lm-1")
    first = one.inspect(text=TEXT).panels[0].plot._layers[0].name  # type: ignore[attr-defined]
    (panel,) = one.inspect(text=TEXT, layer=first).panels
    assert [layer.name for layer in panel.plot._layers] == [first]  # type: ignore[attr-defined]


REFUSED = {
    "transformer-lm-1 --text QQ": ["'Q'"],
    f"transformer-lm-1 --text {'a' * 17}": ["1 to 16 tokens", "17", "--text"],
    "transformer-lm-1 --text law --row 2": ["--row", "--text"],
    "transformer-lm-1 --text law --layer nowhere": ["'nowhere'"],
    "rnn-lm-1 --text law": ["rnn-lm", "attention", "transformer-lm"],
    "ngram-1 --text law": ["ngram", "attention", "transformer-lm"],
    "mlp-1 --text law": ["language model", "--text"],
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_cannot_be_shown_is_told_in_one_line(words, runs, tmp_path):
    run, *rest = words.split()
    told = refused("inspect", runs / run, *rest, "--out", tmp_path / "page.html")
    assert all(word in told for word in REFUSED[words]), told
    assert not any(tmp_path.iterdir())
