"""Objectives and metrics: hand-computed values, scikit-learn as a peer, sums over batches, and the words of each refusal."""

import numpy as np
import pytest
import torch
from sklearn import metrics as peer

from quoin.errors import Mistake
from quoin.objectives import (
    accuracy,
    confusion_matrix,
    cross_entropy,
    cross_entropy_definition,
    empirical_risk,
    gaussian_nll,
    r_squared,
    root_mean_squared_error,
    squared_loss,
    zero_one_loss,
)


@pytest.fixture(params=range(4))
def labels(request):
    generator = torch.Generator().manual_seed(request.param)
    return torch.randint(5, (60,), generator=generator), torch.randint(5, (60,), generator=generator)


@pytest.fixture(params=range(4))
def numbers(request):
    generator = torch.Generator().manual_seed(request.param)
    target = torch.randn(50, generator=generator, dtype=torch.float64)
    return target + 0.3 * torch.randn(50, generator=generator, dtype=torch.float64), target


def test_labels_agree_with_scikit_learn(labels):
    predicted, true = labels
    assert accuracy(predicted, true) == pytest.approx(peer.accuracy_score(true, predicted), abs=1e-15)
    assert float(zero_one_loss(predicted, true).sum()) == peer.zero_one_loss(true, predicted, normalize=False)
    np.testing.assert_array_equal(confusion_matrix(predicted, true, 5), peer.confusion_matrix(true, predicted, labels=range(5)))


def test_numbers_agree_with_scikit_learn(numbers):
    prediction, target = numbers
    error = peer.root_mean_squared_error(target, prediction)
    assert root_mean_squared_error(prediction, target) == pytest.approx(error, rel=1e-13)
    assert r_squared(prediction, target) == pytest.approx(peer.r2_score(target, prediction), rel=1e-12)


def test_sums_over_uneven_batches_are_the_whole(labels):
    predicted, true = labels
    parts = list(zip(predicted.split(23), true.split(23)))
    counts = torch.stack([confusion_matrix(p, t, 5) for p, t in parts]).sum(dim=0)
    assert torch.equal(counts, confusion_matrix(predicted, true, 5))
    wrong = sum(float(zero_one_loss(p, t).sum()) for p, t in parts)
    assert 1 - wrong / len(true) == pytest.approx(accuracy(predicted, true), abs=1e-15)


def test_confusion_has_true_classes_in_rows():
    counts = confusion_matrix(torch.tensor([1, 1, 0]), torch.tensor([0, 0, 2]), 3)
    assert counts.tolist() == [[0, 2, 0], [0, 0, 0], [1, 0, 0]]
    assert confusion_matrix(torch.empty(0, dtype=torch.long), torch.empty(0, dtype=torch.long), 2).tolist() == [[0, 0], [0, 0]]


def test_values_by_hand():
    assert squared_loss(torch.tensor([3.0, -1.0]), torch.tensor([1.0, 1.0])).tolist() == [2.0, 2.0]
    assert float(empirical_risk(squared_loss, torch.tensor([4.0, 1.0]), torch.tensor([0.0, 1.0]))) == 4.0
    assert r_squared(torch.tensor([2.0, 2.0, 2.0]), torch.tensor([1.0, 2.0, 3.0])) == 0.0  # the mean explains nothing
    assert root_mean_squared_error(torch.tensor([0.0, 0.0]), torch.tensor([3.0, 4.0])) == pytest.approx(12.5**0.5)
    # Uniform logits: log q, whatever the target.
    for target in (torch.tensor([0, 3]), torch.full((2, 4), 0.25)):
        torch.testing.assert_close(cross_entropy(torch.ones(2, 4), target), torch.tensor([4.0, 4.0]).log())


def test_metrics_may_be_taken_of_a_model_in_training(numbers):
    prediction, target = numbers
    with_gradient = prediction.clone().requires_grad_()
    for metric in (root_mean_squared_error, r_squared):  # a warning of torch's would fail this test
        assert metric(with_gradient, target) == metric(prediction, target)


def test_labels_of_any_integer_type():
    logits = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    for dtype in (torch.uint8, torch.int32):
        labels = torch.tensor([0, 3, 1])
        for loss in (cross_entropy, cross_entropy_definition):
            torch.testing.assert_close(loss(logits, labels.to(dtype)), loss(logits, labels))


def test_no_examples_give_no_losses():
    nothing = torch.empty(0, dtype=torch.long)
    for loss in (cross_entropy, cross_entropy_definition):
        assert loss(torch.empty(0, 3), nothing).shape == (0,)
        assert loss(torch.empty(0, 3), torch.empty(0, 3)).shape == (0,)
    with pytest.raises(Mistake, match="at least one example"):
        empirical_risk(cross_entropy, torch.empty(0, 3), nothing)


@pytest.mark.parametrize("loss", [cross_entropy, cross_entropy_definition])
@pytest.mark.parametrize(
    ("target", "words"),
    [
        (torch.tensor([0, 3]), "from 0 to 2 for 3 classes, came 3"),
        (torch.tensor([0, -100]), "came -100"),  # torch would silently leave this one out
        (torch.tensor([0, 1, 2]), r"leading axes \(2,\) of target"),
        (torch.tensor([[0.5, 0.5, 0.5], [1.0, 0.0, 0.0]]), "sum to one"),
        (torch.tensor([[1.5, -0.5, 0.0], [1.0, 0.0, 0.0]]), "non-negative"),
        (torch.tensor([[torch.nan, 0.0, 0.0], [1.0, 0.0, 0.0]]), "non-negative"),
        (torch.tensor([0.0, 1.0]), "leading axes|axis q"),
    ],
)
def test_cross_entropy_refuses(loss, target, words):
    with pytest.raises(Mistake, match=words) as caught:
        loss(torch.zeros(2, 3), target)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: squared_loss(torch.zeros(4), torch.zeros(4, 1)), r"came \(4, 1\)"),  # would broadcast to 4 x 4
        (lambda: gaussian_nll(torch.zeros(2), torch.zeros(2), 0.0), "positive scale"),
        (lambda: gaussian_nll(torch.zeros(2), torch.zeros(2), float("nan")), "positive scale"),
        (lambda: accuracy(torch.zeros(4, 3), torch.zeros(4)), "leading axes"),
        (lambda: accuracy(torch.zeros(0), torch.zeros(0)), "at least one example"),
        (lambda: confusion_matrix(torch.tensor([3]), torch.tensor([0]), 3), "from 0 to 2"),
        (lambda: confusion_matrix(torch.tensor([0]), torch.tensor([-1]), 3), "came -1"),
        (lambda: r_squared(torch.zeros(3), torch.ones(3)), "targets that vary"),
        (lambda: root_mean_squared_error(torch.zeros(0), torch.zeros(0)), "at least one example"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(Mistake, match=words):
        call()
