"""Metrics and panels of classifiers and of comparisons of networks, computed again by scikit-learn and numpy from the
saved model's outputs: what a report says and draws is what happened."""

import dataclasses
import math
import re
from typing import Any

import numpy
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import (
    confusion_matrix,
    log_loss,
    precision_recall_fscore_support,
    roc_auc_score,
    roc_curve,
)

from panel_calls import shown, trained
from quoin.display import short_names
from quoin.tasks.optimizer_race import OPTIMIZERS
from test_wiring import build

pytestmark = pytest.mark.usefixtures("one_thread")


def close(found: Any, expected: Any, rel: float = 1e-6) -> None:
    numpy.testing.assert_allclose(numpy.asarray(found, float), numpy.asarray(expected, float), rtol=rel, atol=1e-9)


def outputs_of(task: Any, split: str) -> tuple[Any, Any]:
    """Logits and labels, all rows at once."""
    rows = getattr(task.data, split)
    with torch.no_grad():
        return task.model.eval()(rows.features).double(), rows.targets.numpy()


@pytest.fixture(scope="module", params=["logistic-regression", "softmax-regression", "svm", "signal-classification"])
def classifier(request) -> Any:
    small = {"signal-classification": {"num_layers": 1, "epochs": 1}}.get(request.param, {"epochs": 1})
    task, _ = build(request.param, **(small | {"batch_size": 64}))
    return trained(task)


def test_metrics_of_a_classifier_are_scikit_learns(classifier):
    for split in ("train", "validation", "test"):
        logits, labels = outputs_of(classifier, split)
        probabilities, told = logits.softmax(-1).numpy(), classifier.evaluate(split)
        classes = list(range(probabilities.shape[1]))
        assert told["accuracy"] == pytest.approx(numpy.mean(probabilities.argmax(1) == labels))
        if classifier.gives_probabilities:
            assert told["loss"] == pytest.approx(log_loss(labels, probabilities, labels=classes), rel=1e-4)
        else:
            margins = (2 * labels - 1) * (logits[:, 1] - logits[:, 0]).numpy()
            assert told["loss"] == pytest.approx(numpy.maximum(0, 1 - margins).mean(), rel=1e-5)
        if split != "test":
            assert "auc" not in told
        elif len(classes) == 2:
            assert told["auc"] == pytest.approx(roc_auc_score(labels, (logits[:, 1] - logits[:, 0]).numpy()))
        else:
            assert told["auc"] == pytest.approx(roc_auc_score(labels, probabilities, multi_class="ovr"), abs=1e-9)


def test_panels_of_a_classifier_are_scikit_learns(classifier):
    logits, labels = outputs_of(classifier, "test")
    probabilities, panels = logits.softmax(-1).numpy(), shown(classifier.panels())
    predicted, names = probabilities.argmax(1), list(classifier.data_info.class_names)
    classes = list(range(len(names)))
    matrix = panels["Confusion matrix"]
    close(matrix.values[0], confusion_matrix(labels, predicted, labels=classes))
    assert matrix.how["row_labels"] == matrix.how["column_labels"] == names
    assert matrix.how["show_values"]
    wrong = int((predicted != labels).sum())
    assert matrix.caption.endswith(f"; {wrong} of {len(labels)} test examples are wrong.")
    scores, table = precision_recall_fscore_support(labels, predicted, zero_division=math.nan), None
    table = panels["Precision, recall and F1 score by class"]
    there = [column for column in classes if scores[3][column]]
    close(table.values[0][:, 1], scores[1][there])
    known = numpy.isfinite(scores[0][there])
    close(numpy.asarray(table.values[0][:, 0])[known], scores[0][there][known])
    assert table.how["row_labels"] == [f"{names[each]} ({scores[3][each]})" for each in there]
    assert f"recall {numpy.mean(scores[1][there]):.3f}" in table.caption
    ranks = (logits - logits.logsumexp(-1, keepdim=True)).numpy()
    areas = {each: roc_auc_score(labels == each, ranks[:, each]) for each in classes}
    lowest = [1] if len(classes) == 2 else sorted(classes, key=areas.__getitem__)[:5]
    curves = panels["ROC curve" if len(classes) == 2 else "ROC curves"]
    assert [re.sub(r" \(AUC .*", "", name) for name in curves.values[0]] == [names[each] for each in lowest]
    for each, (name, (fpr, tpr)) in zip(lowest, curves.values[0].items()):
        assert float(re.search(r"AUC ([\d.]+)", name)[1]) == pytest.approx(areas[each], rel=1e-3)
        expected = roc_curve(labels == each, ranks[:, each], drop_intermediate=False)
        close(
            numpy.interp(numpy.linspace(0, 1, 50), fpr, tpr), numpy.interp(numpy.linspace(0, 1, 50), *expected[:2]), 0.2
        )
    if not classifier.gives_probabilities:
        assert "Calibration" not in panels
        assert "Misclassified examples" not in panels
        return
    check_calibration(panels["Calibration"], probabilities, labels)
    if "Misclassified examples" in panels:
        check_worst(classifier, panels["Misclassified examples"], probabilities, labels)


