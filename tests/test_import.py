"""`quoin import`: weights of other libraries as runs, there and back bit for bit, and what cannot be is told before
anything is written."""

import json
import os
from pathlib import Path

import pytest
import safetensors.torch
import torch

from commands import refused, tried
from quoin import models
from quoin.data import load
from quoin.generate import greedy_token
from quoin.models.vit_weights import huggingface_vit_weights
from quoin.runs import Run
from quoin.runs.export.huggingface import write_huggingface
from quoin.runs.import_weights import ImportRequest, import_weights
from seeds import seeded
from test_export_huggingface import LANGUAGE, filled, text_run, trained

os.environ.setdefault("HF_HUB_OFFLINE", "1")

GPT2 = {"model_type": "gpt2", "vocab_size": 300, "n_positions": 24, "n_embd": 16, "n_layer": 2, "n_head": 4}


@pytest.fixture(scope="module", params=LANGUAGE)
def exported(request, tmp_path_factory):
    place = tmp_path_factory.mktemp(request.param)
    run, folder = text_run(place, LANGUAGE[request.param]), place / "export"
    folder.mkdir()
    write_huggingface(run, folder)
    return request.param, run, folder


def same_bits(one, other) -> bool:
    ours, theirs = one.state_dict(), other.state_dict()
    return ours.keys() == theirs.keys() and all(tensor.equal(theirs[name]) for name, tensor in ours.items())


def test_there_and_back_gives_equal_bits(exported, tmp_path):
    name, run, folder = exported
    code, out, err = tried("import", folder, "-o", tmp_path / "back", "--json")
    assert code == 0, err
    assert json.loads(out)["recipe"] == "transformer-lm"
    back = Run.open(tmp_path / "back")
    assert back.data_info.tokenizer.as_json() == run.data_info.tokenizer.as_json()
    if name == "sinusoidal":  # which become a table
        assert set(back.model.state_dict()) - set(run.model.state_dict()) == {"position_embedding.weight"}
        tokens = torch.arange(12)[None]
        with torch.no_grad():
            torch.testing.assert_close(back.model(tokens), run.model(tokens))
    else:
        assert same_bits(run.model, back.model)
        assert back.generate("The ", seed=3) == run.generate("The ", seed=3)
    again = tmp_path / "again"
    again.mkdir()
    write_huggingface(back, again)
    for file in ("model.safetensors", "config.json", "tokenizer.json"):
        assert (again / file).read_bytes() == (folder / file).read_bytes()


def test_an_imported_run_is_evaluated_inspected_and_fine_tuned(exported, tmp_path):
    name, run, folder = exported
    if name != "default":
        pytest.skip("once is enough")
    data, imported = run.folder.config["options"]["data"], tmp_path / "back"
    assert tried("import", folder, "-o", imported, "--data", data)[0] == 0
    code, out, err = tried("eval", imported, "--json")
    assert code == 0, err
    assert json.loads(out) == pytest.approx(run.evaluate())
    assert tried("inspect", imported, "--out", tmp_path / "page.html")[0] == 0
    assert tried("runs", "--runs", tmp_path)[0] == 0
    assert "fine-tune it with `quoin train transformer-lm --pretrained" in refused("resume", imported)
    words = ("--max-steps", 2, "--batch-size", 16, "--num-threads", 1, "--lr", 1e-9, "--runs", tmp_path / "tuned")
    code, _, err = tried("train", "transformer-lm", "--pretrained", imported, "--data", data, *words)
    assert code == 0, err
    assert "starts from" in err
    tuned = Run.open(tmp_path / "tuned" / "transformer-lm-1")
    assert (tuned.options.embed_dim, tuned.options.context_length) == (16, 16)
    weights = run.model.state_dict()
    for part, tensor in tuned.model.state_dict().items():
        torch.testing.assert_close(tensor, weights[part], atol=1e-6, rtol=1e-4)
    assert "are of a model with 16" in refused(
        "train", "transformer-lm", "--pretrained", imported, "--data", data, "--embed-dim", 32, "--runs", tmp_path / "t"
    )


def test_a_run_without_data_says_what_it_needs(exported, tmp_path):
    name, _, folder = exported
    if name != "gpt2":
        pytest.skip("once is enough")
    path = import_weights(folder, tmp_path / "back").path
    assert "imported without data" in refused("eval", path)
    assert "--text" in refused("inspect", path)
    assert tried("inspect", path, "--text", "The cat", "--out", tmp_path / "page.html")[0] == 0


