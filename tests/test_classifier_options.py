"""What practitioners expect of a classifier: label smoothing, class weights, mixup, thresholds, a monitor of choice."""

import json
import math
from pathlib import Path
from typing import Any

import numpy
import pytest
import sklearn.metrics
import sklearn.utils.class_weight
import torch
from torch.nn import functional

from commands import refused, tried
from quoin.data import keyed_generator, mixup
from quoin.errors import UserError
from quoin.losses import balanced_class_weights, cross_entropy, cross_entropy_definition
from quoin.runs import Run
from quoin.tasks.classifier_loss import ClassifierLoss, training_loss
from quoin.tasks.options import ClassifierOptions
from quoin.tasks.supervised import predict_labels
from quoin.train.monitor import monitor_named
from tasks import classification, numbers_dataset, parted

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def classes():
    return parted(numbers_dataset(classes=3), 16, 6)


# The loss


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(5,), (2, 3)])
def test_label_smoothing_is_torchs(smoothing, weighted, shape):
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(*shape, 4, generator=generator, dtype=torch.float64, requires_grad=True)
    labels = torch.randint(4, shape, generator=generator)
    soft = torch.rand(*shape, 4, generator=generator, dtype=torch.float64)
    soft = soft / soft.sum(-1, keepdim=True)
    weights = torch.tensor([0.5, 1.0, 2.0, 3.0], dtype=torch.float64) if weighted else None
    for target in (labels, soft):
        ours = [
            form(logits, target, class_weights=weights, label_smoothing=smoothing)
            for form in (cross_entropy_definition, cross_entropy)
        ]
        flat = target.flatten() if target is labels else target.flatten(0, -2)
        peer = functional.cross_entropy(
            logits.flatten(0, -2), flat, weights, reduction="none", label_smoothing=smoothing
        )
        gradient = torch.autograd.grad(peer.sum(), logits)
        for found in ours:
            torch.testing.assert_close(found.flatten(), peer)
            torch.testing.assert_close(torch.autograd.grad(found.sum(), logits), gradient)


def test_balanced_weights_are_sklearns_and_of_training_rows_alone(classes):
    labels = torch.tensor([0] * 7 + [1] * 2 + [2] * 5)
    peer = sklearn.utils.class_weight.compute_class_weight("balanced", classes=numpy.arange(3), y=labels.numpy())
    numpy.testing.assert_allclose(balanced_class_weights(labels, 3).numpy(), peer, rtol=1e-6)
    options = ClassifierOptions(class_weight="balanced")
    found = training_loss(options, labels, "abc")
    assert isinstance(found, ClassifierLoss)
    torch.testing.assert_close(found.class_weights, torch.tensor(peer, dtype=torch.float32))
    # One loss per example times its weight: the mean over all rows is torch's weighted mean, which divides by weights.
    logits = torch.randn(14, 3, generator=torch.Generator().manual_seed(0))
    expected = functional.cross_entropy(logits, labels, found.class_weights)
    torch.testing.assert_close(found(logits, labels).mean(), expected)
    with pytest.raises(UserError, match="none of 'c'"):
        training_loss(options, labels[:9], "abc")
    assert training_loss(ClassifierOptions(), labels, "abc") is cross_entropy


# Mixup


def test_mixup_mixes_pairs_and_their_targets_alike():
    x = torch.randn(9, 2, 3, generator=torch.Generator().manual_seed(0))
    y = torch.eye(9)  # so that a mixed target says what it was mixed of
    features, targets = mixup(x, y, keyed_generator("test"), 0.4)
    torch.testing.assert_close(features, torch.einsum("ij,jab->iab", targets, x))
    torch.testing.assert_close(targets.sum(-1), torch.ones(9))
    torch.testing.assert_close(targets.sum(0), torch.ones(9))  # partners are a permutation
    weights = {round(float(value), 6) for value in targets.unique()} - {0.0, 1.0}
    assert len(weights) == 2  # λ and 1 - λ, one for the batch
    assert sum(weights) == pytest.approx(1)
    again = mixup(x, y, keyed_generator("test"), 0.4)
    assert torch.equal(features, again.features)
    assert torch.equal(targets, again.targets)
    for wrong in (lambda: mixup(x, y[:3], keyed_generator("test"), 0.4), lambda: mixup(x, y, keyed_generator("a"), 0)):
        with pytest.raises(UserError):
            wrong()