def check_calibration(panel: Any, probabilities: Any, labels: Any) -> None:
    stated, right = probabilities.max(1), probabilities.argmax(1) == labels
    bins = numpy.clip(numpy.ceil(stated * 15) - 1, 0, 14).astype(int)
    counts = numpy.bincount(bins, minlength=15)
    close(panel.values[2], counts)
    full = counts > 0
    close(numpy.asarray(panel.values[0])[full], [stated[bins == each].mean() for each in numpy.flatnonzero(full)], 1e-5)
    fractions = [right[bins == each].mean() for each in numpy.flatnonzero(full)]
    close(numpy.asarray(panel.values[1])[full], fractions)
    gaps = [abs(stated[bins == each].mean() - right[bins == each].mean()) for each in numpy.flatnonzero(full)]
    error = float(numpy.average(gaps, weights=counts[full]))
    assert float(re.search(r"error: ([\d.e-]+)\.$", panel.caption)[1]) == pytest.approx(error, rel=6e-3)


def check_worst(task: Any, panel: Any, probabilities: Any, labels: Any) -> None:
    """The twelve errors whose true class has the lowest probability, that first."""
    predicted, names = probabilities.argmax(1), list(task.data_info.class_names)
    wrong = numpy.flatnonzero(predicted != labels)
    worst = wrong[numpy.argsort(probabilities[wrong, labels[wrong]], kind="stable")][:12]
    sure = probabilities[worst, predicted[worst]]
    told = [f"{names[predicted[row]]} ({p:.0%}), true {names[labels[row]]}" for row, p in zip(worst, sure)]
    if panel.kind == "bars":
        assert list(panel.values[0]) == [f"test row {row + 1}: {each}" for row, each in zip(worst, told)]
        close(list(panel.values[0].values()), sure, 1e-4)
        assert panel.how == {"x_label": "predicted probability"}
    elif panel.kind == "image_grid":
        assert panel.values[1] == told
        assert panel.how == {"smooth": True}
        close(panel.values[0], task.data.test_images[worst.tolist()])


def test_many_classes_show_their_worst():
    """Of more classes than the table has rows the worst; a matrix of too many has no numbers, or is not shown."""
    from quoin.tasks.supervised_panels import classifier_panels

    task, _ = build("softmax-regression", epochs=1)
    for count, numbered in ((20, True), (21, False), (40, False), (41, None)):
        names = tuple(f"a class with a long name {number}" for number in range(count))
        labels = torch.arange(200) % count
        info = dataclasses.replace(task.data.data_info, class_names=names)
        test = dataclasses.replace(task.data.test, features=torch.zeros(200, 64), targets=labels)
        data = dataclasses.replace(task.data, data_info=info, test=test)
        outputs = torch.nn.functional.one_hot((labels + (torch.arange(200) < 30)) % count, count) * 4.0
        panels = shown(classifier_panels(outputs, outputs.argmax(-1), data, test_name="held-out fold", threshold=0.25))
        table = panels["Precision, recall and F1 score by class"]
        assert len(table.values[0]) == min(count, 20)
        assert ("classes with the lowest F1 score" in table.caption) == (count > 20)
        assert ("Confusion matrix" in panels) == (numbered is not None)
        if numbered is not None:
            matrix = panels["Confusion matrix"]
            assert matrix.how["show_values"] == numbered
            shorter = matrix.how["row_labels"]
            assert all(len(name) <= 20 and "…" in name for name in shorter)
            assert len(set(shorter)) == count
            assert "30 of 200 held-out fold examples are wrong." in matrix.caption
            assert "is predicted from a probability of 0.25 on" in matrix.caption
        assert "held-out fold examples" in panels["ROC curves"].caption
        assert len(panels["ROC curves"].values[0]) == 5


@given(st.lists(st.text("ab ", min_size=1, max_size=30), unique=True, max_size=30), st.integers(8, 20))
def test_shortened_names_stay_apart(names, longest):
    found = short_names(names, longest)
    assert all(len(name) <= longest for name in found)
    assert [short for short, name in zip(found, names) if len(name) <= longest] == [
        name for name in names if len(name) <= longest
    ]
    assert len(set(found)) == len(names)