# ---- as transformers saves them ---------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_what_transformers_saved_generates_the_same_text(family, tmp_path):
    transformers = pytest.importorskip("transformers")
    import tokenizers

    kinds = {
        "gpt2": (transformers.GPT2Config, transformers.GPT2LMHeadModel, GPT2),
        "llama": (
            transformers.LlamaConfig,
            transformers.LlamaForCausalLM,
            {"vocab_size": 300, "hidden_size": 16, "intermediate_size": 36, "num_hidden_layers": 2}
            | {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64},
        ),
    }  # fmt: skip
    config, kind, sizes = kinds[family]
    torch.manual_seed(0)
    peer = kind(config(**{k: v for k, v in sizes.items() if k != "model_type"}, bos_token_id=0, eos_token_id=0)).eval()
    filled(peer)
    peer.save_pretrained(tmp_path / "theirs")
    library = tokenizers.Tokenizer(tokenizers.models.BPE())
    library.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    library.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=290, show_progress=False, initial_alphabet=alphabet, special_tokens=["<|endoftext|>"]
    )
    library.train_from_iterator(["The cat sat on the mat. " * 20], trainer)
    library.save(str(tmp_path / "theirs" / "tokenizer.json"))
    run = Run.open(import_weights(tmp_path / "theirs", tmp_path / "run").path)
    ids = library.encode("The cat").ids
    assert run.data_info.tokenizer.encode("The cat").tolist() == ids
    with torch.no_grad():
        tokens = torch.tensor([ids])
        torch.testing.assert_close(run.model(tokens), peer(tokens).logits, atol=1e-4, rtol=1e-4)
    expected = peer.generate(tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=8, do_sample=False)[0]
    found = [token for token, _ in run.trained.stream("The cat", greedy_token, 8)]  # type: ignore[attr-defined]
    assert found == expected[len(ids) :].tolist()
    code, out, err = tried("generate", tmp_path / "run", "--prompt", "The cat", "--max-tokens", 8, "--top-k", 1)
    assert code == 0, err
    assert library.decode(expected.tolist(), skip_special_tokens=False) in out
    (tmp_path / "book.txt").write_text("The cat sat on the mat, and the rain fell.\n" * 100)
    data = f"text:{tmp_path / 'book.txt'}"
    for words in (
        ("eval", tmp_path / "run", "--data", data),
        ("inspect", tmp_path / "run", "--text", "The cat", "--out", tmp_path / "page.html"),
        ("train", "transformer-lm", "--pretrained", tmp_path / "run", "--data", data, "--max-steps", 1,
         "--num-threads", 1, "--runs", tmp_path / "tuned"),
        ("generate", tmp_path / "tuned/transformer-lm-1", "--prompt", "The cat", "--max-tokens", 4),
    ):  # fmt: skip
        code, _, err = tried(*words)
        assert code == 0, (words, err)


# ---- images -----------------------------------------------------------------------------------------------------


@pytest.mark.deep
@pytest.mark.parametrize(("recipe", "size"), [("resnet", "18"), ("vit", "ti16")])
def test_an_image_classifier_comes_back(recipe, size, tmp_path):
    run = trained(recipe, tmp_path, f"--size {size} --data shapes --max-steps 2 --batch-size 8")
    folder = tmp_path / "export"
    folder.mkdir()
    write_huggingface(run, folder)
    imported = import_weights(folder, tmp_path / "back", request=ImportRequest(data="shapes"))
    back = Run.open(imported.path)
    assert imported.remarks == ()
    assert same_bits(run.model, back.model)
    assert back.data_info.class_names == run.data_info.class_names
    images = load("shapes").features[:20]
    torch.testing.assert_close(back.predict(images).probabilities, run.predict(images).probabilities)
    assert tried("inspect", tmp_path / "back", "--out", tmp_path / "page.html")[0] == 0
    assert back.evaluate() == pytest.approx(run.evaluate())


@pytest.mark.parametrize(
    ("recipe", "size", "make"),
    [("resnet", "18", models.resnet18), ("resnet", "50", models.resnet50), ("densenet", "121", models.densenet121)],
)
def test_torchvisions_names_tell_the_model(recipe, size, make, tmp_path):
    theirs, draw = make(7, image_shape=(3, 64, 64), generator=seeded(1)).eval(), seeded(7)
    for tensor in theirs.state_dict().values():  # none of them as it begins, and none so that all overflows
        if tensor.is_floating_point():
            noise = torch.rand(tensor.shape, generator=draw)
            tensor += 0.1 * noise if tensor.ndim == 1 else (noise - 0.5) * tensor.std()
    safetensors.torch.save_file(theirs.state_dict(), tmp_path / "weights.safetensors")
    (tmp_path / "names.txt").write_text("".join(f"kind {number}\n" for number in range(7)))
    words = ("--class-names", tmp_path / "names.txt", "--image-size", 64)
    code, _, err = tried("import", tmp_path / "weights.safetensors", "-o", tmp_path / "run", *words)
    assert code == 0, err
    run = Run.open(tmp_path / "run")
    assert (run.recipe_name, run.options.size, run.data_info.class_names[2]) == (recipe, size, "kind 2")
    assert same_bits(theirs, run.model)
    images = torch.rand(2, 3, 64, 64, generator=seeded(2))
    mean, std = (torch.tensor(each)[:, None, None] for each in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))
    with torch.no_grad():
        expected = theirs((images - mean) / std)
    assert expected.std() > 0.001
    torch.testing.assert_close(run.trained.outputs(images), expected, atol=1e-4, rtol=1e-4)  # type: ignore


# ---- what cannot be ---------------------------------------------------------------------------------------------