def test_the_weight_of_mixup_is_a_sample_of_its_beta_distribution():
    """The mean of λ(1 - λ) under Beta(a, a) is a/(2 (2a + 1)); the mean of many is within five standard errors."""
    for alpha in (0.2, 2.0):
        generator = torch.Generator().manual_seed(int(10 * alpha))
        pairs = [mixup(torch.zeros(2, 1), torch.eye(2), generator, alpha).targets for _ in range(600)]
        # Half of the permutations of two leave both alone.
        products = torch.stack([pair[0].prod() for pair in pairs if not torch.equal(pair, torch.eye(2))]).double()
        error = float(products.std()) / math.sqrt(len(products))
        assert float(products.mean()) == pytest.approx(alpha / (2 * (2 * alpha + 1)), abs=5 * error)


@pytest.mark.parametrize("micro_batch_size", [0, 1, 3, 5])
def test_mixup_is_the_same_whatever_the_micro_batches(classes, micro_batch_size):
    rows = torch.arange(11)
    task = classification(classes, batch_size=11, micro_batch_size=micro_batch_size)
    task.mixup, task.train_loss_fn = 0.5, ClassifierLoss(0.1)
    whole = classification(classes, batch_size=11)
    whole.mixup = 0.5
    ((features, targets),) = whole.pieces(rows)
    logits = whole.model(features)
    functional.cross_entropy(logits, targets, label_smoothing=0.1).backward()
    expected = torch.cat([each.grad.flatten() for each in whole.model.parameters()])
    loss = task.step(rows)["loss"]
    found = torch.cat([each.grad.flatten() for each in task.model.parameters()])
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(loss / 11, functional.cross_entropy(logits, targets, label_smoothing=0.1).detach())
    plain = functional.cross_entropy(task.model(classes.validation.features), classes.validation.targets)
    assert task.evaluate("validation")["loss"] == pytest.approx(plain.item(), rel=1e-5)  # evaluated unsmoothed
    assert not torch.equal(torch.cat([each for _, each in task.pieces(rows)]), targets)  # another step, other pairs


# By command


@pytest.fixture(scope="module")
def rare(tmp_path_factory) -> Path:
    """Two classes, one of them rare, that overlap."""
    draw = numpy.random.default_rng(0)
    labels = (draw.random(400) < 0.15).astype(int)
    rows = draw.normal(size=(400, 2)) + 1.2 * labels[:, None]
    path = tmp_path_factory.mktemp("rare") / "rare.csv"
    path.write_text("\n".join(["a,b,y", *(f"{a:.4f},{b:.4f},{['no', 'yes'][c]}" for (a, b), c in zip(rows, labels))]))
    return path


def train(path: Path, place: Path, *more: object, recipe: str = "logistic-regression") -> dict:
    words = ("--data", f"csv:{path}", "--target", "y", "--epochs", 4, "--num-threads", 1, "--json", "--runs", place)
    code, out, err = tried("train", recipe, *words, *more)
    assert code == 0, err
    return json.loads(out)


