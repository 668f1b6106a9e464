"""The page of runs without a browser: every kind of trained model is asked, alone and beside others of its kind."""

import base64
import io
import json
import math

import numpy as np
import pytest
import torch
from PIL import Image

from lab_states import states, tiny_run
from made_runs import write_run
from quoin.errors import UserError
from quoin.generate import greedy_token
from quoin.inspect import attention_maps
from quoin.lab.parts.given_picture import FILE, INVERTED, PAINTED, TEST_ROW
from quoin.lab.parts.open_runs import open_paths, run_names, set_runs
from quoin.lab.parts.run_attention import key_grid, translation_maps
from quoin.lab.parts.run_models import model_exhibits
from quoin.lab.parts.run_samples import EACH
from quoin.lab.parts.run_views import curves_exhibit, run_exhibits
from quoin.lab.parts.widget import answer

TEXT = "the cat sat on the mat. "
SMALL = {"embed_dim": 8, "num_heads": 2, "epochs": 1}
PAIRS = {"num_pairs": 40, "epochs": 1}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Tiny runs, each trained when it is first asked for."""
    place, found = tmp_path_factory.mktemp("runs"), {}
    (place / "text.txt").write_text(TEXT * 40)
    text = {"data": f"text:{place / 'text.txt'}"}
    options = {
        "vit": {**SMALL, "num_layers": 2},
        "attention-digits": {**SMALL, "num_layers": 1},
        "mlp": {"epochs": 1},
        "mlp-iris": {"data": "iris", "epochs": 1},
        "signal-classification": {"epochs": 1},
        "linear-regression": {"epochs": 1},
        "svm": {"epochs": 1},
        "translate-dates": {**PAIRS, "hidden_dim": 8, "embed_dim": 4},
        "translate-numbers": {**PAIRS, **SMALL},
        "transformer-lm": {**text, **SMALL, "num_layers": 2, "context_length": 16},
        "ngram": {**text, "order": 3},
        "sequence-classification": {**SMALL, "encoder": "transformer", "baselines": False, "num_texts": 200},
        "gmm": {},
        "markov-chain": {},
    }

    def get(name):
        if name not in found:
            found[name] = tiny_run(name.removesuffix("-iris"), place / name, options[name])
        return found[name]

    return get


def asked(runs):
    """The exhibits of runs by their slugs; each answers in six states with a picture, or in one line."""
    found = {each.slug: each for each in model_exhibits(runs)}
    for exhibit in found.values():
        for state in states(exhibit):
            got = answer(exhibit, state)
            assert got.get("svg", "").startswith("<svg") or "choose a PNG" in got["error"]
    return found


def numbers(view):
    return {each.label: each.value for each in view.numbers}


def file_of(values):
    """Bytes as a browser sends them: a PNG of grey levels from 0 to 1."""
    out = io.BytesIO()
    Image.fromarray((np.asarray(values) * 255).round().astype(np.uint8)).save(out, "png")
    return base64.b64encode(out.getvalue()).decode()


# ---- pictures and rows -------------------------------------------------------------------------------------------


def test_a_picture_by_row_by_paint_and_by_file(made):
    run = made("vit")
    exhibit = asked([run])["what-is-it"]
    test = run.load_task().data.test
    features = run.trained.feature_scaler.inverse_transform(test.features[4:5])
    got = numbers(exhibit.view({"source": TEST_ROW, "row": 5}))
    expected = run.trained.predict(features)
    assert got["class"] == str(int(test.targets[4]))
    assert got["prediction"] == str(int(expected.values[0]))
    assert got["probability"] == pytest.approx(float(expected.probabilities.max()), rel=1e-5)
    # the same picture through a file, whose 256 levels are nearly those of the row (17 levels from 0 to 1)
    through = numbers(exhibit.view({"source": FILE, "file": file_of(features[0, 0])}))
    assert through["probability"] == pytest.approx(got["probability"], rel=0.01)
    assert "class" not in through
    turned = numbers(exhibit.view({"source": INVERTED, "file": file_of(1 - features[0, 0])}))
    assert turned["probability"] == pytest.approx(got["probability"], rel=0.01)
    cells = [3 if value > 0.5 else 0 for value in features.flatten()]
    black = run.trained.predict((features > 0.5).float())
    painted = exhibit.view({"source": PAINTED, "image": cells})
    assert numbers(painted)["probability"] == pytest.approx(float(black.probabilities.max()), rel=1e-5)
    assert 'data-paint="image"' in painted.picture.svg()


def test_a_picture_that_is_none_is_one_line(made):
    exhibit = asked([made("vit")])["what-is-it"]
    for state in ({"source": FILE}, {"source": FILE, "file": base64.b64encode(b"nonsense").decode()}):
        assert "expected a" in answer(exhibit, state)["error"]
        assert "\n" not in answer(exhibit, state)["error"]


def test_one_picture_goes_through_all_runs(made):
    runs = [made("vit"), made("mlp"), made("attention-digits")]
    exhibits = asked(runs)
    assert [slug for slug in exhibits if slug.startswith("what-is-it")] == ["what-is-it"]
    view = exhibits["what-is-it"].view({"source": TEST_ROW, "row": 2})
    features = runs[0].trained.feature_scaler.inverse_transform(runs[0].load_task().data.test.features[1:2])
    said = [str(int(run.trained.predict(features).values[0])) for run in runs]
    assert numbers(view)["different predictions"] == len(set(said))
    for folder, label in zip(("vit", "mlp", "attention-digits"), said):
        assert f"{folder}/run: {label}" in view.picture.svg()


def test_runs_of_other_classes_are_asked_apart(made):
    slugs = [each.slug for each in model_exhibits([made("mlp"), made("mlp-iris")])]
    assert slugs == ["what-is-it", "your-row"]


def test_a_row_typed(made):
    run = made("mlp-iris")
    exhibit = asked([run])["your-row"]
    expected = run.trained.predict(torch.tensor([[5.1, 3.5, 1.4, 0.2]])).probabilities[0]
    for row in ("5.1, 3.5, 1.4, 0.2", "a 5.1; b c 3.5; 1.4; 0.2"):
        got = numbers(exhibit.view({"row": row}))
        assert got["prediction"] == run.data_info.class_names[int(expected.argmax())]
        assert got["probability"] == pytest.approx(float(expected.max()), rel=1e-5)
    for row in ("", "x", "1, 2", ",,,"):
        assert "expected" in answer(exhibit, {"row": row})["error"]


def test_a_number_is_predicted_in_its_unit(made):
    run = made("linear-regression")
    view = asked([run])["your-row"].view({"row": "0.5, -1"})
    value = float(run.trained.predict(torch.tensor([[0.5, -1.0]])).values[0])
    assert view.numbers[0].value == f"{value:.4g}"


def test_a_signal_by_its_row(made):
    run = made("signal-classification")
    view = asked([run])["of-a-test-row"].view({"row": 3})
    names, test = run.data_info.class_names, run.load_task().data.test
    scaled = run.trained.feature_scaler.inverse_transform(test.features[2:3])
    assert numbers(view)["class"] == names[int(test.targets[2])]
    assert numbers(view)["prediction"] == names[int(run.trained.predict(scaled).values[0])]


def test_a_class_without_a_probability(made):
    run = made("svm")
    for exhibit in asked([run]).values():
        assert set(numbers(exhibit.view())) <= {"class", "prediction"}


# ---- texts -------------------------------------------------------------------------------------------------------


def test_one_text_through_language_models(made):
    runs = [made("transformer-lm"), made("ngram")]
    exhibits = asked(runs)
    assert list(exhibits) == ["next-token", "goes-on", "who-attends"]
    alone = asked(runs[1:])["next-token"].view({"text": TEXT})
    assert numbers(alone)["all bits"] == pytest.approx(numbers(alone)["bits per character"] * len(TEXT))
    both = exhibits["next-token"].view({"text": TEXT}).picture.svg()
    assert f"ngram/run: {numbers(alone)['bits per character']:.3g} bits per character" in both
    on = exhibits["goes-on"].view({"text": "the c", "temperature": 0, "length": 8}).picture.alt
    assert runs[1].trained.generate("the c", max_tokens=8, choose=greedy_token) in on
    assert "cannot read it" in exhibits["next-token"].view({"text": "Q"}).note


def test_temperature_and_nucleus_change_what_is_sampled(made):
    exhibit = asked([made("ngram")])["goes-on"]
    given = {"text": "the ", "length": 64}
    hot, cold = (exhibit.view({**given, "temperature": heat, "top_p": 1.0}).picture.alt for heat in (2.0, 0.1))
    narrow = exhibit.view({**given, "temperature": 2.0, "top_p": 0.05}).picture.alt
    greedy = exhibit.view({**given, "temperature": 0.0, "top_p": 1.0}).picture.alt
    assert hot != cold
    assert hot != narrow
    assert narrow == greedy  # the smallest nucleus is the most probable token alone


def test_every_head_on_a_text(made):
    run = made("transformer-lm")
    exhibit = asked([run])["who-attends"]
    tokens = run.trained.tokenizer.encode("the cat sat")
    maps = attention_maps(run.model, tokens[None])
    for layer, head in ((0, 1), (1, 2)):
        view = exhibit.view({"text": "the cat sat", "layer": maps[layer].layer, "head": head})
        weights = maps[layer].weights[head - 1].double()
        entropy = float(-(weights * weights.clamp_min(1e-300).log()).sum(-1).mean())
        assert view.numbers[0].value == pytest.approx(entropy, rel=1e-9)
    assert "2 to 60 tokens" in answer(exhibit, {"text": "t"})["error"]
    # the end of a text that is longer than its context of 16
    assert (
        exhibit.view({"text": "sat on " + TEXT[:16]}).picture.svg() == exhibit.view({"text": TEXT[:16]}).picture.svg()
    )


def test_a_text_of_a_class_and_its_heads(made):
    run = made("sequence-classification")
    exhibits = asked([run])
    view = exhibits["of-which-class"].view({"text": "abcabc"})
    assert numbers(view)["prediction"] == run.data_info.class_names[int(run.trained.predict(["abcabc"]).values[0])]
    assert "who-attends" in exhibits


@pytest.mark.parametrize(("name", "layers"), [("translate-dates", 1), ("translate-numbers", 6)])
def test_a_sentence_and_its_alignment(made, name, layers):
    run = made(name)
    exhibits = asked([run])
    sentence = run.load_task().corpus.test.pairs.sources[0]
    said = run.trained.predict([sentence], num_beams=3)[0].text
    assert said in exhibits["translate"].view({"sentence": sentence, "num_beams": 3}).picture.alt
    maps = translation_maps(run, sentence)
    assert len(maps) == layers
    for each in maps:
        assert torch.allclose(each.weights.sum(-1), torch.ones(each.weights.shape[:2]), atol=1e-5)
    source = run.data_info.source_tokenizer.encode(sentence)
    assert maps[0].weights.shape[-1] == len(source) == len(maps[0].key_labels)
    assert maps[0].key_labels[-1] == "EOS"
    view = exhibits["where-it-attends"].view({"sentence": sentence})
    assert 0 <= view.numbers[0].value <= math.log(len(source)) + 1e-6
    assert "expected" in answer(exhibits["where-it-attends"], {"sentence": "  "})["error"]


def test_a_sentence_that_only_one_run_can_read(made):
    runs = [made("translate-dates"), made("translate-numbers")]
    exhibits = asked(runs)
    assert list(exhibits) == ["translate", "where-it-attends", "where-it-attends-2"]
    view = exhibits["translate"].view({"sentence": "3 May 2027"})
    assert "run cannot read it: " in view.note
    assert "expected characters" in view.note
    assert view.picture.svg().count("→") == 1


# ---- where pictures are looked at --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "grid"), [(16, (4, 4, 0)), (17, (4, 4, 1)), (8, (8, 1, 0)), (64, (8, 8, 0)), (1, (1, 1, 0)), (50, None)]
)
def test_how_keys_lie_over_a_picture(keys, grid):
    assert key_grid(8, 8, keys) == grid


def test_every_head_over_a_picture(made):
    run = made("vit")
    exhibit = asked([run])["where-it-looks"]
    maps = attention_maps(run.model, run.load_task().data.test.features[:1])
    for query, layer in ((1, 0), (16, 1)):
        view = exhibit.view({"source": TEST_ROW, "row": 1, "query": query, "layer": maps[layer].layer})
        weights = maps[layer].weights[:, query - 1].double()
        entropy = float(torch.special.entr(weights).sum(-1).mean())
        assert numbers(view)["entropy, mean of heads"] == pytest.approx(entropy, rel=1e-4)
        assert view.picture.svg().count(">head ") == 2
    rows = asked([made("attention-digits")])["where-it-looks"].view({"source": PAINTED, "query": 8})
    assert "prediction" in numbers(rows)


# ---- samples -----------------------------------------------------------------------------------------------------


def test_points_by_their_seed(made):
    run = made("gmm")
    exhibit = asked([run])["samples"]
    points = run.trained.generate(200, seed=3)
    assert exhibit.view({"seed": 3}).numbers[0].value == pytest.approx(float(points.std(dim=0).mean()), rel=1e-6)
    assert exhibit.view({"seed": 4}).picture.svg() != exhibit.view({"seed": 3}).picture.svg()


@pytest.mark.deep
def test_images_by_class_steps_guidance_and_temperature(tmp_path):
    from quoin.runs.kinds.generation import SamplingOptions

    fast = {"epochs": 1}
    diffusion = tiny_run("diffusion-digits", tmp_path / "a", {**fast, "channels": (8,)})
    pixels = tiny_run("pixelcnn", tmp_path / "b", {**fast, "channels": 4, "num_layers": 1, "class_conditional": True})
    plain = tiny_run("pixelcnn", tmp_path / "c", {**fast, "channels": 4, "num_layers": 1})
    exhibit = asked([diffusion])["samples"]
    assert [each.name for each in exhibit.controls] == ["seed", "num_steps", "label", "guidance_scale"]
    options = SamplingOptions(label="7", num_steps=4, guidance_scale=3.0)
    expected = diffusion.trained.generate(16, seed=2, options=options)
    got = exhibit.view({"seed": 2, "label": "7", "num_steps": 4, "guidance_scale": 3.0})
    assert got.numbers[0].value == pytest.approx(float(expected.std(dim=0).mean()), rel=1e-5)
    assert "class 7" in got.picture.alt
    exhibit = asked([pixels])["samples"]
    assert [each.name for each in exhibit.controls] == ["seed", "temperature", "label"]
    both = {heat: exhibit.view({"temperature": heat}).numbers[0].value for heat in (0.1, 1.0)}
    assert both[0.1] < both[1.0]
    assert [each.name for each in asked([plain])["samples"].controls] == ["seed", "temperature"]
    together = asked([diffusion, pixels, plain])["samples"]
    assert together.view({"label": "3"}).picture.svg().count("<image") == 24
    assert together.view({"label": EACH}).numbers[2].label == "deviation, c/run"


# ---- curves and what is wrong ------------------------------------------------------------------------------------


def test_curves_grow_while_a_run_trains(tmp_path):
    path = write_run(tmp_path / "mine", curve=[{"train_loss": 2.0, "validation_loss": 2.5}])
    exhibit = curves_exhibit([path])
    first = exhibit.view({"tick": 0})
    assert numbers(first) == {"steps so far": 10, "best loss": 2.0}
    assert "not finished" in first.note
    with (path / "metrics.jsonl").open("a") as file:
        file.write(json.dumps({"step": 20, "epoch": 2, "seconds": 2.0, "train_loss": 1.0, "validation_loss": 1.5}))
        file.write("\n")
    later = exhibit.view({"tick": 1})
    assert numbers(later) == {"steps so far": 20, "best loss": 1.0}
    assert exhibit.view({"log": True}).picture.svg() != later.picture.svg()


def test_a_damaged_run_says_so_and_the_others_live(made, tmp_path):
    damaged = write_run(tmp_path / "damaged", curve=[{"train_loss": 1.0}])
    (damaged / "config.json").write_text("{")
    begun = write_run(tmp_path / "begun", curve=[{"train_loss": 1.0}])
    exhibits = run_exhibits([damaged, begun, made("ngram").path])
    assert [each.slug for each in exhibits] == ["curves", "next-token", "goes-on"]
    note = exhibits[0].view().note
    assert "damaged" in note
    assert "begun: not finished" in note


def test_a_kind_that_nothing_can_be_asked_has_curves_alone(made):
    assert [each.slug for each in run_exhibits([made("markov-chain").path])] == ["curves"]


def test_runs_of_one_name_are_told_apart(tmp_path):
    paths = [tmp_path / "a" / "mlp-1", tmp_path / "b" / "mlp-1", tmp_path / "vae-1"]
    assert run_names(paths) == ["a/mlp-1", "b/mlp-1", "vae-1"]
    assert set_runs(paths) == {"0": "a/mlp-1", "1": "b/mlp-1", "2": "vae-1"}
    assert open_paths("1") == [paths[1]]
    for number in ("", "7", "../secret", "-1"):
        assert open_paths(number) == paths
    set_runs([])


def test_data_that_are_gone_leave_what_needs_none(tmp_path):
    (tmp_path / "rows.csv").write_text("x1,x2,label\n" + "".join(f"{i},{-i},{'ab'[i % 2]}\n" for i in range(40)))
    run = tiny_run("mlp", tmp_path / "runs", {"data": f"csv:{tmp_path / 'rows.csv'}", "epochs": 1})
    (tmp_path / "rows.csv").unlink()
    with pytest.raises(UserError):
        run.load_task()
    assert list(asked([run])) == ["your-row"]