def gpt2_folder(place: Path, **changed) -> Path:
    from quoin.data import ByteTokenizer
    from quoin.data.tokenizer_json import tokenizer_json
    from quoin.models.gpt2 import gpt2_weights

    place.mkdir()
    config = GPT2 | changed
    model = filled(models.gpt2_from_config({**config, "model_type": "gpt2"}))
    safetensors.torch.save_file(
        {name: each.contiguous() for name, each in gpt2_weights(model, 24).items()}, place / "model.safetensors"
    )
    (place / "config.json").write_text(json.dumps(config))
    (place / "tokenizer.json").write_text(json.dumps(tokenizer_json(ByteTokenizer())))
    return place


def broken(folder: Path, how: str) -> None:
    config = json.loads((folder / "config.json").read_text())
    match how:
        case "another family":
            (folder / "config.json").write_text(json.dumps(config | {"model_type": "bert"}))
        case "no config":
            (folder / "config.json").unlink()
        case "damaged config":
            (folder / "config.json").write_text('{"model_type": "gpt2"')
        case "no weights":
            (folder / "model.safetensors").unlink()
        case "a pickle":
            torch.save({"a": torch.ones(1)}, folder / "model.safetensors")
        case "another model":
            (folder / "config.json").write_text(json.dumps(config | {"n_layer": 3}))
        case "other sizes":
            (folder / "config.json").write_text(json.dumps(config | {"n_embd": 32}))
        case "no tokenizer":
            (folder / "tokenizer.json").unlink()
        case "damaged tokenizer":
            (folder / "tokenizer.json").write_text("{}")
        case "a scale of its own":
            (folder / "config.json").write_text(json.dumps(config | {"scale_attn_weights": False}))
        case "not finite":
            weights = safetensors.torch.load_file(folder / "model.safetensors")
            weights["transformer.wte.weight"][2, 2] = float("nan")
            safetensors.torch.save_file(weights, folder / "model.safetensors")


BROKEN = {
    "another family": ["model_type 'bert'", "gpt2"],
    "no config": ["config.json", "model.safetensors"],
    "damaged config": ["expected JSON in", "config.json"],
    "no weights": ["expected a safetensors file", "model.safetensors"],
    "a pickle": ["got a pickle"],  # what else is said is cut where the path is long
    "another model": ["h.2.", "another model's"],
    "other sizes": ["'transformer.h.0.attn.c_attn.weight'", "shape", "got (16, 48)"],
    "no tokenizer": ["tokenizer.json", "AutoTokenizer"],
    "damaged tokenizer": ["tokenizer.json"],
    "a scale of its own": ["scaled by"],
    "not finite": ["NaN or infinity in 'transformer.wte.weight'"],
}


@pytest.mark.parametrize("how", BROKEN)
def test_what_cannot_be_is_told_and_nothing_is_written(how, tmp_path):
    folder = gpt2_folder(tmp_path / "gpt2")
    broken(folder, how)
    told = refused("import", folder, "-o", tmp_path / "run")
    assert all(word in told for word in BROKEN[how]), told
    assert [each.name for each in tmp_path.iterdir()] == ["gpt2"]


def test_an_existing_run_stays_unless_forced(tmp_path):
    folder = gpt2_folder(tmp_path / "gpt2")
    assert tried("import", folder, "-o", tmp_path / "run")[0] == 0
    before = (tmp_path / "run" / "environment.json").read_bytes()
    assert "--force" in refused("import", folder, "-o", tmp_path / "run")
    assert (tmp_path / "run" / "environment.json").read_bytes() == before
    assert tried("import", folder, "-o", tmp_path / "run", "--force")[0] == 0
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").write_text("mine")
    assert "no run folder" in refused("import", folder, "-o", tmp_path / "other", "--force")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["gpt2", "other", "run"]


def test_names_of_no_model_are_told(tmp_path):
    safetensors.torch.save_file({"some.weight": torch.ones(3, 2)}, tmp_path / "weights.safetensors")
    assert "'some.weight'" in refused("import", tmp_path / "weights.safetensors", "-o", tmp_path / "run")
    assert "check the path" in refused("import", tmp_path / "nowhere", "-o", tmp_path / "run")


def test_class_names_must_fit(tmp_path):
    model = filled(
        models.ViT((3, 32, 32), 4, patch_size=16, embed_dim=192, num_heads=3, num_layers=12, class_token=True)
    )
    weights = {name: each.contiguous() for name, each in huggingface_vit_weights(model).items()}
    safetensors.torch.save_file(weights, tmp_path / "weights.safetensors")
    (tmp_path / "names.txt").write_text("a\nb\na\n")
    words = ("--class-names", tmp_path / "names.txt", "--image-size", 32, "-o", tmp_path / "run")
    assert "expected 4 different names" in refused("import", tmp_path / "weights.safetensors", *words)
    (tmp_path / "names.txt").write_bytes(b"\xff\xfe\n")
    assert "cannot be read (it is no text in UTF-8): check it" in refused(
        "import", tmp_path / "weights.safetensors", *words
    )
    (tmp_path / "names.txt").unlink()
    assert "cannot be read (No such file or directory): check it" in refused(
        "import", tmp_path / "weights.safetensors", *words
    )