@pytest.mark.deep
def test_a_threshold_is_chosen_on_validation_kept_and_used(rare, tmp_path):
    run = Run.open(train(rare, tmp_path, "--threshold", "balanced-accuracy")["run"])
    task: Any = run.load_task()
    trained: Any = run.trained
    threshold = trained.threshold
    assert threshold == task.threshold
    assert 0 < threshold < 0.5  # the rare class is called sooner
    p = task.predict_split("validation").double().softmax(-1)[:, 1]
    labels = task.data.validation.targets.numpy()
    every = [sklearn.metrics.balanced_accuracy_score(labels, (p >= each).numpy()) for each in p]
    chosen = sklearn.metrics.balanced_accuracy_score(labels, (p >= threshold).numpy())
    assert chosen == pytest.approx(max(every))
    rows = tmp_path / "rows.csv"
    rows.write_text("a,b\n0,0\n0.5,0.9\n3,3\n-3,-3\n1,0.6\n")
    code, out, err = tried("predict", run.path, rows)
    assert code == 0
    assert "'yes' is predicted from p = " in err
    for line in out.splitlines()[1:]:
        label, _, second = line.split(",")
        assert (label == "yes") == (float(second) >= threshold)
    assert any(f"from a probability of {threshold:.3g} on" in panel.caption for panel in task.panels())
    plain = Run.open(train(rare, tmp_path)["run"])
    assert "threshold" not in plain.trained.saved
    accuracy = (task.predict_split("test").double().softmax(-1)[:, 1] >= threshold).long() == task.data.test.targets
    assert (run.metrics or {})["test_accuracy"] == pytest.approx(float(accuracy.double().mean()))


def test_what_does_not_fit_is_told_before_the_training(rare, tmp_path):
    place = ("--runs", tmp_path, "--epochs", 1)
    assert "two classes, got 10" in refused("train", "mlp", "--threshold", "f1", *place)
    few = tmp_path / "few.csv"
    few.write_text("a,y\n" + "\n".join(f"{i},{'yes' if i == 7 else 'no'}" for i in range(40)))
    words = ("--data", f"csv:{few}", "--target", "y", *place)
    assert "none of 'yes'" in refused("train", "logistic-regression", *words, "--threshold", "f1")
    told = refused("train", "mlp", "--monitor", "validation_acuracy", *place)
    assert "train_loss, validation_accuracy, validation_loss" in told
    assert "--monitor validation_loss" in refused("train", "lenet", "--patience", 2, *place)
    assert "train_loss" in refused("train", "gcn", "--monitor", "validation_loss", *place)
    assert not any(tmp_path.glob("*-1"))


@pytest.mark.deep
def test_a_monitor_decides_which_weights_are_kept(rare, tmp_path):
    """By the validation metric of every epoch: the first of the best for any metric that is watched."""
    for metric, best in (("validation_accuracy", max), ("validation_auc", max), ("train_loss", min)):
        result = train(rare, tmp_path, "--monitor", metric, "--lr", 2, "--epochs", 6)
        lines = Run.open(result["run"]).history
        values = [line[metric] for line in lines]
        assert result["best_step"] == lines[values.index(best(values))]["step"]
        stopped = train(rare, tmp_path, "--monitor", metric, "--lr", 2, "--epochs", 6, "--patience", 1)
        ends = next((i for i in range(1, 6) if best(values[:i]) == best(values[: i + 1])), 5)
        assert [line[metric] for line in Run.open(stopped["run"]).history] == values[: ends + 1]


@pytest.mark.deep
def test_a_monitor_changes_nothing_but_what_is_kept(rare, tmp_path):
    plain, given = (train(rare, tmp_path, *more, recipe="mlp") for more in ((), ("--monitor", "validation_loss")))
    assert plain["metrics"] == given["metrics"]
    assert plain["best_step"] == given["best_step"]


