"""The Hugging Face form of a run: opened by transformers and diffusers with the same numbers, from the files alone."""

import copy
import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from commands import tried
from quoin import models
from quoin.data import ByteTokenizer, CharTokenizer, WordTokenizer, tokenizer_fingerprint
from quoin.data.bpe import BPETokenizer
from quoin.data.tokenizer_json import HuggingFaceTokenizer, read_tokenizer_json, tokenizer_json
from quoin.errors import UserError
from quoin.models.gpt2 import gpt2_config, gpt2_weights
from quoin.models.gpt_neox import gpt_neox_config, gpt_neox_weights
from quoin.models.language_layout import language_layout
from quoin.models.llama import llama_config, llama_weights
from quoin.models.pretrained import foreign_weights, load_converted, stacked
from quoin.models.unet_weights import diffusers_unet_weights
from quoin.models.vit_weights import huggingface_vit_weights
from quoin.runs import Run
from quoin.runs.export.huggingface import write_huggingface
from quoin.runs.export.written import CannotExportError
from seeds import seeded

os.environ.setdefault("HF_HUB_OFFLINE", "1")
transformers = pytest.importorskip("transformers")

TEXT = "The cat sat on the mat. The dog sat on the log, and the frog on the bog; é ü ² x_1!\n" * 30
TINY = "--embed-dim 16 --num-heads 2 --num-layers 2 --context-length 16 --batch-size 16 --max-steps 3"
LANGUAGE = {
    "default": "",
    "gpt2": "--position-embedding learned --activation gelu-tanh --tokenizer byte",
    "llama": "--block llama --num-kv-heads 1 --no-tie-embeddings --tokenizer word --vocab-size 60 --rope-theta 500",
    "sinusoidal": "--position-embedding sinusoidal --norm-eps 0.01 --hidden-dim 24 --activation relu",
}
CLASSES = {"default": "GPTNeoXForCausalLM", "llama": "LlamaForCausalLM"}


def trained(recipe: str, place: Path, words: str) -> Run:
    code, _, err = tried("train", recipe, "--runs", place, "--num-threads", 1, "--device", "cpu", *words.split())
    assert code == 0, err
    return Run.open(next(place.glob(f"{recipe}-*")))


def text_run(place: Path, words: str) -> Run:
    place.mkdir(parents=True, exist_ok=True)
    (place / "text.txt").write_text(TEXT)
    return trained("transformer-lm", place, f"--data text:{place / 'text.txt'} {TINY} {words}")


@pytest.fixture(scope="module", params=LANGUAGE)
def language(request, tmp_path_factory):
    """A run, its folder, and what the export told."""
    place = tmp_path_factory.mktemp(request.param)
    run, folder = text_run(place, LANGUAGE[request.param]), place / "export"
    folder.mkdir()
    return request.param, run, folder, write_huggingface(run, folder)


def test_a_language_model_is_theirs(language):
    name, run, folder, written = language
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    assert type(model).__name__ == CLASSES.get(name, "GPT2LMHeadModel")
    tokens = torch.randint(run.data_info.vocab_size, (3, 11), generator=seeded(1))
    with torch.no_grad():
        torch.testing.assert_close(model(tokens).logits, run.model(tokens), atol=2e-6, rtol=1e-5)
    assert written.is_equal
    assert [each.what for each in written.differences] == [
        "random tokens, batch 2, length 7",
        "random tokens, batch 3, length 16",
        "its test text, batch 4, length 16",
        "tokens of its test text",
    ]
    assert {each.name for each in written.files} == {each.name for each in folder.iterdir()}
    assert ("sinusoidal" in " ".join(written.notes)) == (name == "sinusoidal")


def test_the_tokenizer_opens_with_transformers(language):
    _, run, folder, _ = language
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    ours = run.data_info.tokenizer
    for text in ("The dog", "on the\nmat² é", "frogs__"):
        try:
            expected = ours.encode(text).tolist()
        except UserError:
            with pytest.raises(Exception, match=r"(?i)unk"):
                theirs(text)
            continue
        assert theirs(text)["input_ids"] == expected
        assert theirs.decode(expected) == text