def test_regression_in_its_own_unit():
    task, _ = build("linear-regression", epochs=1)
    trained(task)
    scale = task.data.target_scaler
    for split in ("train", "validation", "test"):
        outputs, targets = outputs_of(task, split)
        error = numpy.sqrt(numpy.mean((outputs.numpy() - targets) ** 2)) * float(scale.std)
        told = task.evaluate(split)
        assert (told["rmse"], told["loss"]) == pytest.approx((error, error**2 / 2), rel=1e-5)
    panel = shown(task.panels())["Predicted vs. true"]
    for found, standard in zip(panel.values, (targets, outputs.numpy())):
        close(found, standard * float(scale.std) + float(scale.mean), 1e-4)


def test_recovered_weights_are_within_the_errors_of_least_squares():
    from quoin.data.generated import LINEAR_BIAS, LINEAR_NOISE, LINEAR_WEIGHTS

    task, _ = build("linear-regression", epochs=3, schedule="constant")
    trained(task, 3)
    x = task.data.feature_scaler.inverse_transform(task.data.train.features).double().numpy()
    design = numpy.column_stack([numpy.ones(len(x)), x])
    errors = LINEAR_NOISE * numpy.sqrt(numpy.diag(numpy.linalg.inv(design.T @ design)))
    zero = torch.zeros(1, x.shape[1])
    with torch.no_grad():  # the model's line in the unit of the data, by asking it
        ends = torch.cat([zero, torch.eye(x.shape[1])])
        found = task.data.target_scaler.inverse_transform(task.model(task.data.feature_scaler.transform(ends).float()))
    weights = numpy.array([float(found[0]), *(float(each - found[0]) for each in found[1:])])
    z = numpy.abs(weights - [LINEAR_BIAS, *LINEAR_WEIGHTS]) / errors
    assert task.evaluate("train")["max_abs_z_score"] == pytest.approx(z.max(), rel=1e-3)
    assert "max_abs_z_score" not in task.evaluate("test")


def test_dropout_beside_none():
    task, options = build("mlp-dropout", epochs=1, hidden_dims=(16,), batch_size=64, label_noise=0.25)
    trained(task)
    told, train, plain = task.evaluate("test"), task.evaluate("train"), task.others["baseline"]
    means = {}
    for name, each in (("", task), ("baseline_", plain)):
        for split in ("train", "test"):
            logits, labels = outputs_of(each, split)
            means[name, split] = numpy.mean(logits.argmax(1).numpy() == labels)
            assert (train if split == "train" else told)[f"{name}accuracy"] == pytest.approx(means[name, split])
        assert told[f"{name}generalization_gap"] == pytest.approx(means[name, "train"] - means[name, "test"])
    gaps = {name: means[name, "train"] - means[name, "test"] for name in ("", "baseline_")}
    assert told["generalization_gap_reduction"] == pytest.approx(gaps["baseline_"] - gaps[""])
    assert not any("gap" in name for name in train)
    panel = shown(task.panels())["Training and test accuracy, with and without dropout"]
    close(list(panel.values[0].values()), [means[n, s] for n in ("", "baseline_") for s in ("train", "test")])
    assert f"is {gaps['']:.3f} with dropout and {gaps['baseline_']:.3f} without. 25% of" in panel.caption
    assert [each.p for each in task.model.modules() if isinstance(each, torch.nn.Dropout)] == [options.dropout]
    assert not any(each.p for each in plain.model.modules() if isinstance(each, torch.nn.Dropout))


@pytest.fixture(scope="module")
def race() -> Any:
    task, _ = build(
        "optimizer-race", epochs=2, hidden_dims=(8,), lrs=(0.01, 0.1), adaptive_lrs=(0.003, 0.03), batch_size=256,
        loss_threshold=2.1, weight_decay=0.2, momentum=0.8,
    )  # fmt: skip
    return trained(task, 2)


def test_the_metrics_of_a_race(race):
    window = race.batches.num_batches
    losses = {}
    for trial in race.trials:
        logits, labels = outputs_of(trial.task, "validation")
        losses[trial.optimizer, trial.lr] = log_loss(labels, logits.softmax(-1).numpy())
        assert trial.eval_losses[-1] == pytest.approx(losses[trial.optimizer, trial.lr], rel=1e-4)
        assert len(trial.losses) == 2 * window == race.trials[0].task.updater.total_steps
    train, test = race.evaluate("train"), race.evaluate("test")
    for name in OPTIMIZERS:
        lr = min((rate for kind, rate in losses if kind == name), key=lambda rate: losses[name, rate])
        trial = next(each for each in race.trials if (each.optimizer, each.lr) == (name, lr))
        assert train[f"lr_{name}"] == lr
        logits, labels = outputs_of(trial.task, "test")
        assert test[f"accuracy_{name}"] == pytest.approx(numpy.mean(logits.argmax(1).numpy() == labels))
        means = [numpy.mean(trial.losses[end - window : end]) for end in range(window, 2 * window + 1)]
        reached = [window + past for past, mean in enumerate(means) if mean <= 2.1]
        assert train[f"steps_to_threshold_{name}"] == (reached[0] if reached else 2 * window)
    assert test["min_accuracy"] == min(test[f"accuracy_{name}"] for name in OPTIMIZERS)
    best = min(losses, key=losses.__getitem__)
    assert test["accuracy"] == test[f"accuracy_{best[0]}"]
    assert not any("lr_" in name or "steps" in name for name in test)