def test_a_threshold_is_state_of_the_model():
    """Chosen anew by every evaluation of the validation split, and kept with the weights it was chosen for."""
    data = parted(numbers_dataset(classes=2), 16, 6)
    task, other = classification(data), classification(data)
    task.choose_threshold = other.choose_threshold = lambda p, labels: float(p.median())
    task.evaluate("validation")
    expected = float(task.predict_split("validation").double().softmax(-1)[:, 1].median())
    assert task.threshold == expected
    other.load_state_dict(task.state_dict())
    assert other.threshold == expected
    outputs = torch.tensor([[0.0, 3.0], [0.0, -3.0]])
    assert predict_labels(outputs, 0.01).tolist() == [1, 1]
    assert predict_labels(outputs, float(outputs[0].double().softmax(-1)[1])).tolist() == [1, 0]  # reached is enough


@pytest.mark.parametrize(
    ("metric", "greater"),
    [
        ("validation_loss", False),
        ("validation_accuracy", True),
        ("validation_bayes_accuracy_gap", False),
        ("validation_accuracy_bag_of_words", True),
        ("validation_bits_per_character", False),
        ("validation_exact_match", True),
        ("validation_linear_rmse_ratio", False),
    ],
)
def test_a_metrics_name_says_which_value_is_better(metric, greater):
    assert monitor_named(metric).greater_is_better is greater


def test_which_value_of_an_unknown_metric_is_better_is_not_guessed():
    with pytest.raises(UserError, match="high or low"):
        monitor_named("validation_discriminator_real")


@pytest.mark.deep
def test_a_cross_validation_says_held_out_fold(rare, tmp_path):
    result = train(rare, tmp_path, "--folds", 2)
    assert {name.rpartition("_")[0] for name in result["metrics"]} == {"train", "validation", "held_out_fold"}
    run = Path(result["run"])
    page = (run / "report.html").read_text()
    assert "The held-out fold is the one of 2 folds that a run has not seen" in page
    assert "test" not in page.split("<h2>")[1]
    member = (run / "fold-0" / "report.html").read_text()
    assert "held-out fold examples are wrong" in member
    assert '<th class="number">held-out fold</th>' in member
    assert set(Run.open(run / "fold-0").evaluate()) == set(result["metrics"])
    code, out, _ = tried("compare", run, run / "fold-1", "--json", "--out", tmp_path / "a.html")
    assert code == 0
    assert "held_out_fold_accuracy" in json.loads(out)["metrics"]


@pytest.mark.deep
@pytest.mark.parametrize("options", [("--mixup", 0.3), ("--label-smoothing", 0.2, "--class-weight", "balanced")])
@pytest.mark.parametrize("recipe", ["mlp", "lenet", "vit", "softmax-regression", "sequence-classification"])
def test_options_of_the_training_loss_change_the_weights_and_no_evaluation(recipe, options, tmp_path):
    if recipe == "sequence-classification" and options[0] == "--mixup":
        assert "does not know" in refused("train", recipe, *options)
        return
    words = ("--epochs", 1, "--max-steps", 20, "--num-threads", 1, "--json", "--runs", tmp_path)
    found = [tried("train", recipe, *words, *more) for more in ((), options)]
    plain, changed = (json.loads(out) for _, out, _ in found)
    assert plain["metrics"]["train_loss"] != changed["metrics"]["train_loss"]
    task = Run.open(changed["run"]).load_task()
    again = {f"test_{name}": value for name, value in task.evaluate("test").items()}
    assert again == {name: changed["metrics"][name] for name in again}


@pytest.mark.deep
def test_a_killed_run_with_all_options_resumes_to_the_same_bits(rare, tmp_path):
    options = ("--mixup", 0.4, "--label-smoothing", 0.1, "--class-weight", "balanced", "--threshold", "f1")
    whole = train(rare, tmp_path, *options, "--checkpoint-every", 3)
    run = Run.open(whole["run"])
    threshold = run.trained.saved["threshold"]
    steps = sorted(int(path.name) for path in (run.path / "checkpoints").iterdir())
    code, out, err = tried("resume", run.path, "--step", steps[0], "--json")
    assert code == 0, err
    assert json.loads(out)["metrics"] == whole["metrics"]
    assert Run.open(whole["run"]).trained.saved["threshold"] == threshold