def test_the_card_tells_the_run_and_its_code_works(language):
    _, _run, folder, _ = language
    card = (folder / "README.md").read_text()
    for words in ("`transformer-lm`", "text.txt", "seed | 0", "test_bits_per_character", "No target", "Licence"):
        assert words in card
    code = re.search("```python\n(.*?)```", card, re.DOTALL)
    assert code is not None
    ran = subprocess.run([sys.executable, "-c", code[1]], cwd=folder, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    assert len(ran.stdout) > 5


def test_a_difference_is_found(language, monkeypatch):
    """One weight that is another after writing is told as a difference."""
    name, run, _, _ = language
    if name != "default":
        pytest.skip("once is enough")
    model = run.trained.model
    with torch.no_grad():
        before = model.token_embedding.weight[3, 3].item()
        monkeypatch.setattr(model, "forward", lambda tokens: type(model).forward(model, tokens) + 0.01)
    folder = run.path.parent / "other"
    folder.mkdir()
    written = write_huggingface(run, folder)
    assert not written.is_equal
    assert before == model.token_embedding.weight[3, 3].item()


def test_without_transformers_it_is_written_and_not_compared(language, monkeypatch, tmp_path):
    _, run, folder, _ = language
    monkeypatch.setattr("quoin.runs.export.huggingface.language.is_there", lambda library: False)
    written = write_huggingface(run, tmp_path)
    assert written.differences == ()
    assert "pip install transformers" in written.notes[-1]
    assert (tmp_path / "model.safetensors").read_bytes() == (folder / "model.safetensors").read_bytes()


@pytest.mark.parametrize("words", ["--position-embedding alibi", "--attention linear --position-embedding learned"])
def test_what_has_no_counterpart_says_which_forms_it_has(words, tmp_path):
    run = text_run(tmp_path, words)
    (tmp_path / "out").mkdir()
    with pytest.raises(CannotExportError, match="onnx, torch and safetensors"):
        write_huggingface(run, tmp_path / "out")


# ---- tokenizers -------------------------------------------------------------------------------------------------

TOKENIZERS: dict[str, Any] = {
    "char": CharTokenizer.fit(TEXT),
    "word": WordTokenizer.fit([TEXT], 60, alphabet=TEXT),
    "byte": ByteTokenizer(),
    "bpe": BPETokenizer.fit([TEXT], 300),
}


@pytest.mark.parametrize("kind", TOKENIZERS)
@settings(max_examples=60, deadline=None)
@given(st.text(max_size=30) | st.text(alphabet=sorted(set(TEXT)), max_size=60))
def test_tokenizer_json_encodes_as_ours(kind, text):
    import tokenizers

    ours = TOKENIZERS[kind]
    library = tokenizers.Tokenizer.from_str(json.dumps(tokenizer_json(ours)))
    try:
        expected = ours.encode(text).tolist()
    except UserError:
        with pytest.raises(Exception, match=r"(?i)unk"):
            library.encode(text)
        return
    assert library.encode(text).ids == expected
    assert library.decode(expected) == text


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_a_tokenizer_of_ours_is_ours_again(kind):
    import tokenizers

    content = json.loads(tokenizers.Tokenizer.from_str(json.dumps(tokenizer_json(TOKENIZERS[kind]))).to_str())
    found = read_tokenizer_json(content, TOKENIZERS[kind].vocab_size)
    assert type(found) is type(TOKENIZERS[kind])
    assert tokenizer_fingerprint(found) == tokenizer_fingerprint(TOKENIZERS[kind])


def test_another_tokenizer_is_kept_as_it_is():
    content = tokenizer_json(TOKENIZERS["bpe"]) | {"normalizer": {"type": "Lowercase"}}
    found = read_tokenizer_json(content, 400)
    assert isinstance(found, HuggingFaceTokenizer)
    assert found.vocab_size == 400
    assert found.decode(found.encode("the cat")) == "the cat"
    with pytest.raises(UserError, match="which it changes"):
        found.encode("The cat")
    with pytest.raises(UserError, match="at most 200 tokens"):
        read_tokenizer_json(content, 200)


def test_tokens_that_do_not_join_are_refused():
    content = tokenizer_json(TOKENIZERS["char"]) | {"decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True}}
    with pytest.raises(UserError, match=r"join to the text, .* as SentencePiece.s do; take a model with"):
        read_tokenizer_json(content, TOKENIZERS["char"].vocab_size)


# ---- weights ----------------------------------------------------------------------------------------------------


def filled(module):
    generator = seeded(3)
    with torch.no_grad():
        for tensor in module.state_dict().values():
            if tensor.is_floating_point():
                tensor.copy_(torch.randn(tensor.shape, generator=generator).abs() * 0.2)
    return module.eval()


GPT2 = {"vocab_size": 41, "n_positions": 24, "n_embd": 16, "n_layer": 2, "n_head": 4, "tie_word_embeddings": False}
LLAMA = {"vocab_size": 41, "hidden_size": 16, "intermediate_size": 36, "num_hidden_layers": 2}
LLAMA |= {"num_attention_heads": 4, "num_key_value_heads": 2}
NEOX = {"vocab_size": 41, "hidden_size": 16, "intermediate_size": 36, "num_hidden_layers": 2}
NEOX |= {"num_attention_heads": 2, "use_parallel_residual": False, "rotary_pct": 1.0}


@pytest.mark.parametrize(
    ("build", "write", "load"),
    [
        (lambda: models.gpt2_from_config(GPT2), lambda m: gpt2_weights(m, 24), models.load_gpt2_weights),
        (lambda: models.llama_from_config(LLAMA), llama_weights, models.load_llama_weights),
        (lambda: models.gpt_neox_from_config(NEOX), gpt_neox_weights, models.load_gpt_neox_weights),
        (
            lambda: models.ViT((3, 8, 8), 5, patch_size=4, embed_dim=16, num_heads=2, num_layers=2, class_token=True),
            huggingface_vit_weights,
            models.load_pretrained_vit,
        ),
        (
            lambda: models.UNet((1, 8, 8), channels=(8, 16), num_groups=4, num_classes=3),
            diffusers_unet_weights,
            models.load_diffusers_unet,
        ),
    ],
    ids=["gpt2", "llama", "gpt_neox", "vit", "unet"],
)
def test_weights_go_there_and_back_bit_for_bit(build, write, load):
    model, empty = filled(build()), build()
    load(empty, write(model))
    assert all(tensor.equal(empty.state_dict()[name]) for name, tensor in model.state_dict().items())


def test_stacked_maps_of_several_sizes_come_apart():
    model = filled(torch.nn.Linear(2, 5))
    found = foreign_weights(model, lambda name: stacked(f"a.{name}", f"b.{name}", rows=(2, 3)))
    assert {name: tuple(each.shape) for name, each in found.items()} == {
        "a.weight": (2, 2), "b.weight": (3, 2), "a.bias": (2,), "b.bias": (3,),
    }  # fmt: skip
    empty = torch.nn.Linear(2, 5)
    load_converted(empty, found, lambda name: stacked(f"a.{name}", f"b.{name}"))
    assert empty.weight.equal(model.weight)


@pytest.mark.parametrize(
    ("build", "config"),
    [
        (models.gpt2_from_config, lambda layout: gpt2_config(layout, 24)),
        (models.llama_from_config, lambda layout: llama_config(layout, 24)),
        (models.gpt_neox_from_config, lambda layout: gpt_neox_config(layout, 24)),
    ],
)
def test_a_config_describes_the_layout_it_was_made_of(build, config):
    given = {models.gpt2_from_config: GPT2, models.llama_from_config: LLAMA}.get(build, NEOX)
    layout = language_layout(build(given))
    assert language_layout(build(config(layout))) == layout


@pytest.mark.parametrize(
    ("changed", "words"),
    [({"use_parallel_residual": True}, "use_parallel_residual"), ({"rotary_pct": 0.25}, "rotary_pct 1.0, got 0.25")],
)
def test_a_neox_of_another_kind_is_refused(changed, words):
    with pytest.raises(UserError, match=words):
        models.gpt_neox_from_config(NEOX | changed)


# ---- images, rows, diffusion ------------------------------------------------------------------------------------

QUICK = "--max-steps 2 --batch-size 8"
OTHERS = {
    "resnet": f"{QUICK} --size 18 --data shapes",
    "vit": f"{QUICK} --size ti16 --data shapes",
    "lenet": QUICK,
    "mlp-regression": QUICK,
}


@pytest.mark.deep
@pytest.mark.parametrize("recipe", OTHERS)
def test_other_models_are_theirs_too(recipe, tmp_path):
    run, folder = trained(recipe, tmp_path, OTHERS[recipe]), tmp_path / "export"
    folder.mkdir()
    written = write_huggingface(run, folder)
    assert written.is_equal, written.differences
    assert len(written.differences) >= 3
    config = json.loads((folder / "config.json").read_text())
    own = recipe in ("lenet", "mlp-regression")
    assert ("auto_map" in config) == (folder / "modeling_quoin.py").exists() == own
    if own:
        code = (folder / "modeling_quoin.py").read_text()
        assert not re.search("import quoin|from quoin", code)
        assert len(code.splitlines()) < 120
    else:
        assert config["model_type"] == recipe
        assert config["id2label"]["1"] == "square"
    card = (folder / "README.md").read_text()
    loads = re.search("```python\n(.*?)```", card, re.DOTALL)
    assert loads is not None
    environment = os.environ | {"HF_HOME": str(tmp_path / "hf"), "HF_HUB_OFFLINE": "1"}
    ran = subprocess.run(
        [sys.executable, "-c", loads[1]], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )
    assert ran.returncode == 0, ran.stderr


GRAPHS = {"gan": QUICK, "flow-matching-2d": QUICK, "gmm": "--max-steps 2", "markov-chain": ""}


@pytest.mark.deep
@pytest.mark.parametrize("recipe", GRAPHS)
def test_models_of_one_graph_are_written_as_code(recipe, tmp_path):
    run, folder, wrong = trained(recipe, tmp_path, GRAPHS[recipe]), tmp_path / "export", tmp_path / "wrong"
    folder.mkdir()
    written = write_huggingface(run, folder)
    assert written.is_equal, written.differences
    assert [each.what[:6] for each in written.differences] == ["random", "random"]
    loads = re.search("```python\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL)
    assert loads is not None
    environment = os.environ | {"HF_HOME": str(tmp_path / "hf"), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-c", loads[1]]
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    wrong.mkdir()
    graphs = "quoin.runs.export.huggingface.graphs"
    with pytest.MonkeyPatch.context() as patched:  # other numbers in the weights are seen
        write = importlib.import_module(graphs).write_own_code
        patched.setattr(f"{graphs}.write_own_code", lambda model, *rest, **named: write(changed(model), *rest, **named))
        assert not write_huggingface(run, wrong).is_equal


def changed(model):
    """A copy with every number a little larger."""
    other = copy.deepcopy(model)
    with torch.no_grad():
        for tensor in (*other.parameters(), *other.buffers()):
            if tensor.is_floating_point():
                tensor += 0.01
    return other


@pytest.mark.deep
def test_a_diffusion_model_is_theirs(tmp_path):
    pytest.importorskip("diffusers")
    run, folder = (
        trained("diffusion-digits", tmp_path, "--max-steps 2 --num-timesteps 12 --num-steps 4"),
        tmp_path / "out",
    )
    with torch.no_grad():
        filled(run.model.network)  # which begins with zeros, so that all would be equal
    folder.mkdir()
    written = write_huggingface(run, folder)
    assert written.is_equal, written.differences
    assert [each.what for each in written.differences][2:] == ["noise schedule", "reverse process of 12 steps"]
    loads = re.search("```python\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL)
    assert loads is not None
    ran = subprocess.run([sys.executable, "-c", loads[1]], cwd=folder, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    assert "[4, 1, 8, 8]" in ran.stdout
