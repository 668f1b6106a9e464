"""The judge of drawn images, and the table in which models that draw stand side by side."""

import json
import shutil

import pytest
import torch

from commands import refused, tried
from quoin.errors import UserError
from quoin.metrics import sample_quality
from quoin.recipes.lenet import Options
from quoin.runs.generative_table import HEADINGS, beside_others, caution, generative_line, generative_section
from quoin.runs.open_classifier import open_classifier
from quoin.runs.run import Run
from quoin.tasks import evaluation_classifier as judge
from quoin.tasks.evaluation_classifier import Evaluator, train_evaluation_classifier
from quoin.tasks.supervised_data import load_raw_images
from quoin.train import setup_device

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def cpu(one_thread):
    return setup_device("cpu", threads=1)[0]


@pytest.fixture(scope="module")
def digits(cpu):
    return load_raw_images(Options(seed=100), cpu)


@pytest.fixture(scope="module")
def judged(digits, cpu):
    return train_evaluation_classifier(digits, cpu)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Finished runs: two that read digits, one of flowers, and one that draws digits."""
    runs = tmp_path_factory.mktemp("runs")
    for words in (
        "lenet --max-steps 3 --batch-size 256",
        "mlp --max-steps 2 --data iris",
        "linear-regression --max-steps 2",
        "gmm --max-iter 1 --num-init 1 --num-components 2 --num-points 20",
        "vae --max-steps 2 --num-samples 30 --hidden-dims 8 --latent-dim 2 --classifier {}/lenet-1",
    ):
        code, _, err = tried("train", *words.format(runs).split(), "--num-threads", "1", "--runs", runs)
        assert code == 0, err
    return runs


def test_a_judge_of_its_own_knows_digits(digits, judged):
    assert judged.accuracy(digits.test.features, digits.test.targets) > 0.96
    shares = judged.class_fractions(digits.test.features)
    assert shares.shape == (10,)
    assert float(shares.sum()) == pytest.approx(1.0)
    assert judged.class_fractions(digits.test.features[digits.test.targets == 3])[3] > 0.9
    assert float(judged.class_fractions(digits.test.features[digits.test.targets == 3])[:3].sum()) < 0.1


def test_features_are_what_the_last_layer_reads(digits, judged):
    images = digits.test.features[:50]
    features = judged.features(images)
    last = judged.model.head[-1]
    assert features.shape == (50, 84)
    assert torch.allclose(features @ last.weight.mT + last.bias, judged.logits(images), atol=1e-5)
    assert not features.requires_grad
    assert len(last._forward_pre_hooks) == 0


def test_every_recipe_with_this_seed_has_the_same_judge(digits, cpu, monkeypatch):
    monkeypatch.setattr(judge, "NUM_STEPS", 10)
    trained, own = train_evaluation_classifier(digits, cpu), Evaluator("", digits, cpu, open_classifier=open_classifier)
    torch.rand(5)  # what else was drawn does not matter
    assert all(
        torch.equal(mine, its)
        for mine, its in zip(own.state_dict().values(), trained.model.state_dict().values(), strict=True)
    )
    again = Evaluator("", digits, cpu, open_classifier=open_classifier)
    again.load_state_dict(own.state_dict())
    monkeypatch.setattr(judge, "train_evaluation_classifier", None)  # it is not trained once more
    drawn = torch.rand(40, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    expected = sample_quality(drawn, digits.test.features, trained.features, train=digits.train.features)
    assert again.quality(drawn) == expected._asdict()


def test_a_finished_run_can_be_the_judge(digits, place, cpu):
    given, run = (
        Evaluator(str(place / "lenet-1"), digits, cpu, open_classifier=open_classifier),
        Run.open(place / "lenet-1").trained,
    )
    images = digits.test.features[:20]
    assert torch.allclose(
        given.classifier.logits(images), run.outputs(images), atol=1e-5
    )  # the run's own scale is applied
    assert given.state_dict() == {}
    given.load_state_dict({})


def test_what_is_no_judge_is_told(digits, place, cpu, tmp_path):
    for path, told in {
        place / "lenet-9": "quoin train lenet",
        place / "linear-regression-1": "one of linear-regression: `quoin train lenet` makes one",
        place / "vae-1": "one of vae",
        place / "gmm-1": "run of an image classifier, but",
        place / "mlp-1": r"of images \(1, 8, 8\) of 10 classes",
    }.items():
        with pytest.raises(UserError, match=told) as caught:
            open_classifier(path, digits.data_info, cpu)
        assert "\n" not in str(caught.value)
    shutil.copytree(place / "lenet-1", tmp_path / "lenet-1")
    (tmp_path / "lenet-1" / "result.json").unlink()
    with pytest.raises(UserError, match="finished run"):
        open_classifier(tmp_path / "lenet-1", digits.data_info, cpu)
    assert "quoin train lenet" in refused("train", "vae", "--classifier", "nowhere", "--runs", tmp_path)
    assert not (tmp_path / "vae-1").exists()


def test_models_that_draw_stand_side_by_side(place, tmp_path):
    first, second = Run.open(place / "vae-1"), tmp_path / "vae-2"
    assert beside_others(first.folder) == []  # no other run that draws
    for path in (tmp_path / "vae-1", second):
        shutil.copytree(place / "vae-1", path)
    changed = json.loads((second / "result.json").read_text())
    changed["metrics"]["test_mmd"] = 0.123456
    (second / "result.json").write_text(json.dumps(changed))
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / "result.json").write_text("{")
    (section,) = beside_others(Run.open(tmp_path / "vae-1").folder)
    assert '<td class="number" title="0.123456">0.123</td>' in section
    assert "data digits" in section  # what they share is said once, not in a column
    assert "<th>evaluator" not in section
    assert section.count("<tr>") == 3  # head and two runs

    code, out, _ = tried("compare", place / "lenet-1", tmp_path / "vae-1", second, "--out", tmp_path / "page.html")
    assert code == 0
    table = out[out.index("samples of generative models") :].splitlines()
    # three runs stand in columns that fit into the 80 characters of a terminal
    top = next(number for number, line in enumerate(table) if line.startswith("run"))
    assert table[top].split() == ["run", "vae-1", "vae-2"]
    rows = {line.partition("  ")[0]: line.split()[-1] for line in table[top + 1 : top + 8]}
    assert rows["MMD² → 0"] == "0.123"
    assert list(rows) == list(HEADINGS[4:])
    assert max(map(len, table[: top + 8])) <= 80
    assert "data digits; evaluator" in table[top + 8]  # what they share is said once
    assert "only lines with" not in out  # same data, judge and number of samples
    assert "Samples of generative models" in (tmp_path / "page.html").read_text()

    code, out, _ = tried("compare", tmp_path / "vae-1", second, "--json", "--out", tmp_path / "page.html")
    told = json.loads(out)["generative_models"][1]
    assert (told["mmd"], told["num_samples"], told["data"]) == (0.123456, 30, "digits")


def test_lines_with_another_judge_are_told_apart(place, tmp_path):
    run = Run.open(place / "vae-1")
    shutil.copytree(place / "vae-1", tmp_path / "other")
    config = json.loads((tmp_path / "other" / "config.json").read_text())
    config["options"] |= {"classifier": "", "num_samples": 31, "seed": 7}
    (tmp_path / "other" / "config.json").write_text(json.dumps(config))
    other = Run.open(tmp_path / "other")
    one, two = (generative_line(each.path.name, each.folder, each.metrics or {}, 1.0) for each in (run, other))
    assert two.evaluator == "own, seed 7"
    assert caution([one, one]) == ""
    assert caution([one, two]) == "only lines with the same evaluator and number of samples compare"
    assert "<th>evaluator" in generative_section("Samples", [one, two])