def test_the_panels_of_a_race(race):
    panels, window, chosen = shown(race.panels()), race.batches.num_batches, race.chosen()
    by_steps, by_seconds, sweep = (panels[name] for name in ("Loss by steps", "Loss by seconds", "Learning-rate sweep"))
    assert list(by_steps.lines) == [f"{OPTIMIZERS[name]}, lr {each.lr:g}" for name, each in chosen.items()]
    for (name, trial), (steps, means), (seconds, again) in zip(
        chosen.items(), by_steps.lines.values(), by_seconds.lines.values()
    ):
        assert steps[0] == window
        assert set(numpy.diff(steps)) == {window // 4}
        close(means, [numpy.mean(trial.losses[int(end) - window : int(end)]) for end in steps])
        close(again, means)
        close(seconds, steps * trial.seconds / len(trial.losses))
        rates = [each for each in race.trials if each.optimizer == name]
        close(sweep.lines[OPTIMIZERS[name]], ([each.lr for each in rates], [each.eval_losses[-1] for each in rates]))
        assert f"{OPTIMIZERS[name]} {trial.steps_to(2.1, window)}" in by_steps.caption
        assert f"{OPTIMIZERS[name]} {1e6 * trial.seconds / len(trial.losses):.0f}" in by_seconds.caption
    assert by_steps.how["reference_lines"] == by_seconds.how["reference_lines"] == {"level": 2.1}
    assert f"Mean training loss of {window} steps" in by_steps.caption
    assert f"of all {len(race.trials)} runs" in sweep.caption
    ratios = [max(y) / min(y) for _, y in sweep.lines.values()]
    ends = [each.eval_losses[-1] for each in chosen.values()]
    assert f"by a factor of {max(ends) / min(ends):.2g}, among" in sweep.caption
    assert f"up to {max(ratios):.2g}." in sweep.caption


def test_batch_norm_by_batch_size():
    task, options = build("batchnorm-study", batch_sizes=(64, 256), epochs=1)
    trained(task)
    accuracies = {}
    for name, each in task.networks.items():
        for split, found in (("validation", [task.accuracies[name][-1]]), ("test", [])):
            logits, labels = outputs_of(each, split)
            accuracies[name, split] = numpy.mean(logits.argmax(1).numpy() == labels)
            assert all(value == pytest.approx(accuracies[name, split]) for value in found)
    told = task.evaluate("test")
    ratios = {}
    for size in (64, 256):
        ratios[size] = numpy.mean(task.losses[f"norm_{size}"]) / numpy.mean(task.losses[f"baseline_{size}"])
        assert told[f"loss_ratio_{size}"] == pytest.approx(ratios[size])
        for kind in ("norm", "baseline"):
            assert told[f"accuracy_{kind}_{size}"] == pytest.approx(accuracies[f"{kind}_{size}", "test"])
    assert told["loss_ratio"] == max(told["loss_ratio_64"], told["loss_ratio_256"])
    assert told["accuracy"] == told["accuracy_norm_256"]
    assert told["baseline_accuracy"] == told["accuracy_baseline_256"]
    losses, validation, *_ = task.panels()
    steps = task.batches.num_batches
    for panel, values, x in (
        (losses, task.losses, numpy.arange(1, steps + 1) / steps),
        (validation, task.accuracies, [1]),
    ):
        top = 1.05 * max(max(each) for each in values.values())
        figure = panel.plot.figure
        assert [axes.get_title("left") for axes in figure.axes] == ["batches of 64", "batches of 256"]
        for axes, size in zip(figure.axes, (64, 256)):
            close(axes.get_ylim(), (0, top))
            for line, kind in zip(axes.get_lines(), ("norm", "baseline")):
                close(line.get_xdata(), x)
                close(line.get_ydata(), values[f"{kind}_{size}"])
        assert [axes.get_xlabel() for axes in figure.axes] == ["epoch", "epoch"]
        assert figure.axes[1].get_ylabel() == ""
    assert f"a learning rate of {options.lr:g}. A point is the mean over 256 rows." in losses.caption
    words = "; ".join(
        f"batches of {size}: {accuracies[f'norm_{size}', 'test']:.3f} with, "
        f"{accuracies[f'baseline_{size}', 'test']:.3f} without"
        for size in (64, 256)
    )
    assert validation.caption == f"Test accuracy at the end: {words}."
