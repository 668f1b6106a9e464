"""Precision, recall, F1, balanced accuracy, one-vs-rest AUC and thresholds, beside scikit-learn's and brute force."""

import math
from typing import Any

import numpy
import pytest
import sklearn.metrics
import torch

from quoin.errors import UserError
from quoin.metrics import (
    balanced_accuracy,
    balanced_accuracy_threshold,
    f1_threshold,
    precision_recall_fscore_support,
    roc_auc,
    roc_auc_definition,
    roc_auc_ovr,
    roc_curve,
)


def guesses(seed: int, num_classes: int, size: int = 60) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    prediction, labels = torch.randint(num_classes, (2, size), generator=generator)
    return prediction, labels


@pytest.mark.parametrize(("seed", "num_classes", "size"), [(0, 2, 60), (1, 3, 60), (2, 5, 60), (3, 9, 5), (4, 4, 1)])
def test_scores_by_class_are_sklearns(seed, num_classes, size):
    """With nine classes and five examples some are never predicted, some have no examples, and some neither."""
    prediction, labels = guesses(seed, num_classes, size)
    ours = precision_recall_fscore_support(prediction, labels, num_classes)
    peer: Any = sklearn.metrics.precision_recall_fscore_support(
        labels.numpy(),
        prediction.numpy(),
        labels=range(num_classes),
        zero_division=numpy.nan,  # pyright: ignore[reportArgumentType]
    )
    for mine, theirs in zip(ours, peer, strict=True):
        numpy.testing.assert_allclose(mine.numpy(), theirs, equal_nan=True)
    expected = sklearn.metrics.recall_score(
        labels.numpy(), prediction.numpy(), labels=labels.unique().numpy(), average="macro"
    )
    assert balanced_accuracy(prediction, labels, num_classes) == pytest.approx(expected)


@pytest.mark.parametrize("levels", [4, 1000])
def test_roc_curve_and_auc_are_sklearns_with_ties(levels):
    generator = torch.Generator().manual_seed(levels)
    scores = torch.randint(levels, (80,), generator=generator).double() / levels
    labels = torch.randint(2, (80,), generator=generator)
    ours = roc_curve(scores, labels)
    peer = sklearn.metrics.roc_curve(labels.numpy(), scores.numpy(), drop_intermediate=False)
    for mine, theirs in zip(ours, peer, strict=True):
        numpy.testing.assert_allclose(mine.numpy(), theirs)
    assert roc_auc(scores, labels) == pytest.approx(sklearn.metrics.roc_auc_score(labels.numpy(), scores.numpy()))
    assert roc_auc(scores, labels) == pytest.approx(roc_auc_definition(scores, labels))


def test_one_vs_rest_auc_is_sklearns_and_leaves_out_classes_without_examples():
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(4, (90,), generator=generator)
    probabilities = (torch.randn(90, 4, generator=generator).double() * 2).softmax(-1)
    ours = roc_auc_ovr(probabilities, labels)
    peer = [
        sklearn.metrics.roc_auc_score((labels == label).numpy(), probabilities[:, label].numpy()) for label in range(4)
    ]
    macro = sklearn.metrics.roc_auc_score(labels.numpy(), probabilities.numpy(), multi_class="ovr")
    numpy.testing.assert_allclose(ours.by_class.numpy(), peer)
    assert ours.output == pytest.approx(macro)
    two = roc_auc_ovr(probabilities[:, :2].log_softmax(-1), labels % 2)  # one area, whichever class is positive
    assert two.by_class[0] == pytest.approx(float(two.by_class[1])) == two.output
    few = labels.clone()
    few[labels == 2] = 1
    found = roc_auc_ovr(probabilities, few)
    assert found.by_class.isnan().tolist() == [False, False, True, False]
    assert found.output == pytest.approx(float(found.by_class[[0, 1, 3]].mean()))
    assert math.isnan(roc_auc_ovr(probabilities, torch.zeros_like(labels)).output)


BY_SKLEARN = {
    balanced_accuracy_threshold: sklearn.metrics.balanced_accuracy_score,
    f1_threshold: sklearn.metrics.f1_score,
}


@pytest.mark.parametrize("rule", BY_SKLEARN)
@pytest.mark.parametrize(("seed", "levels"), [(0, 5), (1, 1000), (3, 2)])
def test_a_threshold_is_the_best_of_all(rule, seed, levels):
    generator = torch.Generator().manual_seed(seed)
    p = torch.randint(levels + 1, (25,), generator=generator).double() / levels
    labels = (torch.rand(25, generator=generator) < 0.2 + 0.5 * p).long()

    def score(threshold: float) -> float:
        return BY_SKLEARN[rule](labels.numpy(), (p >= threshold).long().numpy())

    threshold = rule(p, labels)
    every = [float(each) for each in p.unique()]
    assert score(threshold) == pytest.approx(max(map(score, every)))
    equals = [each for each in every if score(each) == pytest.approx(score(threshold))]
    below = {each: max((other for other in every if other < each), default=each) for each in equals}
    assert abs(threshold - 0.5) == pytest.approx(min(abs((each + below[each]) / 2 - 0.5) for each in equals))


def test_a_threshold_tells_neighboring_floats_apart():
    low = torch.tensor(0.5, dtype=torch.float64)
    high = torch.nextafter(low, torch.ones_like(low))
    threshold = balanced_accuracy_threshold(torch.stack([low, high]), torch.tensor([0, 1]))
    assert low < threshold <= high


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: f1_threshold(torch.ones(2), torch.tensor([1, 1])), "both labels"),
        (lambda: roc_auc_ovr(torch.ones(2, 2), torch.tensor([0, 2])), "2"),
        (lambda: balanced_accuracy(torch.zeros(0).long(), torch.zeros(0).long(), 2), "expected"),
        (lambda: precision_recall_fscore_support(torch.tensor([3]), torch.tensor([0]), 2), "3"),
    ],
)
def test_what_cannot_be_is_told_in_one_line(make, told):
    with pytest.raises(UserError, match=told):
        make()
